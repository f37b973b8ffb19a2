"""Founding acceptor: what one name promises and accepts of first rosters, each said only once its disk has it.

The protocol is in `roster_founding`. To a release before ballots it answers as that does: it promises one of its
foundings at a time, for three seconds, and accepts one of its rosters if it has accepted none.
"""

from typing import Final

from msgspec.structs import replace

from smg_mesh.escrow.founding_state import (
    FOUNDERS_MAX,
    NO_BALLOT,
    Ballot,
    Founders,
    FoundingState,
)
from smg_mesh.escrow.limit_model import Life, Roster
from smg_mesh.escrow.messages.founding_messages import FoundAsk, FoundVote
from smg_mesh.escrow.messages.messages import RosterAsk, RosterMessage, RosterVote
from smg_mesh.escrow.roster import roster_values as rosters

ACCEPTED_MS: Final = 3_000
"""So long a promise without a ballot holds, and keeps others away."""

Out = list[tuple[str, RosterMessage]]


def accepted_before(roster: Roster, state: FoundingState | None) -> FoundingState:
    """Return the state of a name that has a roster on its disk which a release before ballots accepted."""
    state = state or FoundingState()
    known = {one.id: one for one in state.founders}
    known.setdefault(roster.id, Founders(roster.id, roster.names, (0,) * len(roster.names)))
    founders = tuple(one for _, one in sorted(known.items()))
    return replace(state, founders=founders, accepted=state.accepted or roster.id)


