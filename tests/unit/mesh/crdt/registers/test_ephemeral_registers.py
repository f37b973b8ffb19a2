import tracemalloc

import msgspec
import pytest

from smg_mesh.config import StateOptions
from smg_mesh.crdt.registers.ephemeral_registers import (
    ENDED_KEEP_MS,
    REGISTER_BYTES_MAX,
    Register,
    RegisterError,
)
from support.state.register_world import RegisterWorld, Rumor


def told(register: Register) -> tuple[str, str, bytes]:
    return (register.owner, register.key, register.content)


def test_what_one_says_all_hear_and_read_sorted() -> None:
    world = RegisterWorld("a", "b", "c")
    for name in ("c", "b"):
        for key in ("2", "1"):
            content = f"{name}{key}".encode()
            world[name].bound.set("load", key, content, ttl_ms=4_000)
    for node in world.nodes.values():
        assert [told(item) for item in node.bound.items("load")] == [
            ("b", "1", b"b1"),
            ("c", "1", b"c1"),
            ("b", "2", b"b2"),
            ("c", "2", b"c2"),
        ]
        assert [told(item) for item in node.bound.get("load", "2")] == [
            ("b", "2", b"b2"),
            ("c", "2", b"c2"),
        ]
        assert node.bound.get("load", "3") == []
        assert node.bound.get("other", "1") == ()


def test_what_is_not_said_again_vanishes_on_all_nodes_its_owner_too() -> None:
    world = RegisterWorld("a", "b")
    world["a"].bound.set("load", "", b"x", ttl_ms=1_000)
    world.pass_time(900)
    assert [len(node.bound.items("load")) for node in world.nodes.values()] == [1, 1]
    world.pass_time(300)
    assert [len(node.bound.items("load")) for node in world.nodes.values()] == [0, 0]
    assert [node.registers.due_ms() for node in world.nodes.values()] == [None, None]


def test_what_is_said_again_stays() -> None:
    world = RegisterWorld("a", "b")
    for _ in range(10):
        world["a"].bound.set("load", "", b"x", ttl_ms=1_000)
        world.pass_time(800)
        assert [told(item) for item in world["b"].bound.items("load")] == [("a", "", b"x")]


def test_a_register_is_said_once_in_a_hundred_milliseconds_and_the_last_word_counts() -> None:
    world = RegisterWorld("a", "b")
    for number in range(1_000):
        world["a"].bound.set("load", "", str(number).encode(), ttl_ms=4_000)
        world.pass_time(1, step_ms=1)
    assert 10 <= len(world["a"].said) <= 11
    apart = [
        later.at_ms - said.at_ms
        for said, later in zip(world["a"].said, world["a"].said[1:], strict=False)
    ]
    assert min(apart) >= 100
    world.pass_time(100, step_ms=1)
    (register,) = world["b"].bound.items("load")
    assert register.content == b"999"
    spoken = len(world["a"].said)
    world.pass_time(1_000)
    assert len(world["a"].said) == spoken


def test_registers_do_not_wait_for_each_other() -> None:
    world = RegisterWorld("a", "b")
    for number in range(20):
        world["a"].bound.set("load", str(number), b"x", ttl_ms=4_000)
    assert len(world["b"].bound.items("load")) == 20


def test_a_second_write_wakes_its_node_when_it_may_be_said() -> None:
    world = RegisterWorld("a", "b")
    world["a"].bound.set("load", "", b"1", ttl_ms=4_000)
    world["a"].bound.set("load", "", b"2", ttl_ms=4_000)
    due_ms = world["a"].registers.due_ms()
    assert due_ms == world.now_ms() + 100
    assert min(world["a"].wakes) == due_ms


def test_a_cleared_register_is_gone_everywhere_and_no_late_rumor_brings_it_back() -> None:
    world = RegisterWorld("a", "b")
    world["a"].bound.set("load", "", b"x", ttl_ms=4_000)
    (late,) = world["a"].said
    world["a"].bound.clear("load", "")
    assert world["a"].bound.items("load") == []
    world.pass_time(200)
    assert world["b"].bound.items("load") == []
    assert world["b"].hear(late)
    assert world["b"].bound.items("load") == []
    world["a"].bound.set("load", "", b"y", ttl_ms=4_000)
    world.pass_time(200)
    assert [told(item) for item in world["b"].bound.items("load")] == [("a", "", b"y")]


def test_a_clearing_that_overtakes_the_write_counts() -> None:
    world = RegisterWorld("a", "b")
    world.deliver = lambda rumor, to: False
    world["a"].bound.set("load", "", b"x", ttl_ms=4_000)
    world.pass_time(200)
    world["a"].bound.clear("load", "")
    for rumor in reversed(world["a"].said):
        world["b"].hear(rumor)
    assert world["b"].bound.items("load") == []


def test_clearing_what_is_not_there_says_nothing() -> None:
    world = RegisterWorld("a", "b")
    world["a"].bound.clear("load", "")
    assert world.said() == []


