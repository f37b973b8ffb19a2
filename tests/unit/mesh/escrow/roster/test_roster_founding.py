"""Roster founding: what a proposer asks, whom it needs, and whose roster it then proposes."""

from random import Random

import pytest

from smg_mesh.escrow.founding_state import FOUNDERS_MAX, NO_BALLOT, Ballot, Founders
from smg_mesh.escrow.limit_model import Life, Roster
from smg_mesh.escrow.messages.founding_messages import FoundAsk, FoundVote
from smg_mesh.escrow.messages.messages import (
    PACKET_BYTES_MAX,
    RosterAsk,
    RosterMessage,
    RosterTell,
    RosterVote,
    encode,
)
from smg_mesh.escrow.roster.roster_founding import (
    LISTEN_MS,
    OUTBID_MS,
    PATIENCE_MS,
    RANK_MS,
    Founding,
)
from smg_mesh.escrow.roster.roster_values import founders_parts

EARLY = Founders(b"0" * 16, ("a", "x", "y"), (1, 1, 1))
ASKED_MS = 5_000


def lives(names: str) -> list[Life]:
    return [Life(name, 1) for name in names]


def founding(name: str = "a", *, expect: int = 2) -> Founding:
    return Founding(Life(name, 1), expect=expect, rng=Random(1), state=None)


def asks(out: list[tuple[str, RosterMessage]]) -> dict[str, FoundAsk]:
    return {to: message for to, message in out if isinstance(message, FoundAsk)}


def proposing(names: str = "abc", *, know: tuple[Founders, ...] = ()) -> tuple[Founding, FoundAsk]:
    """Return a proposer that has just asked them."""
    one = founding()
    for founders in know:
        one.acceptor.learn(founders)
    one.step(lives(names), now_ms=ASKED_MS - LISTEN_MS)
    asked = asks(one.step(lives(names), now_ms=ASKED_MS))
    assert {*names} <= {*asked}
    return one, asked["a"]


def promise(
    one: Founding,
    ask: FoundAsk,
    name: str,
    *,
    held: bytes = b"",
    under: Ballot = NO_BALLOT,
    forgot: tuple[bytes, ...] = (),
    ballot: Ballot | None = None,
) -> list[tuple[str, RosterMessage]]:
    mine = ask.ballot if ballot is None else ballot
    vote = FoundVote(ask.roster, name, ask.sent_ms, True, mine, (), forgot, held, under)
    return one.voted(vote, now_ms=ASKED_MS + 5)


def proposed(out: list[tuple[str, RosterMessage]]) -> set[tuple[str, bytes]]:
    """Return who is told to accept which roster."""
    tells = [(to, message) for to, message in out if isinstance(message, RosterTell)]
    return {(to, tell.roster) for to, tell in tells if tell.version == 1}


def accept(one: Founding, ask: FoundAsk, name: str, roster: bytes = b"") -> Roster | None:
    one.accepted(accepted(name, roster or ask.roster, ask.ballot), now_ms=ASKED_MS + 9, wall_ms=0)
    return one.founded()


def accepted(name: str, roster: bytes, ballot: Ballot = NO_BALLOT) -> RosterVote:
    return RosterVote(roster, 1, 0, name, 1, 0, True, False, 0, 0, 0, founding=ballot)


def test_a_node_alone_has_its_roster_at_once() -> None:
    one = founding(expect=1)
    assert one.step(lives("a"), now_ms=0) == []
    roster = one.founded()
    assert roster is not None
    assert (roster.names, roster.proven) == (("a",), True)
    assert one.acceptor.remembers(roster.id)


def test_a_node_alone_that_promised_something_asks_those_it_is_about() -> None:
    one = founding(expect=1)
    one.acceptor.learn(EARLY)
    one.acceptor.asked(FoundAsk(EARLY.id, "x", 1, Ballot(1, "x", 1), (EARLY.id,)), now_ms=0)
    out = one.step(lives("a"), now_ms=9_000)
    assert one.founded() is None
    assert set(asks(out)) == {"a", "x", "y"}


def test_the_smallest_name_proposes_after_it_has_listened_and_others_if_nobody_is_heard() -> None:
    for rank, name in enumerate("abc"):
        one = founding(name)
        wait_ms = LISTEN_MS + RANK_MS * rank
        assert one.step(lives("abc"), now_ms=100) == []
        assert one.step(lives("abc"), now_ms=99 + wait_ms) == []
        assert set(asks(one.step(lives("abc"), now_ms=100 + wait_ms))) == {"a", "b", "c"}


def test_who_hears_a_proposer_leaves_it_its_turn() -> None:
    one = founding("b")
    one.step(lives("abc"), now_ms=0)
    one.asked(FoundAsk(EARLY.id, "a", 1, Ballot(1, "a", 1), (EARLY.id,)), now_ms=2_000)
    assert one.step(lives("abc"), now_ms=2_000 + LISTEN_MS + RANK_MS - 1) == []
    (ask, *_) = asks(one.step(lives("abc"), now_ms=2_000 + LISTEN_MS + RANK_MS)).values()
    assert ask.ballot > Ballot(1, "a", 1)


def test_with_all_promises_a_roster_is_proposed_and_with_a_majority_that_accepts_it_is_proven() -> (
    None
):
    one, ask = proposing()
    assert promise(one, ask, "a") == []
    assert promise(one, ask, "b") == []
    out = promise(one, ask, "c")
    assert proposed(out) == {(name, ask.roster) for name in "abc"}
    assert {to for to, message in out if isinstance(message, RosterAsk)} == {"a", "b", "c"}
    assert accept(one, ask, "a") is None
    assert accept(one, ask, "x") is None
    roster = accept(one, ask, "c")
    assert roster is not None
    assert (roster.id, roster.names, roster.proven) == (ask.roster, ("a", "b", "c"), True)


