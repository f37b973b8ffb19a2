"""How long a doubt lasts, who shortens it, and the last chance."""

from dataclasses import replace
from functools import partial
from math import log

import pytest

from smg_mesh.swim.detection.running_suspicions import HEARD_MAX
from smg_mesh.swim.effects import (
    MemberDown,
    MemberRefuted,
    MemberSuspected,
    StreamAnswer,
    StreamPing,
)
from smg_mesh.swim.members.suspicion_timeout import (
    REMINDERS,
    Suspicion,
    base_ms,
    confirmations_wanted,
    timeout_ms,
)
from smg_mesh.swim.messages import Ack, Address, Gossip, Ping, Rank
from support.mesh.swim_stage import LAN, Actor, Stage


@pytest.mark.parametrize(
    ("members", "expected_ms"), [(1, 1500), (2, 1500), (10, 1500), (100, 3000), (1000, 4500)]
)
def test_the_shortest_suspicion_grows_with_the_logarithm(members: int, expected_ms: int) -> None:
    assert base_ms(3, members, 500) == expected_ms


@pytest.mark.parametrize(
    ("mult", "members", "wanted"),
    [(3, 2, 0), (3, 3, 1), (4, 3, 0), (4, 4, 2), (6, 100, 4), (1, 9, 0)],
)
def test_confirmations_are_wanted_only_if_there_are_others_to_give_them(
    mult: int, members: int, wanted: int
) -> None:
    assert confirmations_wanted(mult, members) == wanted


@pytest.mark.parametrize("confirmations", [0, 1, 2, 3, 4])
def test_the_timeout_follows_the_formula(confirmations: int) -> None:
    expected = 9000 - (9000 - 1500) * log(confirmations + 1) / log(4 + 1)
    assert timeout_ms(1500, 4, confirmations) == max(1500, round(expected))


def test_without_others_the_timeout_is_the_shortest() -> None:
    assert timeout_ms(1500, 0, 0) == 1500


def test_the_same_accuser_counts_once_and_more_than_enough_do_not_count() -> None:
    suspicion = Suspicion((1, 0, 1), 0, 1500, 2, {"a": None})
    assert not suspicion.confirm("a")
    assert suspicion.confirm("b")
    assert not suspicion.confirm("b")
    assert suspicion.confirm("c")
    assert not suspicion.confirm("d")
    assert suspicion.expires_ms == 1500


# ── In a core ────────────────────────────────────────────────────────────────


def quiet(stage: Stage, *names: str) -> list[Actor]:
    """Meet members of whom only the first stays silent."""
    met = stage.meet(*names)
    met[0].well = False
    return met


def spared(stage: Stage, times: int) -> bool:
    return stage.notes("spared") >= times


def accused(stage: Stage, by: Actor, of: Actor, *, incarnation: int = 0) -> None:
    claim = of.claim(Rank.SUSPECT, accuser=by.name, incarnation=incarnation)
    stage.hear(by, Gossip(), rumors=[claim])


def test_a_doubt_is_announced_and_passed_on() -> None:
    stage = Stage()
    target, other, _ = stage.meet("a", "b", "c")
    stage.clear()
    accused(stage, other, target)
    (event,) = stage.of(MemberSuspected)
    assert (event.member.name, event.member.rank, event.member.accuser) == ("a", Rank.SUSPECT, "b")
    assert "b" in event.why
    stage.run(200)
    assert target.claim(Rank.SUSPECT, accuser="b") in stage.spread()


def death_after(stage: Stage, target: Actor) -> int:
    return stage.until(lambda: stage.rank(target.name) is Rank.DEAD, 30_000)


@pytest.mark.parametrize(("accusers", "bases"), [(1, 6), (2, 1)])
def test_without_confirmation_a_doubt_takes_six_times_as_long(accusers: int, bases: int) -> None:
    # This node raises no doubts itself, or it would be the one that confirms.
    stage = Stage(options=replace(LAN, accusations_per_s=0.0, accusations_burst=0))
    target, *others = quiet(stage, "a", "b", "c", "d")
    for other in others[:accusers]:
        accused(stage, other, target)
    span_ms = bases * base_ms(3, 5, 500)
    stage.run(span_ms + LAN.probe_timeout_ms - 1)
    assert stage.rank("a") is Rank.SUSPECT
    stage.run(1)
    assert stage.rank("a") is Rank.DEAD


