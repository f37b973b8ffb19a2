"""What others say about this node, and what it answers; other lives of its name."""

import pytest

from smg_mesh.swim.boot_numbers import BOOT_MAX, OUTLIVED_MS
from smg_mesh.swim.dissemination.packet_sender import INCARNATION_MAX
from smg_mesh.swim.effects import BootChanged, SendDatagram, StreamAnswer, StreamPing, Superseded
from smg_mesh.swim.messages import Accusation, Ack, Address, Claim, Gossip, Hello, Ping, Rank
from support.mesh.swim_stage import ME, Actor, Stage, messages, packets

ELSEWHERE = Address("10.9.9.9", 7946)


def about_me(
    rank: Rank = Rank.SUSPECT,
    *,
    boot: int = 100,
    incarnation: int = 0,
    address: Address | None = None,
    accuser: str = "a",
) -> Claim:
    meta = None if address is None else b""
    return Claim("me", boot, incarnation, rank, address, meta, accuser)


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.meet("a", "b", "c")
    stage.run(3_000)
    stage.clear()
    return stage


def actor(stage: Stage, name: str) -> Actor:
    return next(one for one in stage.actors.values() if one.name == name)


def test_a_doubt_is_refuted_to_the_accuser_and_to_everybody(stage: Stage) -> None:
    stage.hear(actor(stage, "b"), rumors=[about_me(accuser="a")])
    assert (stage.swim.incarnation, stage.swim.health_score) == (1, 1)
    ((to, hello),) = messages(stage.asked, Hello)
    assert to == actor(stage, "a").address
    assert (hello.claim.incarnation, hello.claim.rank) == (1, Rank.ALIVE)
    stage.run(1_000)
    assert hello.claim in stage.spread()


def test_a_doubt_that_comes_with_a_ping_is_refuted_in_the_answer(stage: Stage) -> None:
    stage.hear(actor(stage, "b"), Ping(5, "me", 100, about_me(accuser="nobody")))
    (packet,) = [effect for effect in stage.asked if isinstance(effect, SendDatagram)]
    assert stage.sent(Ack, packet.to) == [Ack(5)]
    assert stage.spread()[0].incarnation == 1


@pytest.mark.parametrize("rank", [Rank.SUSPECT, Rank.DEAD, Rank.LEFT])
def test_the_refutation_is_above_whatever_was_said(stage: Stage, rank: Rank) -> None:
    stage.hear(actor(stage, "a"), rumors=[about_me(rank, incarnation=7)])
    assert stage.swim.incarnation == 8


def test_old_doubts_are_old(stage: Stage) -> None:
    stage.hear(actor(stage, "a"), rumors=[about_me()])
    stage.hear(actor(stage, "a"), rumors=[about_me()])
    assert stage.swim.incarnation == 1


def test_the_last_incarnation_is_followed_by_another_boot(stage: Stage) -> None:
    stage.hear(actor(stage, "a"), rumors=[about_me(incarnation=INCARNATION_MAX)])
    assert stage.of(BootChanged) == [BootChanged(stage.swim.boot)]
    assert stage.swim.boot > 100
    assert stage.swim.incarnation == 0


def test_an_incarnation_nobody_could_know_is_outdone(stage: Stage) -> None:
    stage.hear(actor(stage, "a"), rumors=[about_me(Rank.ALIVE, incarnation=4, address=ME)])
    assert stage.swim.incarnation == 5


def test_rumors_about_an_earlier_life_are_answered_once_a_second(stage: Stage) -> None:
    for _ in range(5):
        stage.hear(actor(stage, "a"), rumors=[about_me(boot=99)])
    stage.run(2_000)
    mine = [claim for claim in stage.spread() if claim.name == "me"]
    assert mine
    assert {(claim.boot, claim.incarnation) for claim in mine} == {(100, 0)}


# ── Told ─────────────────────────────────────────────────────────────────────


def test_told_dead_it_refutes_at_once_and_converses(stage: Stage) -> None:
    a = actor(stage, "a")
    stage.hear(a, Accusation(about_me(Rank.DEAD)))
    assert stage.swim.incarnation == 1
    assert [hello.claim.incarnation for hello in stage.sent(Hello, a.address)] == [1]
    assert stage.exchanges() == [("a", "told")]
    assert stage.notes("told_self", "dead") == 1


