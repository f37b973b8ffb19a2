"""Roster keeper: which roster this node goes by, and how it becomes
another one (single-decree Paxos).

Every version is decided by a majority of the one before, as in single-decree Paxos with terms of
the roster's slot as ballots: the owner of that slot first learns from a majority what others may
have proposed, and proposes that, else its own; what a majority has stored is the next version. A
node that learns of it writes it down, goes by it, and tells those that speak of an older one. A
step follows another only when a majority is *synced*: it has the records that were stored under the
version before (see `voter_recovery`), so that what a majority has stored stays with a majority.

A name grows into its part of what stands only when all names go by the version that makes room for
it, and none goes by that before the latest of them began to (`since_ms`): windows before it are not
touched.

A first roster is *proven* once no other one with a name in common can be (see `roster_founding`). No node goes by it
before: nothing stands by it, no slot is promised, and nothing is minted.

A node that has just booted goes by the roster on its disk for votes, but nothing stands with it until a majority
confirms that version: it may have been removed meanwhile. And it decides about nothing until it has learned from the
others what it may have stored there before.
"""

from collections.abc import Sequence
from typing import Final

from smg_mesh.escrow.founding_state import FoundingState
from smg_mesh.escrow.limit_model import SILENT_AFTER_BOOT_MS, Life, Roster
from smg_mesh.escrow.messages.effects import Rng
from smg_mesh.escrow.messages.founding_messages import FoundAsk, FoundVote
from smg_mesh.escrow.messages.messages import (
    RosterAsk,
    RosterMessage,
    RosterTell,
    RosterVote,
    RosterWant,
)
from smg_mesh.escrow.roster import roster_values as rosters
from smg_mesh.escrow.roster.founding_acceptor import accepted_before
from smg_mesh.escrow.roster.roster_founding import Founding
from smg_mesh.escrow.roster.roster_paxos import Acceptor, Change, Proposer
from smg_mesh.escrow.roster.roster_presence import Presence

NOBODY: Final = bytes(16)
PEEK_AGAIN_MS: Final = 150
WANT_AGAIN_MS: Final = 300
WANT_SELDOM_MS: Final = 5_000
"""Two rosters that meet notice within this time; so does a name that missed everything."""
TELL_AGAIN_MS: Final = 200
CLOCK_OFF_MAX_MS: Final = 172_800_000
"""Two days: who is told of a time beyond that, was told nonsense."""
AMNESIA_MS: Final = 11_000
"""If a majority has lost its memory, nobody's proposal of before is under way after this time."""

Out = list[tuple[str, RosterMessage]]


