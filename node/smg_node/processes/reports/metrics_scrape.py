"""Metrics scrape of a node of several processes: asks every process, and waits for none long.

A process that does not answer within 300 ms is on the page with its last report.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from smg_node.processes.ipc.ipc_link import AnswerError
from smg_node.processes.reports.metric_series import counted, pack_counted, read_counted
from smg_node.processes.reports.metrics_merge import Merging
from smg_node.telemetry.metrics.meters import Meters

PATIENCE_S: Final = 0.3

AskProcess = Callable[[str, bytes], Awaitable[bytes]]
"""Asks a process for what it counts, all or some; OSError if it cannot be asked."""
ALL: Final = b""
"""The question for all that is counted; any other one is a list of names."""

_log: Final = logging.getLogger("smg_node.processes")


def scraped(meters: Meters, question: bytes = ALL) -> bytes:
    """Return this process's metrics, encoded for the control process; nothing where no names are
    asked for.
    """
    if question == ALL:
        return pack_counted(counted(meters.registry.collect()))
    try:
        names = msgspec.msgpack.decode(question, type=frozenset[str])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        _log.error("the control process asks for metrics by no names")
        names = frozenset()
    return pack_counted(counted(meters.families(names)))


class Scrape:
    """Scrape of one control process. `meters` are its own, `processes` are those that are linked
    now.
    """

    def __init__(
        self,
        meters: Meters,
        processes: Callable[[], Sequence[str]],
        ask: AskProcess,
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._meters: Final = meters
        self._processes: Final = processes
        self._ask: Final = ask
        self._patience_s: Final = patience_s
        self._merging: Final = Merging()

    async def page(self, accept: str) -> tuple[bytes, str]:
        """Return the page for a scraper that sends this `accept` header, and its content type."""
        await self._hear_all(ALL)
        whole = CollectorRegistry()
        whole.register(_Whole(self._merging.families(self._meters.registry.collect())))
        encode, content_type = choose_encoder(accept)
        return encode(whole), content_type

    async def families(self, names: Collection[str]) -> Iterable[Family]:
        """Return the metrics of these names, as the page would have them."""
        await self._hear_all(msgspec.msgpack.encode(sorted(names)))
        wanted = {name.removesuffix("_total") for name in names}
        return self._merging.families(self._meters.families(names), wanted)

    def heard(self, process: str, content: bytes) -> None:
        """Take a process's metrics; an unreadable report changes nothing."""
        try:
            self._merging.heard(process, read_counted(content))
        except ValueError as error:
            _log.error("process %s: %s", process, error)

    def gone(self, process: str) -> None:
        """Note that a process has ended: its counters go on to count."""
        self._merging.gone(process)

    async def _hear_all(self, question: bytes) -> None:
        await asyncio.gather(*(self._hear(process, question) for process in self._processes()))

    async def _hear(self, process: str, question: bytes) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                content = await self._ask(process, question)
        except (TimeoutError, OSError, AnswerError):
            return
        self.heard(process, content)


class _Whole(Collector):
    """Collector of one page's families, read once."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families: Final = families

    def describe(self) -> list[Family]:
        """Name nothing ahead of time: nothing is to be read twice."""
        return []

    def collect(self) -> Iterable[Family]:
        """Return them."""
        return self._families