def test_told_by_many_it_converses_once(stage: Stage) -> None:
    for name in "abc":
        stage.hear(actor(stage, name), Accusation(about_me(Rank.DEAD)))
    assert len(stage.exchanges()) == 1
    assert len({to for to, _ in messages(stage.asked, Hello)}) == 3


def test_told_something_old_it_says_who_it_is(stage: Stage) -> None:
    a = actor(stage, "a")
    stage.hear(a, Accusation(about_me(Rank.DEAD, boot=50, incarnation=9)))
    assert stage.swim.incarnation == 0
    assert stage.sent(Hello, a.address)[0].claim.boot == 100


def test_told_about_somebody_else_it_does_nothing(stage: Stage) -> None:
    b = actor(stage, "b")
    stage.hear(actor(stage, "a"), Accusation(b.claim(Rank.DEAD, accuser="a")))
    assert stage.asked == []
    assert stage.rank("b") is Rank.ALIVE


@pytest.mark.parametrize("rank", [Rank.DEAD, Rank.LEFT])
def test_who_is_held_gone_and_speaks_is_told_once_a_second(stage: Stage, rank: Rank) -> None:
    a, b = actor(stage, "a"), actor(stage, "b")
    stage.hear(b, rumors=[a.claim(rank, accuser="b")])
    stage.clear()
    for _ in range(3):
        stage.hear(a)
    assert [told.claim.order for told in stage.sent(Accusation, a.address)] == [(1, 0, rank)]
    stage.run(1_000)
    stage.hear(a)
    assert len(stage.sent(Accusation, a.address)) == 2
    assert stage.rank("a") is rank


def test_a_packet_of_an_earlier_life_has_no_effect_but_that_it_is_told(stage: Stage) -> None:
    a, b = actor(stage, "a"), actor(stage, "b")
    a.boot = 5
    stage.hear(a, Hello(a.claim(), False))
    stage.clear()
    a.boot = 4
    before = stage.swim.rows()
    stage.hear(a, Ping(1, "me", 100), rumors=[b.claim(Rank.DEAD, accuser="a")])
    assert stage.swim.rows() == before
    assert [type(packet.message) for packet in packets(stage.asked)] == [Accusation]
    stage.hear(a, Ping(2, "me", 100))
    assert len(stage.sent(Accusation)) == 1


# ── Namesakes ────────────────────────────────────────────────────────────────


def test_a_later_life_that_answers_makes_this_one_step_down(stage: Stage) -> None:
    stage.hear(actor(stage, "a"), rumors=[about_me(Rank.ALIVE, boot=200, address=ELSEWHERE)])
    ((to, ping),) = messages(stage.asked, Ping)
    assert (to, ping.target, ping.target_boot) == (ELSEWHERE, "me", 200)
    other = Actor("me", ELSEWHERE, boot=200)
    stage.hear(other, Ack(ping.nonce))
    assert stage.of(Superseded) == [Superseded(200, ELSEWHERE)]
    assert stage.swim.superseded
    stage.clear()
    stage.run(5_000)
    stage.hear(actor(stage, "a"), Ping(1, "me", 100))
    assert stage.asked == []


def test_it_may_answer_over_tcp_as_well() -> None:
    stage = Stage(tcp=True)
    (a,) = stage.meet("a")
    stage.did(stage.swim.handle_rows([about_me(boot=200, address=ELSEWHERE)], now_ms=stage.now_ms))
    (ping,) = stage.of(StreamPing)
    assert (ping.name, ping.boot, ping.address) == ("me", 200, ELSEWHERE)
    done = stage.swim.handle_stream_ping
    stage.did(done(ping.nonce, answer=StreamAnswer.HERE, now_ms=stage.now_ms))
    assert stage.of(Superseded) == [Superseded(200, ELSEWHERE)]
    assert a.boot == 1