class FoundingAcceptor:
    """Acceptor of one life of a node, while it has no roster."""

    def __init__(self, me: Life, state: FoundingState | None) -> None:
        """Begin with what the disk has of an earlier life."""
        self.state = state or FoundingState()
        """What is to be on the disk."""
        self.kept = self.state
        """What is: nothing else is said."""
        self._me = me
        self._known = {one.id: one for one in self.state.founders}
        self._asks: dict[str, FoundAsk] = {}
        """By asker: what waits for the disk."""
        self._said = self.state.accepted_ballot
        self._lock: tuple[bytes, int] | None = None
        """A founding without a ballot, and until when it is promised."""
        self._promised_ms = -ACCEPTED_MS

    @property
    def known(self) -> tuple[Founders, ...]:
        """All founders that were heard of, sorted by id; some of them nothing was promised about."""
        return tuple(one for _, one in sorted(self._known.items()))

    def remembers(self, roster_id: bytes) -> bool:
        """Return whether this is the first life of this name that may go by the roster of these founders.

        None goes by it before it is proven, and it is not proposed before its names promised: this
        life was there then, or has what one before it promised.
        """
        if self._lock is not None and self._lock[0] == roster_id:
            return True
        founders = self._known.get(roster_id)
        if founders is None or not any(founders.boots):
            return False
        promised = roster_id not in self.state.forgotten and founders in self.state.founders
        return promised or founders.has_life(*self._me)

    def learn(self, founders: Founders) -> bool:
        """Hear of founders; return whether that is news. What nothing was promised about makes room for others."""
        if founders.id in self._known or len(founders.names) != len(founders.boots):
            return False
        if len(self._known) >= FOUNDERS_MAX:
            promised = {one.id for one in self.state.founders}
            free = [known for known in self._known if known not in promised]
            if not free:
                return False
            del self._known[free[0]]
        self._known[founders.id] = founders
        return True

    def asked(self, ask: FoundAsk, *, now_ms: int) -> Out:
        """Promise to go by no smaller ballot, unless a larger one was promised or the asker does not know enough."""
        if ask.ballot == NO_BALLOT:
            return self._asked_without_ballot(ask, now_ms)
        unknown = tuple(one for one in ask.founders if one not in self._known)
        missing = [one for one in self.state.founders if one.id not in ask.founders]
        locked = self._lock is not None and now_ms < self._lock[1]
        if unknown or missing or locked or ask.ballot < self.state.ballot:
            told = [(ask.name, part) for one in missing for part in rosters.founders_parts(one)]
            return [*told, (ask.name, self._vote(ask, accepted=False, unknown=unknown))]
        if ask.ballot > self.state.ballot:
            self._promised_ms = now_ms
            self.state = self._promise(ask)
        self._asks[ask.name] = ask
        return self._answers()

    def told(self, roster: Roster, ballot: Ballot, *, now_ms: int) -> Out:
        """Accept a first roster under the ballot that was promised last, unless it was accepted already."""
        founders = self._known.get(roster.id)
        if ballot == NO_BALLOT:
            self._accept_without_ballot(roster, now_ms)
        elif (
            ballot == self.state.ballot
            and founders in self.state.founders
            and founders.names == roster.names
            and self.state.accepted_ballot < ballot
        ):
            self.state = replace(self.state, accepted=roster.id, accepted_ballot=ballot)
        return self._answers()

    def written(self, state: FoundingState) -> Out:
        """Learn that the disk has a state; return what may be said now."""
        if state.is_later(self.kept):
            self.kept = state
        return self._answers()

    def vote(self, ask: RosterAsk) -> RosterVote | None:
        """Return the answer of one that has a first roster on its disk which is not proven; None if it has another."""
        if ask.term or ask.version != 1 or self.kept.accepted != ask.roster:
            return None
        return self._accepted(ask.sent_ms)

    def _answers(self) -> Out:
        """Return what is on the disk and was not said yet."""
        out: Out = []
        if self.kept.ballot == self.state.ballot:
            asks, self._asks = self._asks, {}
            for name, ask in asks.items():
                accepted = ask.ballot == self.kept.ballot
                out.append((name, self._vote(ask, accepted=accepted)))
        ballot = self.kept.accepted_ballot
        if ballot > self._said:
            self._said = ballot
            out.append((ballot.name, self._accepted(0)))
        return out

    def _promise(self, ask: FoundAsk) -> FoundingState:
        """Return the state with a promise. A life that founders do not have, and that knew nothing of them, forgot."""
        before = self.state
        new = [self._known[one] for one in ask.founders]
        new = [one for one in new if one not in before.founders]
        forgotten = [
            one.id for one in new if self._me.name in one.names and not one.has_life(*self._me)
        ]
        return FoundingState(
            ask.ballot,
            tuple(sorted((*before.founders, *new), key=lambda one: one.id)),
            tuple(sorted((*before.forgotten, *forgotten))),
            before.accepted,
            before.accepted_ballot,
        )

    def _vote(self, ask: FoundAsk, *, accepted: bool, unknown: tuple[bytes, ...] = ()) -> FoundVote:
        kept = self.kept
        return FoundVote(
            ask.roster,
            self._me.name,
            ask.sent_ms,
            accepted,
            self.state.ballot,
            unknown,
            kept.forgotten if accepted else (),
            kept.accepted,
            kept.accepted_ballot,
        )

    def _accepted(self, asked_ms: int) -> RosterVote:
        kept = self.kept
        whole = self.remembers(kept.accepted)
        me = self._me
        return RosterVote(
            kept.accepted,
            1,
            0,
            me.name,
            me.boot,
            asked_ms,
            whole,
            False,
            0,
            0,
            0,
            founding=kept.accepted_ballot,
        )

    # ── A release before ballots ─────────────────────────────────────────────

    def _asked_without_ballot(self, ask: FoundAsk, now_ms: int) -> Out:
        held = self._known.get(self.state.accepted)
        if held is not None and held.id != ask.roster:
            parts = rosters.parts(rosters.first(held.id, held.names))
            return [(ask.name, part) for part in parts]
        accepted = self._is_free(ask.roster, now_ms)
        if accepted:
            self._lock = ask.roster, now_ms + ACCEPTED_MS
        return [(ask.name, FoundVote(ask.roster, self._me.name, ask.sent_ms, accepted))]

    def _accept_without_ballot(self, roster: Roster, now_ms: int) -> None:
        if self.state.accepted or not self._is_free(roster.id, now_ms):
            return
        state = accepted_before(roster, self.state)
        if len(state.founders) <= FOUNDERS_MAX:
            self.state = state
            self._known.update((one.id, one) for one in state.founders)

    def _is_free(self, roster_id: bytes, now_ms: int) -> bool:
        """Return whether nothing else was promised just now."""
        lock = self._lock
        locked = lock is not None and lock[0] != roster_id and now_ms < lock[1]
        return not locked and now_ms - self._promised_ms >= ACCEPTED_MS
