"""Open work query: the control process asks each process what it has open, and sums the answers.

A process that does not answer within a second is named: a node must not be taken for empty while
one of its processes has not reported.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import msgspec

from smg_node.http.ports.drain import OpenWork, Prober
from smg_node.processes.ipc.ipc_link import AnswerError

OPEN_WORK: Final = "work.open"
"""What the question is called on the bus."""
PATIENCE_S: Final = 1.0
PROBERS_MAX: Final = 32

AskProcess = Callable[[str, bytes], Awaitable[bytes]]


class OpenWorkOfAll:
    """Asks the data processes; `processes` are those that are linked now, `own` is this process's
    open work.
    """

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

    async def read(self, own: OpenWork) -> OpenWork:
        """Return what is open here and there."""
        open_work_reply = await asyncio.gather(*(self._of(one) for one in self._processes()))
        return together([own, *open_work_reply])

    async def _of(self, process: str) -> OpenWork:
        try:
            async with asyncio.timeout(self._patience_s):
                answer = await self._ask(process, b"")
            return msgspec.msgpack.decode(answer, type=OpenWork)
        except (TimeoutError, OSError, AnswerError, msgspec.MsgspecError, UnicodeDecodeError):
            return OpenWork(silent=(process,))


def open_work_reply(work: OpenWork) -> bytes:
    """Return this process's open work, encoded for the control process."""
    return msgspec.msgpack.encode(work)


def together(works: Iterable[OpenWork]) -> OpenWork:
    """Return the sum; of probers seen by several processes the latest counts. New work is taken as
    long as any process takes it.
    """
    requests = streams = background = 0
    taking, settle_left_s = False, 0.0
    cuts_s: list[float] = []
    silent: list[str] = []
    latest: dict[tuple[str, str], Prober] = {}
    for work in works:
        requests += work.requests
        streams += work.streams
        background += work.background
        taking = taking or work.taking
        settle_left_s = max(settle_left_s, work.settle_left_s)
        cuts_s += [] if work.cut_left_s is None else [work.cut_left_s]
        silent += work.silent
        for prober in work.probers:
            key = (prober.address, prober.agent)
            if key not in latest or prober.ago_s < latest[key].ago_s:
                latest[key] = prober
    probers = sorted(latest.values(), key=lambda one: one.ago_s)[:PROBERS_MAX]
    return OpenWork(
        *(requests, streams, background, taking),
        settle_left_s=settle_left_s,
        cut_left_s=max(cuts_s, default=None),
        probers=tuple(probers),
        silent=tuple(silent),
    )
