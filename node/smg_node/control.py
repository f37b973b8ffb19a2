"""Wiring, first half: what keeps the node going besides requests.

Fleet and models, and the desk that answers the HTTP surface's questions about them.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from ipaddress import ip_address
from typing import Any, Final

from smg_node.cluster.life import Doubts
from smg_node.config.plain import Settings
from smg_node.config.worker_url import WorkerUrl, parse_worker_url
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock, Rng
from smg_node.fleet.bundles import BundleCache
from smg_node.fleet.fleet import Fleet, FleetOptions, OpenEngine
from smg_node.fleet.model import ModelSettings, ServedModel
from smg_node.fleet.models import ModelParts, Models
from smg_node.fleet.networks import Networks
from smg_node.fleet.worker import Worker
from smg_node.http.ports import Health, ModelView, WorkerView

PROBE_NOW_MAX_S: Final = 3.0
LOADS_TIMEOUT_S: Final = 3.0


def build_fleet(
    settings: Settings, *, open_engine: OpenEngine, parts: ModelParts, clock: Clock, rng: Rng
) -> Fleet:
    """Return the fleet of these settings; it runs when its `run` does."""
    workers = settings.workers
    bundle_max_bytes = settings.tokens.bundle_max_bytes
    models = Models(
        {
            name: ModelSettings(
                aliases=model.aliases,
                tokenizer_path=str(model.tokenizer) if model.tokenizer else None,
                chat_template_path=str(model.chat_template) if model.chat_template else None,
                context=model.context,
                prompt_tokens_max=model.prompt_max_tokens,
            )
            for name, model in settings.models.items()
        },
        parts,
        clock=clock,
        bundle_max_bytes=bundle_max_bytes,
    )
    options = FleetOptions(
        probe_interval_s=workers.probe_interval_s,
        probe_timeout_s=workers.probe_timeout_s,
        retry_s=workers.retry_s,
        down_after=workers.down_after,
        up_after=workers.up_after,
    )
    cache = BundleCache(settings.data_dir / "tokenizers", max_bytes=bundle_max_bytes)
    return Fleet(options, models, open_engine=open_engine, cache=cache, rng=rng)


class FleetDesk:
    """Answers the HTTP surface's questions about models, workers and health."""

    def __init__(
        self,
        fleet: Fleet,
        networks: Networks,
        *,
        workers_ready_min: int,
        draining: Callable[[], bool],
        doubts: Callable[[], Doubts] = Doubts,
    ) -> None:
        self._fleet = fleet
        self._networks = networks
        self._workers_ready_min = workers_ready_min
        self._draining = draining
        self._doubts = doubts

    # ── Models ───────────────────────────────────────────────────────────────

    def models(self) -> Sequence[ModelView]:
        """Return every served model, sorted by id."""
        known = self._fleet.models.all()
        return [self._model_view(model) for model in known if self._fleet.served(model.name)]

    def model(self, name: str) -> ModelView:
        """Return the model of that id or alias; NOT_FOUND `model_not_found` otherwise."""
        found = self._fleet.served(name)
        if found is None:
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"the model {name!r} does not exist here",
                where="model",
                code="model_not_found",
            )
        return self._model_view(found)

    def _model_view(self, model: ServedModel) -> ModelView:
        workers = [item for item in self._fleet.workers() if item.model is model]
        contexts = [model.context(item.card) for item in workers if item.card is not None]
        known = [context for context in contexts if context is not None]
        return ModelView(
            id=model.name,
            created_s=model.created_s,
            owned_by=workers[0].card.contract.value if workers and workers[0].card else "smg",
            aliases=tuple(sorted(model.aliases)),
            workers=len(workers),
            workers_ready=sum(item.routable for item in workers),
            context=min(known) if known else None,
        )

    # ── Workers ──────────────────────────────────────────────────────────────

    def workers(self) -> Sequence[WorkerView]:
        """Return every worker, sorted by id."""
        return [_worker_view(worker) for worker in self._fleet.workers()]

    def worker(self, worker_id: str) -> WorkerView:
        """Return one worker; NOT_FOUND `worker_not_found` otherwise."""
        return _worker_view(self._fleet.get(worker_id))

    def add(
        self, url: str, *, model: str | None, role: str | None, labels: Mapping[str, str]
    ) -> WorkerView:
        """Register a worker; idempotent by URL. INVALID_REQUEST for a URL that cannot be one.

        FORBIDDEN for an address outside the allowed networks; a name is looked up when it is called.
        """
        said = _said(url, model=model, role=role, labels=labels)
        if _is_address(said.host) and not self._networks.allows(said.host):
            raise SmgError(
                ErrorKind.FORBIDDEN,
                f"{said.host} lies outside workers.allowed_networks",
                where="url",
            )
        return _worker_view(self._fleet.add(said, said.labels))

    def drain(self, worker_id: str) -> WorkerView:
        """Send it no new work."""
        return _worker_view(self._fleet.drain(worker_id, on=True))

    def undrain(self, worker_id: str) -> WorkerView:
        """Send it work again."""
        return _worker_view(self._fleet.drain(worker_id, on=False))

    async def remove(self, worker_id: str, *, force: bool) -> None:
        """Forget a worker; unless `force`, only when its requests have ended."""
        await self._fleet.remove(worker_id, force=force)

    async def probe(self, worker_id: str) -> WorkerView:
        """Look at a worker now, at most 3 s."""
        try:
            async with asyncio.timeout(PROBE_NOW_MAX_S):
                return _worker_view(await self._fleet.probe(worker_id))
        except TimeoutError:
            raise SmgError(
                ErrorKind.UPSTREAM_TIMEOUT,
                f"worker {worker_id} did not answer in {PROBE_NOW_MAX_S} s",
            ) from None

    async def loads(self) -> Sequence[Mapping[str, Any]]:
        """Return what each ready worker says of its load, one row a rank."""
        asked = [worker for worker in self._fleet.workers() if worker.routable]
        rows = await asyncio.gather(*(_load_rows(worker) for worker in asked))
        return [row for part in rows for row in part]

    # ── Health ───────────────────────────────────────────────────────────────

    def health(self) -> Health:
        """Return the present state."""
        workers = self._fleet.workers()
        ready = sum(worker.routable for worker in workers)
        reasons = []
        if self._draining():
            reasons.append("the node is draining")
        if ready < self._workers_ready_min:
            reasons.append(f"{ready} workers are ready, {self._workers_ready_min} are needed")
            reasons += [
                f"worker {worker.url.endpoint}: {worker.reason}"
                for worker in workers
                if worker.reason
            ][:8]
        doubts = self._doubts()
        reasons += doubts.reasons
        return Health(
            live=True,
            ready=not reasons,
            draining=self._draining(),
            workers_ready=ready,
            workers_total=len(workers),
            reasons=tuple(reasons),
            degraded=tuple(doubts.degraded),
        )


