"""Ephemeral registers under every weather: any order, loss, repetition, deaths, new lives, garbage."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_mesh.config import StateOptions
from smg_mesh.crdt.registers.ephemeral_registers import RegisterError, Registers
from smg_mesh.state.workers.health_verdicts import Verdicts
from smg_mesh.state.workers.shared_load import LoadView
from support.state.register_world import RegisterWorld, Rumor
from support.tools.example_counts import example_count

NAMES = ("a", "b", "c")

WRITES = st.tuples(st.just("write"), st.sampled_from(NAMES), st.integers(0, 3), st.integers(0, 9))
CLEARS = st.tuples(st.just("clear"), st.sampled_from(NAMES), st.integers(0, 3), st.just(0))
PAUSES = st.tuples(st.just("pause"), st.just(""), st.integers(0, 3), st.just(0))
RESTARTS = st.tuples(st.just("restart"), st.sampled_from(NAMES), st.just(0), st.just(0))
HISTORY = st.lists(st.one_of(WRITES, WRITES, CLEARS, PAUSES, RESTARTS), max_size=40)


def held(world: RegisterWorld, name: str) -> list[tuple[str, str, bytes]]:
    items = world[name].bound.items("k")
    return [(item.owner, item.key, item.content) for item in items]


@settings(deadline=None, max_examples=example_count(200))
@given(history=HISTORY, weather=st.randoms(use_true_random=False))
def test_whatever_is_lost_repeated_or_late_a_refresh_makes_all_agree(
    history: list[tuple[str, str, int, int]], weather: object
) -> None:
    chance = weather.random  # type: ignore[attr-defined]  # Hypothesis does not say what it gives
    world = RegisterWorld(*NAMES)
    late: list[tuple[Rumor, str]] = []
    wanted: dict[tuple[str, str], bytes] = {}

    def deliver(rumor: Rumor, to: str) -> bool:
        if chance() < 0.5:
            late.append((rumor, to))
        return bool(chance() < 0.6)

    world.deliver = deliver
    for act, name, key, value in history:
        if act == "write":
            world[name].bound.set("k", str(key), str(value).encode(), ttl_ms=60_000)
            wanted[name, str(key)] = str(value).encode()
        elif act == "clear":
            world[name].bound.clear("k", str(key))
            wanted.pop((name, str(key)), None)
        elif act == "restart":
            world.begin(name, boot=world[name].boot + 100_000)
            wanted = {place: content for place, content in wanted.items() if place[0] != name}
        else:
            world.pass_time(70 * key)
        if late and chance() < 0.5:
            rumor, to = late.pop(int(chance() * len(late)))
            world[to].hear(rumor)
            world[to].hear(rumor)
    world.pass_time(200)
    world.deliver = lambda rumor, to: True
    for (owner, place), content in wanted.items():
        world[owner].bound.set("k", place, content, ttl_ms=120_000)
    world.pass_time(200)
    for rumor, to in reversed(late):
        world[to].hear(rumor)
    # What was cleared and the clearing lost: it is over when its time is.
    world.pass_time(70_000, step_ms=5_000)
    expected = sorted((*place, content) for place, content in wanted.items())
    for name in NAMES:
        assert sorted(held(world, name)) == expected


@settings(deadline=None, max_examples=example_count(100))
@given(
    order=st.permutations(range(8)),
    repeats=st.lists(st.integers(0, 7), max_size=8),
)
def test_the_order_and_the_number_of_arrivals_do_not_matter(
    order: list[int], repeats: list[int]
) -> None:
    world = RegisterWorld("a", "b")
    world.deliver = lambda rumor, to: False
    for number in range(8):
        world["a"].bound.set("k", str(number % 2), str(number).encode(), ttl_ms=60_000)
        if number == 5:
            world.pass_time(200)
            world["a"].bound.clear("k", "1")
        world.pass_time(200)
    rumors = world["a"].said
    for index in [*order, *repeats, *range(8, len(rumors))]:
        world["b"].hear(rumors[index])
    assert held(world, "b") == held(world, "a")


@settings(deadline=None, max_examples=example_count(300))
@given(content=st.binary(max_size=600), dump=st.binary(max_size=600))
def test_garbage_is_refused_or_makes_sense_and_nothing_else_happens(
    content: bytes, dump: bytes
) -> None:
    registers = Registers("a", options=StateOptions(), say=lambda kind, key, said: None)
    registers.hear("b", "l", "0", content, now_ms=5)
    try:
        registers.merge(dump, 5)
    except RegisterError:
        assert registers.counts()["garbage"] >= 1
    registers.tick(90_000_000)
    assert len(registers) == 0


PIECES = st.recursive(
    st.one_of(
        st.integers(-(2**63), 2**64 - 1),
        st.binary(max_size=20),
        st.text(max_size=20),
        st.booleans(),
        st.none(),
        st.sampled_from([b"\x00" * 6, "w1", 65_535, 1 << 32]),
    ),
    lambda inner: st.lists(inner, max_size=6),
    max_leaves=12,
)


@settings(deadline=None, max_examples=example_count(300))
@given(
    said=st.lists(
        st.tuples(
            st.sampled_from(["b", "c"]),
            st.sampled_from(["l", "v", "r"]),
            st.sampled_from(["0", "1"]),
            st.one_of(PIECES.map(msgspec.msgpack.encode), st.binary(max_size=60)),
        ),
        max_size=8,
    )
)
def test_views_make_sense_of_some_registers_and_pass_over_the_others(
    said: list[tuple[str, str, str, bytes]],
) -> None:
    world = RegisterWorld("a", "b", "c")
    loads = LoadView(world["a"].bound, "a")
    verdicts = Verdicts(world["a"].bound, "a")
    for number, (owner, kind, key, content) in enumerate(said):
        wrapped = msgspec.msgpack.encode([4_000, 1_000, number + 1, content[:480]])
        assert world["a"].hear(Rumor(owner, kind, key, wrapped, 0))
    for worker_id in [*loads.others(), "w1"]:
        requests, tokens = loads.other(worker_id)
        assert requests >= 0
        assert tokens >= 0
        assert all(verdict.node in ("b", "c") for verdict in verdicts.of(worker_id))
    world.pass_time(5_000, step_ms=1_000)
    assert loads.others() == {}
    assert loads.garbage + verdicts.garbage <= len(said)