class RosterKeeper:
    """Roster keeper of one life of one node. Step it only while there is something to be
    limited: else it sends for nothing.
    """

    def __init__(
        self,
        me: Life,
        *,
        expect: int,
        roster: Roster | None,
        rng: Rng,
        now_ms: int,
        wall_ms: int,
        founding: FoundingState | None = None,
    ) -> None:
        """Begin with what the disk has: a roster, or what was promised while there was none; `expect` names are enough for
        a first one. A roster that is not proven is one that a release before ballots accepted.
        """
        if roster is not None and not roster.counts:
            founding, roster = accepted_before(roster, founding), None
        self.roster = roster
        self.unkept: Roster | None = None
        """To be written to disk; then say `kept`."""
        self.founder = False
        """Whether this life of this node has begun the roster it goes by."""
        self.settled = True
        """Whether newcomers may have their part of what is open at a time, as far as this node knows."""
        self.told_ms = 0
        """The latest wall clock of others that told this life its first roster; 0 if it has it from its disk."""
        self._me = me
        self._founding = Founding(me, expect=expect, rng=rng, state=founding)
        self._presence = Presence(me.name, now_ms=now_ms)
        self._booted_ms = now_ms
        self._adopted_ms = self._wall_ms = wall_ms
        self._synced = False
        self._waiting: Roster | None = None
        self._assembly = rosters.Assembly()
        self._acceptor = Acceptor()
        self._proposer = Proposer()
        self._confirmed = roster is not None and len(roster.names) == 1
        self._whole = self._confirmed
        self._peeks: dict[str, RosterVote] = {}
        self._peeked_ms = self._wanted_ms = -WANT_SELDOM_MS
        self._wants = 0
        self._told_ms: dict[str, int] = {}
        self._divides: tuple[Roster | None, int] = (None, 0)
        """By what this node divides under a roster: worked out once for each."""

    @property
    def unkept_founding(self) -> FoundingState | None:
        """What is to be written to disk while there is no roster; then say `founding_kept`."""
        acceptor = self._founding.acceptor
        if self.roster is not None or acceptor.state == acceptor.kept:
            return None
        return acceptor.state

    @property
    def founding(self) -> FoundingState:
        """What the disk has of what was promised before there was a roster."""
        return self._founding.acceptor.kept

    @property
    def confirmed(self) -> bool:
        """Whether a majority goes by the roster that this node goes by."""
        return self._confirmed

    @property
    def wants_lease(self) -> bool:
        """Whether the roster's slot is needed: something should change."""
        return self._confirmed and self._waiting is None and self._wish() is not None

    def divisor(self) -> int:
        """Return by what this node divides what stands, from its next window on; 0: nothing stands with it."""
        roster = self.roster
        if roster is None or not self._confirmed:
            return 0
        if roster is not self._divides[0]:
            self._divides = roster, roster.divisor(self._me.name)
        return self._divides[1]

    def members(self, alive: Sequence[Life], left: Sequence[str], *, now_ms: int) -> None:
        """Learn which members are there and which said goodbye."""
        self._presence.members(alive, left, now_ms=now_ms)

    def forget(self, name: str) -> None:
        """Remove a name although it did not say goodbye: an operator says that it never comes back."""
        self._presence.forget(name)

    def due_ms(self, *, now_ms: int) -> int:
        """Return when the next step is needed."""
        calm = self.roster is not None and self._confirmed and self._whole and self._waiting is None
        calm = calm and not self.wants_lease and self._is_member()
        soon_ms = now_ms + PEEK_AGAIN_MS
        seldom_ms = min(self._wanted_ms + WANT_SELDOM_MS, self._presence.due_ms(now_ms=now_ms))
        return max(now_ms, seldom_ms) if calm else soon_ms

    def step(self, *, term: int, synced: bool, now_ms: int, wall_ms: int) -> Out:
        """Do what is due; `term` is that of the roster's slot, 0 where this node does not own it."""
        self._synced, self._wall_ms = synced, wall_ms
        self._presence.tick(self.roster, now_ms=now_ms)
        out: Out = []
        if self._waiting is not None and self.unkept is None and wall_ms >= self._waiting.since_ms:
            self.unkept, self._waiting = self._waiting, None
        if self.roster is None and self.unkept is None:
            out += self._founding.step(self._presence.lives(self._me), now_ms=now_ms)
            self.unkept = self._founding.founded()
        if self.roster is not None and self._is_member():
            out += self._peek(self.roster, now_ms)
        if self.roster is not None and self._whole and term and self._is_member():
            out += self._propose(self.roster, term, now_ms, wall_ms)
        return out + self._want(now_ms)

    def heard(self, message: RosterMessage, *, now_ms: int, wall_ms: int) -> Out:
        """Take what another node says, or this one to itself; return what to answer."""
        match message:
            case RosterAsk():
                return self._asked(message, now_ms)
            case RosterVote():
                return self._voted(message, now_ms, wall_ms)
            case RosterTell(version=0):
                known = self.roster or self.unkept
                return [] if known else self._founding.told_founders(message, now_ms=now_ms)
            case RosterTell():
                return self._told(message, now_ms, wall_ms)
            case RosterWant():
                return self._compared(message.name, message.roster, message.version, message.count)
            case FoundAsk():
                return self._found_asked(message, now_ms)
            case FoundVote():
                known = self.roster or self.unkept
                return [] if known else self._founding.voted(message, now_ms=now_ms)

    def noticed(self, name: str, roster_id: bytes, version: int, *, now_ms: int) -> Out:
        """Learn from any other packet by which roster a member goes; tell it ours, or ask for its."""
        roster = self.roster
        if roster is None or (roster.id, roster.version) == (roster_id, version):
            return []
        if now_ms - self._told_ms.get(name, -TELL_AGAIN_MS) < TELL_AGAIN_MS:
            return []
        self._told_ms[name] = now_ms
        if roster_id == roster.id and version < roster.version:
            return self._tell(name, roster)
        return [(name, self._my_want())]

    def founding_kept(self, state: FoundingState) -> Out:
        """Learn that the disk has what was promised; return what waited for that."""
        return self._founding.acceptor.written(state) if self.roster is None else []

    def kept(self, roster: Roster, *, wall_ms: int) -> None:
        """Go by a roster from now on: it is on disk."""
        before = self.roster
        self.unkept = None
        if not rosters.is_better(roster, before):
            return
        if before is None or before.id != roster.id:
            first = roster.version == 1
            self.founder = first and self._founding.acceptor.remembers(roster.id)
            self._confirmed, self._whole = False, self.founder
        if roster.names == (self._me.name,):
            self._confirmed = self._whole = True
        self.roster, self._adopted_ms = roster, wall_ms
        self._acceptor, self._peeks = Acceptor(), {}
        self._told_ms = {}
        self._proposer.begin_anew()
        if self._waiting is not None and not rosters.is_better(self._waiting, roster):
            self._waiting = None

    def _found_asked(self, ask: FoundAsk, now_ms: int) -> Out:
        roster = self.roster or self.unkept
        if roster is not None and roster.id != ask.roster:
            return self._tell(ask.name, roster)
        return self._founding.asked(ask, now_ms=now_ms)

    def _peek(self, roster: Roster, now_ms: int) -> Out:
        """Ask the others by what they go, and what they have stored of this version."""
        if now_ms - self._booted_ms > AMNESIA_MS and self._confirmed:
            self._whole = True
        if self._confirmed and self._whole:
            return []
        if now_ms - self._booted_ms < SILENT_AFTER_BOOT_MS and not self.founder:
            return []
        if now_ms - self._peeked_ms < PEEK_AGAIN_MS:
            return []
        self._peeked_ms = now_ms
        ask = RosterAsk(roster.id, roster.version, 0, self._me.name, now_ms)
        return [(name, ask) for name in roster.names if name != self._me.name]

    def _peeked(self, roster: Roster, vote: RosterVote) -> None:
        self._peeks[vote.voter] = vote
        needed = (len(roster.names) - 1) // 2 + 1
        removed = any(
            vote.kind == "leave" and vote.member == self._me.name for vote in self._peeks.values()
        )
        if len(self._peeks) >= roster.majority - 1 and not removed:
            self._confirmed = True
        whole = [vote for vote in self._peeks.values() if vote.whole]
        if len(whole) >= needed and not self._whole:
            self._whole = True
            for vote in whole:
                self._acceptor.learn(vote)

    def _propose(self, roster: Roster, term: int, now_ms: int, wall_ms: int) -> Out:
        if self._waiting is not None or self.unkept is not None:
            return []
        wish = self._wish()
        ask = self._proposer.step(
            roster, term, wish, name=self._me.name, now_ms=now_ms, wall_ms=wall_ms
        )
        return [(name, ask) for name in roster.names] if ask is not None else []

    def _asked(self, ask: RosterAsk, now_ms: int) -> Out:
        roster = self.roster
        if roster is None:
            accepted = self._founding.acceptor.vote(ask)
            return [(ask.name, accepted or self._my_want())]
        if (ask.roster, ask.version) != (roster.id, roster.version):
            return self.noticed(ask.name, ask.roster, ask.version, now_ms=now_ms)
        if not self._is_member() or ask.name not in roster.names:
            return []
        if ask.term and not self._whole:
            return []
        self._acceptor.asked(ask)
        if ask.kind == "leave" and ask.member == self._me.name:
            self._confirmed, self._peeks = False, {}
        return [(ask.name, self._vote(ask))]

    def _vote(self, ask: RosterAsk) -> RosterVote:
        said = (self._whole, self._synced, self._adopted_ms)
        return self._acceptor.vote(ask, self._me, said, settled=self.settled)

    def _voted(self, vote: RosterVote, now_ms: int, wall_ms: int) -> Out:
        roster = self.roster
        if roster is None and self.unkept is None:
            out = self._founding.accepted(vote, now_ms=now_ms, wall_ms=wall_ms)
            self.unkept = self._founding.founded()
            return out
        if roster is None:
            return []
        if vote.voter not in roster.names:
            return []
        if (vote.roster, vote.version) != (roster.id, roster.version):
            return self.noticed(vote.voter, vote.roster, vote.version, now_ms=now_ms)
        if not vote.term:
            self._peeked(roster, vote)
            return []
        change = self._proposer.voted(roster, vote, now_ms=now_ms)
        if change is None:
            return []
        following = rosters.changed(roster, change.kind, change.member, since_ms=change.since_ms)
        if following is None:
            return []
        self._consider(following, wall_ms)
        return [
            told
            for name in sorted({*roster.names, *following.names})
            if name != self._me.name
            for told in self._tell(name, following)
        ]

    def _hear_clock(self, told_ms: int, wall_ms: int) -> None:
        """Note how late it is for others: what a life before this one had there, is on no disk here."""
        self.told_ms = max(self.told_ms, min(told_ms, wall_ms + CLOCK_OFF_MAX_MS))

    def _told(self, tell: RosterTell, now_ms: int, wall_ms: int) -> Out:
        """Take a part of a roster: a proven one counts, if it is the better one; another one may be accepted as the first."""
        if self.roster is None:
            self._hear_clock(tell.wall_ms, wall_ms)
        told = self._assembly.add(tell)
        if told is None:
            return []
        if told.counts:
            self._consider(told, wall_ms)
        elif self.roster is None and self.unkept is None:
            return self._founding.acceptor.told(told, tell.ballot, now_ms=now_ms)
        return []

    def _consider(self, roster: Roster, wall_ms: int) -> None:
        """Take a roster, if it counts more than what is known here."""
        known = (self.roster, self.unkept, self._waiting)
        if not all(rosters.is_better(roster, one) for one in known):
            return
        ours = self.roster is not None and self.roster.id == roster.id
        if ours and self._me.name not in roster.names:
            self._confirmed = False
        if ours and roster.since_ms > wall_ms:
            self._waiting = roster
        else:
            self.unkept, self._waiting = roster, None

    def _want(self, now_ms: int) -> Out:
        """Ask another node for a better roster: often while there is none
        here that counts, else seldom.
        """
        often = self.roster is None or not self._is_member()
        if now_ms - self._wanted_ms < (WANT_AGAIN_MS if often else WANT_SELDOM_MS):
            return []
        others = [name for name in self._presence.alive() if name != self._me.name]
        if not others:
            return []
        self._wanted_ms, self._wants = now_ms, self._wants + 1
        return [(others[self._wants % len(others)], self._my_want())]

    def _my_want(self) -> RosterWant:
        roster = self.roster
        if roster is None:
            return RosterWant(self._me.name, NOBODY, 0, 0)
        return RosterWant(self._me.name, roster.id, roster.version, len(roster.names))

    def _compared(self, name: str, roster_id: bytes, version: int, count: int) -> Out:
        roster = self.roster
        if roster is None or (roster.id, roster.version) == (roster_id, version):
            return []
        if roster.id == roster_id:
            mine = roster.version > version
        else:
            mine = rosters.counts_more(len(roster.names), roster.id, count, roster_id)
        return self._tell(name, roster) if mine else [(name, self._my_want())]

    def _tell(self, name: str, roster: Roster) -> Out:
        return [(name, part) for part in rosters.parts(roster, wall_ms=self._wall_ms)]

    def _wish(self) -> Change | None:
        """Return what should change, as far as this node knows."""
        if self.roster is None or not self._is_member():
            return None
        return self._presence.wish(self.roster)

    def _is_member(self) -> bool:
        return self.roster is not None and self._me.name in self.roster.names
