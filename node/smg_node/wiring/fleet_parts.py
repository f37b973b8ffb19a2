"""Fleet parts: builds fleet, models, placer, and the service that answers the HTTP surface.

First half of the wiring: what keeps the node going besides requests.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from msgspec.structs import replace

from smg_node.cluster.membership.cluster_interface import ClusterInterface, ReadinessReasons
from smg_node.cluster.prefix_hints.prefix_sharing import PrefixSharing
from smg_node.cluster.settings.model_views import parsers_view, picture_rules_views
from smg_node.cluster.workers.sticky_sessions import Sessions
from smg_node.cluster.workers.worker_registry import ClusterRegistry
from smg_node.cluster.workers.worker_views import (
    changed,
    cluster_view,
    requested_worker,
    worker_view,
)
from smg_node.config.frozen_settings import Settings
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock, Rng
from smg_node.fleet.fleet import Fleet, FleetOptions, ListenOptions, OpenEngine
from smg_node.fleet.health.circuit_breaker import BreakerOptions
from smg_node.fleet.models.model_registry import ModelParts, Models
from smg_node.fleet.models.model_settings import model_settings
from smg_node.fleet.models.served_model import AnyModel, ServedModel
from smg_node.fleet.models.tokenizer_bundles import BundleCache
from smg_node.fleet.models.unknown_model import unknown_model
from smg_node.fleet.workers.allowed_networks import Networks
from smg_node.fleet.workers.engine_identity import resolved
from smg_node.fleet.workers.pair_eligibility import useful
from smg_node.fleet.workers.worker import Worker
from smg_node.history.service.lazy_history import LazyHistory
from smg_node.http.ports.node import (
    ClusterWorkerView,
    Health,
    ModelView,
    PictureRulesView,
    WorkerChange,
    WorkerRequest,
    WorkerView,
)
from smg_node.http.ports.shared_state import SessionView
from smg_node.pipeline.placement.own_models import OwnModels
from smg_node.pipeline.placement.policy_settings import load_options
from smg_node.pipeline.placement.prefix_caches import Prefixes
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from smg_node.routing.retry_budget import RetryOptions
from smg_node.routing.wait_queue import ClassOptions, QueueOptions

PROBE_NOW_MAX_S: Final = 3.0
LOADS_TIMEOUT_S: Final = 3.0
REASONS_MAX: Final = 8
"""So many workers say why they are not ready, where too few are."""


def build_fleet(
    settings: Settings, *, open_engine: OpenEngine, parts: ModelParts, clock: Clock, rng: Rng
) -> Fleet:
    """Return the fleet of these settings; it runs when its `run` does.

    ConfigurationError for an unknown parser.
    """
    bundle_max_bytes = settings.tokens.bundle_max_bytes
    models = Models(
        model_settings(settings),
        parts,
        clock=clock,
        bundle_max_bytes=bundle_max_bytes,
    )
    cache = BundleCache(settings.data_dir / "tokenizers", max_bytes=bundle_max_bytes)
    options = fleet_options(settings)
    return Fleet(
        options,
        models,
        open_engine=open_engine,
        cache=cache,
        rng=rng,
        listen=listen_options(settings),
        resolve=resolved,
    )


def fleet_options(settings: Settings) -> FleetOptions:
    """Return the options of probing workers, by these settings."""
    workers = settings.workers
    return FleetOptions(
        probe_interval_s=workers.probe_interval_s,
        probe_timeout_s=workers.probe_timeout_s,
        retry_s=workers.retry_s,
        down_after=workers.down_after,
        up_after=workers.up_after,
        breaker=breaker_options(settings),
        load=load_options(settings),
    )


def breaker_options(settings: Settings) -> BreakerOptions:
    """Return the thresholds of circuit breakers, by these settings."""
    return BreakerOptions(**dict(settings.breaker))


def retry_options(settings: Settings) -> RetryOptions:
    """Return the retry budget, by these settings."""
    retry = settings.retry
    return RetryOptions(
        attempts=retry.attempts,
        share=retry.budget_ratio,
        floor_per_s=retry.budget_per_s,
        first_s=retry.backoff_s,
        most_s=retry.backoff_max_s,
        continuations=retry.continuations,
    )


def line_options(settings: Settings) -> QueueOptions:
    """Return the bounds of the wait queue by priority class, by these settings."""
    queue = settings.queue
    return QueueOptions(
        {
            "system": ClassOptions(
                queue.system_places, queue.system_timeout_s, queue.system_lift_s
            ),
            "interactive": ClassOptions(
                queue.interactive_places, queue.interactive_timeout_s, queue.interactive_lift_s
            ),
            "default": ClassOptions(
                queue.default_places, queue.default_timeout_s, queue.default_lift_s
            ),
            "bulk": ClassOptions(queue.bulk_places, queue.bulk_timeout_s, queue.bulk_lift_s),
        }
    )


def listen_options(settings: Settings) -> ListenOptions:
    """Return the options of engine subscriptions, by these settings."""
    return ListenOptions(
        events=settings.kv.enabled,
        subscribers=settings.kv.subscribers,
        load_interval_s=settings.workers.load_interval_s,
    )


def build_prefixes(settings: Settings, fleet: Fleet) -> Prefixes:
    """Return the index of the engines' prefix caches; `fleet` feeds it with their KV events."""
    index = PrefixIndex(entries_max=settings.kv.entries_max, block=settings.kv.block)
    prefixes = Prefixes(index, cluster=settings.mesh.label)
    fleet.follow_with(prefixes)
    return prefixes


