"""Hello: how members meet, meet again after a restart, and change what they tell."""

import pytest

from smg_mesh.swim.effects import MemberChanged, MemberLeft, MemberUp, NewsReceived, SendDatagram
from smg_mesh.swim.messages import Accusation, Ack, Address, Claim, Gossip, Hello, News, Ping, Rank
from support.mesh.swim_stage import ME, Actor, Stage, messages

SEED = Address("10.0.1.1", 7946)


def test_greeted_addresses_hear_who_is_there_and_are_asked_back() -> None:
    stage = Stage()
    stage.clear()
    stage.did(stage.swim.greet([SEED, ME], now_ms=stage.now_ms))
    ((to, hello),) = messages(stage.asked, Hello)
    assert (to, hello.answer) == (SEED, True)
    assert hello.claim == Claim("me", 100, 0, Rank.ALIVE, ME, b"mine")


def test_who_says_hello_is_a_member_and_announced_at_once() -> None:
    stage = Stage()
    a = Actor("a", SEED)
    stage.hear(a, Hello(a.claim(), True))
    (up,) = stage.of(MemberUp)
    assert (up.member.name, up.returned, up.member.announced) == ("a", False, True)
    ((to, hello),) = messages(stage.asked, Hello)
    assert (to, hello.answer) == (SEED, False)
    assert stage.exchanges() == []


def test_whoever_answers_our_greeting_is_conversed_with_if_it_knows_something_else() -> None:
    stage = Stage()
    a = Actor("a", SEED)
    stage.hear(a, Hello(a.claim(), False), digest=b"another member digest"[:16])
    assert stage.exchanges() == [("a", "join")]
    assert stage.sent(Hello) == []


def test_the_first_to_answer_is_conversed_with_in_any_case() -> None:
    """Digests say nothing about the gone: only a conversation ends the search for the others."""
    stage = Stage()
    a, b = Actor("a", SEED), Actor("b", Address("10.0.1.2", 7946))
    stage.hear(a, Hello(a.claim(), False))
    assert stage.exchanges() == [("a", "join")]
    stage.converse("a")
    stage.clear()
    stage.swim.handle_rows([b.claim()], now_ms=stage.now_ms)
    stage.hear(b, Hello(b.claim(), False))
    assert stage.exchanges() == []


def test_a_stranger_is_heard_answered_and_asked_who_it_is_once_a_second() -> None:
    stage = Stage()
    (b,) = stage.meet("b")
    stage.clear()
    stranger = Actor("a", Address("10.0.5.5", 7946))
    for _ in range(3):
        stage.hear(stranger, Ping(5, "me", 100), rumors=[b.claim(Rank.SUSPECT, accuser="x")])
    assert stage.rank("b") is Rank.SUSPECT
    assert stage.sent(Ack, stranger.address) == [Ack(5)] * 3
    assert [hello.answer for hello in stage.sent(Hello, stranger.address)] == [True]
    assert stage.rank("a") is None
    stage.run(1_000)
    stage.hear(stranger)
    assert len(stage.sent(Hello, stranger.address)) == 2


def test_a_stranger_whose_claim_rides_on_its_packet_needs_no_introduction() -> None:
    stage = Stage()
    stranger = Actor("a", Address("10.0.5.5", 7946))
    stage.clear()
    stage.hear(stranger, rumors=[stranger.claim()])
    assert stage.rank("a") is Rank.ALIVE
    assert stage.sent(Hello) == []


def test_a_greeting_that_contradicts_its_own_header_is_refused() -> None:
    stage = Stage()
    a = Actor("a", SEED)
    claim = a.claim(incarnation=3)
    stage.hear(a, Hello(claim, True))
    assert stage.notes("refused", "hello") == 1
    assert stage.rank("a") is None


def test_a_restart_at_another_address_supersedes_at_once() -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    stage.hear(b, rumors=[a.claim(Rank.SUSPECT, accuser="b")])
    stage.clear()
    again = Actor("a", Address("10.0.7.7", 1234), boot=2)
    stage.hear(again, Hello(again.claim(), True))
    (changed,) = stage.of(MemberChanged)
    assert changed.restarted
    assert (changed.member.boot, changed.member.address) == (2, again.address)
    assert changed.member.rank is Rank.ALIVE
    # The older life is told, whoever it is.
    stage.clear()
    stage.hear(a)
    assert stage.sent(Accusation, a.address)[0].claim == again.claim()


@pytest.mark.parametrize("rank", [Rank.DEAD, Rank.LEFT])
def test_a_restart_after_its_end_was_announced_is_announced_up_at_once(rank: Rank) -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    stage.hear(b, rumors=[a.claim(rank, accuser="b")])
    stage.clear()
    a.boot = 2
    stage.hear(b, rumors=[a.claim()])
    (up,) = stage.of(MemberUp)
    assert up.returned
    assert stage.notes("flap") == 0


def test_a_header_with_a_later_boot_is_no_address_so_it_is_asked() -> None:
    stage = Stage()
    (a,) = stage.meet("a")
    stage.clear()
    a.boot = 2
    stage.hear(a)
    member = stage.swim.member("a")
    assert member is not None
    assert member.boot == 1
    assert [hello.answer for hello in stage.sent(Hello, a.address)] == [True]


