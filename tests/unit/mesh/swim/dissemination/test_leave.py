"""Goodbye."""

import pytest

from smg_mesh.swim.effects import MemberDown, MemberLeft, MemberSuspected
from smg_mesh.swim.messages import Accusation, Ack, Address, Hello, Ping, Rank
from support.mesh.small_cluster import SmallCluster
from support.mesh.swim_stage import Stage, messages


def leaving(count: int) -> Stage:
    stage = Stage()
    stage.meet(*(f"n{number}" for number in range(count)))
    stage.run(1_000)
    stage.clear()
    stage.did(stage.swim.leave(now_ms=stage.now_ms))
    return stage


def told(stage: Stage) -> list[Address]:
    return [to for to, hello in messages(stage.asked, Hello) if hello.claim.rank is Rank.LEFT]


@pytest.mark.parametrize(("members", "directly"), [(5, 5), (31, 31), (40, 16)])
def test_members_are_told_directly_and_once_more(members: int, directly: int) -> None:
    stage = leaving(members)
    assert len(set(told(stage))) == len(told(stage)) == directly
    assert not stage.swim.farewell_over
    stage.run(50)
    assert len(told(stage)) == 2 * directly


def test_the_goodbye_raises_the_incarnation_and_is_over_within_a_second() -> None:
    stage = leaving(40)
    assert stage.swim.incarnation == 1
    assert stage.sent(Hello)[0].claim.rank is Rank.LEFT
    stage.run(1_000)
    assert stage.swim.farewell_over


def test_alone_there_is_nobody_to_tell() -> None:
    stage = Stage()
    stage.did(stage.swim.leave(now_ms=stage.now_ms))
    assert stage.swim.farewell_over


def test_whoever_leaves_answers_pings_but_neither_probes_nor_refutes_nor_accuses() -> None:
    stage = leaving(3)
    a = next(iter(stage.actors.values()))
    for actor in stage.actors.values():
        actor.well = False
    stage.clear()
    stage.hear(a, Ping(4, "me", 100))
    assert stage.sent(Ack) == [Ack(4)]
    doubt = stage.swim.rows()[0]
    assert doubt.name == "me"
    stage.hear(a, Accusation(doubt))
    stage.run(30_000)
    assert stage.swim.incarnation == 1
    assert stage.sent(Ping) == []
    assert not stage.of(MemberSuspected)
    assert not stage.of(MemberDown)
    stage.did(stage.swim.leave(now_ms=stage.now_ms))
    stage.did(stage.swim.change_meta(b"x", now_ms=stage.now_ms))
    stage.did(stage.swim.greet([Address("10.9.9.9", 1)], now_ms=stage.now_ms))
    assert stage.swim.incarnation == 1


def test_who_said_goodbye_has_left_and_is_never_suspected() -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    stage.hear(b, rumors=[a.claim(Rank.SUSPECT, accuser="b")])
    stage.clear()
    a.incarnation, a.well = 1, False
    stage.hear(a, Hello(a.row(Rank.LEFT), False))
    (left,) = stage.of(MemberLeft)
    assert left.member.rank is Rank.LEFT
    stage.run(30_000)
    assert stage.of(MemberDown) == []
    stage.hear(b, rumors=[a.claim(Rank.DEAD, accuser="b")])
    assert stage.rank("a") is Rank.LEFT


def test_all_see_a_leave_within_half_a_second() -> None:
    cluster = SmallCluster()
    nodes = cluster.joined(10)
    cluster.do(nodes[3], nodes[3].swim.leave(now_ms=cluster.now_ms))
    assert cluster.until(lambda: cluster.all_hold(Rank.LEFT, "n3"), 500) <= 500
    cluster.run(1_000)
    assert nodes[3].swim.farewell_over
    events = [event for node in nodes for _, event in node.events]
    assert not any(isinstance(event, MemberSuspected | MemberDown) for event in events)