def test_the_later_write_counts_in_any_order_and_an_expired_one_stays_away() -> None:
    world = RegisterWorld("a", "b")
    world.deliver = lambda rumor, to: False
    for number in range(3):
        world["a"].bound.set("load", "", str(number).encode(), ttl_ms=1_000)
        world.pass_time(150)
    first, second, third = world["a"].said
    for rumor in (second, third, first, third, second):
        world["b"].hear(rumor)
        assert world["b"].bound.items("load")[0].content in (b"1", b"2")
    assert world["b"].bound.items("load")[0].content == b"2"
    world.pass_time(2_000)
    for rumor in (first, second, third):
        world["b"].hear(rumor)
    assert world["b"].bound.items("load") == []
    assert world["b"].registers.counts()["old"] == 6


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xc1",
        b"\x91" * 2_000,
        msgspec.msgpack.encode([1_000, 1, 1]),
        msgspec.msgpack.encode([-1, 1, 1, b""]),
        msgspec.msgpack.encode([1_000, -1, 1, b""]),
        msgspec.msgpack.encode([1_000, 1, "1", b""]),
        msgspec.msgpack.encode([1 << 40, 1, 1, b""]),
        msgspec.msgpack.encode([1_000, 1, 1, bytes(REGISTER_BYTES_MAX + 1)]),
        msgspec.msgpack.encode([1_000, 1, 1.5, b""]),
    ],
)
def test_a_rumor_without_sense_is_refused_and_counted(content: bytes) -> None:
    world = RegisterWorld("a")
    assert not world["a"].hear(Rumor("z", "run", "", content, 0))
    assert world["a"].registers.counts() == {"garbage": 1}
    assert len(world["a"].registers) == 0


@pytest.mark.parametrize(
    ("kind", "key", "content", "ttl_ms"),
    [
        ("", "", b"", 1),
        ("k" * 25, "", b"", 1),
        ("run", "k" * 129, b"", 1),
        ("run", "", bytes(REGISTER_BYTES_MAX + 1), 1),
        ("run", "", b"", 0),
        ("run", "", b"", 86_400_001),
    ],
)
def test_what_cannot_travel_is_refused_at_once(
    kind: str, key: str, content: bytes, ttl_ms: int
) -> None:
    world = RegisterWorld("a", "b")
    with pytest.raises(RegisterError):
        world["a"].bound.set(kind, key, content, ttl_ms=ttl_ms)
    assert world.said() == []


def test_the_longest_register_fits_into_a_rumor() -> None:
    world = RegisterWorld("a", "b")
    world["a"].registers.change_boot((1 << 64) - 1, now_ms=world.now_ms())
    world["a"].registers._seq = 1 << 40
    world["a"].bound.set("run", "", bytes(REGISTER_BYTES_MAX), ttl_ms=86_400_000)
    assert len(world["a"].said[-1].content) <= 512


def test_there_are_never_more_than_allowed_and_what_ended_gives_way_first() -> None:
    world = RegisterWorld("a", "b", options=StateOptions(registers_max=10))
    for number in range(8):
        world["a"].bound.set("run", str(number), b"x", ttl_ms=60_000)
    for number in range(4):
        world["a"].bound.clear("run", str(number))
    world.pass_time(200)
    for number in range(8, 14):
        world["a"].bound.set("run", str(number), b"x", ttl_ms=60_000)
    registers = world["b"].registers
    assert len(registers) == 10
    with pytest.raises(RegisterError):
        world["a"].bound.set("run", "more", b"x", ttl_ms=60_000)
    said = msgspec.msgpack.encode([60_000, 1, 1, b"x"])
    assert not registers.hear("z", "run", "", said, now_ms=world.now_ms())
    assert registers.counts()["full"] == 1
    world["a"].bound.set("run", "13", b"y", ttl_ms=60_000)


def test_watchers_hear_each_write_refresh_and_end_of_their_kind() -> None:
    world = RegisterWorld("a", "b")
    heard: list[tuple[str, str, bytes, bool]] = []
    world["b"].bound.watch("run", lambda item, gone: heard.append((*told(item), gone)))
    world["a"].bound.set("run", "", b"x", ttl_ms=1_000)
    world["a"].bound.set("other", "", b"x", ttl_ms=1_000)
    world.pass_time(200)
    world["a"].bound.set("run", "", b"x", ttl_ms=1_000)
    world["b"].bound.set("run", "", b"own", ttl_ms=1_000)
    world.pass_time(1_200)
    assert heard == [
        ("a", "", b"x", False),
        ("a", "", b"x", False),
        ("b", "", b"own", False),
        ("a", "", b"x", True),
        ("b", "", b"own", True),
    ]


def test_memory_stays_the_same_over_a_hundred_thousand_updates() -> None:
    world = RegisterWorld("a", "b")

    def write(count: int) -> None:
        for number in range(count):
            world["a"].said.clear()
            world["a"].wakes.clear()
            world["a"].bound.set("load", str(number % 50), bytes(200), ttl_ms=4_000)
            if number % 10 == 0:
                world.pass_time(5, step_ms=5)
            if number % 1_000 == 0:
                world["a"].bound.clear("load", str(number % 50))

    write(20_000)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    write(100_000)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All fifty are held anew, under tracing: no more than that.
    assert after - before < 2 * 50 * 2_000
    world.pass_time(ENDED_KEEP_MS + 10_000, step_ms=1_000)
    for node in world.nodes.values():
        assert len(node.registers) == 0
        assert node.registers.due_ms() is None
        assert len(node.registers._ended) == 0
        assert len(node.registers._own) == 0


def test_what_ended_is_remembered_within_the_same_bound() -> None:
    world = RegisterWorld("a", "b", options=StateOptions(registers_max=10))
    for number in range(50):
        world["a"].bound.set("run", str(number), b"x", ttl_ms=60_000)
        world.pass_time(120)
        world["a"].bound.clear("run", str(number))
        world.pass_time(120)
        for node in world.nodes.values():
            assert len(node.registers) + len(node.registers._ended) <= 10
