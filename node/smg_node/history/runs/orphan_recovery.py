"""Orphan recovery: finds background runs whose owners are gone and ends them, on one node of all.

The node is chosen among the living members, as with the retention sweeper. Besides, each process
recovers the runs of earlier processes of its own node. Those, and the runs of a node that is dead
or has left, are taken at once; any other run when its lease is over, and if its owner seems to be
alive, one lease later: then the store was unavailable, not the owner.

    orphans  →  claim (the token grows, the old owner's writes are refused)
             →  items still open in its log are closed  →  decide  →  one commit: events before, row after

A claim is a lease like any other: if its holder dies too, another node takes over and finds in the
log what was closed already.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from smg_node.core.errors import SmgError
from smg_node.history.peers.peer_interface import Peers
from smg_node.history.runs.orphan_finalizer import OrphanFinalizer
from smg_node.history.runs.predecessors import Predecessors, node_of
from smg_node.history.runs.run_lease import LEASE_S, RENEW_S
from smg_node.history.store.retention_sweeper import drawn
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Access, Lease
from smg_storage.store import HistoryStore

LEASE_US: Final = round(LEASE_S * 1_000_000)
AHEAD_US: Final = 86_400_000_000
"""Where somebody has gone, leases that hold are looked at too, however far ahead its clock was."""
LOOK_S: Final = 1.0
LEAN_LOOK_S: Final = 15.0
"""A store of this machine has orphans when this process begins, and else only if something went wrong."""
OWN_S: Final = LEASE_S + RENEW_S
"""So long after it began a process looks after its node's own: by then all leases of before are over."""
RETURN_S: Final = 2 * RENEW_S
"""So long after a store was away nobody is taken to be gone because of a lease: owners renew theirs before."""
BATCH: Final = 200
AT_ONCE: Final = 4
TIMEOUT_S: Final = 5.0
OUTCOMES: Final = ("failed", "cancelled", "lost", "error")
"""What becomes of an adoption: how the run ended, or that somebody else was faster, or that it could not be done now."""

_log: Final = logging.getLogger("smg_node.history")


class Runs(Protocol):
    """The runs of this process."""

    def find(self, tenant: str, response_id: str) -> object | None:
        """Return the run of that id, if it is one of this process."""
        ...


