"""Slot leases of one node: of slots in which a node it knows of wants something, and no others."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from smg_mesh.escrow.election.peer_view import Sight
from smg_mesh.escrow.election.slot_holder import Holder
from smg_mesh.escrow.election.voter import Promise, Voter
from smg_mesh.escrow.limit_model import ROSTER_SLOT, Life, Roster
from smg_mesh.escrow.messages.messages import LeaseAsk, LeaseVote

WANTED_MS: Final = 60_000
"""After the last ask for rights in a slot, its lease is released. Who comes back within a minute finds an owner."""
APPLY_MS: Final = 25
"""Who would own a slot looks so often whether it may: a sixth of what two candidates wait apart."""
ASKS_A_TICK_MAX: Final = 8
"""Of one holder; more rows than that go out in the next tick."""
_NEVER_MS: Final = 1 << 62


class Leases:
    """Leases of one node, by slot."""

    def __init__(self, me: Life, sight: Sight, voter: Voter) -> None:
        self._me = me
        self._sight = sight
        self._voter = voter
        self._holders: dict[int, Holder] = {}
        self._wanted_ms: dict[int, int] = {}
        self._unwanted: tuple[int, ...] = ()
        self._expires_ms = 0
        """No slot ceases to be wanted before."""
        self._as_wanted = False
        """Whether the holders are those of what is wanted, and with or without the roster's: `_roster_too`."""
        self._roster_too = False
        self._saw: tuple[Roster | None, tuple[str, ...]] = (None, ())
        self._due_ms = 0
        """Until then there is nothing to say of any slot, unless somebody is heard before."""

    def __len__(self) -> int:
        """How many slots are wanted."""
        return len(self._holders)

    def get(self, slot: int) -> Holder | None:
        """Return the lease of a slot, if it is wanted."""
        return self._holders.get(slot)

    def term(self, slot: int, *, now_ms: int) -> int:
        """Return the term under which this node owns a slot; 0 if it does not."""
        holder = self._holders.get(slot)
        return 0 if holder is None else holder.term(now_ms=now_ms)

    def current(self, slot: int, basis: bytes, *, began_ms: int) -> frozenset[str]:
        """Return the names that go by these limits since before that moment, as the owner of a slot knows."""
        holder = self._holders.get(slot)
        return frozenset() if holder is None else holder.current(basis, began_ms=began_ms)

    def want(self, slots: Iterable[int], *, now_ms: int) -> bool:
        """Let there be owners of these; return whether that is news."""
        before = len(self._wanted_ms)
        self._wanted_ms.update(dict.fromkeys(slots, now_ms))
        news = len(self._wanted_ms) > before
        if news:
            self._as_wanted = False
        return news

    def due_ms(self, *, roster_too: bool) -> int:
        """Return when the next step is needed (monotonic); the past for at once."""
        saw = self._saw
        if saw[0] is not self._sight.roster or saw[1] is not self._sight.names:
            return 0
        if not self._as_wanted or roster_too != self._roster_too:
            return 0
        return min(self._due_ms, self._expires_ms) if self._wanted_ms else self._due_ms

    def promised(self, slot: int, *, now_ms: int) -> None:
        """Learn that a node asked this one's voter for a slot: what it waits
        for may have gone to another one.
        """
        holder = self._holders.get(slot)
        if holder is not None and not holder.owns:
            given = self._voter.given(now_ms=now_ms)
            self._due_ms = min(self._due_ms, _next_ms(holder, given, now_ms))

    def voted(self, vote: LeaseVote, *, now_ms: int) -> bool:
        """Take what a voter says; return whether this node owns the slot now, and did not before, or the reverse."""
        holder = self._holders.get(vote.slot)
        if holder is None:
            return False
        term = holder.term(now_ms=now_ms)
        owned = holder.owns
        holder.voted(vote, now_ms=now_ms)
        if holder.owns != owned:
            self._due_ms = 0
        return holder.term(now_ms=now_ms) != term

    def step(self, *, roster_too: bool, now_ms: int, wall_ms: int) -> Iterator[LeaseAsk]:
        """Yield what all names of the roster are to be asked for; answers may come in between."""
        self._begin_and_end(roster_too=roster_too, now_ms=now_ms)
        roster, names = self._sight.roster, self._sight.names
        news = roster is not self._saw[0] or names is not self._saw[1]
        self._saw = roster, names
        given = self._voter.given(now_ms=now_ms)
        unwanted = self._unwanted
        calm = not (news or unwanted)
        self._due_ms = _NEVER_MS
        for slot, holder in list(self._holders.items()):
            # Most have nothing to say yet, or wait for others: those that are owned need no look at the promise.
            if calm and (
                now_ms < holder.due_ms if holder.owns else holder.idle(given.get(slot), now_ms)
            ):
                self._due_ms = min(self._due_ms, _next_ms(holder, given, now_ms))
                continue
            if slot in unwanted:
                del self._holders[slot]
                ask = holder.retire(now_ms)
                if ask is not None:
                    yield ask
            elif calm or news or not holder.idle(given.get(slot), now_ms):
                promise = self._voter.promised(slot, now_ms=now_ms)
                yield from self._hold(holder, promise, now_ms, wall_ms)
            if slot in self._holders:
                self._due_ms = min(self._due_ms, _next_ms(holder, given, now_ms))

    def release(self, *, now_ms: int) -> Iterator[LeaseAsk]:
        """Yield what lets others have all slots of this node at once, and want none any more."""
        holders, self._holders, self._wanted_ms = self._holders, {}, {}
        self._as_wanted = False
        for _, holder in sorted(holders.items()):
            ask = holder.retire(now_ms)
            if ask is not None:
                yield ask

    def _hold(
        self, holder: Holder, promise: Promise | None, now_ms: int, wall_ms: int
    ) -> Iterator[LeaseAsk]:
        for _ in range(ASKS_A_TICK_MAX):
            ask = holder.step(
                roster=self._sight.roster,
                alive=self._sight.names,
                promise=promise,
                now_ms=now_ms,
                wall_ms=wall_ms,
            )
            if ask is None:
                return
            yield ask
            promise = self._voter.promised(holder.slot, now_ms=now_ms)

    def _write(self) -> None:
        """Learn that an owner wishes to mint."""
        self._due_ms = 0

    def _begin_and_end(self, *, roster_too: bool, now_ms: int) -> None:
        """Have a holder for each slot that is wanted, in order, and know which are not wanted any more."""
        wanted_ms, holders = self._wanted_ms, self._holders
        if now_ms >= self._expires_ms:
            for slot in [one for one, at_ms in wanted_ms.items() if now_ms - at_ms >= WANTED_MS]:
                del wanted_ms[slot]
                self._as_wanted = False
            self._expires_ms = min(wanted_ms.values(), default=now_ms) + WANTED_MS
        if self._as_wanted and roster_too == self._roster_too:
            self._unwanted = ()
            return
        self._as_wanted, self._roster_too = True, roster_too
        slots = [*wanted_ms, ROSTER_SLOT] if roster_too else wanted_ms
        new = [slot for slot in slots if slot not in holders]
        if new:
            holders.update((slot, Holder(slot, self._me, self._write)) for slot in new)
            self._holders = holders = dict(sorted(holders.items()))
        if len(holders) == len(slots):
            self._unwanted = ()
        else:
            self._unwanted = tuple(slot for slot in holders if slot not in slots)


def _next_ms(holder: Holder, given: Mapping[int, tuple[Promise, int]], now_ms: int) -> int:
    """Return when a slot has to be looked at again, if nothing is heard of it before."""
    if holder.owns:
        return holder.due_ms
    promise = given.get(holder.slot)
    if promise is not None and holder.idle(promise, now_ms):
        return promise[1]
    return now_ms + APPLY_MS