def test_a_later_life_that_does_not_answer_is_outlived(stage: Stage) -> None:
    stage.hear(actor(stage, "a"), rumors=[about_me(Rank.ALIVE, boot=200, address=ELSEWHERE)])
    stage.run(3_000)
    assert stage.of(BootChanged) == [BootChanged(stage.swim.boot)]
    assert stage.of(Superseded) == []
    assert stage.swim.boot >> 16 == OUTLIVED_MS
    assert stage.swim.incarnation == 0
    assert len(stage.sent(Ping, ELSEWHERE)) == 4
    assert (stage.swim.boot, ME) in [(claim.boot, claim.address) for claim in stage.spread()]


def test_where_the_host_says_that_nobody_listens_one_ping_is_enough() -> None:
    stage = Stage(tcp=None)
    stage.meet("a")
    stage.hear(actor(stage, "a"), Accusation(about_me(Rank.ALIVE, boot=200, address=ELSEWHERE)))
    (ping,) = stage.of(StreamPing)
    done = stage.swim.handle_stream_ping
    stage.did(done(ping.nonce, answer=StreamAnswer.NOBODY, now_ms=stage.now_ms))
    assert stage.of(BootChanged) == []  # a firewall may have said so: the other ping counts
    stage.run(stage.options.probe_timeout_ms)
    assert stage.of(BootChanged) == [BootChanged(stage.swim.boot)]
    assert len(stage.sent(Ping, ELSEWHERE)) == 1


def test_a_refusal_of_another_question_changes_nothing() -> None:
    stage = Stage(tcp=None)
    stage.meet("a")
    stage.hear(actor(stage, "a"), Accusation(about_me(Rank.ALIVE, boot=200, address=ELSEWHERE)))
    done = stage.swim.handle_stream_ping
    stage.did(done(1, answer=StreamAnswer.NOBODY, now_ms=stage.now_ms))
    stage.run(stage.options.probe_timeout_ms)
    assert len(stage.sent(Ping, ELSEWHERE)) == 2


@pytest.mark.parametrize(
    "claim",
    [
        about_me(Rank.ALIVE, boot=200, address=ME),
        about_me(Rank.DEAD, boot=200),
        about_me(Rank.LEFT, boot=200),
    ],
)
def test_my_own_former_life_is_outlived_at_once(stage: Stage, claim: Claim) -> None:
    stage.hear(actor(stage, "a"), Accusation(claim))
    assert stage.of(BootChanged) == [BootChanged(stage.swim.boot)]
    assert stage.swim.boot > 200


def test_a_namesake_of_unknown_address_is_asked_when_its_address_is_heard(stage: Stage) -> None:
    stage.hear(actor(stage, "a"), rumors=[about_me(Rank.SUSPECT, boot=200)])
    assert stage.sent(Ping) == []
    claim = about_me(Rank.ALIVE, boot=200, address=ELSEWHERE)
    stage.hear(actor(stage, "b"), rumors=[claim])
    assert len(stage.sent(Ping, ELSEWHERE)) == 1


def test_an_answer_nobody_asked_for_does_not_make_it_step_down(stage: Stage) -> None:
    other = Actor("me", ELSEWHERE, boot=200)
    stage.hear(other, Ack(1))
    assert stage.of(Superseded) == []
    ((_, ping),) = messages(stage.asked, Ping)
    stage.hear(other, Ack(ping.nonce + 1))
    assert not stage.swim.superseded


def test_an_earlier_life_that_still_lives_is_told_and_answered(stage: Stage) -> None:
    other = Actor("me", ELSEWHERE, boot=50)
    stage.hear(other, Gossip())
    assert stage.sent(Accusation, ELSEWHERE)[0].claim.boot == 100
    stage.hear(other, Ping(9, "me", 100))
    assert stage.sent(Ack, ELSEWHERE) == [Ack(9)]


def test_this_very_process_heard_through_a_mirror_is_an_echo(stage: Stage) -> None:
    mirror = Actor("me", ME, boot=100)
    stage.hear(mirror, Hello(mirror.claim(), True))
    assert stage.notes("echo") == 1
    assert stage.sent(Hello) == []


def test_a_boot_that_cannot_be_outdone_is_refused(stage: Stage) -> None:
    stage.hear(actor(stage, "a"), rumors=[about_me(Rank.ALIVE, boot=BOOT_MAX, address=ME)])
    assert stage.notes("refused", "limit") == 1
    assert stage.swim.boot == 100
