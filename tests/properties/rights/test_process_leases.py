"""Whatever processes do, and whenever they die: together they never spend more than their node may, and all comes back."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from support.rights.lending_world import LIMITS, LendingWorld
from support.tools.example_counts import example_count

STEPS = [
    *(["ask"] * 10),
    *(["settle"] * 5),
    *(["up", "down"] * 5),
    *(["arrive"] * 3),
    *(["wait"] * 4),
    *(["refill"] * 2),
    "own",
    "trouble",
]
TROUBLES = ["kill", "cut", "cut", "restart", "window", "window"]


def run(world: LendingWorld, seed: int, steps: int) -> None:
    """Do so many things by chance, and look after each whether it is still true."""
    chance = random.Random(seed)
    for _ in range(steps):
        what, who, much = chance.choice(STEPS), chance.randrange(4), chance.randrange(26)
        what = chance.choice(TROUBLES) if what == "trouble" else what
        names = sorted(world.processes)
        name = names[who % len(names)]
        if what in TROUBLES:
            disturb(world, what, name, much)
        else:
            act(world, what, name, much)
        world.check()


def act(world: LendingWorld, what: str, name: str, much: int) -> None:
    """Let something ordinary happen to a process."""
    key = "w" if much % 3 else "c"
    match what:
        case "ask":
            world.request(name, key, 1 if key == "c" else 1 + much % 7)
        case "settle":
            world.settle(name, much, much % 5)
        case "up" | "down":
            world.deliver(name, up=what == "up")
        case "wait":
            world.pass_time(much)
        case "arrive":
            world.arrive()
        case "refill":
            world.refill()
        case _:
            world.own_request("w", 1 + much % 3)


def disturb(world: LendingWorld, what: str, name: str, much: int) -> None:
    """Let something happen that nobody wished for."""
    match what:
        case "window":
            world.pass_time(10 * much)
        case "kill":
            world.kill(name)
            world.start()
        case "cut":
            world.cut(name)
        case _:
            world.restart_control()


@settings(max_examples=example_count(150), deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 400), st.integers(1, 3), st.sampled_from([0, 5, 20]))
def test_no_more_is_spent_than_the_node_may_and_what_is_not_used_comes_back(
    seed: int, steps: int, processes: int, pooled: int
) -> None:
    world = LendingWorld(pooled=pooled)
    for _ in range(processes):
        world.start()
    run(world, seed, steps)
    for process in world.processes.values():
        process.line.clear()
    world.settle_down(5_000)
    world.check()
    opened = sum(r.cost for p in world.processes.values() for r in p.open if r.key == "c")
    assert world.node.shares["c"].left == LIMITS["c"].amount - opened
    assert world.lender.lent("c") == opened
    # Another window in which nothing died: whoever asks may have all of it, in one piece.
    world.pass_time(1_000)
    name = sorted(world.processes)[-1]
    world.arrive()
    world.request(name, "w", LIMITS["w"].amount)
    world.arrive()
    assert sum(world.used[w] for w in [world.node.shares["w"].window]) == LIMITS["w"].amount


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=40))
def test_the_last_right_can_be_used_by_whoever_asks(order: list[int]) -> None:
    world = LendingWorld()
    names = [world.start() for _ in range(3)]
    world.arrive()
    let_in = 0
    for who in order:
        let_in += world.request(names[who], "w", 1)
        world.arrive()
    let_in += world.waited["w"]
    assert let_in == min(len(order), LIMITS["w"].amount)
    world.check()
