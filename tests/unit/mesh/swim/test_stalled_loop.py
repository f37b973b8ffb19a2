"""A node whose own loop stood still accuses nobody of what it missed."""

import pytest

from smg_mesh.swim.effects import MemberDown, MemberSuspected
from smg_mesh.swim.messages import Ack, Ping, Rank
from support.mesh.swim_stage import Actor, Stage


def doubted(stage: Stage) -> tuple[Actor, Actor]:
    a, b, c = stage.meet("a", "b", "c")
    stage.hear(b, rumors=[a.claim(Rank.SUSPECT, accuser="b")])
    stage.hear(c, rumors=[a.claim(Rank.SUSPECT, accuser="c")])
    return a, b


def test_a_late_tick_within_tolerance_is_no_stall() -> None:
    stage = Stage()
    stage.meet("a")
    stage.clear()
    assert stage.sleep(125) == []
    assert stage.sleep(126) != []
    assert (stage.notes("stall"), stage.notes("stall_ms")) == (1, 126)
    assert stage.swim.health_score == 1


def test_the_probe_in_flight_proves_nothing_and_the_next_begins_at_once() -> None:
    stage = Stage()
    (a,) = stage.meet("a")
    a.well = False
    stage.until(lambda: bool(stage.sent(Ping)), 2_000)
    stage.clear()
    stage.sleep(600)
    assert stage.notes("probe_void") == 1
    (ping,) = stage.sent(Ping)
    stage.hear(a, Ack(ping.nonce))
    a.well = True
    stage.run(5_000)
    assert stage.rank("a") is Rank.ALIVE


@pytest.mark.parametrize("sockets_first", [True, False])
def test_a_refutation_that_waited_in_the_socket_saves_the_suspect(*, sockets_first: bool) -> None:
    stage = Stage()
    a, b = doubted(stage)
    a.well = False
    stage.run(1_400)
    stage.clear()
    stage.sleep(1_200)
    if sockets_first:
        a.incarnation = 1
        stage.hear(b, rumors=[a.claim()])
        a.well = True
        stage.run(0)
    else:
        stage.run(0)
        a.incarnation = 1
        stage.hear(b, rumors=[a.claim()])
        a.well = True
    stage.run(10_000)
    assert stage.of(MemberDown) == []
    assert stage.rank("a") is Rank.ALIVE


def test_timers_that_come_late_without_a_word_of_a_stall_kill_nobody() -> None:
    stage = Stage()
    a, _ = doubted(stage)
    a.well = False
    stage.run(1_400)
    stage.clear()
    stage.now_ms += 1_200  # Nobody calls handle_stall.
    stage.run(0)
    assert stage.of(MemberDown) == []
    assert stage.rank("a") is Rank.SUSPECT


def test_a_doubt_due_during_the_stall_begins_anew_and_still_ends() -> None:
    stage = Stage()
    a, _ = doubted(stage)
    a.well = False
    stage.run(1_400)
    stage.sleep(1_200)
    stage.clear()
    stage.run(1_500)
    assert stage.of(MemberDown) == []
    stage.run(400)
    assert [down.member.name for down in stage.of(MemberDown)] == ["a"]


def test_a_doubt_due_just_after_the_stall_waits_until_our_eyes_have_adjusted() -> None:
    stage = Stage()
    a, _ = doubted(stage)
    a.well = False
    stage.run(1_100)
    stage.sleep(300)
    stage.clear()
    stage.run(490)
    assert stage.of(MemberDown) == []
    stage.run(300)
    assert len(stage.of(MemberDown)) == 1


def test_after_a_long_stall_it_refutes_before_being_asked() -> None:
    short, long = Stage(), Stage()
    for stage, span_ms in ((short, 1_400), (long, 1_600)):
        stage.meet("a", "b", "c")
        stage.run(3_000)
        stage.clear()
        stage.sleep(span_ms)
        stage.run(500)
    assert (short.swim.incarnation, short.exchanges()) == (0, [])
    assert long.swim.incarnation == 1
    assert [why for _, why in long.exchanges()] == ["stall", "stall"]
    assert next(claim.incarnation for claim in long.spread() if claim.name == "me") == 1


def test_a_stalled_node_accuses_nobody_for_an_interval() -> None:
    stage = Stage()
    met = stage.meet("a", "b", "c")
    stage.run(3_000)
    for actor in met:
        actor.well = False
    stage.sleep(400)
    stage.clear()
    stage.run(499)
    assert stage.of(MemberSuspected) == []
    stage.run(1_500)
    assert len(stage.of(MemberSuspected)) >= 1
