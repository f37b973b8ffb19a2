"""Journey query: the control process finds journeys of requests that its data processes served.

Each process keeps the journeys of its own requests. A query to a node asks all its processes at
once, and waits for none longer than a second; the journeys of a process that died are gone with it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from typing import Final

import msgspec

from smg_node.core.journey import Journey
from smg_node.pipeline.observability.journey_log import SAME_ID_MAX, Journal, pack, unpack
from smg_node.processes.ipc.ipc_link import AnswerError

FIND: Final = "journeys.find"
"""What the question is called on the bus."""
PATIENCE_S: Final = 1.0
_ID_CHARACTERS_MAX: Final = 256

AskProcess = Callable[[str, bytes], Awaitable[bytes]]

_log: Final = logging.getLogger("smg_node.processes")


def journeys_reply(journal: Journal, question: bytes) -> bytes:
    """Return this process's journeys of a request, encoded for the control process."""
    wanted = question[:_ID_CHARACTERS_MAX].decode("utf-8", "replace")
    return msgspec.msgpack.encode([pack(journey) for journey in journal.get(wanted)])


class Journeys:
    """Asks the data processes; `processes` are those that are linked now."""

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

    async def find(self, wanted: str) -> list[Journey]:
        """Return every journey that data processes have of a request."""
        question = wanted.encode("utf-8", "replace")
        found = await asyncio.gather(*(self._find(one, question) for one in self._processes()))
        return list(chain.from_iterable(found))

    async def _find(self, process: str, question: bytes) -> Sequence[Journey]:
        try:
            async with asyncio.timeout(self._patience_s):
                answer = await self._ask(process, question)
        except (TimeoutError, OSError, AnswerError) as error:
            _log.warning("process %s does not tell of its requests: %s", process, error)
            return ()
        try:
            packed = msgspec.msgpack.decode(answer, type=list[bytes])[:SAME_ID_MAX]
            return [unpack(one) for one in packed]
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            _log.error("process %s tells what nobody understands: %s", process, error)
            return ()
