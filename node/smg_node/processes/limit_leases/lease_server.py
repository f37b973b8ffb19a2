"""Lease server: lends slices of the node's rights to its data processes, and recalls them. Pure.

    ask ──▶ enough here ──▶ lent: charged to the node's share, then sent
        └─▶ too little ──▶ recalled from the other processes, asked for in the cluster ──▶ lent, or answered that it is dry

A slice is what is waited for and, of what the cluster has left then, no more than an equal part of
half for every process: so slices shrink with what there is, and the last right goes to the process
that asks for it. Where there is plenty, the cluster is asked for all that is of use, so that at a
thousand requests a second there are twenty questions. A process for which there is nothing is
answered when all others have given back what they do not use, and the cluster was asked.

A process that dies has spent what it had of windows; of limits without windows it has nothing open any more. A link
that is cut means neither: the process says what it has open when it is back. As long as one that lives has not done
so, nothing is lent of limits without windows (`expect`), since what it has open may be all there is.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Final, NamedTuple

from smg_node.admission.ports import Share
from smg_node.processes.limit_leases.lease_account import Lease
from smg_node.processes.limit_leases.lease_messages import LeaseAsk, LeaseGrant, LeaseReport

RECALL_EVERY_MS: Final = 20
"""What a process said that it has nothing of is believed for so long."""
_PLENTY: Final = 8
"""Where the cluster has so many times what is of use, it is asked for that, and not only for what is waited for."""
_SWEEP_EVERY: Final = 1_024


class Refill(NamedTuple):
    """Rights a process waits for and the cluster may have: `cost` of them."""

    key: str
    cost: int


class Tell(NamedTuple):
    """A message for one process."""

    process: str
    word: LeaseGrant


class _Wish(NamedTuple):
    least: int
    waits: int
    wants: int
    sought: bool = False
    """The cluster was asked on its behalf."""


class LeaseServer:
    """Lease server; one per control process. `share_of` returns the node's share of a key, awake;
    None if there is no such limit.
    """

    def __init__(self, share_of: Callable[[str], Share | None]) -> None:
        self._share_of: Final = share_of
        self._terms: Final = count(1)
        self._linked: dict[str, None] = {}
        self._expected: dict[str, None] = {}
        self._leases: dict[str, dict[str, Lease]] = {}
        """By key and process."""
        self._wishes: dict[str, dict[str, _Wish]] = {}
        """By key and process, in the order in which they are answered."""
        self._refilling: dict[str, None] = {}
        self._said: list[Tell] = []
        self._refills: list[Refill] = []
        self._made = 0

    def told(self) -> Sequence[Tell]:
        """Return the messages to be sent to processes, once."""
        said, self._said = self._said, []
        return said

    def refills(self) -> Sequence[Refill]:
        """Return what is to be asked of the cluster, once; `refilled` is called when each is over."""
        refills, self._refills = self._refills, []
        return refills

    def lent(self, key: str) -> int:
        """Return how much of a limit data processes have now."""
        return sum(lease.lent for lease in self._leases.get(key, {}).values())

    # ── Processes ────────────────────────────────────────────────────────────

    def expect(self, processes: Iterable[str]) -> None:
        """Take the names of data processes that live already, from before this control process
        began.
        """
        self._expected.update(dict.fromkeys(processes))

    def closed(self, process: str, *, gone: bool, now_ms: int) -> None:
        """Note that a link is cut; with `gone`, that its process has ended."""
        self._linked.pop(process, None)
        if gone:
            self._expected.pop(process, None)
        else:
            self._expected[process] = None
        for wishes in self._wishes.values():
            wishes.pop(process, None)
        for key, leases in list(self._leases.items()):
            lease = leases.get(process)
            if lease is None:
                continue
            lease.recalled = False
            if gone or lease.share.window_ms:
                del leases[process]
                if not lease.share.window_ms:
                    lease.take_back(lease.lent)
            if not leases:
                del self._leases[key]
        self._serve_all(now_ms)

    def hear(self, process: str, said: LeaseReport, *, now_ms: int) -> None:
        """Take the report of a process."""
        if said.open is not None:
            self._greet(process, said.open)
            self._serve_all(now_ms)
        for ask in said.asks:
            self._take(process, ask, now_ms)

    def refilled(self, key: str, *, now_ms: int) -> None:
        """Note that what was asked of the cluster has come, or will not."""
        self._refilling.pop(key, None)
        self._serve(key, now_ms)

    # ── What they say ────────────────────────────────────────────────────────

    def _greet(self, process: str, open_there: dict[str, int]) -> None:
        """Begin with a process that has this much open of limits without windows, and nothing else."""
        self._linked[process] = None
        self._expected.pop(process, None)
        known = [key for key, leases in self._leases.items() if process in leases]
        for key in sorted({*known, *open_there}):
            held = open_there.get(key, 0)
            lease = self._leases.get(key, {}).get(process)
            if lease is None:
                share = self._share_of(key)
                if share is None or share.window_ms:
                    continue
                lease = self._lease(key, process, share)
            lease.term = next(self._terms)
            lease.adopt(held)
            self._said.append(Tell(process, lease.word(0, answers=False)))

    def _take(self, process: str, ask: LeaseAsk, now_ms: int) -> None:
        key = ask.key
        share = self._share_of(key)
        lease = self._leases.get(key, {}).get(process)
        if lease is not None and lease.term == ask.term:
            lease.take_back(ask.back)
        if lease is not None and ask.recalled:
            lease.recalled = False
        if share is None:
            if ask.wants:
                self._refuse(process, ask)
            return
        share.offered += ask.offered
        share.debt += ask.owed
        wishes = self._wishes.setdefault(key, {})
        if ask.wants or (process in wishes and ask.recalled):
            # Who answers a recall waits for more than before: what it had is gone.
            wants = max(ask.wants, ask.waits)
            wishes[process] = _Wish(ask.least, ask.waits, wants)
        if ask.wants and ask.least > share.left:
            self._recall(process, key, share, now_ms)
        self._serve(key, now_ms)

    def _refuse(self, process: str, ask: LeaseAsk) -> None:
        """Answer an ask for a limit that is gone: its process learns of that in another way."""
        word = LeaseGrant(ask.key, ask.term, 0, 0, 0, 0, 0, 0, "exact", 0)
        self._said.append(Tell(process, word))

    def _recall(self, process: str, key: str, share: Share, now_ms: int) -> None:
        """Ask all others for what they do not use."""
        for other, lease in self._leases.get(key, {}).items():
            fresh = now_ms - lease.recalled_ms < RECALL_EVERY_MS
            idle = other == process or other not in self._linked
            if not (lease.recalled or fresh or idle) and lease.lent and lease.fits(share):
                self._said.append(Tell(other, lease.recall(now_ms)))

    # ── What they get ────────────────────────────────────────────────────────

    def _serve_all(self, now_ms: int) -> None:
        for key in list(self._wishes):
            self._serve(key, now_ms)

    def _serve(self, key: str, now_ms: int) -> None:
        """Answer every waiting process of a key whose answer is known, in order."""
        wishes = self._wishes.get(key)
        if not wishes:
            self._wishes.pop(key, None)
            return
        share = self._share_of(key)
        if share is None:
            for process in wishes:
                self._refuse(process, LeaseAsk(key, 0))
            del self._wishes[key]
            return
        blind = bool(self._expected) and not share.window_ms
        for process, wish in list(wishes.items()):
            if blind or self._hopes(key, process, share, wish):
                continue
            del wishes[process]
            lease = self._lease(key, process, share)
            given = self._slice(lease, share, wish)
            lease.lend(given)
            dry = not given and wish.least > 0
            self._said.append(Tell(process, lease.word(given, dry=dry)))
        if not wishes:
            del self._wishes[key]

    def _hopes(self, key: str, process: str, share: Share, wish: _Wish) -> bool:
        """Whether more may still come for a process that gets too little now; the cluster is asked
        once for each.
        """
        left, pool = share.left, share.pool
        lacks = wish.least > left
        plenty = pool >= _PLENTY * wish.wants
        if not lacks and not (plenty and left < wish.wants):
            return False
        if pool and not wish.sought:
            if key not in self._refilling:
                self._refilling[key] = None
                cost = wish.wants if plenty else wish.waits if wish.waits <= pool else wish.least
                self._refills.append(Refill(key, cost))
                self._wishes[key][process] = wish._replace(sought=True)
            return True
        others = (lease for other, lease in self._leases.get(key, {}).items() if other != process)
        return key in self._refilling or (lacks and any(lease.recalled for lease in others))

    def _slice(self, lease: Lease, share: Share, wish: _Wish) -> int:
        """Return how much a process gets."""
        left = share.left
        if lease.share is not share or wish.least > left or left <= 0:
            return 0
        needed = min(wish.waits, left)
        rest = left - needed
        fair = (rest + max(0, share.pool)) // (2 * (len(self._linked) + 1))
        return needed + max(0, min(wish.wants - needed, rest, fair))

    def _lease(self, key: str, process: str, share: Share) -> Lease:
        """Return the lease of a process, in the window of now."""
        leases = self._leases.setdefault(key, {})
        lease = leases.get(process)
        if lease is None or not lease.fits(share):
            lease = leases[process] = Lease(share, next(self._terms))
            self._made += 1
            if self._made % _SWEEP_EVERY == 0:
                self._sweep(key)
        return lease

    def _sweep(self, kept: str) -> None:
        """Forget windows that are over, and limits of which no process holds anything."""
        for key, leases in list(self._leases.items()):
            for process, lease in list(leases.items()):
                over = lease.window != lease.share.window
                if key != kept and not lease.recalled and (over or not lease.lent):
                    del leases[process]
            if not leases:
                del self._leases[key]
