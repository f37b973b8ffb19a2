"""Founding acceptor: what a name promises and accepts, in which order, and only once its disk has it."""

import msgspec

from smg_mesh.escrow.founding_state import NO_BALLOT, Ballot, Founders, FoundingState
from smg_mesh.escrow.limit_model import Life
from smg_mesh.escrow.messages.founding_messages import FoundAsk, FoundVote
from smg_mesh.escrow.messages.messages import RosterAsk, RosterMessage, RosterTell, RosterVote
from smg_mesh.escrow.roster.founding_acceptor import FoundingAcceptor, accepted_before
from smg_mesh.escrow.roster.roster_values import first

ABC = Founders(b"1" * 16, ("a", "b", "c"), (1, 1, 1))
BC = Founders(b"2" * 16, ("b", "c"), (1, 1))
ONE, TWO = Ballot(1, "a", 1), Ballot(2, "b", 1)


def acceptor(
    name: str = "c", boot: int = 1, state: FoundingState | None = None
) -> FoundingAcceptor:
    one = FoundingAcceptor(Life(name, boot), state)
    one.learn(ABC)
    one.learn(BC)
    return one


def ask(ballot: Ballot, *founders: Founders, name: str = "a", sent_ms: int = 7) -> FoundAsk:
    ids = tuple(one.id for one in founders)
    return FoundAsk(founders[0].id, name, sent_ms, ballot, ids)


def on_disk(one: FoundingAcceptor) -> list[RosterMessage]:
    """Let the disk have what is to be there; return what is said."""
    return [message for _, message in one.written(one.state)]


def promised(one: FoundingAcceptor, ballot: Ballot, *founders: Founders) -> FoundVote:
    assert one.asked(ask(ballot, *founders), now_ms=0) == []
    (vote,) = on_disk(one)
    assert isinstance(vote, FoundVote)
    return vote


def test_a_promise_is_said_once_the_disk_has_it_and_again_when_it_is_asked_for_again() -> None:
    one = acceptor()
    vote = promised(one, ONE, ABC)
    assert vote == FoundVote(ABC.id, "c", 7, True, ONE)
    again = one.asked(ask(ONE, ABC, sent_ms=9), now_ms=0)
    assert again == [("a", msgspec.structs.replace(vote, asked_ms=9))]


def test_nothing_is_promised_under_a_smaller_ballot_than_one_that_was() -> None:
    one = acceptor()
    promised(one, TWO, ABC)
    ((_, vote),) = one.asked(ask(ONE, ABC), now_ms=0)
    assert vote == FoundVote(ABC.id, "c", 7, False, TWO)
    assert one.state.ballot == TWO


def test_who_does_not_ask_about_all_founders_is_told_of_them_and_gets_no_promise() -> None:
    one = acceptor()
    promised(one, ONE, ABC)
    (_, told), (_, vote) = one.asked(ask(TWO, BC, name="b"), now_ms=0)
    assert isinstance(told, RosterTell)
    assert (told.version, told.roster, told.names, told.divisors) == (
        0,
        ABC.id,
        ABC.names,
        (1, 1, 1),
    )
    assert isinstance(vote, FoundVote)
    assert not vote.accepted
    assert promised(one, TWO, BC, ABC).accepted
    assert {founders.id for founders in one.kept.founders} == {ABC.id, BC.id}


def test_founders_that_are_unknown_are_asked_for() -> None:
    one = FoundingAcceptor(Life("c", 1), None)
    ((_, vote),) = one.asked(ask(ONE, ABC), now_ms=0)
    assert vote == FoundVote(ABC.id, "c", 7, False, NO_BALLOT, (ABC.id,))


def test_a_roster_is_accepted_under_the_ballot_that_was_promised_last_and_no_other() -> None:
    one, roster = acceptor(), first(ABC.id, ABC.names)
    one.told(roster, ONE, now_ms=0)
    assert one.state == FoundingState()
    promised(one, ONE, ABC)
    one.told(first(ABC.id, ("a", "b")), ONE, now_ms=0)
    one.told(roster, TWO, now_ms=0)
    assert one.state.accepted == b""
    one.told(roster, ONE, now_ms=0)
    assert one.vote(RosterAsk(ABC.id, 1, 0, "a", 5)) is None
    (vote,) = on_disk(one)
    assert isinstance(vote, RosterVote)
    assert (vote.roster, vote.founding, vote.whole) == (ABC.id, ONE, True)
    assert one.vote(RosterAsk(ABC.id, 1, 0, "a", 5)) == msgspec.structs.replace(vote, asked_ms=5)


