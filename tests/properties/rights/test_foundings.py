"""First rosters in any weather: of all that are ever proven no two have a name in common, and in a calm one comes about."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_mesh.escrow.founding_state import Founders
from smg_mesh.escrow.limit_model import Roster
from smg_mesh.escrow.messages.founding_messages import FoundVote
from smg_mesh.escrow.messages.messages import RosterTell, RosterVote, RosterWant
from smg_mesh.escrow.roster.roster_founding import _Round
from support.rights.founding_world import FoundingWorld
from support.tools.long_ranges import first_and_long

CALM_MS = 20_000
"""Two rosters without a name in common notice each other within five seconds, and a proposer may wait for two."""


def losses_max(count: int, expect: int) -> int:
    """Return how many names may lose their disks, so that of any two sets of founders one in common remembers, and of
    each set less than half forget."""
    return max(0, min(2 * expect - count - 1, (expect - 1) // 2))


def trouble(world: FoundingWorld, rng: Random, losers: list[str]) -> None:
    """Let one thing happen."""
    names = "".join(world.hosts)
    name = rng.choice(names)
    match rng.randrange(8):
        case 0 | 1 if world.hosts[name].keeper is None:
            world.boot(name)
        case 2:
            world.crash(name)
        case 3 if losers:
            loser = rng.choice(losers)
            world.crash(loser, lose_disk=True)
            world.boot(loser)
        case 4:
            side = frozenset(rng.sample(names, rng.randint(1, len(names) - 1)))
            world.cut = lambda one, other: (one in side) != (other in side)
        case 5:
            gone = name
            world.cut = lambda one, _other: one == gone
        case 6:
            world.cut = lambda _one, _other: False
        case _:
            world.loss = rng.choice([0.0, 0.1, 0.4])
            world.twice, world.late = rng.choice([0.0, 0.3]), rng.choice([0.0, 0.1, 0.3])
    world.hosts[name].clock_off_ms += rng.choice([0, 0, -90_000, 5_000])
    world.look(blind=rng.choice([0.0, 0.0, 0.3]), stale=rng.choice([0.0, 0.3, 0.9]))


def epoch(world: FoundingWorld, rng: Random, losers: list[str]) -> None:
    """Let some be on their own for long enough to propose; what they accept, and what is proven, is rarely heard."""
    names = "".join(world.hosts)
    side = frozenset(rng.sample(names, rng.randint(1, len(names))))
    world.cut = lambda one, other: (one in side) != (other in side)
    for name, host in world.hosts.items():
        chance = rng.random()
        if chance < 0.1:
            world.crash(name, lose_disk=name in losers and rng.random() < 0.5)
        if host.keeper is None and rng.random() < 0.7:
            world.boot(name)
    rare = rng.choice([0.0, 0.5, 0.9])
    world.losses = {RosterVote: rare, RosterTell: rng.choice([0.0, rare]), RosterWant: 0.9}
    world.look()
    # The side that proposes is taken apart when it has got just so far.
    kind, more = rng.choice([FoundVote, RosterTell, RosterVote]), rng.randint(1, 6)
    enough = world.heard[kind] + more
    for _ in range(300):
        world.run(10)
        if world.heard[kind] >= enough:
            break


def history(seed: int) -> FoundingWorld:
    """Let names begin, die, forget, be cut off and return while they found a roster; then let it be calm."""
    rng = Random(seed)
    sides = rng.random() < 0.7
    count = rng.randint(4, 6) if sides else rng.randint(2, 6)
    expect = rng.randint(2, count - 1) if sides else rng.randint(2, count)
    names = "abcdef"[:count]
    disk_ms = rng.choice([(1, 10), (1, 60), (50, 900)])
    world = FoundingWorld(seed, names, expect=expect, disk_ms=disk_ms)
    losers = rng.sample(names, losses_max(count, expect))
    for name in names:
        world.boot(name)
    world.look()
    world.run(100 if sides else rng.choice([100, 600, 650, 700, 800]))
    for _ in range(rng.randint(3, 25)):
        if sides:
            epoch(world, rng, losers)
        else:
            trouble(world, rng, losers)
            world.run(rng.choice([10, 30, 80, 200, 700, 2_500]))
    calm(world)
    return world


def calm(world: FoundingWorld) -> None:
    """Let all be there and hear each other."""
    world.loss = world.twice = world.late = 0.0
    world.losses = {}
    world.cut = lambda _one, _other: False
    for name, host in world.hosts.items():
        if host.keeper is None:
            world.boot(name)
    world.look()


@pytest.mark.parametrize("first", first_and_long(range(0, 4_000, 100), now=3))
def test_no_two_proven_rosters_have_a_name_in_common_and_all_come_to_one(first: int) -> None:
    for seed in range(first, first + 100):
        world = history(seed)
        world.run_until(world.agreed, within_ms=CALM_MS)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(4_000, 1 << 40))
def test_so_it_is_with_any_seed(seed: int) -> None:
    world = history(seed)
    world.run_until(world.agreed, within_ms=CALM_MS)


def test_names_that_need_many_packets_are_told_in_any_order() -> None:
    world = FoundingWorld(1, [f"n{number:02}" for number in range(40)], expect=30)
    world.twice, world.loss = 0.2, 0.02
    for name in world.hosts:
        world.boot(name)
    world.look()
    world.run_until(world.agreed, within_ms=5_000)
    assert [len(names) for names in world.proven.values()] == [40]


def test_in_a_calm_network_all_have_a_first_roster_a_second_after_they_have_listened() -> None:
    for seed in range(10):
        world = FoundingWorld(seed, "abcde", expect=3, disk_ms=(5, 40))
        for name in world.hosts:
            world.boot(name)
        world.look()
        world.run_until(world.agreed, within_ms=1_600)


def owning(one: _Round) -> Founders | None:
    """Return a proposer's own founders, whatever those that promised have accepted and promised before."""
    return one.own if all(name in one.votes for name in one.own.names) else None


@pytest.mark.parametrize(
    ("cls", "name", "broken", "seeds"),
    [
        (Roster, "counts", property(lambda one: True), range(590, 650)),
        (Founders, "majority", property(lambda one: 1), range(60, 120)),
        (_Round, "choice", owning, range(60, 120)),
    ],
    ids=["goes by what is not proven", "one that accepts is enough", "takes nothing over"],
)
def test_it_is_noticed_that_a_node(
    monkeypatch: pytest.MonkeyPatch, cls: type, name: str, broken: object, seeds: range
) -> None:
    monkeypatch.setattr(cls, name, broken)
    with pytest.raises(AssertionError, match=r"\) and \("):
        list(map(history, seeds))
