"""Usage factory: builds the parts that count, keep and sum up what requests use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from smg_node.admission.admission_settings import follow_prices
from smg_node.admission.usage.usage_book import UsageBook
from smg_node.admission.usage.usage_lines import Counts
from smg_node.cluster.membership.cluster_interface import ClusterInterface
from smg_node.cluster.settings.live_settings import LiveSettings
from smg_node.cluster.usage.usage_log import UsageLog
from smg_node.cluster.usage.usage_service import ClusterUsage
from smg_node.cluster.usage.usage_writer import UsageKeeper
from smg_node.config.frozen_settings import Settings
from smg_node.core.ports import Clock, Rng
from smg_node.core.prices.price_list import PriceBook
from smg_node.telemetry.metrics.declared import usage as declared
from smg_node.telemetry.metrics.meters import Meters


class Process(Protocol):
    """Parts of a process that usage needs."""

    @property
    def clock(self) -> Clock:
        """Its clock."""
        ...

    @property
    def rng(self) -> Rng:
        """Its chance."""
        ...

    @property
    def meters(self) -> Meters:
        """What it measures."""
        ...

    @property
    def prices(self) -> PriceBook:
        """What calls cost."""
        ...


@dataclass(frozen=True, slots=True)
class UsageParts:
    """The parts. `keeper` is to be run, and closed; `desk` answers the HTTP surface."""

    usage: UsageBook
    keeper: UsageKeeper
    desk: ClusterUsage


def build_usage(
    settings: Settings,
    live: LiveSettings,
    cluster: ClusterInterface,
    process: Process,
) -> UsageParts:
    """Return the parts; nothing is opened yet. This node's files lie in a folder of its name.

    The price book of the process follows the settings of models from now on.
    """
    clock, rng, meters, prices = process.clock, process.rng, process.meters, process.prices
    life = f"{clock.now_ms():x}-{rng.getrandbits(32):08x}"
    follow_prices(prices, live)
    usage = UsageBook(prices.now, now_ms=clock.now_ms, life=life)
    prices.watch(usage.retune)
    folder = settings.data_dir / "usage" / settings.name
    keeper = UsageKeeper(usage, UsageLog(folder, life), now_ms=clock.now_ms)
    members, mesh = cluster.desk.members, cluster.mesh
    desk = ClusterUsage(settings.name, usage, keeper, members, mesh, now_ms=clock.now_ms)
    _watch(meters, usage, keeper)
    return UsageParts(usage, keeper, desk)


def _watch(meters: Meters, usage: UsageBook, keeper: UsageKeeper) -> None:
    read = usage.read
    meters.watch(declared.USAGE_REQUESTS, lambda: read(lambda counts: counts.requests))
    meters.watch(declared.USAGE_REFUSED, lambda: read(lambda counts: counts.refused))
    meters.watch(declared.USAGE_PROMPT_TOKENS, lambda: read(lambda counts: counts.prompt))
    meters.watch(declared.USAGE_CACHED_TOKENS, lambda: read(lambda counts: counts.cached))
    meters.watch(declared.USAGE_COMPLETION_TOKENS, lambda: read(lambda counts: counts.answer))
    meters.watch(declared.USAGE_COST_MICRO, lambda: read(lambda counts: counts.cost))
    meters.watch(declared.PROVIDER_COST_MICRO, lambda: _billed(usage, lambda one: one.cost))
    meters.watch(declared.PROVIDER_UNPRICED, lambda: _billed(usage, lambda one: one.unpriced))
    meters.watch(declared.PROVIDER_ESTIMATED, lambda: _billed(usage, lambda one: one.estimated))
    meters.watch(declared.PROVIDER_TOKENS, lambda: _tokens(usage))
    meters.watch(declared.USAGE_UNWRITTEN, lambda: {(): keeper.failures})
    meters.watch(declared.USAGE_LOST, lambda: {(): usage.lost})


def _billed(usage: UsageBook, value: Callable[[Counts], int]) -> Mapping[tuple[str, ...], float]:
    return {pair: value(counts) for pair, counts in usage.of_providers().items()}


def _tokens(usage: UsageBook) -> Mapping[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    for pair, counts in usage.of_providers().items():
        found[*pair, "new"] = counts.prompt - counts.cached - counts.written
        found[*pair, "cached"] = counts.cached
        found[*pair, "written"] = counts.written
        found[*pair, "answer"] = counts.answer
    return found
