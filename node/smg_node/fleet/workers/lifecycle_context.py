"""Lifecycle context: options and services that the fleet shares with all worker lifecycles."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from smg_node.config.worker_url import WorkerUrl
from smg_node.core.ports import Rng
from smg_node.engines.engine import Engine
from smg_node.fleet.health.circuit_breaker import BreakerOptions
from smg_node.fleet.health.peer_verdicts import PeerVerdicts
from smg_node.fleet.health.probe_schedule import ProbeOptions
from smg_node.fleet.load.worker_load import LoadOptions
from smg_node.fleet.models.model_registry import Models
from smg_node.fleet.models.tokenizer_bundles import BundleCache
from smg_node.fleet.workers.engine_identity import EngineClaims
from smg_node.fleet.workers.engine_subscriptions import SubscriptionContext
from smg_node.fleet.workers.worker import Worker

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
"""Starts a task of that name, which belongs to the fleet."""
OpenEngine: TypeAlias = Callable[[WorkerUrl, str | None], Awaitable[Engine]]
"""Connects with that API key, or none, and finds out the contract; SmgError if nothing useful answers."""


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Intervals, timeouts and thresholds of probes; seconds, see the knobs of `workers`."""

    probe_interval_s: float
    probe_timeout_s: float
    retry_s: float
    down_after: int
    up_after: int
    breaker: BreakerOptions = field(default_factory=BreakerOptions)
    load: LoadOptions = field(default_factory=LoadOptions)

    def vigil(self) -> ProbeOptions:
        """Return the options of the probe schedule."""
        return ProbeOptions(self.probe_interval_s, self.down_after, self.up_after)


@dataclass(slots=True)
class LifecycleContext:
    """Options and services of all worker lifecycles; changed only by the fleet.

    `changed` is called when a worker's state did; `in_use` says whether another worker than this one serves
    a model of that name now. `limits_s` are how long an engine may be silent, before and after its first word.
    """

    options: FleetOptions
    models: Models
    open_engine: OpenEngine
    cache: BundleCache
    rng: Rng
    outlook: PeerVerdicts
    changed: Callable[[], None]
    in_use: Callable[[Worker, str], bool]
    listening: SubscriptionContext
    spawn: Spawn
    claims: EngineClaims
    limits_s: tuple[float, float] | None = None
