"""Approval query: the control process asks its data processes about runs that wait for an operator's word.

Each process keeps the runs of its own requests. All are asked at once; one that does not answer within a second is named,
for a run of its own may wait there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from smg_node.processes.ipc.ipc_link import AnswerError

PATIENCE_S: Final = 1.0

AskProcess = Callable[[str, bytes], Awaitable[bytes]]


class ApprovalQuery:
    """Asks the data processes; `processes` are those that live, linked or not."""

    def __init__(
        self,
        processes: Callable[[], Sequence[str]],
        ask: AskProcess,
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._processes: Final = processes
        self._ask: Final = ask
        self._patience_s: Final = patience_s

    async def ask(self, question: bytes) -> tuple[Sequence[bytes], Sequence[str]]:
        """Return what processes answer, and the names of those that are silent."""
        names = self._processes()
        said = await asyncio.gather(*(self._of(name, question) for name in names))
        silent = [name for name, one in zip(names, said, strict=True) if one is None]
        return [one for one in said if one is not None], silent

    async def _of(self, process: str, question: bytes) -> bytes | None:
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._ask(process, question)
        except (TimeoutError, OSError, AnswerError):
            return None
