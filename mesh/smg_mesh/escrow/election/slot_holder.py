"""Slot holder: asks a majority for the lease of a slot, renews it, and
has voters store what it mints.

    nobody ──▶ candidate ──▶ owner ──▶ nobody
        it has seen      a majority      its lease ran out, or it released it
        no promise for   has promised
        a while

Candidates are ranked by score among the names of the roster that are alive. Rank r asks when its own voter has had no
running promise for 100 + 150 r ms: so the best one asks first, and one that is paused, or dead and not known to be, is
passed over. The lease ends LEASE_MS - GUARD_MS after the *sending* of the last ask that a majority has granted; once
that was seen to have happened, the term is over for good, whatever votes still arrive, and with it what it had left.

A term is a counter and a digest of this life: no two lives ever hold a slot under the same term.

An owner *yields* when a better candidate has been there for a while, or when a voter knows a larger term (it could not
keep its majority for long): it mints nothing new, lets the shortest windows end, and releases the slot at their border.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from smg_mesh.escrow.election.minted_records import window_ms_of
from smg_mesh.escrow.election.quorum_writes import FRESH_MS, Writes
from smg_mesh.escrow.election.voter import OLD_TERM, PROMISED, Promise
from smg_mesh.escrow.limit_model import RENEW_MS, SHORT_MS, Life, Roster, score
from smg_mesh.escrow.messages.messages import LeaseAsk, LeaseVote, Minted

FIRST_WAIT_MS: Final = 100
RANK_WAIT_MS: Final = 150
APART_MS: Final = 63
"""Who did not succeed waits up to so much longer, each life by its own bits: two that do not see each other alike
take each other for no candidate, and would meet again and again."""
AFTER_BOOT_MS: Final = RENEW_MS + 50
"""A voter that may vote from now on hears of an owner within this time, if there is one."""
AGAIN_MS: Final = 80
"""An ask without a majority of answers is repeated after this."""
TOGETHER_MS: Final = 20
"""Asks with what is minted are at least this far apart."""
BETTER_MS: Final = 5_000
"""So long must a better candidate be there before an owner yields to it."""
OUTRANKED_MS: Final = 600
"""So long may voters know a larger term: a candidate that did not succeed takes it back."""
YIELDS_MAX_MS: Final = 5_000
COUNTER_SHIFT: Final = 16


class Holder:
    """Holder of one slot in use, as far as this life of this node wants to own it."""

    def __init__(self, slot: int, me: Life, wished: Callable[[], object] | None = None) -> None:
        """`wished` is called when there is something to be minted."""
        self.slot = slot
        self._wished = wished
        self._me = me
        digest = blake2b(f"{me.name}:{me.boot}".encode(), digest_size=2, person=b"smg-term")
        self._mark = int.from_bytes(digest.digest(), "big")
        self._roster: Roster | None = None
        self._term = 0
        self.owns = self._used = self._outranked = False
        self._heard_at_ms = -1
        self._until_ms = 0
        self._seen = 0
        self._sent: dict[str, int] = {}
        self._refused: dict[str, str] = {}
        self._votes: dict[str, LeaseVote] = {}
        self._writes = Writes()
        self._asked_ms = -1
        self._free_since_ms = -1
        self._first_wait_ms = FIRST_WAIT_MS
        self._tries = 0
        self._better_since_ms = -1
        self._outranked_since_ms = -1
        self._yields_since_ms = -1
        self._release_at_ms = 0
        self._ranked_of: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self._ranks: Sequence[str] = ()
        self._now_ms = 0
        self.due_ms = 0
        self._waits_for: Promise | None = None

    @property
    def yields(self) -> bool:
        """Whether it is about to release the slot: windows that begin later are not minted any more."""
        return self._yields_since_ms >= 0

    def term(self, *, now_ms: int) -> int:
        """Return the term under which this node owns the slot; 0 if it does not. Look before every give."""
        return self._term if self.owns and now_ms < self._until_ms else 0

    def step(
        self,
        *,
        roster: Roster | None,
        alive: Sequence[str],
        promise: Promise | None,
        now_ms: int,
        wall_ms: int,
    ) -> LeaseAsk | None:
        """Return what to ask every name of the roster for now, this node too; again until it is None.

        `promise` is that of this node's own voter. `alive` are the members that are alive.
        """
        self._now_ms = now_ms
        self._end_if_over(now_ms)
        self._follow(roster)
        if roster is None or self._me.name not in roster.names:
            return self.retire(now_ms)
        ranked = self._ranked(roster, alive)
        if self.owns:
            ask = self._owning(ranked, now_ms, wall_ms)
            self.due_ms = self._next_ms(now_ms, wall_ms) if ask is None else now_ms
            return ask
        ask = self._applying(roster, ranked, promise, now_ms)
        others = promise is not None and promise[:2] != self._me
        self._waits_for = promise if others and ask is None else None
        return ask

    def idle(self, given: tuple[Promise, int] | None, now_ms: int) -> bool:
        """Return whether a step would do nothing, as long as roster and members are those of the last one.

        An owner has nothing to say yet; or the slot is promised to another node, as it was at the
        last step. `given` is what this node's own voter promised last, and until when.
        """
        if self.owns:
            return now_ms < self.due_ms
        if given is None or given[0] is not self._waits_for:
            return False
        return now_ms < given[1] and not self._term

    def voted(self, vote: LeaseVote, *, now_ms: int) -> None:
        """Take what a voter says."""
        self._end_if_over(now_ms)
        roster = self._roster
        if vote.slot != self.slot or roster is None or vote.voter not in roster.names:
            return
        self._seen = max(self._seen, vote.seen_term)
        if (vote.roster, vote.roster_version) != (roster.id, roster.version):
            return
        if vote.term != self._term or not self._term:
            return
        before = self._votes.get(vote.voter)
        if before is None or before.term != vote.term or before.asked_ms <= vote.asked_ms:
            self._votes[vote.voter] = vote
            # Most votes say nothing of that, as the ones before them did.
            if OLD_TERM in (vote.why, before.why if before is not None else ""):
                self._outranked = any(vote.why == OLD_TERM for vote in self._votes.values())
        if not vote.granted:
            self._refused[vote.voter] = vote.why
            return
        self._refused.pop(vote.voter, None)
        self._sent[vote.voter] = max(self._sent.get(vote.voter, -1), vote.asked_ms)
        self._extend(roster, now_ms)
        if self.owns:
            self._writes.voted(vote, majority=roster.majority, now_ms=now_ms)

    def mint(self, key: str, window: int, total: int, *, urgent: bool = False) -> None:
        """Wish that so much of a window be minted in all; 0 asks only what others have minted of it.

        What has begun is sent at once, what begins later with the next renewal before it; `urgent` sends it at once.
        """
        if not self.owns:
            return
        begins_ms = window * window_ms_of(key)
        if self.yields and begins_ms >= self._release_at_ms:
            return
        self._writes.wish(key, window, total, urgent=urgent, now_ms=self._now_ms)
        self.due_ms = 0
        if self._wished is not None:
            self._wished()

    def wished(self, key: str, window: int) -> int:
        """Return the total that was wished for last, -1 if none was: a lease that was let go and taken up again is new."""
        write = self._writes.get(key, window)
        return write.total if write is not None else -1

    def minted(self, key: str, window: int) -> int:
        """Return what there is of a window in all, of former owners too; -1 until a majority has answered."""
        write = self._writes.get(key, window)
        if write is None or write.base < 0:
            return -1
        return max(write.base, write.stored)

    def made(self, key: str, window: int) -> int:
        """Return how much of a window this owner itself has minted under this term: what it may give.

        It only grows while the lease lasts: one that is taken up again begins at nothing.
        """
        write = self._writes.get(key, window)
        return write.made if write is not None else 0

    def base(self, key: str, window: int) -> int:
        """Return how much of a window former owners may have used; -1 until a majority has answered."""
        write = self._writes.get(key, window)
        return write.base if write is not None else -1

    def level(self, key: str) -> tuple[int, int] | None:
        """Return (number, total) of the last write of a level, once a majority has said it."""
        return self._writes.level(key)

    def current(self, basis: bytes, *, began_ms: int) -> frozenset[str]:
        """Return the names that go by these limits since before that moment of the wall clock."""
        return frozenset(
            name
            for name, vote in self._votes.items()
            if vote.basis == basis and vote.adopted_ms < began_ms
        )

    def votes(self) -> Mapping[str, LeaseVote]:
        """Return what each voter said last, under this roster and term."""
        return self._votes

    def retire(self, now_ms: int) -> LeaseAsk | None:
        """Want the slot no more; return the release, if there is anything to be released."""
        if not self._term:
            return None
        ask = self._ask(now_ms, release=True) if self._roster is not None else None
        self._end(now_ms)
        return ask

    def _owning(self, ranked: Sequence[str], now_ms: int, wall_ms: int) -> LeaseAsk | None:
        self._look_around(ranked, now_ms, wall_ms)
        if self.yields:
            late = now_ms - self._yields_since_ms > YIELDS_MAX_MS
            if late or wall_ms >= self._release_at_ms:
                return self.retire(now_ms)
        self._writes.tidy(now_ms=now_ms, wall_ms=wall_ms)
        since_ms = now_ms - self._asked_ms
        unheard = self._heard_at_ms < self._asked_ms
        if since_ms >= RENEW_MS or (unheard and since_ms >= AGAIN_MS):
            pass
        elif 0 < since_ms < TOGETHER_MS or not self._writes.due(now_ms=now_ms, wall_ms=wall_ms):
            return None
        rows = self._writes.take(now_ms=now_ms, wall_ms=wall_ms)
        return self._ask(now_ms, rows=rows)

    def _next_ms(self, now_ms: int, wall_ms: int) -> int:
        """Return when an owner has something to say or to look at, if it hears nothing before."""
        if self.yields:
            return now_ms
        renew_ms = self._asked_ms + (AGAIN_MS if self._heard_at_ms < self._asked_ms else RENEW_MS)
        return min(renew_ms, self._writes.due_ms(now_ms=now_ms, wall_ms=wall_ms))

    def _look_around(self, ranked: Sequence[str], now_ms: int, wall_ms: int) -> None:
        """Notice whether another node should own this slot."""
        if ranked[0] == self._me.name:
            self._better_since_ms = -1
        elif self._better_since_ms < 0:
            self._better_since_ms = now_ms
        if not self._outranked:
            self._outranked_since_ms = -1
        elif self._outranked_since_ms < 0:
            self._outranked_since_ms = now_ms
        better = 0 <= self._better_since_ms <= now_ms - BETTER_MS
        outranked = 0 <= self._outranked_since_ms <= now_ms - OUTRANKED_MS
        if self.yields or not (better or outranked):
            return
        self._yields_since_ms = now_ms
        lengths = [(window_ms_of(key), window) for key, window in self._writes]
        running = [
            (length_ms, (window + 1) * length_ms)
            for length_ms, window in lengths
            if 0 < length_ms <= SHORT_MS and (window + 1) * length_ms > wall_ms
        ]
        shortest_ms = min((length_ms for length_ms, _ in running), default=0)
        ends = [end_ms for length_ms, end_ms in running if length_ms == shortest_ms]
        self._release_at_ms = max(ends, default=wall_ms)

    def _applying(
        self, roster: Roster, ranked: Sequence[str], promise: Promise | None, now_ms: int
    ) -> LeaseAsk | None:
        if promise is not None and promise[:2] != self._me:
            self._first_wait_ms = FIRST_WAIT_MS if promise.name else AFTER_BOOT_MS
            ask = self.retire(now_ms)
            self._free_since_ms = -1
            return ask
        if self._free_since_ms < 0:
            self._free_since_ms = now_ms
        if self._term:
            return self._again(roster, ranked, now_ms)
        rank = ranked.index(self._me.name)
        first_ms = self._first_wait_ms if len(roster.names) > 1 else 0
        apart_ms = self._mark >> (self._tries % 8) & APART_MS if self._tries else 0
        wait_ms = first_ms + RANK_WAIT_MS * rank + apart_ms
        if now_ms - self._free_since_ms < wait_ms or len(ranked) < roster.majority:
            return None
        return self._stand(now_ms)

    def _again(self, roster: Roster, ranked: Sequence[str], now_ms: int) -> LeaseAsk | None:
        """Repeat an ask of a candidate, under a larger term where that helps, or give up for a while.

        A member that is gone will not decide it: of two with half of the others each, neither may
        insist for ever.
        """
        may_grant = [
            name
            for name in roster.names
            if (name in ranked or name in self._sent) and self._refused.get(name) != PROMISED
        ]
        if len(ranked) < roster.majority or len(may_grant) < roster.majority:
            self._tries += 1
            return self.retire(now_ms)
        since_ms = now_ms - self._asked_ms
        if self._seen > self._term and since_ms >= TOGETHER_MS:
            return self._stand(now_ms)
        return self._ask(now_ms) if since_ms >= AGAIN_MS else None

    def _stand(self, now_ms: int) -> LeaseAsk:
        self._first_wait_ms = FIRST_WAIT_MS
        counter = (max(self._seen, self._term) >> COUNTER_SHIFT) + 1
        self._term = counter << COUNTER_SHIFT | self._mark
        self._count_anew()
        self._writes = Writes()
        return self._ask(now_ms)

    def _ask(
        self, now_ms: int, *, rows: tuple[Minted, ...] = (), release: bool = False
    ) -> LeaseAsk:
        roster = self._roster
        assert roster is not None
        self._asked_ms = now_ms
        name, boot = self._me
        id_, version = roster.id, roster.version
        unused = release and not self._used
        return LeaseAsk(
            self.slot, self._term, name, boot, id_, version, now_ms, rows, release, unused
        )

    def _extend(self, roster: Roster, now_ms: int) -> None:
        """Own the slot for as long as a majority has promised it."""
        self._heard_at_ms = self._heard_ms(roster)
        until_ms = self._heard_at_ms + FRESH_MS
        if until_ms > max(self._until_ms, now_ms):
            self._until_ms = until_ms
            if not self.owns:
                self.owns, self._used, self._tries = True, True, 0

    def _heard_ms(self, roster: Roster) -> int:
        """Return when the last ask was sent that a majority has granted, or a later one each; -FRESH_MS if never."""
        sent = sorted(self._sent.values(), reverse=True)
        if len(sent) < roster.majority:
            return -FRESH_MS
        return sent[roster.majority - 1]

    def _follow(self, roster: Roster | None) -> None:
        before = self._roster
        self._roster = roster
        if before is None or roster is None:
            return
        if (before.id, before.version) == (roster.id, roster.version):
            return
        self._count_anew()
        self._writes.begin_anew()
        if before.id != roster.id:
            self._end(self._now_ms)

    def _count_anew(self) -> None:
        self._sent, self._refused, self._votes = {}, {}, {}
        self._outranked, self._heard_at_ms = False, -FRESH_MS

    def _ranked(self, roster: Roster, alive: Sequence[str]) -> Sequence[str]:
        """Return the names of the roster that are alive, the best candidate first; worked out when they change."""
        of = (roster.names, tuple(alive))
        if of != self._ranked_of:
            there = [name for name in roster.names if name in alive or name == self._me.name]
            self._ranked_of = of
            self._ranks = sorted(there, key=lambda name: (-score(self.slot, name), name))
        return self._ranks

    def _end_if_over(self, now_ms: int) -> None:
        if self.owns and now_ms >= self._until_ms:
            self._end(now_ms)

    def _end(self, now_ms: int) -> None:
        """Own the slot no more: what was not given under this term is gone."""
        self._seen = max(self._seen, self._term)
        self._term, self.owns, self._used, self._until_ms = 0, False, False, 0
        self._count_anew()
        self._writes = Writes()
        self._free_since_ms = now_ms
        self._better_since_ms = self._outranked_since_ms = self._yields_since_ms = -1
        self._asked_ms = -1
