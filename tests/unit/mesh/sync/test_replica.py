"""What one node does with what it holds, hears and is asked."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from smg_mesh.crdt.namespace import StateError
from smg_mesh.swim.messages import News
from smg_mesh.sync.exchange.piece_interface import REGISTERS, PieceError
from support.state.replica_world import SMALL, ReplicaWorld


def test_a_write_counts_here_at_once_and_everywhere_after_one_rumor() -> None:
    world = ReplicaWorld(3)
    world["a"].settings.put("policy", b"random")
    assert world["a"].values() == {"policy": b"random"}
    world.rumors()
    assert [peer.values() for peer in world.peers.values()] == [{"policy": b"random"}] * 3
    assert world.agreed()


def test_rumors_of_one_writer_may_come_in_any_order_and_twice() -> None:
    world = ReplicaWorld(4, seed=3)
    for number in range(20):
        world["a"].settings.put(f"key/{number % 5}", b"%d" % number)
        world["b"].settings.put(f"key/{number % 7}", b"%d" % number)
        world.clocks.now_ms += 3
    world.rumors(double=0.5, shuffle=True)
    assert world.agreed()


def test_a_lost_predecessor_is_fetched_from_the_writer_after_a_moment() -> None:
    world = ReplicaWorld(2)
    world["a"].settings.put("x", b"1")
    world["a"].said.clear()  # lost
    world["a"].settings.put("x", b"2")
    world.rumors()
    assert world["b"].values() != {"x": b"2"}
    assert world["b"].conversed == []
    world.pass_time(SMALL.gap_ms + 100)
    assert [(wish.why, wish.name) for wish in world["b"].conversed] == [("gap", "a")]
    world.exchange("b", "a")
    assert world["b"].values() == {"x": b"2"}


def test_no_gap_is_fetched_when_the_predecessor_was_only_late() -> None:
    world = ReplicaWorld(2)
    for value in (b"1", b"2", b"3"):
        world["a"].settings.put("x", value)
    world["a"].said.reverse()
    last, *earlier = world["a"].said
    world["b"].replica.hear(last)
    for news in earlier:
        world["b"].replica.hear(news)
    world.pass_time(2_000)
    assert world["b"].conversed == []
    assert world["b"].values() == {"x": b"3"}


def test_a_burst_beyond_the_rate_is_pushed_instead_of_said() -> None:
    options = replace(SMALL, rumor_bytes_per_s=2_000)
    world = ReplicaWorld(2, options=options)
    for number in range(200):
        world["a"].workers.put(f"w-{number}", bytes(150))
    assert len(world["a"].said) < 20
    world.pass_time(300)
    assert [(wish.why, wish.count) for wish in world["a"].conversed] == [("push", 3)]
    world.exchange("a", "b")
    assert len(world["b"].workers) == 200
    assert world.agreed()


def test_a_value_that_no_rumor_can_carry_is_pushed() -> None:
    world = ReplicaWorld(2)
    world["a"].settings.put("big", bytes(4_000))
    world.pass_time(300)
    assert world["a"].said == []
    assert [wish.why for wish in world["a"].conversed] == ["push"]


def test_what_an_exchange_brought_is_passed_on_until_nothing_is_new() -> None:
    world = ReplicaWorld(3)
    world["a"].settings.put("x", b"1")
    world["a"].said.clear()
    world.exchange("a", "b")
    world.pass_time(300)
    assert [(wish.why, wish.count) for wish in world["b"].conversed] == [("push", 2)]
    world["b"].conversed.clear()
    world.exchange("b", "a")
    world.pass_time(300)
    assert world["b"].conversed == []


def test_a_node_alone_says_nothing_and_whoever_comes_gets_everything() -> None:
    world = ReplicaWorld(1)
    world["a"].settings.put("x", b"1")
    world["a"].workers.put("w-1", b"spec")
    world.pass_time(1_000)
    assert world["a"].said == []
    assert world["a"].conversed == []
    world.start("b")
    world.exchange("b", "a", full=True)
    assert world["b"].values() == {"x": b"1"}
    assert world["b"].values("workers") == {"w-1": b"spec"}
    assert world["b"].replica.held


def test_compare_and_set_refuses_who_has_not_seen_what_is_there() -> None:
    world = ReplicaWorld(2)
    first = world["a"].settings.put("x", b"1", seen=0)
    world.rumors()
    second = world["b"].settings.put("x", b"2", seen=first.version)
    with pytest.raises(StateError) as refused:
        world["b"].settings.put("x", b"3", seen=first.version)
    assert refused.value.reason == "stale"
    assert refused.value.current == second
    with pytest.raises(StateError):
        world["b"].settings.put("x", b"3", seen=0)
    removed = world["b"].settings.remove("x", seen=second.version)
    assert removed.value is None
    assert world["b"].settings.put("x", b"4", seen=0).value == b"4"


def test_two_writes_that_did_not_know_of_each_other_are_shown_until_somebody_saw_both() -> None:
    world = ReplicaWorld(3)
    world["a"].settings.put("x", b"a")
    world.clocks.now_ms += 5
    world["b"].settings.put("x", b"b")
    world.settle()
    for peer in world.peers.values():
        assert peer.values() == {"x": b"b"}
        assert [held.value for held in peer.settings.conflicts("x")] == [b"a"]
    world["c"].settings.put("x", b"c")
    world.settle()
    for peer in world.peers.values():
        assert peer.values() == {"x": b"c"}
        assert peer.settings.conflicts("x") == []


def test_watchers_hear_once_of_what_changed_and_may_not_write() -> None:
    world = ReplicaWorld(2)
    heard: list[list[str]] = []
    world["b"].settings.watch(lambda keys: heard.append(list(keys)))
    world["a"].settings.put("x", b"1")
    world.rumors(double=1.0)
    assert heard == [["x"]]

    def writes(_keys: Sequence[str]) -> None:
        world["b"].settings.remove("x")

    world["b"].settings.watch(writes)
    with pytest.raises(AssertionError):
        world["b"].settings.put("y", b"1")


@pytest.mark.parametrize(
    "news",
    [
        News("z", "d", "settings/0:1", 1, b"garbage"),
        News("z", "d", "settings/99:1", 1, b"\x94\x00\x01\x01\xc4\x00"),
        News("z", "d", "settings/01:1", 1, b"\x94\x00\x01\x01\xc4\x00"),
        News("z", "d", "sticky/0:1", 1, b"\x94\x00\x01\x01\xc4\x00"),
        News("z", "d", "nothing:1", 1, b"\x94\x00\x01\x01\xc4\x00"),
        News("z", "d", "settings/0:1", 1, b"\x94\xff\x01\x01\xc4\x00"),
        News("z", "d", "settings/0:1", 1, b"\x94\x00\x01\x01\xc4\x03\xff\xff\xff"),
        News("z", "e.load", "0", 1, b"garbage"),
        News("z", "t.sticky", "0", 1, b"garbage"),
        News("z", "t.unknown", "0", 1, b"garbage"),
        News("z", "x", "0", 1, b"garbage"),
    ],
)
def test_rumors_that_make_no_sense_change_nothing(news: News) -> None:
    world = ReplicaWorld(2)
    world["a"].settings.put("x", b"1")
    before = world["a"].replica.digest()
    world["a"].replica.hear(news)
    assert world["a"].replica.digest() == before
    assert world["a"].values() == {"x": b"1"}


@pytest.mark.parametrize(
    "name", ["settings/2", "settings/-1", "settings/٣", "other/0", "", "a/b/c"]
)
def test_a_piece_that_cannot_be_is_refused(name: str) -> None:
    replica = ReplicaWorld(1)["a"].replica
    with pytest.raises(PieceError):
        replica.merge(name, 0, b"x", peer="b")
    with pytest.raises(PieceError):
        replica.missing(name, 0, b"")
    with pytest.raises(PieceError):
        replica.load(name, b"x")
    assert replica.epoch(name) == 0


@pytest.mark.parametrize("name", ["settings/1", "sticky/1", REGISTERS])
def test_garbage_in_an_exchange_is_refused_and_changes_nothing(name: str) -> None:
    world = ReplicaWorld(2)
    world["a"].settings.put("x", b"1")
    before = world["a"].replica.digest()
    with pytest.raises(PieceError):
        world["a"].replica.merge(name, 0, b"\xc1garbage", peer="b")
    assert world["a"].replica.digest() == before


def test_registers_and_rows_travel_by_rumor_and_with_a_newcomers_first_exchange() -> None:
    world = ReplicaWorld(2)
    world["a"].replica.registers.set("load", "0", b"busy", ttl_ms=3_000)
    world["a"].replica.table("sticky").put("key", b"w-1")
    world.rumors()
    registers = world["b"].replica.registers
    assert [one.content for one in registers.get("load", "0")] == [b"busy"]
    row = world["b"].replica.table("sticky").get("key")
    assert row is not None
    assert row.content == b"w-1"
    world.start("c")
    world.exchange("c", "b", full=True)
    assert [one.content for one in world["c"].replica.registers.get("load", "0")] == [b"busy"]
    assert world["c"].replica.table("sticky").get("key") == row
    world.settle()
    assert world.agreed()


def test_registers_of_a_dead_member_vanish_after_a_while() -> None:
    world = ReplicaWorld(3)
    world["a"].replica.registers.set("load", "0", b"busy", ttl_ms=3_600_000)
    world.rumors()
    world.stop("a")
    registers = world["b"].replica.registers
    assert len(registers.get("load", "0")) == 1
    world.pass_time(SMALL.register_after_death_ms + 1_000)
    assert list(registers.get("load", "0")) == []


def test_an_exchange_that_is_cut_leaves_whole_pieces_and_is_resumed() -> None:
    whole = ReplicaWorld(2)
    for cut_after in range(6):
        world = ReplicaWorld(2, seed=cut_after)
        for number in range(40):
            world["a"].settings.put(f"k{number}", b"a")
            world["b"].workers.put(f"w{number}", b"b")
        world["a"].said.clear()
        world["b"].said.clear()
        world.exchange("a", "b", cut_after=cut_after)
        world.exchange("b", "a")
        assert world.agreed()
        assert len(world["b"].settings) == 40
    assert whole.agreed()


def test_a_quiet_replica_asks_for_nothing_but_its_round() -> None:
    world = ReplicaWorld(2)
    world.pass_time(60_000, 1_000)
    assert world["a"].wake_ms is None
    world["a"].settings.put("x", b"1")
    world.settle()
    world.pass_time(5_000, 100)
    woken = 0
    until_ms = world.clocks.now_ms + 300_000
    while world.clocks.now_ms < until_ms:
        world.clocks.now_ms += 100
        if world["a"].wake_ms is not None and world["a"].wake_ms <= world.clocks.now_ms:
            world["a"].wake_ms = None
            world["a"].replica.tick()
            woken += 1
    assert woken <= 22
    assert world["a"].said == []
