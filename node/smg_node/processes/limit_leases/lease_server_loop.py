"""Lease server loop: runs `lease_server`, sends its grants, waits for rights of the cluster.

Messages go out as soon as they are known, those for one process together. What a data process waits
for and this node has not, is waited for in the cluster as a request of this node would; `run` owns
those waits.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from smg_node.admission.ports import Rights
from smg_node.core.ports import Clock
from smg_node.processes.limit_leases.lease_messages import (
    LeaseGrant,
    LeaseGrants,
    pack,
    read_report,
)
from smg_node.processes.limit_leases.lease_server import LeaseServer, Refill

WAIT_S: Final = 0.1
"""A round trip between nodes, with room: whoever waits in a data process gives up before."""
OWNER_WAIT_S: Final = 1.3
"""Until a limit has an owner, as `admission.door` waits for one."""

TellProcess = Callable[[str, bytes], None]


class LendingRights:
    """Loop of one control process. `tell` sends messages to a data process, or drops them if that
    is gone.
    """

    def __init__(self, rights: Rights, tell: TellProcess, *, clock: Clock) -> None:
        self._rights: Final = rights
        self._tell: Final = tell
        self._clock: Final = clock
        self._lender: Final = LeaseServer(rights.share)
        self._refills: Final[asyncio.Queue[Refill]] = asyncio.Queue()
        """At most one for each key that is asked for."""

    async def run(self) -> None:
        """Wait for rights of the cluster, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                refill = await self._refills.get()
                group.create_task(self._refill(refill), name=f"refill {refill.key}")

    def lent(self, key: str) -> int:
        """Return how much of a limit data processes have now."""
        return self._lender.lent(key)

    def expect(self, processes: Iterable[str]) -> None:
        """Take the names of data processes that live already, from before this control process
        began.
        """
        self._lender.expect(processes)

    def hear(self, process: str, content: bytes) -> None:
        """Take a message of a data process; ValueError for one it cannot have sent."""
        self._lender.hear(process, read_report(content), now_ms=self._now_ms())
        self._say()

    def closed(self, process: str, *, gone: bool) -> None:
        """Note that the link of a process is cut; with `gone`, that it has ended."""
        self._lender.closed(process, gone=gone, now_ms=self._now_ms())
        self._say()

    async def _refill(self, refill: Refill) -> None:
        share = self._rights.share(refill.key)
        if share is not None:
            within_s = OWNER_WAIT_S if share.pool < 0 else WAIT_S
            await self._rights.refilled(share, refill.cost, within_s)
        self._lender.refilled(refill.key, now_ms=self._now_ms())
        self._say()

    def _say(self) -> None:
        words: dict[str, list[LeaseGrant]] = {}
        for process, word in self._lender.told():
            words.setdefault(process, []).append(word)
        for process, told in words.items():
            self._tell(process, pack(LeaseGrants(tuple(told))))
        for refill in self._lender.refills():
            self._refills.put_nowait(refill)

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_s() * 1000)
