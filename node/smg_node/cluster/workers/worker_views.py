"""Worker views: reads operators' requests about a worker, shows one on the HTTP surface."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from smg_node.config.worker_url import BOOTSTRAP_PORT_LABEL, WorkerUrl, parse_worker_url
from smg_node.fleet.health.peer_verdicts import PeerVerdicts, Sight
from smg_node.fleet.load.encoder_rate import encoder_rates
from smg_node.fleet.workers.worker import Worker
from smg_node.http.ports.node import (
    ClusterWorkerView,
    WorkerChange,
    WorkerRequest,
    WorkerSight,
    WorkerView,
)


def requested_worker(wish: WorkerRequest) -> WorkerUrl:
    """Return the requested worker: its URL, overlaid with the fields beside it, and checked."""
    said = parse_worker_url(wish.url)
    return _checked(
        replace(
            said,
            model=said.model if wish.model is None else wish.model or None,
            role=said.role if wish.role is None else wish.role,
            contract=said.contract if wish.contract is None else wish.contract or None,
            labels=MappingProxyType({**said.labels, **wish.labels}),
            priority=said.priority if wish.priority is None else wish.priority,
            cost=said.cost if wish.cost is None else wish.cost,
        )
    )


def changed(now: WorkerUrl, change: WorkerChange) -> WorkerUrl:
    """Return a worker as it is after a change; its address stays."""
    labels = dict(now.labels if change.labels is None else change.labels)
    if change.bootstrap_port is not None:
        labels[BOOTSTRAP_PORT_LABEL] = str(change.bootstrap_port)
    return _checked(
        replace(
            now,
            model=now.model if change.model is None else change.model or None,
            role=now.role if change.role is None else change.role,
            contract=now.contract if change.contract is None else change.contract or None,
            labels=MappingProxyType(labels),
            priority=now.priority if change.priority is None else change.priority,
            cost=now.cost if change.cost is None else change.cost,
        )
    )


def _checked(url: WorkerUrl) -> WorkerUrl:
    return parse_worker_url(str(url))


def worker_view(worker: Worker, sights: Sequence[Sight], *, now_s: float) -> WorkerView:
    """Return a worker as `/workers` shows it; `now_s` is the monotonic clock."""
    card = worker.card
    details: dict[str, Any] = {}
    if card is not None:
        details = {
            "context": worker.serves.context(card) if worker.serves else card.context,
            "vocabulary": worker.model.known_vocabulary(card) if worker.model else card.vocabulary,
            "model_path": card.model_path,
            "server_version": card.server_version,
            "running_max": card.running_max,
            "server": dict(card.server),
        }
    declared, pairing = worker.declared, worker.pairing
    return WorkerView(
        id=worker.id,
        url=worker.url.endpoint,
        model=worker.model_name(),
        contract=_contract(worker),
        role=worker.role,
        status=worker.shown_status.value,
        reason=worker.shown_reason,
        inflight=worker.inflight,
        labels=dict(worker.labels),
        details=details,
        priority=worker.url.priority,
        cost=worker.url.cost,
        has_key=declared.has_key,
        sources=declared.sources,
        owner=declared.registered_by,
        seen_by=tuple(sight.node for sight in sights if sight.up),
        busy=_busy(worker, now_s),
        breaker=_breaker(worker, now_s),
        ranks=1 if card is None else card.ranks,
        pairing="" if pairing is None else " ".join(filter(None, (pairing.style, pairing.group))),
        bootstrap_port=worker.meeting[1] if _meets(worker) else worker.url.bootstrap_port,
    )


def _meets(worker: Worker) -> bool:
    """Whether engines connect to that worker to share a request with it."""
    pairing = worker.pairing
    if worker.role == "encode":
        return worker.encoding == "room"
    return worker.role == "prefill" and pairing is not None and pairing.style in ("room", "minted")


def _breaker(worker: Worker, now_s: float) -> dict[str, Any]:
    """Return the state of this node's circuit breaker for it."""
    view = worker.breaker.view(now_s)
    return {
        "state": view.state,
        "why": view.why,
        "samples": view.samples,
        "failures": view.failures,
        "opened": view.opened,
        "pressure": view.pressure,
        "again_ms": None if view.again_s is None else round(1000 * view.again_s),
    }


def _busy(worker: Worker, now_s: float) -> dict[str, Any]:
    """Return the load that the ranks of its engine report together, and this node's judgement of
    it.
    """
    load, sampled = worker.load, worker.sampled.values()
    said = [one.load for one in sampled]
    told: dict[str, Any] = {}
    if said:
        usages = [one.kv_usage for one in said if one.kv_usage is not None]
        told = {
            "running": sum(one.running for one in said),
            "waiting": sum(one.waiting for one in said),
            "waiting_tokens": _summed(one.waiting_uncached_tokens for one in said),
            "kv_usage": max(usages) if usages else None,
            "tokens_per_s": _summed(one.tokens_per_s for one in said),
            "age_ms": max(round(1000 * (now_s - one.at_s)) + one.load.age_ms for one in sampled),
            "pushed": any(one.pushed for one in sampled),
        }
    return {
        **told,
        "follows_cache": worker.following,
        "wait_ms": round(1000 * load.weighed().wait_s),
        "prefill_tokens_per_s": round(load.prefill_rate),
        **_encoder(worker, now_s),
        "capacity": load.capacity,
        "overloaded": load.overloaded,
        "full": load.full,
        "stuck": load.stuck,
    }


def _encoder(worker: Worker, now_s: float) -> dict[str, int]:
    """Return how fast its encoder of pictures is, where any were worked on there."""
    if worker.encoded is None:
        return {}
    expected = worker.load.options.encoder_rate
    (rate,) = encoder_rates([worker.encoded], expected=expected, now_s=now_s)
    return {"picture_tokens_per_s": round(rate)}


def _summed(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def cluster_view(worker: Worker, outlook: PeerVerdicts) -> ClusterWorkerView:
    """Return a worker with each node's view of it."""
    declared, load = worker.declared, worker.load
    return ClusterWorkerView(
        id=worker.id,
        url=worker.url.endpoint,
        model=worker.model_name(),
        role=worker.role,
        contract=_contract(worker),
        priority=worker.url.priority,
        cost=worker.url.cost,
        labels=dict(worker.labels),
        has_key=declared.has_key,
        draining=worker.draining,
        sources=declared.sources,
        registered_by=declared.registered_by,
        version=str(declared.version),
        status=worker.shown_status.value,
        reason=worker.shown_reason,
        probers=tuple(outlook.probers(worker.id)),
        sights={
            sight.node: WorkerSight(sight.up, "" if sight.up else sight.reason, sight.age_ms)
            for sight in outlook.sights(worker.id)
        },
        requests_mine=load.own_inflight,
        tokens_mine=load.own_tokens,
        requests_others=load.inflight - load.own_inflight,
        tokens_others=load.tokens - load.own_tokens,
        load_age_ms=None,
    )


def _contract(worker: Worker) -> str:
    return worker.card.contract.value if worker.card is not None else worker.url.contract or ""
