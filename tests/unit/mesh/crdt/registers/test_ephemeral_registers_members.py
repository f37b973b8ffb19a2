import msgspec
import pytest

from smg_mesh.config import StateOptions
from smg_mesh.crdt.registers.ephemeral_registers import (
    ENDED_KEEP_MS,
    REGISTER_BYTES_MAX,
    Register,
    RegisterError,
    Registers,
)
from smg_mesh.crdt.registers.register_codec import DUMP_BYTES_MAX
from support.state.register_world import RegisterWorld, Rumor


def told(register: Register) -> tuple[str, str, bytes]:
    return (register.owner, register.key, register.content)


def test_registers_of_a_dead_member_stay_ten_seconds() -> None:
    world = RegisterWorld("a", "b")
    world["a"].bound.set("run", "", b"x", ttl_ms=60_000)
    world.kill("a")
    world.pass_time(9_900)
    assert [told(item) for item in world["b"].bound.items("run")] == [("a", "", b"x")]
    world.pass_time(100)
    assert world["b"].bound.items("run") == []


def test_a_member_that_comes_back_in_time_in_the_same_life_keeps_them() -> None:
    world = RegisterWorld("a", "b")
    world["a"].bound.set("run", "", b"x", ttl_ms=60_000)
    registers = world["b"].registers
    registers.member_gone("a", world.now_ms())
    world.pass_time(9_000)
    registers.member_up("a", 1000)
    world.pass_time(30_000)
    assert [told(item) for item in world["b"].bound.items("run")] == [("a", "", b"x")]


def test_what_a_dead_member_said_last_may_still_come_but_nothing_from_before_that() -> None:
    world = RegisterWorld("a", "b")
    world.deliver = lambda rumor, to: False
    world["a"].bound.set("run", "1", b"x", ttl_ms=60_000)
    world["a"].bound.set("run", "2", b"x", ttl_ms=60_000)
    one, two = world["a"].said
    world.kill("a")
    world["b"].hear(two)
    assert len(world["b"].bound.items("run")) == 1
    world.pass_time(10_000)
    world["b"].hear(one)
    world["b"].hear(two)
    assert world["b"].bound.items("run") == []
    assert world["b"].registers.counts() == {"gone": 2}


def test_a_rumor_of_a_dead_member_that_comes_late_counts_for_ten_seconds_only() -> None:
    world = RegisterWorld("a", "b")
    world.deliver = lambda rumor, to: False
    world["a"].bound.set("run", "1", b"x", ttl_ms=60_000)
    world["a"].bound.set("run", "2", b"x", ttl_ms=60_000)
    one, two = world["a"].said
    world["b"].hear(one)
    world.kill("a")
    world.pass_time(10_000)
    world["b"].hear(two)
    assert [item.key for item in world["b"].bound.items("run")] == ["2"]
    world.pass_time(10_100)
    world["b"].hear(two)
    assert world["b"].bound.items("run") == []


def test_what_a_member_says_that_is_back_and_not_announced_yet_is_known() -> None:
    world = RegisterWorld("a", "b")
    world["a"].bound.set("run", "1", b"x", ttl_ms=60_000)
    registers = world["b"].registers
    registers.member_gone("a", world.now_ms())
    for _ in range(10):
        world["a"].bound.set("run", "1", b"back", ttl_ms=60_000)
        world["a"].bound.set("run", "2", b"more", ttl_ms=60_000)
        world.pass_time(4_000)
        assert [item.key for item in world["b"].bound.items("run")] == ["1", "2"]
    registers.member_up("a", 1000)
    world.pass_time(50_000)
    assert [item.key for item in world["b"].bound.items("run")] == ["1", "2"]


def test_a_later_life_drops_what_the_earlier_one_said_at_once() -> None:
    world = RegisterWorld("a", "b")
    gone: list[str] = []
    world["b"].bound.watch("run", lambda register, is_gone: gone.extend([register.key] * is_gone))
    world["a"].bound.set("run", "1", b"x", ttl_ms=60_000)
    world["a"].bound.set("run", "2", b"x", ttl_ms=60_000)
    (late, _) = world["a"].said
    world.begin("a", boot=2000)
    assert world["b"].bound.items("run") == []
    assert gone == ["1", "2"]
    world["b"].hear(late)
    assert world["b"].bound.items("run") == []
    world["a"].bound.set("run", "1", b"y", ttl_ms=60_000)
    assert [told(item) for item in world["b"].bound.items("run")] == [("a", "1", b"y")]


