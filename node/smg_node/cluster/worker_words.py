"""What operators say of a worker, and what they are shown of one, between the HTTP surface and the fleet."""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from smg_node.config.worker_url import WorkerUrl, parse_worker_url
from smg_node.fleet.outlook import Outlook, Sight
from smg_node.fleet.worker import Worker
from smg_node.http.ports import (
    ClusterWorkerView,
    WorkerChange,
    WorkerSight,
    WorkerView,
    WorkerWish,
)


def wished(wish: WorkerWish) -> WorkerUrl:
    """Return a worker as it is wished for: its URL with what is said beside it, which wins. Checked as one."""
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
    labels = now.labels if change.labels is None else MappingProxyType(dict(change.labels))
    return _checked(
        replace(
            now,
            model=now.model if change.model is None else change.model or None,
            role=now.role if change.role is None else change.role,
            contract=now.contract if change.contract is None else change.contract or None,
            labels=labels,
            priority=now.priority if change.priority is None else change.priority,
            cost=now.cost if change.cost is None else change.cost,
        )
    )


def _checked(url: WorkerUrl) -> WorkerUrl:
    return parse_worker_url(str(url))


def worker_view(worker: Worker, sights: Sequence[Sight]) -> WorkerView:
    """Return a worker as `/workers` shows it."""
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
    declared = worker.declared
    return WorkerView(
        id=worker.id,
        url=worker.url.endpoint,
        model=worker.model_name(),
        contract=_contract(worker),
        role=worker.url.role,
        status=worker.shown_status.value,
        reason=worker.reason,
        inflight=worker.inflight,
        labels=dict(worker.labels),
        details=details,
        priority=worker.url.priority,
        cost=worker.url.cost,
        has_key=declared.has_key,
        sources=declared.sources,
        owner=declared.registered_by,
        seen_by=tuple(sight.node for sight in sights if sight.up),
    )


def cluster_view(worker: Worker, outlook: Outlook) -> ClusterWorkerView:
    """Return a worker with what each node says of it."""
    declared, load = worker.declared, worker.load
    return ClusterWorkerView(
        id=worker.id,
        url=worker.url.endpoint,
        model=worker.model_name(),
        role=worker.url.role,
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
        reason=worker.reason,
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