class FleetService:
    """Answers the HTTP surface's questions about models, workers, sessions and health."""

    def __init__(
        self,
        fleet: Fleet,
        networks: Networks,
        *,
        registry: ClusterRegistry,
        sessions: Sessions,
        clock: Clock,
        workers_ready_min: int,
        draining: Callable[[], bool],
        doubts: Callable[[], ReadinessReasons] = ReadinessReasons,
    ) -> None:
        self._fleet = fleet
        self._networks = networks
        self._registry = registry
        self._sessions = sessions
        self._clock = clock
        self._workers_ready_min = workers_ready_min
        self.draining = draining
        self._doubts = doubts
        self._own = OwnModels(fleet)

    def retune(self, *, workers_ready_min: int) -> None:
        """Call the node ready with so many workers from now on."""
        self._workers_ready_min = workers_ready_min

    # ── Models ───────────────────────────────────────────────────────────────

    def models(self) -> Sequence[ModelView]:
        """Return every served model, sorted by id."""
        models, fleet = self._fleet.models, self._fleet
        names = {model.name for model in models.all() if fleet.served(model.name)}
        names |= {model.name for model in models.all_relayed() if fleet.relayed(model.name)}
        return [self.model(name) for name in sorted(names)]

    def model(self, name: str) -> ModelView:
        """Return the model of that id or alias; NOT_FOUND `model_not_found` otherwise."""
        found = self._fleet.served(name) or self._fleet.relayed(name)
        if found is None:
            raise unknown_model(name, self._fleet.models, self._fleet.serving)
        return self._model_view(found)

    async def pictures(self, name: str) -> Sequence[PictureRulesView]:
        """Return whose rules pictures of that model follow, a row for workers that agree; none if it sees nothing."""
        model = self._fleet.served(name)
        workers = () if model is None else self._fleet.serving(model)
        cards = [worker.card for worker in workers if worker.card is not None]
        return () if model is None else await picture_rules_views(model, cards)

    def _model_view(self, model: AnyModel) -> ModelView:
        """Show a model with all its workers, those that speak HTTP as well."""
        serving = [(worker, worker.serves) for worker in self._fleet.workers()]
        known = [(worker, one) for worker, one in serving if one and one.name == model.name]
        contexts = [one.context(worker.card) for worker, one in known if worker.card]
        lengths = [context for context in contexts if context is not None]
        cards = [worker.card for worker, _ in known if worker.card]
        ready = useful([worker for worker, _ in known])
        ready += [worker for worker, _ in known if self._own.backed(worker)]
        return ModelView(
            id=model.name,
            created_s=model.created_s,
            owned_by=cards[0].owner if cards else "smg",
            aliases=tuple(sorted(model.aliases)),
            workers=len(known),
            workers_ready=len(ready),
            context=min(lengths) if lengths else None,
            roles=dict(sorted(Counter(worker.role for worker in ready).items())),
            parsers=parsers_view(model) if isinstance(model, ServedModel) else None,
            sees=any(card.media is not None for card in cards),
        )

    # ── Workers ──────────────────────────────────────────────────────────────

    def workers(self) -> Sequence[WorkerView]:
        """Return every worker, sorted by id."""
        return [self._view(worker) for worker in self._fleet.workers()]

    def worker(self, worker_id: str) -> WorkerView:
        """Return one worker by id or URL; NOT_FOUND `worker_not_found` otherwise."""
        return self._view(self._fleet.get(worker_id))

    def cluster_workers(self) -> Sequence[ClusterWorkerView]:
        """Return every worker with each node's verdict on it, sorted by id."""
        outlook = self._registry.outlook
        return [cluster_view(worker, outlook) for worker in self._fleet.workers()]

    def add(self, wish: WorkerRequest) -> WorkerView:
        """Register a worker on all nodes; idempotent by URL. INVALID_REQUEST for a URL that cannot be one.

        FORBIDDEN for an address outside the allowed networks; a name is looked up when it is called.
        """
        url = requested_worker(wish)
        self._networks.check_literal(url)
        return self.worker(self._registry.add(url, api_key=wish.api_key))

    def change(self, worker_id: str, change: WorkerChange) -> WorkerView:
        """Change the settings of a worker, on all nodes; return it as it is then."""
        worker = self._fleet.get(worker_id)
        self._registry.change(
            worker.id,
            changed(worker.url, change),
            api_key=change.api_key,
            draining=change.draining,
        )
        return self.worker(worker.id)

    def drain(self, worker_id: str) -> WorkerView:
        """Send it no new work, from any node."""
        self._registry.drain(worker_id, on=True)
        return self.worker(worker_id)

    def undrain(self, worker_id: str) -> WorkerView:
        """Send it work again."""
        self._registry.drain(worker_id, on=False)
        return self.worker(worker_id)

    async def remove(self, worker_id: str, *, force: bool) -> None:
        """Forget a worker on all nodes; unless `force`, return when its requests here have ended."""
        await self._registry.remove(worker_id, force=force)

    async def probe(self, worker_id: str) -> WorkerView:
        """Probe a worker now, at most 3 s."""
        try:
            async with asyncio.timeout(PROBE_NOW_MAX_S):
                return self._view(await self._fleet.probe(worker_id))
        except TimeoutError:
            raise SmgError(
                ErrorKind.UPSTREAM_TIMEOUT,
                f"worker {worker_id} did not answer in {PROBE_NOW_MAX_S} s",
            ) from None

    async def loads(self) -> Sequence[Mapping[str, Any]]:
        """Return the load each ready worker reports, one row a rank."""
        asked = [worker for worker in self._fleet.workers() if worker.routable]
        told = [(worker, worker.inflight + self._registry.beside(worker.id)) for worker in asked]
        rows = await asyncio.gather(*(_load_rows(worker, inflight) for worker, inflight in told))
        return [row for part in rows for row in part]

    def _view(self, worker: Worker) -> WorkerView:
        sights, now_s = self._registry.outlook.sights(worker.id), self._clock.monotonic_s()
        view = worker_view(worker, sights, now_s=now_s)
        beside = self._registry.beside(worker.id)
        if beside:
            view = replace(view, inflight=view.inflight + beside)
        if worker.relayed is not None:
            others = self._fleet.served(worker.relayed.name) is not None
            used_for = "what gRPC workers of its model cannot do" if others else "all requests"
            view = replace(view, details={**view.details, "used_for": used_for})
        return view

    # ── Sessions ─────────────────────────────────────────────────────────────

    def session(self, key: str, *, model: str, tenant: str) -> SessionView:
        """Return where the requests of a routing key go; NOT_FOUND `session_not_found`."""
        return self._sessions.session(key, model=model, tenant=tenant)

    def end_session(self, key: str, *, model: str, tenant: str) -> SessionView:
        """Forget that on every node, and return what it was."""
        return self._sessions.end_session(key, model=model, tenant=tenant)

    # ── Health ───────────────────────────────────────────────────────────────

    def health(self) -> Health:
        """Return the present state."""
        workers = [worker for worker in self._fleet.workers() if not worker.own_model]
        ready = useful(workers)
        reasons = []
        if self.draining():
            reasons.append("the node is draining")
        if len(ready) < self._workers_ready_min:
            reasons.append(f"{len(ready)} workers are ready, {self._workers_ready_min} are needed")
            busy = {worker.id for worker in ready}
            idle = [(worker, _why_idle(worker)) for worker in workers if worker.id not in busy]
            reasons += [f"worker {worker.url.endpoint}: {why}" for worker, why in idle if why][
                :REASONS_MAX
            ]
        doubts = self._doubts()
        reasons += doubts.reasons
        return Health(
            live=True,
            ready=not reasons,
            draining=self.draining(),
            workers_ready=len(ready),
            workers_total=len(workers),
            reasons=tuple(reasons),
            degraded=tuple(doubts.degraded),
        )


