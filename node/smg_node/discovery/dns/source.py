"""DNS source: asks for a name whenever its time is up, and shows what its answers prove."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from smg_node.config.worker_url import WorkerUrl
from smg_node.core.ports import Rng
from smg_node.discovery.dns.answers import UnansweredError
from smg_node.discovery.dns.evidence import Evidence
from smg_node.discovery.dns.lookup import Lookup
from smg_node.discovery.dns.options import DnsOptions
from smg_node.discovery.dns.questions import ask_round
from smg_node.discovery.dns.resolver import DnsResolver
from smg_node.discovery.sighting import Endpoint
from smg_node.discovery.source import Show, SourceKind

Sleep: TypeAlias = Callable[[float], Awaitable[object]]
"""Sleeps for so many seconds."""
Known: TypeAlias = Callable[[], Mapping[Endpoint, WorkerUrl]]
"""Returns what the worker registry has from this source already."""

BACK_OFF_MIN_S: Final = 1.0
BACK_OFF_MAX_S: Final = 30.0
_JITTER: Final = 0.2
"""Nodes that lost their name server together do not all come back at once."""


class DnsSource:
    """One name. Its time and its chance come from outside; it asks nothing, and imports nothing, before it runs.

    `down` says whether probers call an endpoint down, and `known` what the registry has from this source already: a
    node that begins to watch must not take what one answer lacks for gone.
    """

    def __init__(
        self,
        name: str,
        options: DnsOptions,
        *,
        monotonic_s: Callable[[], float],
        rng: Rng,
        sleep: Sleep = asyncio.sleep,
        down: Callable[[Endpoint], bool] = lambda endpoint: False,
        known: Known = dict,
        lookup: Lookup | None = None,
    ) -> None:
        """SmgError where the options hold a spec that is none. `lookup` is the door to the servers, by default to those
        that the options name.
        """
        options.worker()
        self._name = name
        self._options = options
        self._monotonic_s = monotonic_s
        self._rng = rng
        self._sleep = sleep
        self._down = down
        self._known = known
        self._lookup = lookup

    @property
    def kind(self) -> SourceKind:
        """See `Source`."""
        return "dns"

    @property
    def name(self) -> str:
        """See `Source`."""
        return self._name

    async def run(self, show: Show) -> None:
        """See `Source`."""
        own = None if self._lookup else DnsResolver(self._options.servers)
        lookup = self._lookup or own
        assert lookup is not None
        evidence = Evidence(self._down, known=self._known())
        failures = 0
        while True:
            try:
                round_ = await ask_round(lookup, self._options)
            except UnansweredError as error:
                view = evidence.unanswered(str(error), now_ms=self._now_ms())
                wait_s = self._back_off_s(failures)
                failures += 1
                if own is not None:
                    own.forget()
            else:
                view = evidence.answered(round_, now_ms=self._now_ms())
                wait_s, failures = round_.wait_s, 0
            show(view)
            await self._sleep(wait_s)

    def _now_ms(self) -> int:
        return int(self._monotonic_s() * 1000)

    def _back_off_s(self, failures: int) -> float:
        most = min(BACK_OFF_MAX_S, BACK_OFF_MIN_S * (1 << min(failures, 10)))
        spread = _JITTER * (2 * self._rng.random() - 1)
        return min(BACK_OFF_MAX_S, most * (1 + spread))