def test_a_confirmation_comes_from_another_accuser_only_and_is_passed_on() -> None:
    stage = Stage()
    target, first, second, _ = stage.meet("a", "b", "c", "d")
    accused(stage, first, target)
    stage.clear()
    accused(stage, first, target)
    assert stage.notes("confirmed") == 0
    accused(stage, second, target)
    assert stage.notes("confirmed") == 1
    accused(stage, second, target)
    assert stage.notes("confirmed") == 1
    stage.run(200)
    assert target.claim(Rank.SUSPECT, accuser="c") in stage.spread()


def test_a_newer_incarnation_begins_the_doubt_afresh() -> None:
    stage = Stage()
    target, first, second, third = stage.meet("a", "b", "c", "d")
    accused(stage, first, target)
    accused(stage, second, target)
    stage.run(1_000)
    accused(stage, third, target, incarnation=1)
    assert stage.notes("confirmed") == 1
    target.well = False
    stage.run(5_000)
    # An old doubt with its confirmation would have ended by now.
    member = stage.swim.member("a")
    assert member is not None
    assert (member.rank, member.incarnation) in [(Rank.SUSPECT, 1), (Rank.DEAD, 1)]
    assert stage.now_ms - member.since_ms < 6_000


def test_a_suspect_is_reminded_with_what_is_held_against_it() -> None:
    stage = Stage()
    target, other = stage.meet("a", "b")
    accused(stage, other, target)
    stage.clear()
    stage.run(8_000)
    reminders = [ping for ping in stage.sent(Ping, target.address) if ping.claim is not None]
    assert len(reminders) >= REMINDERS
    assert all(ping.claim == target.claim(Rank.SUSPECT, accuser="b") for ping in reminders)


def test_before_it_dies_a_member_gets_a_last_chance_over_udp_and_tcp() -> None:
    stage = Stage()
    (target,) = quiet(stage, "a")
    stage.until(lambda: stage.rank("a") is Rank.SUSPECT, 10_000)
    stage.run(base_ms(3, 2, 500) - 20)
    stage.clear()
    death_after(stage, target)
    nonces = [ping.nonce for ping in stage.sent(Ping, target.address)]
    assert max(nonces.count(nonce) for nonce in nonces) == 6
    assert any(ping.name == "a" for ping in stage.of(StreamPing))
    (event,) = stage.of(MemberDown)
    assert (event.member.name, event.member.rank) == ("a", Rank.DEAD)


@pytest.mark.parametrize("way", ["udp", "tcp"])
def test_any_answer_to_the_last_chance_spares_it(way: str) -> None:
    stage = Stage()
    (target,) = quiet(stage, "a")
    stage.until(lambda: stage.rank("a") is Rank.SUSPECT, 10_000)
    stage.clear()
    stage.tcp = True if way == "tcp" else None
    stage.until(lambda: any(ping.deadline_ms == 200 for ping in stage.of(StreamPing)), 5_000)
    if way == "udp":
        (chance,) = [ping for ping in stage.of(StreamPing) if ping.deadline_ms == 200]
        stage.hear(target, Ack(chance.nonce))
    assert stage.notes("spared") == 1
    stage.run(1_000)
    assert stage.rank("a") is Rank.SUSPECT


def test_who_is_heard_while_it_is_doubted_is_spared_for_a_while() -> None:
    """What is lost may be our words: a node whose packets hardly get out must not bury the others."""
    stage = Stage()
    target, other = quiet(stage, "a", "b")
    accused(stage, other, target)
    stage.clear()
    longest_ms = 6 * base_ms(3, 3, 500) + 500
    for times in range(1, HEARD_MAX + 1):
        stage.run(20)
        stage.hear(target)
        stage.until(partial(spared, stage, times), longest_ms)
    assert stage.rank("a") is Rank.SUSPECT
    stage.run(20)
    stage.hear(target)
    stage.run(longest_ms)
    assert stage.rank("a") is Rank.DEAD