def _said(url: str, *, model: str | None, role: str | None, labels: Mapping[str, str]) -> WorkerUrl:
    """Return the URL with what the body says beside it; the body wins. Checked as one URL."""
    said = parse_worker_url(url)
    joined = replace(
        said,
        model=model if model is not None else said.model,
        role=role if role is not None else said.role,
        labels={**said.labels, **labels},
    )
    return parse_worker_url(str(joined))


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _worker_view(worker: Worker) -> WorkerView:
    card = worker.card
    details: dict[str, Any] = {}
    if card is not None:
        details = {
            "context": worker.model.context(card) if worker.model else card.context,
            "vocabulary": worker.model.vocabulary(card) if worker.model else card.vocabulary,
            "model_path": card.model_path,
            "server_version": card.server_version,
            "running_max": card.running_max,
            "server": dict(card.server),
        }
    return WorkerView(
        id=worker.id,
        url=worker.url.endpoint,
        model=worker.model_name(),
        contract=card.contract.value if card is not None else worker.url.contract or "",
        role=worker.url.role,
        status=worker.shown_status.value,
        reason=worker.reason,
        inflight=worker.inflight,
        labels=dict(worker.labels),
        details=details,
    )


async def _load_rows(worker: Worker) -> list[dict[str, Any]]:
    told: dict[str, Any] = {
        "worker": worker.id,
        "url": worker.url.endpoint,
        "inflight": worker.inflight,
    }
    if worker.engine is None:
        return [{**told, "error": "not connected"}]
    try:
        loads = await worker.engine.loads(LOADS_TIMEOUT_S)
    except SmgError as error:
        return [{**told, "error": error.message}]
    return [{**told, **asdict(load)} for load in loads] or [told]