@pytest.mark.parametrize(("wait_before_ms", "wait_after_ms"), [(20_000, 0), (5_000, 6_000)])
def test_rumors_of_a_later_life_may_be_ahead_of_the_member_table(
    wait_before_ms: int, wait_after_ms: int
) -> None:
    world = RegisterWorld("a", "b")
    world["a"].bound.set("run", "1", b"old", ttl_ms=60_000)
    world["a"].bound.set("run", "2", b"old", ttl_ms=60_000)
    registers = world["b"].registers
    registers.member_gone("a", world.now_ms())
    world.pass_time(wait_before_ms)
    later = Registers(
        "a",
        options=StateOptions(),
        say=lambda kind, key, content: world.spread(Rumor("a", kind, key, content, world.now_ms())),
    )
    later.change_boot(2000, now_ms=world.now_ms())
    later.set("run", "2", b"new", ttl_ms=200_000, now_ms=world.now_ms())
    world.pass_time(wait_after_ms)
    assert [told(item) for item in world["b"].bound.items("run")] == [("a", "2", b"new")]
    world.pass_time(ENDED_KEEP_MS + 1_000)
    assert [told(item) for item in world["b"].bound.items("run")] == [("a", "2", b"new")]
    registers.member_up("a", 2000)
    assert [told(item) for item in world["b"].bound.items("run")] == [("a", "2", b"new")]


def test_a_stale_report_of_an_earlier_life_changes_nothing() -> None:
    world = RegisterWorld("a", "b")
    world.begin("a", boot=2000)
    world["a"].bound.set("run", "", b"x", ttl_ms=60_000)
    world["b"].registers.member_up("a", 1000)
    assert len(world["b"].bound.items("run")) == 1
    world["b"].registers.member_gone("a", world.now_ms())
    world["b"].registers.member_up("a", 1000)
    world.pass_time(10_000)
    assert world["b"].bound.items("run") == []


def test_what_an_unknown_node_says_counts_until_its_time_is_over() -> None:
    world = RegisterWorld("a")
    stranger = Registers(
        "z",
        options=StateOptions(),
        say=lambda kind, key, content: world.spread(Rumor("z", kind, key, content, world.now_ms())),
    )
    stranger.change_boot(77, now_ms=world.now_ms())
    stranger.set("run", "", b"x", ttl_ms=2_000, now_ms=world.now_ms())
    assert [told(item) for item in world["a"].bound.items("run")] == [("z", "", b"x")]
    world["a"].registers.member_gone("z", world.now_ms())
    world.pass_time(2_200)
    assert world["a"].bound.items("run") == []
    assert not world["a"].registers._owners


def test_a_new_life_of_this_node_says_everything_again_under_it() -> None:
    world = RegisterWorld("a", "b")
    world["a"].bound.set("run", "1", b"x", ttl_ms=60_000)
    world["a"].bound.set("run", "2", b"y", ttl_ms=60_000)
    world.pass_time(1_000)
    world["b"].registers.member_up("a", 3000)
    assert world["b"].bound.items("run") == []
    world["a"].registers.change_boot(3000, now_ms=world.now_ms())
    assert [told(item) for item in world["b"].bound.items("run")] == [
        ("a", "1", b"x"),
        ("a", "2", b"y"),
    ]
    spoken = len(world["a"].said)
    world["a"].registers.change_boot(3000, now_ms=world.now_ms())
    assert len(world["a"].said) == spoken


def test_nobody_can_speak_for_this_node() -> None:
    world = RegisterWorld("a", "b")
    world["a"].bound.set("run", "", b"mine", ttl_ms=60_000)
    world["a"].registers.member_up("a", 5000)
    forged = Rumor("a", "run", "", msgspec.msgpack.encode([60_000, 9_999, 1, b"forged"]), 0)
    assert world["a"].hear(forged)
    dumped = msgspec.msgpack.encode([["a", "run", "", 9_999, 1, 60_000, 0, b"forged"]])
    world["a"].registers.merge(dumped, world.now_ms())
    assert [told(item) for item in world["a"].bound.items("run")] == [("a", "", b"mine")]


