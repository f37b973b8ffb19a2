"""Lease client of a data process: its part of all limits, and what to ask for. Pure.

    share(key, …)      what may be charged now, without a wait
    look(…)            what is to be sent now: questions, what goes back, what is owed
    hear(…)            takes what the control process sent
    begin_anew, cut    a link has opened; it is gone

A process spends what its control process has charged to the node's own share before it was given. So what all of them
spend together is never more than the node may; what a process that dies still had is counted as spent, or, of limits
without windows, comes back. Looks are cheap, and there is none while nothing is used.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from smg_node.processes.limit_leases.lease_messages import LeaseAsk, LeaseGrants
from smg_node.processes.limit_leases.leased_limit import LeasedLimit
from smg_node.processes.limit_leases.leased_share import LeasedShare

KEYS_MAX: Final = 65_536
"""More are not lent to one process: what is asked for beyond that is refused there."""
_UNLINKED_MS: Final = 20
"""Windows end while nobody answers, too."""


class Waits(NamedTuple):
    """Waiting requests of a key: what the first one needs, and what all of them need."""

    first: int = 0
    waits: int = 0


class Limit(NamedTuple):
    """A limit as it is defined now."""

    amount: int
    window_ms: int


class LeaseClient:
    """Lease client; one per data process. `waits` returns the waiting requests of a key."""

    def __init__(self, waits: Callable[[str], Waits]) -> None:
        self._waits: Final = waits
        self._loans: dict[str, LeasedLimit] = {}
        self._late: list[LeaseAsk] = []
        """What was given for a key that is no longer used here."""
        self._linked = False

    def __len__(self) -> int:
        """Return the number of limits of which something is known."""
        return len(self._loans)

    def share(self, key: str, limit: Limit, *, now_ms: int, wall_ms: int) -> LeasedShare:
        """Return what may be charged of a limit; the one that was returned before may be retired by now."""
        loan = self._loans.get(key)
        if loan is None:
            share = LeasedShare(key, amount=limit.amount, window_ms=limit.window_ms)
            if len(self._loans) < KEYS_MAX:
                self._loans[key] = LeasedLimit(share, now_ms)
            else:
                share.pool = 0
            return share
        if loan.over(wall_ms):
            loan.turn()
        loan.refresh(now_ms)
        loan.due_ms = min(loan.due_ms, now_ms)
        return loan.share

    def peek(self, key: str) -> LeasedShare | None:
        """Return what there is of a key; None if it is not used here."""
        loan = self._loans.get(key)
        return None if loan is None else loan.share

    def want(self, key: str, now_ms: int) -> None:
        """Let the next look ask for a key at once: a request waits for it."""
        loan = self._loans.get(key)
        if loan is not None:
            loan.due_ms = now_ms
            loan.used_ms = now_ms

    def look(self, now_ms: int, wall_ms: int) -> list[LeaseAsk]:
        """Return what is to be sent now; nothing while there is no link."""
        asks, self._late = self._late, []
        gone = []
        for key, loan in self._loans.items():
            if loan.due_ms > now_ms:
                continue
            if loan.over(wall_ms):
                loan.turn()
            if not self._linked:
                loan.due_ms = now_ms + _UNLINKED_MS
                continue
            first, waits = self._waits(key)
            ask = loan.ask(now_ms, wall_ms, first=first, waits=waits)
            if ask is not None:
                asks.append(ask)
            elif not waits and loan.forgettable(now_ms):
                gone.append(key)
        for key in gone:
            self._loans.pop(key).share.retire()
        return asks

    def due_ms(self) -> int | None:
        """Return when to look again; None while nothing is used."""
        return min((loan.due_ms for loan in self._loans.values()), default=None)

    # ── The link ─────────────────────────────────────────────────────────────

    def hear(self, told: LeaseGrants, *, now_ms: int, wall_ms: int) -> Sequence[str]:
        """Apply the control process's grants; return their keys."""
        for word in told.words:
            loan = self._loans.get(word.key)
            if loan is not None:
                loan.take(word, now_ms=now_ms, wall_ms=wall_ms)
            elif word.given or word.recall:
                self._late.append(
                    LeaseAsk(word.key, word.term, back=word.given, recalled=word.recall)
                )
        return [word.key for word in told.words]

    def begin_anew(self, now_ms: int) -> dict[str, int]:
        """Begin with another control process; return what is open of limits without windows, which it has to know."""
        self._linked = True
        self._late.clear()
        open_here = {}
        for key, loan in self._loans.items():
            loan.due_ms = now_ms
            held = loan.begin_anew()
            if held:
                open_here[key] = held
        return open_here

    def cut(self) -> None:
        """Note that the link is gone: what is held here is all there is, until its window ends."""
        self._linked = False
        self._late.clear()
        for loan in self._loans.values():
            loan.cut()