def test_what_a_member_tells_about_itself_is_taken_with_its_incarnation() -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    stage.clear()
    moved = Address("10.0.8.8", 7946)
    stage.hear(b, rumors=[Claim("a", 1, 1, Rank.ALIVE, moved, b"new")])
    (changed,) = stage.of(MemberChanged)
    assert (changed.member.address, changed.member.meta, changed.restarted) == (
        moved,
        b"new",
        False,
    )
    assert a.address != moved


def test_a_header_may_outrun_the_meta_which_is_then_asked_for_and_still_taken() -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    stage.clear()
    a.incarnation = 1
    stage.hear(a)
    assert [hello.answer for hello in stage.sent(Hello, a.address)] == [True]
    stage.hear(b, rumors=[Claim("a", 1, 1, Rank.ALIVE, a.address, b"new")])
    member = stage.swim.member("a")
    assert member is not None
    assert (member.incarnation, member.meta) == (1, b"new")
    assert len(stage.of(MemberChanged)) == 1


def test_a_row_with_a_state_ahead_of_its_meta_is_told_without_until_that_is_known() -> None:
    stage, other = Stage(), Stage(name="other")
    (a,) = stage.meet("a")
    a.incarnation = 1
    stage.hear(a)
    other.did(other.swim.handle_rows(stage.swim.rows(), now_ms=other.now_ms))
    assert other.swim.member("a") is None
    stage.hear(a, Hello(a.claim(), False))
    other.did(other.swim.handle_rows(stage.swim.rows(), now_ms=other.now_ms))
    member = other.swim.member("a")
    assert member is not None
    assert (member.incarnation, member.address, member.announced) == (1, a.address, True)


@pytest.mark.parametrize("rank", [Rank.SUSPECT, Rank.DEAD, Rank.LEFT])
def test_bad_news_of_an_unknown_name_is_kept_but_not_announced(rank: Rank) -> None:
    stage = Stage()
    (b,) = stage.meet("b")
    stage.clear()
    unknown = Actor("a", Address("10.0.6.6", 7946))
    stage.hear(b, rumors=[unknown.claim(rank, accuser="b")])
    assert [row.rank for row in stage.swim.rows() if row.name == "a"] == [rank]
    stage.run(20_000)
    assert [event for event in stage.asked if isinstance(event, MemberUp | MemberLeft)] == []
    stage.hear(b, rumors=[unknown.claim(incarnation=1)])
    # Whoever was heard of as gone has to hold out first.
    assert len(stage.of(MemberUp)) == (1 if rank is Rank.SUSPECT else 0)


def test_own_meta_and_address_are_spread_with_a_new_incarnation() -> None:
    stage = Stage()
    stage.meet("a")
    stage.run(3_000)
    stage.clear()
    stage.did(stage.swim.change_meta(b"changed", now_ms=stage.now_ms))
    stage.did(stage.swim.change_meta(b"changed", now_ms=stage.now_ms))
    moved = Address("10.0.0.99", 7946)
    stage.did(stage.swim.change_address(moved, now_ms=stage.now_ms))
    stage.run(1_000)
    assert stage.swim.incarnation == 2
    assert stage.spread()[0] == Claim("me", 100, 2, Rank.ALIVE, moved, b"changed")
    assert stage.swim.members()[0].address == moved
    assert (stage.swim.meta, stage.swim.name) == (b"changed", "me")


def test_news_are_told_once_and_passed_on() -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    stage.run(3_000)
    stage.clear()
    news = News("a", "load", "k", 7, b"x")
    stage.hear(a, news=[news])
    stage.hear(b, news=[news])
    assert stage.of(NewsReceived) == [NewsReceived(news)]
    stage.clear()
    stage.run(1_000)
    sent = [effect for effect in stage.asked if isinstance(effect, SendDatagram)]
    assert any(b"load" in effect.packet for effect in sent)


def test_own_news_outdo_those_of_an_earlier_life() -> None:
    stage = Stage()
    (a,) = stage.meet("a")
    stage.clear()
    stage.hear(a, news=[News("me", "load", "k", 1 << 40, b"old")])
    assert stage.of(NewsReceived) == []
    stage.did(stage.swim.say("load", "k", b"new", now_ms=stage.now_ms))
    stage.hear(a, Gossip())
    stage.run(500)
    sent = [effect.packet for effect in stage.of(SendDatagram)]
    assert any(b"new" in packet for packet in sent)
    assert not any(b"old" in packet for packet in sent[-3:])


def test_the_newly_dead_hear_rumors_for_a_while_and_take_nobodys_place_who_is_alone() -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    stage.run(3_000)
    stage.hear(b, rumors=[a.claim(Rank.DEAD, accuser="b")])
    stage.clear()
    stage.run(1_000)
    gossip = [to for to, _ in messages(stage.asked, Gossip)]
    assert gossip.count(a.address) > 0
    assert gossip.count(b.address) > 0
    stage.run(31_000)
    stage.clear()
    stage.did(stage.swim.say("load", "", b"x", now_ms=stage.now_ms))
    stage.run(2_000)
    assert {to for to, _ in messages(stage.asked, Gossip)} == {b.address}