def test_who_accepted_under_another_ballot_does_not_count() -> None:
    one, ask = proposing()
    for name in "abc":
        promise(one, ask, name)
    for ballot in (NO_BALLOT, Ballot(9, "b", 1)):
        for name in "ab":
            said = accepted(name, ask.roster, ballot)
            one.accepted(said, now_ms=ASKED_MS + 9, wall_ms=0)
    assert one.founded() is None


def test_a_majority_of_all_founders_that_are_known_has_to_promise() -> None:
    one, ask = proposing(know=(EARLY,))
    assert set(ask.founders) == {ask.roster, EARLY.id}
    for name in "abc":
        assert promise(one, ask, name) == []
    assert proposed(promise(one, ask, "x")) == {(name, ask.roster) for name in "abc"}


def test_what_was_accepted_under_the_largest_ballot_is_proposed_to_its_names_with_a_majority() -> (
    None
):
    late = Founders(b"9" * 16, ("a", "b", "z"), (1, 1, 1))
    one, ask = proposing(know=(EARLY, late))
    promise(one, ask, "x", held=EARLY.id, under=Ballot(2, "x", 1))
    promise(one, ask, "b", held=late.id, under=Ballot(3, "b", 1))
    out = promise(one, ask, "a")
    # "c" has not promised: only for a roster of its own a proposer needs it.
    assert proposed(out) == {("a", late.id), ("b", late.id)}
    assert accept(one, ask, "b", late.id) is None
    roster = accept(one, ask, "a", late.id)
    assert roster is not None
    assert roster.names == late.names


def test_who_has_forgotten_does_not_count_unless_no_majority_remembers() -> None:
    one, ask = proposing(know=(EARLY,))
    for name in "abc":
        promise(one, ask, name, forgot=(EARLY.id,))
    assert promise(one, ask, "x", forgot=(EARLY.id,)) != []
    one, ask = proposing(know=(EARLY,))
    for name in "abc":
        promise(one, ask, name)
    assert promise(one, ask, "x", forgot=(EARLY.id,)) == []
    assert promise(one, ask, "y") != []


@pytest.mark.parametrize("old", ["b", "bc"])
def test_nodes_of_a_release_before_ballots_promise_and_accept_as_theirs_do(old: str) -> None:
    one, ask = proposing()
    for name in "abc":
        promise(one, ask, name, ballot=NO_BALLOT if name in old else None)
    for name in old:
        one.accepted(accepted(name, ask.roster), now_ms=ASKED_MS + 9, wall_ms=0)
    assert accept(one, ask, "a") is not None


def test_a_voter_that_lacks_names_is_told_them_once_in_a_while() -> None:
    one, ask = proposing()
    refusal = FoundVote(ask.roster, "b", ask.sent_ms, False, NO_BALLOT, (ask.roster,))
    out = one.voted(refusal, now_ms=ASKED_MS + 2)
    assert [(to, type(message)) for to, message in out] == [("b", RosterTell), ("b", FoundAsk)]
    assert one.voted(refusal, now_ms=ASKED_MS + 3) == []


def test_founders_that_are_heard_of_are_asked_about_under_a_larger_ballot() -> None:
    one, ask = proposing()
    (part,) = founders_parts(EARLY)
    again = asks(one.told_founders(part, now_ms=ASKED_MS + 2))
    assert set(again) == {"a", "b", "c", "x", "y"}
    assert again["a"].ballot > ask.ballot
    assert set(again["a"].founders) == {ask.roster, EARLY.id}
    assert one.told_founders(part, now_ms=ASKED_MS + 3) == []


def test_who_meets_a_larger_ballot_rests_and_then_proposes_above_it() -> None:
    one, ask = proposing()
    larger = Ballot(7, "b", 1)
    assert one.voted(FoundVote(ask.roster, "b", ask.sent_ms, False, larger), now_ms=ASKED_MS) == []
    assert one.step(lives("abc"), now_ms=ASKED_MS + OUTBID_MS - 1) == []
    again = asks(one.step(lives("abc"), now_ms=ASKED_MS + 2 * OUTBID_MS))
    assert again["a"].ballot > larger


def test_a_proposer_gives_up_for_a_name_that_is_gone_or_after_a_while_without_an_answer() -> None:
    one, ask = proposing()
    fewer = asks(one.step(lives("ab"), now_ms=ASKED_MS + 200))
    assert set(fewer) == {"a", "b", "c"}
    assert fewer["a"].roster != ask.roster
    one, ask = proposing()
    promise(one, ask, "a")
    still = asks(one.step(lives("abcd"), now_ms=ASKED_MS + PATIENCE_MS))
    assert still["b"].ballot == ask.ballot
    more = asks(one.step(lives("abcd"), now_ms=ASKED_MS + PATIENCE_MS + 200))
    assert more["d"].ballot > ask.ballot
    assert one.step(lives("a"), now_ms=ASKED_MS + 9_000) == []


def test_all_that_can_be_asked_and_answered_fits_into_a_packet() -> None:
    name = "n" * 63
    ballot = Ballot(1 << 40, name, (1 << 63) - 1)
    ids = tuple(number.to_bytes(16, "big") for number in range(FOUNDERS_MAX))
    messages: list[FoundAsk | FoundVote] = [
        FoundAsk(ids[0], name, 1 << 60, ballot, ids),
        FoundVote(ids[0], name, 1 << 60, True, ballot, (), ids, ids[0], ballot),
        FoundVote(ids[0], name, 1 << 60, False, ballot, ids, (), ids[0], ballot),
    ]
    assert all(len(packet) <= PACKET_BYTES_MAX for one in messages for packet in encode([one]))