def test_who_was_heard_only_before_the_doubt_is_not_spared_for_it() -> None:
    stage = Stage()
    target, other = quiet(stage, "a", "b")
    stage.hear(target)
    accused(stage, other, target)
    stage.clear()
    stage.run(6 * base_ms(3, 3, 500) + 500)
    assert stage.notes("spared") == 0
    assert stage.rank("a") is Rank.DEAD


def probed_and_refused(stage: Stage) -> None:
    """Let a probe of `a` fail whose host says over TCP that no process listens there."""
    asked = len(stage.of(StreamPing))
    stage.until(lambda: any(ping.name == "a" for ping in stage.of(StreamPing)[asked:]), 5_000)
    ping = stage.of(StreamPing)[-1]
    done = stage.swim.handle_stream_ping
    stage.did(done(ping.nonce, answer=StreamAnswer.NOBODY, now_ms=stage.now_ms))


def test_where_a_host_refuses_connections_nobody_else_need_agree() -> None:
    stage = Stage(tcp=None)
    quiet(stage, "a", "b", "c")
    probed_and_refused(stage)
    stage.until(lambda: stage.rank("a") is Rank.SUSPECT, 1_000)
    half_ms = base_ms(3, 4, 500) // 2
    stage.run(half_ms - 20)
    assert stage.rank("a") is Rank.SUSPECT
    stage.run(220 + 40)
    assert stage.rank("a") is Rank.DEAD
    assert stage.notes("hastened") == 1


def test_a_doubt_that_was_raised_by_others_is_hastened_too() -> None:
    stage = Stage(tcp=None)
    target, other, _ = quiet(stage, "a", "b", "c")
    accused(stage, other, target)
    probed_and_refused(stage)
    stage.run(2 * 500 + base_ms(3, 4, 500) // 2)
    assert stage.rank("a") is Rank.DEAD
    assert stage.notes("hastened") == 1


def test_a_refused_connection_alone_is_no_doubt() -> None:
    """The network may let our datagrams through and refuse TCP: the member answers, and lives."""
    stage = Stage(tcp=None)
    (target,) = quiet(stage, "a")
    probed_and_refused(stage)
    target.well = True
    stage.hear(target, Ack(stage.sent(Ping, target.address)[-1].nonce))
    stage.run(10_000)
    assert stage.of(MemberSuspected) == []


def test_who_is_refuted_after_a_refused_connection_is_doubted_anew_in_full() -> None:
    stage = Stage(tcp=None)
    target, *_ = quiet(stage, "a", "b", "c")
    probed_and_refused(stage)
    stage.until(lambda: stage.rank("a") is Rank.SUSPECT, 1_000)
    target.incarnation = 1
    stage.hear(target)
    accused(stage, target, target, incarnation=1)
    stage.run(base_ms(3, 4, 500))
    assert stage.rank("a") is not Rank.DEAD


def test_who_holds_a_suspect_dead_confirms_the_doubt() -> None:
    stage = Stage()
    target, other, _ = quiet(stage, "a", "b", "c")
    accused(stage, other, target)
    third = Actor("c", Address("10.0.9.9", 7946))
    stage.did(
        stage.swim.handle_rows([target.claim(Rank.DEAD, accuser=third.name)], now_ms=stage.now_ms)
    )
    assert stage.rank("a") is Rank.SUSPECT
    assert stage.notes("confirmed") == 1


def test_a_suspect_that_speaks_up_with_a_higher_incarnation_is_alive() -> None:
    stage = Stage()
    target, other = stage.meet("a", "b")
    accused(stage, other, target)
    stage.clear()
    target.incarnation = 1
    stage.hear(target)
    assert stage.rank("a") is Rank.ALIVE
    assert len(stage.of(MemberRefuted)) == 1
    stage.run(60_000)
    assert stage.of(MemberDown) == []


def test_a_suspect_that_speaks_with_the_same_incarnation_is_told() -> None:
    stage = Stage()
    target, other = stage.meet("a", "b")
    accused(stage, other, target)
    stage.clear()
    stage.hear(target)
    assert stage.rank("a") is Rank.SUSPECT
    assert stage.notes("told") == 1
