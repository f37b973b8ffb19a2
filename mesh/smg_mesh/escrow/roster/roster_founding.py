"""Roster founding: nodes that see each other and have no roster agree upon a first one (Paxos with ballots).

There are no voters yet to decide who votes. So a proposer asks the very names that it wants in the roster, its *founders*:
all that are alive to it, once they are enough and none has told of a roster for a moment. The smallest name proposes;
others do if nothing comes of that for some seconds, so that no name that cannot is waited for.

    promise   asked of all founders, under a ballot larger than any that is known. Who promises goes by no smaller one,
              says what it has accepted under which ballot, and remembers these founders for good
    accept    once all founders have promised, all are told the roster. Who has promised that ballot and no larger one,
              accepts it
    proven    once a majority of its names have accepted it under one ballot

A name tells of all founders that it ever made a promise about, and makes none to a proposer that does not ask about them
too (it learns of them, and begins anew). Such a proposer needs the promises of a majority of each. If any of those that
promised has accepted a roster, the proposer proposes the one that was accepted under the largest ballot instead of its
own; then it needs not all of its own founders.

*No two rosters with a name in common are ever proven.* Let R be proven under ballot b, and R' be proposed under the least
ballot b' > b of all that propose another roster with a name in common, c. Before R and R' were proposed first, under f and
f', all their names had promised; so had c, both. If f < f', the proposer of R' had to ask about R's names under f', and so
had each later one of R', b' among them: a ballot that takes a roster over has that from a name that makes no promise to one
that does not ask about all that it knows. If f' < f, a majority of the names of R' promised b, for which R's names were
asked about; of these one promised b' too, and had its proposer ask about R's names. Either way b' has the promises of a
majority of R's names, of which one had accepted R under b before it promised b'. It said so, and R' was not the roster
that was accepted under the largest ballot below b'; if that was another one, its ballot lies between b and b', and b' was
not the least. So b' proposed R.

*Disks* have what is said before it is said. A life that finds nothing there cannot know what one before it promised: founders
are remembered with the lives they had, and who is asked about founders that had another life of its name, and knows
nothing of them, says that it has forgotten. It counts for nothing there. Where so many have forgotten that no majority
remembers, nobody can know any more, and they go on without: as with a proven roster, the loss of half of the disks (or of
half of the processes, without disks) is not covered.

Those without a name in common may both found a roster, on two sides of a cut; when they meet, the larger one counts
(`roster_values`). With `expect` above half of all nodes that cannot be.

Nodes of a release before ballots answer a proposer as if they promised under its ballot, and are told its roster as theirs
are; as long as such nodes found a roster, two may come about as they could then.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
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
from smg_mesh.escrow.messages.effects import Rng
from smg_mesh.escrow.messages.founding_messages import FoundAsk, FoundVote
from smg_mesh.escrow.messages.messages import RosterAsk, RosterTell, RosterVote
from smg_mesh.escrow.roster import roster_values as rosters
from smg_mesh.escrow.roster.founding_acceptor import FoundingAcceptor, Out

LISTEN_MS: Final = 600
"""Whoever sees enough others listens for so long whether there is a roster."""
AGAIN_MS: Final = 150
PATIENCE_MS: Final = 3_000
"""So long after the last answer a proposer begins anew, with those that are alive then. No write takes longer than 2 s."""
RANK_MS: Final = 2_000
"""So much longer than the next smaller name a name hears no proposer before it is one."""
OUTBID_MS: Final = 400
"""Who meets a larger ballot leaves its proposer at least so long, and up to twice: time for two writes and two answers."""


@dataclass(slots=True)
class _Round:
    """What one proposer does under one ballot."""

    ballot: Ballot
    own: Founders
    founders: tuple[Founders, ...]
    """All that it asks about, its own among them."""
    began_ms: int
    asked_ms: int
    moved_ms: int
    """When somebody promised or accepted last."""
    votes: dict[str, FoundVote] = field(default_factory=dict)
    informed_ms: dict[str, int] = field(default_factory=dict)
    value: Founders | None = None
    holders: dict[str, None] = field(default_factory=dict)
    """Who has accepted it."""

    def choice(self) -> Founders | None:
        """Return whose roster to propose, once enough have promised."""
        if not all(self._is_heard(founders) for founders in self.founders):
            return None
        held = [(vote.held_ballot, vote.held) for vote in self.votes.values() if vote.held]
        if held:
            _, last = max(held)
            return next((one for one in self.founders if one.id == last), None)
        return self.own if all(name in self.votes for name in self.own.names) else None

    def _is_heard(self, founders: Founders) -> bool:
        """Return whether a majority has promised that remembers all, or so many have forgotten that none ever will."""
        votes = [self.votes[name] for name in founders.names if name in self.votes]
        forgot = sum(founders.id in vote.forgotten for vote in votes)
        whole = len(votes) - forgot >= founders.majority
        return whole or forgot > len(founders.names) - founders.majority

    def accepted(self, vote: RosterVote, now_ms: int) -> bool:
        """Count a name that has accepted; return whether a majority has, now."""
        value = self.value
        if value is None or vote.roster != value.id or vote.voter not in value.names:
            return False
        promised = self.votes.get(vote.voter)
        before = promised is not None and promised.ballot == NO_BALLOT
        if vote.founding == self.ballot or before:
            self.moved_ms = now_ms
            self.holders[vote.voter] = None
        return len(self.holders) >= value.majority


class Founding:
    """Founding as one life of a node sees it, while it has no roster: it proposes, and it accepts."""

    def __init__(self, me: Life, *, expect: int, rng: Rng, state: FoundingState | None) -> None:
        """Begin with what the disk has; `expect` names are enough."""
        self.acceptor = FoundingAcceptor(me, state)
        self._me = me
        self._expect = expect
        self._rng = rng
        self._assembly = rosters.Assembly()
        self._round: _Round | None = None
        self._seen = self.acceptor.state.ballot
        self._enough_since_ms = -1
        self._heard_ms = self._rests_until_ms = 0
        self._founded: Roster | None = None

    def step(self, alive: Sequence[Life], *, now_ms: int) -> Out:
        """Return whom to ask for what now; `alive` are the lives that are alive, this one among them, sorted by name."""
        if len(alive) < self._expect:
            self._enough_since_ms, self._round = -1, None
            return []
        if self._enough_since_ms < 0:
            self._enough_since_ms = now_ms
        if len(alive) == 1 and not self.acceptor.state.founders:
            # Nobody else has a say, and nothing was promised to anybody.
            own = Founders(self._new_id(), (self._me.name,), (self._me.boot,))
            self.acceptor.learn(own)
            self._founded = rosters.first(own.id, own.names)
            return []
        if self._round is None or self._is_over(self._round, alive, now_ms):
            self._round = None
            if not self._may_propose(alive, now_ms):
                return []
            self._round = self._begin(alive, now_ms)
        if self._round is None or now_ms - self._round.asked_ms < AGAIN_MS:
            return []
        return self._asks(self._round, now_ms)

    def founded(self) -> Roster | None:
        """Return the first roster, once this node knows that it is proven."""
        return self._founded

    def asked(self, ask: FoundAsk, *, now_ms: int) -> Out:
        """Take what a proposer asks."""
        if ask.name != self._me.name:
            self._heard_ms = now_ms
        self._seen = max(self._seen, ask.ballot)
        return self.acceptor.asked(ask, now_ms=now_ms)

    def voted(self, vote: FoundVote, *, now_ms: int) -> Out:
        """Count a promise, or learn why there is none."""
        self._seen = max(self._seen, vote.ballot)
        one = self._round
        if one is None or vote.roster != one.own.id or vote.asked_ms < one.began_ms:
            return []
        if not vote.accepted:
            return self._refused(one, vote, now_ms)
        if vote.ballot not in (one.ballot, NO_BALLOT):
            return []
        if vote.voter not in one.votes:
            one.moved_ms = now_ms
        one.votes[vote.voter] = vote
        if one.value is not None:
            return self._proposal(one, vote.voter, now_ms)
        one.value = one.choice()
        return self._asks(one, now_ms) if one.value is not None else []

    def accepted(self, vote: RosterVote, *, now_ms: int, wall_ms: int) -> Out:
        """Count a name that has accepted; once a majority has, tell all that the roster is proven."""
        one = self._round
        if one is None or one.value is None or not one.accepted(vote, now_ms):
            return []
        roster = rosters.first(one.value.id, one.value.names)
        self._round, self._founded = None, replace(roster, proven=True)
        told = rosters.parts(self._founded, wall_ms=wall_ms)
        return [(name, part) for name in roster.names if name != self._me.name for part in told]

    def told_founders(self, tell: RosterTell, *, now_ms: int) -> Out:
        """Hear of founders; ask about them too, under a larger ballot, unless a roster is proposed already."""
        whole = self._assembly.add(tell)
        if whole is None:
            return []
        if not self.acceptor.learn(Founders(whole.id, whole.names, whole.divisors)):
            return []
        one = self._round
        if one is None or one.value is not None:
            return []
        self._round = self._renewed(one.own, now_ms)
        return self._asks(self._round, now_ms)

    # ── A proposer's round ───────────────────────────────────────────────────

    def _may_propose(self, alive: Sequence[Life], now_ms: int) -> bool:
        rank = alive.index(self._me)
        since_ms = max(self._enough_since_ms, self._heard_ms if rank else 0)
        listen_ms = LISTEN_MS if self._expect > 1 else 0
        if now_ms - since_ms < listen_ms + RANK_MS * rank:
            return False
        return now_ms >= self._rests_until_ms

    def _is_over(self, one: _Round, alive: Sequence[Life], now_ms: int) -> bool:
        """Return whether to give a round up: it takes too long, or waits for a name that is gone."""
        if now_ms - one.moved_ms > PATIENCE_MS:
            return True
        names = [life.name for life in alive]
        return one.value is None and not all(name in names for name in one.own.names)

    def _begin(self, alive: Sequence[Life], now_ms: int) -> _Round | None:
        names = tuple(life.name for life in alive)
        boots = tuple(life.boot for life in alive)
        known = self.acceptor.known
        same = [one for one in known if one.names == names]
        own = next(iter(same), None)
        if own is None and len(known) < FOUNDERS_MAX:
            own = Founders(self._new_id(), names, boots)
            self.acceptor.learn(own)
        return self._renewed(own, now_ms) if own is not None else None

    def _renewed(self, own: Founders, now_ms: int) -> _Round:
        counter = max(self._seen, self.acceptor.state.ballot).counter + 1
        self._seen = Ballot(counter, *self._me)
        return _Round(self._seen, own, self.acceptor.known, now_ms, now_ms - AGAIN_MS, now_ms)

    def _asks(self, one: _Round, now_ms: int) -> Out:
        """Return all that this round waits for an answer to."""
        one.asked_ms = now_ms
        ask = self._ask(one, now_ms)
        names = sorted({name for founders in one.founders for name in founders.names})
        out: Out = [(name, ask) for name in names if name not in one.votes]
        for name in one.value.names if one.value is not None else ():
            out += self._proposal(one, name, now_ms) if name in one.votes else []
        return out

    def _ask(self, one: _Round, now_ms: int) -> FoundAsk:
        ids = tuple(founders.id for founders in one.founders)
        return FoundAsk(one.own.id, self._me.name, now_ms, one.ballot, ids)

    def _proposal(self, one: _Round, name: str, now_ms: int) -> Out:
        value = one.value
        if value is None or name not in value.names or name in one.holders:
            return []
        told = rosters.parts(rosters.first(value.id, value.names), ballot=one.ballot)
        look = RosterAsk(value.id, 1, 0, self._me.name, now_ms)
        return [*((name, part) for part in told), (name, look)]

    def _refused(self, one: _Round, vote: FoundVote, now_ms: int) -> Out:
        """Tell a voter what it has to know, or leave the field to a larger ballot for a while."""
        if vote.ballot > one.ballot:
            self._round = None
            self._rests_until_ms = now_ms + int(OUTBID_MS * (1 + self._rng.random()))
            return []
        informed_ms = one.informed_ms.get(vote.voter, now_ms - AGAIN_MS)
        if not vote.unknown or now_ms - informed_ms < AGAIN_MS:
            return []
        one.informed_ms[vote.voter] = now_ms
        told = [founders for founders in one.founders if founders.id in vote.unknown]
        parts = [(vote.voter, part) for each in told for part in rosters.founders_parts(each)]
        return [*parts, (vote.voter, self._ask(one, now_ms))]

    def _new_id(self) -> bytes:
        return self._rng.getrandbits(128).to_bytes(16, "big")