class OrphanRecovery:
    """Looks for orphaned runs in `store`, and ends them."""

    def __init__(
        self,
        store: HistoryStore,
        runs: Runs,
        burial: OrphanFinalizer,
        lives: Predecessors,
        *,
        peers: Peers,
        living: Callable[[], Sequence[str]],
        now_us: Callable[[], int],
        now_s: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.adopted: Final[dict[str, int]] = dict.fromkeys(OUTCOMES, 0)
        """How many there were, by outcome."""
        self._store: Final = store
        self._runs: Final = runs
        self._burial: Final = burial
        self._lives: Final = lives
        self._name: Final = node_of(lives.owner)
        self._peers: Final = peers
        self._living: Final = living
        self._now_us: Final = now_us
        self._now_s: Final = now_s
        self._sleep: Final = sleep
        self._began_s = now_s()
        self._trusted_s = self._next_lean_s = float("-inf")
        self._searched_own = not lives.earlier
        self._searched: frozenset[tuple[str, int]] = frozenset()

    @property
    def mine(self) -> bool:
        """Whether this node recovers orphans: chosen among unsuspected nodes, so that no time is
        lost when many die.

        Two nodes at once for a while do no harm: only one of them gets the lease of a run.
        """
        if not self._store.shared:
            return True
        states = self._peers.known()
        sound = [name for name in self._living() if states.get(name, "alive") == "alive"]
        return drawn(sound, self._name) == self._name

    async def run(self) -> None:
        """Recover until cancelled."""
        while True:
            await self.look()
            await self._sleep(LOOK_S)

    async def look(self) -> None:
        """End what is orphaned now; a store that is unavailable is left for the next time."""
        mine = self.mine
        if not (mine or self._is_young):
            return
        gone = self._peers.gone() if mine else {}
        fresh = not self._searched_own or bool(frozenset(gone.items()) - self._searched)
        lean = not (self._store.shared or self._is_young or fresh)
        if lean and self._now_s() < self._next_lean_s:
            return
        self._next_lean_s = self._now_s() + LEAN_LOOK_S
        try:
            while await self._batch(gone, ahead_us=AHEAD_US if fresh else 0):
                continue
        except StoreError:
            # It is counted and logged where it happened.
            self._trusted_s = self._now_s() + RETURN_S

    @property
    def _is_young(self) -> bool:
        return self._now_s() < self._began_s + OWN_S

    # ── Which ────────────────────────────────────────────────────────────────

    async def _batch(self, gone: Mapping[str, int], *, ahead_us: int) -> bool:
        """End some, of those whose leases have expired by then; return whether there may be more."""
        now_us = self._now_us()
        found = await self._store.orphan_runs(
            now_us=now_us + ahead_us, limit=BATCH, timeout_s=TIMEOUT_S
        )
        orphans = [lease for lease in found if self._is_orphan(lease, gone, now_us)]
        ended = await self._adopt_all(orphans)
        if len(found) >= BATCH and ended > 0:
            return True
        self._searched_own, self._searched = True, frozenset(gone.items())
        return False

    def _is_orphan(self, lease: Lease, gone: Mapping[str, int], now_us: int) -> bool:
        """Return whether a run has no owner any more, as far as this node can know."""
        owner, name = lease.owner, node_of(lease.owner)
        if owner == self._lives.owner:
            return lease.until_us <= now_us and not self._has(lease)
        if owner in self._lives.earlier or name in gone:
            return True
        if lease.until_us > now_us or not (self.mine or name == self._name):
            return False
        if name != self._name and name in self._living():
            return lease.until_us + LEASE_US <= now_us and self._trusts_leases
        return self._trusts_leases

    @property
    def _trusts_leases(self) -> bool:
        return self._now_s() >= self._trusted_s

    def _has(self, lease: Lease) -> bool:
        return self._runs.find(lease.tenant, lease.response_id) is not None

    # ── And what becomes of them ─────────────────────────────────────────────

    async def _adopt_all(self, orphans: Sequence[Lease]) -> int:
        """Recover these, few at a time; return how many of them have an end now."""
        before = sum(self.adopted.values()) - self.adopted["error"]
        waiting = iter(orphans)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(AT_ONCE, len(orphans))):
                group.create_task(self._adopt_each(waiting))
        return sum(self.adopted.values()) - self.adopted["error"] - before

    async def _adopt_each(self, waiting: Iterator[Lease]) -> None:
        for lease in waiting:
            outcome = await self._adopt(lease)
            self.adopted[outcome] += 1
            _log.info(
                "a run of %s is ended here: %s, %s",
                lease.owner or "nobody",
                lease.response_id,
                outcome,
                extra={"fields": {"event": "run_adopted", "outcome": outcome}},
            )

    async def _adopt(self, orphan: Lease) -> str:
        access = Access(tenant=orphan.tenant, timeout_s=TIMEOUT_S)
        now_us = self._now_us()
        try:
            held = await self._store.claim_run(
                access,
                orphan.response_id,
                self._lives.owner,
                # If its owner renewed it meanwhile, it ends later than that, and is no orphan.
                now_us=max(now_us, orphan.until_us),
                until_us=now_us + LEASE_US,
            )
            if held is None:
                return "lost"
            return await self._burial.bury(access, held) or "lost"
        except StoreError as error:
            if error.kind is StoreErrorKind.CONFLICT:
                return "lost"
            return self._not_now(orphan, error.message)
        except SmgError as error:
            return self._not_now(orphan, error.message)
        except Exception:
            # A door: a mistake of ours about one run must not keep all others from their ends.
            _log.exception("a run without an owner was not ended: %s", orphan.response_id)
            return "error"

    def _not_now(self, orphan: Lease, why: str) -> str:
        _log.warning("a run without an owner was not ended: %s: %s", orphan.response_id, why)
        return "error"