def test_a_later_proposer_is_told_what_was_accepted_by_this_life_and_by_the_next() -> None:
    one = acceptor()
    promised(one, ONE, ABC)
    one.told(first(ABC.id, ABC.names), ONE, now_ms=0)
    on_disk(one)
    for life in (one, acceptor(boot=5, state=one.kept)):
        vote = promised(life, TWO, BC, ABC)
        assert (vote.held, vote.held_ballot) == (ABC.id, ONE)
        assert ABC.id not in vote.forgotten


def test_a_life_without_the_disk_of_one_before_it_says_that_it_has_forgotten_and_for_good() -> None:
    one = acceptor(boot=5)
    assert promised(one, ONE, ABC).forgotten == (ABC.id,)
    assert not one.remembers(ABC.id)
    later = acceptor(boot=6, state=one.kept)
    assert promised(later, TWO, BC, ABC).forgotten == tuple(sorted((ABC.id, BC.id)))
    assert not later.remembers(ABC.id)
    assert promised(acceptor(), ONE, ABC).forgotten == ()


def test_who_goes_by_a_first_roster_first_is_known_by_the_lives_and_by_the_disk() -> None:
    assert acceptor().remembers(ABC.id)
    assert not acceptor(boot=2).remembers(ABC.id)
    one = acceptor()
    promised(one, ONE, ABC)
    assert acceptor(boot=2, state=one.kept).remembers(ABC.id)
    assert not acceptor().remembers(b"3" * 16)


def test_a_release_before_ballots_gets_one_promise_at_a_time_and_is_told_what_was_accepted() -> (
    None
):
    one = acceptor()
    old, other = FoundAsk(b"4" * 16, "a", 3), FoundAsk(b"5" * 16, "b", 3)
    assert one.asked(old, now_ms=0) == [("a", FoundVote(old.roster, "c", 3, True))]
    assert one.asked(other, now_ms=2_999) == [("b", FoundVote(other.roster, "c", 3, False))]
    ((_, refused),) = one.asked(ask(ONE, ABC), now_ms=2_999)
    assert isinstance(refused, FoundVote)
    assert not refused.accepted
    one.told(first(old.roster, ("a", "b", "c")), NO_BALLOT, now_ms=2_999)
    on_disk(one)
    assert one.vote(RosterAsk(old.roster, 1, 0, "a", 5)) is not None
    assert one.remembers(old.roster)
    ((_, told),) = one.asked(other, now_ms=9_000)
    assert isinstance(told, RosterTell)
    assert (told.roster, told.proven) == (old.roster, False)
    vote_of = one.asked(ask(ONE, ABC), now_ms=9_000)
    assert [type(message) for _, message in vote_of] == [RosterTell, FoundVote]


def test_a_roster_on_a_disk_of_a_release_before_ballots_counts_as_accepted() -> None:
    roster = first(ABC.id, ABC.names)
    state = accepted_before(roster, None)
    assert (state.accepted, state.accepted_ballot) == (ABC.id, NO_BALLOT)
    vote = promised(FoundingAcceptor(Life("c", 9), state), ONE, state.founders[0])
    assert (vote.held, vote.held_ballot, vote.forgotten) == (ABC.id, NO_BALLOT, ())
    assert not FoundingAcceptor(Life("c", 9), state).remembers(ABC.id)


def test_what_a_disk_has_later_is_what_counts_in_whatever_order_it_says_so() -> None:
    one = acceptor()
    one.asked(ask(ONE, ABC), now_ms=0)
    earlier = one.state
    one.asked(ask(TWO, ABC, name="b"), now_ms=0)
    assert one.written(earlier) == []
    said = dict(one.written(one.state))
    assert said["b"] == FoundVote(ABC.id, "c", 7, True, TWO)
    assert said["a"] == FoundVote(ABC.id, "c", 7, False, TWO)
    assert one.written(earlier) == []
    assert one.kept.ballot == TWO
