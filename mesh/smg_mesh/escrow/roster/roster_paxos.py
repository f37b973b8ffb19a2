"""Roster Paxos: one decision among the names of a roster: which
change makes the next version of it.

Single-decree Paxos. A ballot is the term of the owner of the roster's slot. An acceptor that has
seen a ballot stores nothing under a smaller one; a proposer first reads from a majority, and if any
of them has stored a change, proposes the one that was stored under the largest ballot instead of
its own. Answers count while they are fresh: an acceptor that restarted since does not count for
what its former life said.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from smg_mesh.escrow.limit_model import GUARD_MS, LEASE_MS, Life, Roster
from smg_mesh.escrow.messages.messages import RosterAsk, RosterVote
from smg_mesh.escrow.roster.roster_values import Kind

AGAIN_MS: Final = 150
FRESH_MS: Final = LEASE_MS - GUARD_MS
LEAVE_AFTER_MS: Final = 1_000
"""Nobody takes the part of a name that left before windows that it may have spent in are over."""


GROW_AFTER_MS: Final = 1_200
"""Windows are minted up to a second before they begin: none that was minted before there was room for newcomers."""


class Change(NamedTuple):
    """One step of a roster."""

    kind: Kind
    member: str = ""
    since_ms: int = 0


class Acceptor:
    """Acceptor: what one node has promised and stored of one version."""

    def __init__(self) -> None:
        self._ballot = 0
        self._stored_term = 0
        self._stored = Change("")

    def asked(self, ask: RosterAsk) -> None:
        """Promise, and store what is proposed, unless a larger ballot was seen; a look (term 0) changes nothing."""
        if not ask.term or ask.term < self._ballot:
            return
        self._ballot = ask.term
        if ask.kind:
            self._stored_term = ask.term
            self._stored = Change(ask.kind, ask.member, ask.since_ms)

    def learn(self, vote: RosterVote) -> None:
        """Take over what another acceptor knows: one's own former life may have said the same."""
        self._ballot = max(self._ballot, vote.ballot)
        if vote.stored_term > self._stored_term:
            self._stored_term = vote.stored_term
            self._stored = Change(vote.kind, vote.member, vote.since_ms)

    def vote(
        self, ask: RosterAsk, me: Life, said: tuple[bool, bool, int], *, settled: bool = True
    ) -> RosterVote:
        """Return the answer; `said` is whether the node is whole and synced, and since when it goes by the version."""
        return RosterVote(
            ask.roster,
            ask.version,
            ask.term,
            me.name,
            me.boot,
            ask.sent_ms,
            *said,
            self._ballot,
            self._stored_term,
            *self._stored,
            settled=settled,
        )


@dataclass(slots=True)
class _Round:
    """What one owner does under one term about one version."""

    term: int
    proposed: Change | None = None
    free: bool = True
    """Nobody has proposed anything under an earlier term: it may be given up for another one."""


class Proposer:
    """Proposer: the owner's half of one decision."""

    def __init__(self) -> None:
        self._round: _Round | None = None
        self._votes: dict[str, RosterVote] = {}
        self._asked_ms = -AGAIN_MS

    def begin_anew(self) -> None:
        """There is another version to be followed."""
        self._round, self._votes = None, {}

    def step(
        self,
        roster: Roster,
        term: int,
        wish: Change | None,
        *,
        name: str,
        now_ms: int,
        wall_ms: int,
    ) -> RosterAsk | None:
        """Return what every name of the roster is to be asked now."""
        if self._round is None or self._round.term != term:
            self._round, self._votes, self._asked_ms = _Round(term), {}, now_ms - AGAIN_MS
        if self._round.proposed is None:
            self._round.proposed = self._choice(roster, wish, now_ms, wall_ms)
            if self._round.proposed is not None:
                self._asked_ms = now_ms - AGAIN_MS
        if now_ms - self._asked_ms < AGAIN_MS or (wish is None and self._is_idle(roster, now_ms)):
            return None
        self._asked_ms = now_ms
        change = self._round.proposed or Change("")
        return RosterAsk(roster.id, roster.version, term, name, now_ms, *change)

    def voted(self, roster: Roster, vote: RosterVote, *, now_ms: int) -> Change | None:
        """Count an answer; return the change once a majority has stored it."""
        if self._round is None or vote.term != self._round.term or not vote.whole:
            return None
        if vote.ballot > vote.term:
            return None
        before = self._votes.get(vote.voter)
        if before is None or before.asked_ms <= vote.asked_ms:
            self._votes[vote.voter] = vote
        proposed = self._round.proposed
        if proposed is None:
            return None
        stored = [
            vote
            for vote in self._fresh(now_ms)
            if vote.stored_term == vote.term and (vote.kind, vote.member) == proposed[:2]
        ]
        return proposed if len(stored) >= roster.majority else None

    def _choice(
        self, roster: Roster, wish: Change | None, now_ms: int, wall_ms: int
    ) -> Change | None:
        """Return what to propose once a majority has answered: what may be decided already, or what is wished."""
        votes = self._fresh(now_ms)
        if len(votes) < roster.majority:
            return None
        last = max(votes, key=lambda vote: vote.stored_term)
        if last.stored_term:
            return Change(last.kind, last.member, last.since_ms)
        if wish is None or sum(vote.synced for vote in votes) < roster.majority:
            return None
        if wish.kind == "grow":
            if len(votes) < len(roster.names) or not all(vote.settled for vote in votes):
                return None
            since_ms = max(vote.adopted_ms for vote in votes) + GROW_AFTER_MS
            return Change("grow", "", since_ms)
        if wish.kind == "leave":
            return Change("leave", wish.member, wall_ms + LEAVE_AFTER_MS)
        return wish

    def _fresh(self, now_ms: int) -> list[RosterVote]:
        return [vote for vote in self._votes.values() if now_ms - vote.asked_ms < FRESH_MS]

    def _is_idle(self, roster: Roster, now_ms: int) -> bool:
        """Return whether a majority was read, and none had stored a proposal."""
        votes = self._fresh(now_ms)
        return len(votes) >= roster.majority and not any(vote.stored_term for vote in votes)