def _why_idle(worker: Worker) -> str:
    """Return the reason a worker is unusable now; "" where none is given."""
    if worker.routable:
        return f"it is there for {worker.role} only, and no worker that is ready can be its partner"
    return worker.shown_reason


async def _load_rows(worker: Worker, inflight: int) -> list[dict[str, Any]]:
    told: dict[str, Any] = {"worker": worker.id, "url": worker.url.endpoint, "inflight": inflight}
    if worker.engine is None:
        return [{**told, "error": "not connected"}]
    if worker.role == "encode":
        # It has no scheduler, and some of them end when they are asked for its load.
        return [told]
    try:
        loads = await worker.engine.loads(LOADS_TIMEOUT_S)
    except SmgError as error:
        return [{**told, "error": error.message}]
    return [{**told, **asdict(load)} for load in loads] or [told]


def build_readiness(
    cluster: ClusterInterface, sharing: PrefixSharing | None, history: LazyHistory
) -> Callable[[], ReadinessReasons]:
    """Return the reasons this node should not be sent work, or is not as it should be."""
    others = cluster.doubts if sharing is None else sharing.after(cluster.doubts)

    def all_of_them() -> ReadinessReasons:
        said = others()
        return ReadinessReasons(
            (*said.reasons, *history.reasons()), (*said.degraded, *history.degraded())
        )

    return all_of_them
