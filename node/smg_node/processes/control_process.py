"""Control process: the bus to the data processes, and its part of all that they share.

It has this besides what any node has. It is built before most parts of the node, which reach other
processes through `elsewhere`, `load` and `siblings`; joined to its HTTP surface (`join`), and
opened when the node can be asked.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, Final

from smg_mesh.shared import Shared
from smg_node.admission.usage.usage_book import UsageBook
from smg_node.cluster.approvals.lazy_approvals import TOPIC as APPROVALS
from smg_node.cluster.membership.cluster_interface import ReadinessReasons
from smg_node.config.address import Address
from smg_node.core.ports import Clock
from smg_node.http.forwarding.control_proxy import Trusting
from smg_node.http.http_parts import HttpParts
from smg_node.processes.ipc.control_bus import Bus
from smg_node.processes.limit_leases.lease_messages import ASK, WORD
from smg_node.processes.limit_leases.lease_server_loop import LendingRights
from smg_node.processes.process_role import LEAVING, UP, Role, is_alive
from smg_node.processes.replication.rate_relay import RateRelay
from smg_node.processes.replication.state_messages import (
    DRAIN,
    REPLACED,
    SERVING,
    Node,
    Serving,
    read,
)
from smg_node.processes.replication.state_publisher import Publishing
from smg_node.processes.reports.approval_query import ApprovalQuery
from smg_node.processes.reports.journey_query import FIND, Journeys
from smg_node.processes.reports.metric_series import LAST, SCRAPE
from smg_node.processes.reports.metrics_scrape import Scrape
from smg_node.processes.reports.open_work_query import OPEN_WORK, OpenWorkOfAll
from smg_node.processes.reports.usage_messages import USED, read_used
from smg_node.telemetry.metrics.declared import processes as process_metrics
from smg_node.telemetry.metrics.meters import Meters

SERVING_PATIENCE_S: Final = 15.0
"""So long a start waits for data processes to listen before it goes on without them."""
FAREWELL_PATIENCE_S: Final = 10.0
"""Beyond what a farewell may take, before data processes that have not ended are left to the supervisor."""

_log = logging.getLogger("smg_node.processes")


class Controlling:
    """The control side of a node of several processes; one per control process."""

    def __init__(self, role: Role, shared: Shared, meters: Meters, clock: Clock) -> None:
        self._role: Final = role
        self._clock: Final = clock
        self._shared: Final = shared
        self._doubts: Callable[[], ReadinessReasons] = ReadinessReasons
        self._aside: Callable[[], bool] = bool
        self._leaving = False
        self._lost = 0
        self._replaced: Final[set[str]] = set()
        """Those that will end, and will not have been lost."""
        self._changed: Final = asyncio.Event()
        self._serving: dict[str, Serving] = {}
        self.elsewhere: Final = Trusting()
        bus = self.bus = Bus(role.place.bus, expected=role.living, alive=is_alive)
        self.load: Final = Publishing(shared, bus, node=self._node, monotonic_s=clock.monotonic_s)
        self.rates: Final = RateRelay(shared.rates, bus)
        self._scrape: Final = Scrape(
            meters,
            lambda: bus.processes,
            lambda process, question: bus.ask(process, SCRAPE, question),
        )
        self.numbers: Final = self._scrape.families
        self.siblings: Final = Journeys(
            lambda: bus.processes, lambda process, question: bus.ask(process, FIND, question)
        ).find
        self.open_work: Final = OpenWorkOfAll(
            lambda: (*bus.processes, *bus.expected),
            lambda process, question: bus.ask(process, OPEN_WORK, question),
        ).read
        self.approvals: Final = ApprovalQuery(
            lambda: (*bus.processes, *bus.expected),
            lambda process, question: bus.ask(process, APPROVALS, question),
        ).ask
        self._lending: Final = LendingRights(
            shared.rights, lambda process, words: bus.tell(process, WORD, words), clock=clock
        )
        self._lending.expect(bus.expected)
        bus.on(ASK, self._lending.hear)
        bus.on(LAST, self._scrape.heard)
        bus.on(SERVING, self._hear_serving)
        bus.on(REPLACED, lambda process, _nothing: self._replaced.add(process))
        bus.opened(self._opened)
        bus.closed(lambda process: self._lending.closed(process, gone=False))
        bus.closed(self._closed)
        bus.died(lambda process: self._lending.closed(process, gone=True))
        bus.died(self._scrape.gone)
        bus.died(self._count_lost)
        meters.watch(process_metrics.PROCESSES_LINKED, lambda: {(): len(bus.processes)})
        meters.watch(process_metrics.PROCESSES_LOST, lambda: {(): self._lost})
        if role.after:
            _log.warning("this control process takes the place of one that ended: %s", role.after)

    @property
    def address(self) -> Address:
        """The address on which clients reach the node."""
        return self._role.place.address

    def join(
        self,
        parts: HttpParts,
        usage: UsageBook,
        *,
        doubts: Callable[[], ReadinessReasons],
        aside: Callable[[], bool],
    ) -> None:
        """Let this node's HTTP surface speak for all processes, and count the use of all in one
        book.

        It listens where requests are passed on to it. `doubts` and `aside` are sent to data
        processes.
        """
        self._doubts, self._aside = doubts, aside
        parts.scrape = self._scrape.page
        parts.options = replace(parts.options, listen=f"unix:{self._role.place.control}")
        self.bus.on(USED, lambda _process, content: usage.take(read_used(content)))

    def loops(self) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Return what runs as long as the node does, by name."""
        return {"bus": self.bus.run, "published": self.load.run, "lending": self._lending.run}

    # ── Its life ─────────────────────────────────────────────────────────────

    async def open(self, leave: Callable[[], None]) -> None:
        """Let data processes connect; `leave` is called for every signal to the node."""

        def ordered() -> None:
            if self._leaving:
                # Again: what is left there is cut, too.
                self.bus.tell_all(DRAIN, b"")
            leave()

        self._role.orders.listen(ordered)
        await self.bus.open()

    async def serving(self, processes: int) -> None:
        """Return when so many data processes listen, or after some time without; and report the
        start as done.
        """
        await self._until(lambda: len(self._serving) >= processes, SERVING_PATIENCE_S)
        if len(self._serving) < processes:
            _log.warning("%d of %d data processes listen by now", len(self._serving), processes)
        self._role.orders.say(UP)

    async def drained(self, within_s: float) -> None:
        """Let all data processes drain and leave; return when they are gone."""
        self._leaving = True
        self._role.orders.say(LEAVING)
        self.bus.tell_all(DRAIN, b"")
        await self._until(lambda: not self.bus.processes, within_s + FAREWELL_PATIENCE_S)

    async def _until(self, so: Callable[[], bool], within_s: float) -> None:
        """Return when it is so, or after that time."""
        try:
            async with asyncio.timeout(within_s):
                while not so():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return

    def _node(self) -> Node:
        """Return the node's state as data processes receive it."""
        doubts = self._doubts()
        return Node(
            held=self._shared.held,
            living=tuple(self._shared.living()),
            aside=self._aside(),
            reasons=tuple(doubts.reasons),
            degraded=tuple(doubts.degraded),
        )

    # ── What processes say ───────────────────────────────────────────────────

    def _opened(self, process: str) -> None:
        if self._leaving:
            self.bus.tell(process, DRAIN, b"")

    def _count_lost(self, process: str) -> None:
        self._lost += not self._leaving and process not in self._replaced
        self._replaced.discard(process)

    def _closed(self, process: str) -> None:
        self._serving.pop(process, None)
        self._changed.set()

    def _hear_serving(self, process: str, content: bytes) -> None:
        serving = read(content, Serving)
        self._serving[process] = serving
        self._changed.set()
        where = Address(serving.host, serving.port)
        _log.info("data process %s serves %s://%s", process, serving.scheme, where)
