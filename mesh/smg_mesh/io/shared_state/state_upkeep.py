"""State upkeep: seals secrets again after a rotation, and tidies up leftovers, now and then.

Both are writes, so they happen here, outside of whatever was just heard, and a few at a time. After
anything that may give them work they look soon, a minute later again, and otherwise once an hour. Secrets are
all looked at, so that is not done for each change of a worker, but for those of keys and of members.

A secret is sealed again by its writer. If that node is gone, one of those that live does it: the
one whose name scores highest for that owner's, so that all agree on who.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Final, Protocol

from smg_mesh.crdt.namespace import Heard, StateError
from smg_mesh.io.counters import Counters
from smg_mesh.io.security.secret_marks import sealed_with
from smg_mesh.io.security.secret_vault import Vault

SOON_S: Final = 2.0
"""Many changes come together."""
APART_S: Final = 0.05
"""Between two slices of work, in which the loop turns."""
LATER_S: Final = 65.0
"""What lost its sources is cleared away a minute later; and what others wrote meanwhile is looked at."""
AGAIN_S: Final = 3_600.0

_log: Final = logging.getLogger("smg_mesh.shared")


class Tended(Protocol):
    """Registry that is cared for; `state.workers.worker_registry.WorkerRegistry` fits."""

    def watch(self, heard: Heard) -> None:
        """Tell of changes."""
        ...

    def sealed(self) -> Sequence[bytes]:
        """Return all sealed secrets."""
        ...

    def tidy(self, wall_ms: int, *, living: Sequence[str]) -> int:
        """Clear away some of what removals left; return how many writes that took."""
        ...

    def forget_node(self, name: str, *, living: Sequence[str]) -> int:
        """Take away what a node listed that never comes back; return how many writes that took."""
        ...

    def reseal(self, renew: Callable[[bytes], bytes | None], mine: Callable[[str], bool]) -> int:
        """Seal some again; return how many."""
        ...


class Sealing(Protocol):
    """Values with secrets, which are sealed anew; `state.providers.ProvidersView` fits."""

    def sealed(self) -> Sequence[bytes]:
        """Return all sealed secrets."""
        ...

    def reseal(self, renew: Callable[[bytes], bytes | None], mine: Callable[[str], bool]) -> int:
        """Seal some again; return how many."""
        ...


class Audited(Protocol):
    """Log that is cared for besides; `state.audit_log.Audit` fits."""

    def tidy(self, *, living: Sequence[str]) -> int:
        """Take away some of what is over its bounds; return how much."""
        ...


class LivingMembers(Protocol):
    """Members that live; `replica.Replica` fits."""

    @property
    def living(self) -> Sequence[str]:
        """Names, this node's too, sorted."""
        ...


class StateUpkeep:
    """Upkeep of shared state: one node's share of it."""

    def __init__(
        self,
        me: str,
        workers: Tended,
        providers: Sealing,
        audit: Audited,
        vault: Vault,
        around: LivingMembers,
        *,
        counters: Counters,
        wall_ms: Callable[[], int],
        known: Callable[[], Sequence[str]],
    ) -> None:
        self._me: Final = me
        self._workers: Final = workers
        self._providers: Final = providers
        self._audit: Final = audit
        self._vault: Final = vault
        self._around: Final = around
        self._counters: Final = counters
        self._wall_ms: Final = wall_ms
        self._known: Final = known
        self._knew: dict[str, None] = {}
        """Members that were known when this looked last, the dead too."""
        self._wake: Final = asyncio.Event()
        self._all = False
        workers.watch(lambda ids: self._wake.set())

    def look(self) -> None:
        """Look soon whether there is anything to do: keys or members changed."""
        self._all = True
        self._wake.set()

    def sealed_with(self, fingerprint: str) -> int:
        """Return how many secrets only that key opens."""
        wanted = fingerprint.strip().lower()
        secrets = (*self._workers.sealed(), *self._providers.sealed())
        return sum(sealed_with(sealed) == wanted for sealed in secrets)

    async def run(self) -> None:
        """Do it until cancelled."""
        pause_s = AGAIN_S
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()
            if self._wake.is_set():
                pause_s = LATER_S
                await asyncio.sleep(SOON_S)
                self._wake.clear()
            else:
                pause_s, self._all = AGAIN_S, True
            more = True
            while more:
                more = self._slice()
                await asyncio.sleep(APART_S)
            self._all = self._all and self._wake.is_set()

    def _slice(self) -> bool:
        """Do some of it; return whether there may be more."""
        try:
            living = self._around.living
            writes = self._workers.tidy(self._wall_ms(), living=living)
            if self._all:
                writes += self._reseal() + self._audit.tidy(living=living) + self._forget(living)
            return writes > 0
        except StateError as error:
            # A full document: what was to be cleared away stays a little longer, and counts for nothing.
            _log.warning("shared state cannot be tidied up: %s", error)
            return False
        except Exception:
            # A door: a mistake of ours about one record must not end the node.
            self._counters.add("state_fault")
            _log.exception("shared state cannot be tidied up")
            return False

    def _reseal(self) -> int:
        renew, mine = self._vault.renew, self._is_mine
        resealed = self._workers.reseal(renew, mine) + self._providers.reseal(renew, mine)
        if resealed:
            self._counters.add("state_resealed", value=resealed)
        return resealed

    def _forget(self, living: Sequence[str]) -> int:
        """Let go of what members listed whose rows are forgotten: their names do not come back."""
        known = dict.fromkeys(self._known())
        forgotten = [name for name in self._knew if name not in known]
        self._knew = known
        return sum(self._workers.forget_node(name, living=living) for name in forgotten)

    def _is_mine(self, owner: str) -> bool:
        """Return whether this node writes for that owner: its own self, or its successor."""
        living = self._around.living
        if owner == self._me or owner in living:
            return owner == self._me
        return self._me == max(living, key=lambda name: _score(owner, name))


def _score(owner: str, name: str) -> tuple[bytes, str]:
    return blake2b(f"{owner}\0{name}".encode(), digest_size=8).digest(), name
