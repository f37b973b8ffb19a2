"""Wanted keys: a data process that meets a token with an unknown key lets its control process see to it.

The control process decides whether the issuer may be asked, for all processes of the node and with all other nodes. What
it fetches comes as a change of the shared state; who waits here waits for that.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from smg_mesh.shared import IssuerKeySet
from smg_node.core.ports import Clock
from smg_node.processes.ipc.control_bus import Bus
from smg_node.processes.ipc.data_uplink import Uplink
from smg_node.processes.ipc.ipc_link import AnswerError, LinkCutError

WANTED: Final = "access.keys"
QUIET_S: Final = 1.0
"""Where asking brought nothing, the control process is not asked again for so long."""
ARRIVAL_S: Final = 1.0
"""So long keys may be on their way from the control process."""


Held: TypeAlias = Callable[[str], IssuerKeySet | None]
"""Returns the keys of an issuer as they are shared."""


def answer_wants(
    bus: Bus, want: "Callable[[str], asyncio.Future[None] | None]", held: Held
) -> None:
    """Let data processes want keys: they are told which set counts when that is decided."""

    async def answer(_process: str, content: bytes) -> bytes:
        alias = content.decode("ascii", "replace")
        wanted = want(alias)
        if wanted is not None:
            await asyncio.shield(wanted)
        return _digest(held, alias)

    bus.answer(WANTED, answer)


class WantedKeys:
    """Wants of one data process; `spawn` starts a task that ends with the process."""

    def __init__(
        self,
        uplink: Uplink,
        held: Held,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], bool],
    ) -> None:
        self._uplink: Final = uplink
        self._held: Final = held
        self._clock: Final = clock
        self._spawn: Final = spawn
        self._running: dict[str, asyncio.Future[None]] = {}
        self._quiet_until_s: dict[str, float] = {}

    def want(self, alias: str) -> "asyncio.Future[None] | None":
        """Return what is done once the control process has seen to it; None where it would say no."""
        running = self._running.get(alias)
        if running is not None:
            return running
        if not self._uplink.linked:
            return None
        if self._clock.monotonic_s() < self._quiet_until_s.get(alias, 0.0):
            return None
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._spawn(self._ask(alias, done)):
            return None
        self._running[alias] = done
        return done

    async def _ask(self, alias: str, done: "asyncio.Future[None]") -> None:
        try:
            before = _digest(self._held, alias)
            try:
                digest = await self._uplink.ask(WANTED, alias.encode())
            except (LinkCutError, AnswerError):
                return
            if digest == before:
                self._quiet_until_s[alias] = self._clock.monotonic_s() + QUIET_S
                return
            await self._arrival(alias, digest)
        finally:
            self._running.pop(alias, None)
            if not done.done():
                done.set_result(None)

    async def _arrival(self, alias: str, digest: bytes) -> None:
        """Return when the keys of that digest are here, or late."""
        ends_s = self._clock.monotonic_s() + ARRIVAL_S
        while self._clock.monotonic_s() < ends_s:
            if _digest(self._held, alias) == digest:
                return
            await asyncio.sleep(0.01)


def wanted_keys(
    uplink: Uplink, held: Held, clock: Clock, spawn: Callable[[Coroutine[Any, Any, None]], bool]
) -> "Callable[[str], asyncio.Future[None] | None]":
    """Return what lets the control process fetch."""
    return WantedKeys(uplink, held, clock, spawn).want


def _digest(held: Held, alias: str) -> bytes:
    keys = held(alias)
    return b"" if keys is None else keys.digest