def test_a_newcomer_learns_what_all_say_with_its_age() -> None:
    world = RegisterWorld("a", "b")
    world["a"].bound.set("run", "", b"a", ttl_ms=4_000)
    world["b"].bound.set("run", "", b"b", ttl_ms=4_000)
    world.pass_time(3_000)
    new = world.begin("c", boot=1)
    assert new.bound.items("run") == []
    new.registers.merge(world["a"].registers.dump(world.now_ms()), world.now_ms())
    assert [told(item) for item in new.bound.items("run")] == [("a", "", b"a"), ("b", "", b"b")]
    assert {item.heard_ms for item in new.bound.items("run")} == {world.now_ms() - 3_000}
    world.pass_time(1_200)
    assert new.bound.items("run") == []


def test_a_dump_and_a_rumor_can_be_compared_whoever_dumped() -> None:
    world = RegisterWorld("a", "b", "c")
    world["a"].bound.set("run", "", b"1", ttl_ms=60_000)
    world.pass_time(200)
    world.deliver = lambda rumor, to: to == "c"
    world["a"].bound.set("run", "", b"2", ttl_ms=60_000)
    now_ms = world.now_ms()
    stale, fresh = world["b"].registers.dump(now_ms), world["a"].registers.dump(now_ms)
    new = world.begin("d", boot=1)
    new.registers.merge(fresh, now_ms)
    new.registers.merge(stale, now_ms)
    assert [told(item) for item in new.bound.items("run")] == [("a", "", b"2")]
    world["b"].registers.merge(world["c"].registers.dump(now_ms), now_ms)
    assert [told(item) for item in world["b"].bound.items("run")] == [("a", "", b"2")]


def test_a_dump_tells_nothing_of_the_dead() -> None:
    world = RegisterWorld("a", "b")
    world["a"].bound.set("run", "", b"x", ttl_ms=60_000)
    world.kill("a")
    assert msgspec.msgpack.decode(world["b"].registers.dump(world.now_ms())) == []


def test_a_dump_fits_into_an_exchange_and_has_the_latest_first() -> None:
    world = RegisterWorld("a", "b")
    for number in range(4_000):
        content = bytes(REGISTER_BYTES_MAX)
        world["a"].bound.set("load", f"{number:04}", content, ttl_ms=60_000)
        if number % 100 == 0:
            world.pass_time(1, step_ms=1)
    dump = world["b"].registers.dump(world.now_ms())
    assert DUMP_BYTES_MAX * 0.9 < len(dump) <= DUMP_BYTES_MAX
    new = world.begin("c", boot=1)
    new.registers.merge(dump, world.now_ms())
    keys = [item.key for item in new.bound.items("load")]
    assert keys[-1] == "3999"
    assert len(keys) > 1_800


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode([["a", "run", "", 1, 1, 1_000, 0]]),
        msgspec.msgpack.encode(
            [["b", "run", "", 1, 1, 1_000, 0, b"x"], ["", "run", "", 1, 1, 1_000, 0, b"x"]]
        ),
        msgspec.msgpack.encode([["b", "run", "k" * 129, 1, 1, 1_000, 0, b"x"]]),
        b"\x91\x98\xa1\xff",
    ],
)
def test_a_dump_without_sense_is_refused_whole(data: bytes) -> None:
    world = RegisterWorld("a")
    with pytest.raises(RegisterError):
        world["a"].registers.merge(data, world.now_ms())
    assert len(world["a"].registers) == 0


def test_what_is_over_in_a_dump_is_not_taken() -> None:
    world = RegisterWorld("a")
    heard: list[str] = []
    world["a"].bound.watch("run", lambda item, gone: heard.append(item.key))
    rows = [["b", "run", str(age_ms), 1, 1, 1_000, age_ms, b"x"] for age_ms in (999, 1_000, 5_000)]
    world["a"].registers.merge(msgspec.msgpack.encode(rows), world.now_ms())
    assert heard == ["999"]
