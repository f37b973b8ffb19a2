"""Worker views: workers as answers show them, in this API's fields and in those of other gateways."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_node.config.worker_url import ROLES
from smg_node.http.ports.node import WorkerView

_READY: Final = "ready"
_OPENAI: Final = "openai"


def worker_object(view: WorkerView) -> Mapping[str, Any]:
    """Return one worker."""
    http = view.contract == _OPENAI or view.url.startswith(("http://", "https://"))
    return {
        **msgspec.to_builtins(view),
        "model_id": view.model or None,
        "worker_type": view.role,
        "connection_mode": "http" if http else "grpc",
        "runtime_type": view.contract or "unspecified",
        "is_healthy": view.status == _READY,
        "load": view.inflight,
    }


def worker_stats(views: Sequence[WorkerView]) -> Mapping[str, Any]:
    """Return the number of workers of each kind."""
    inflight = sum(view.inflight for view in views)
    return {
        "total": len(views),
        "by_status": dict(sorted(Counter(view.status for view in views).items())),
        "inflight": inflight,
        "total_workers": len(views),
        "healthy_workers": sum(view.status == _READY for view in views),
        "total_models": len({view.model for view in views if view.model}),
        "total_load": inflight,
        "by_type": {role: sum(view.role == role for view in views) for role in ROLES},
    }


def audited(view: WorkerView) -> Mapping[str, Any]:
    """Return the audit log's record of a worker: fields that an operator can change, and no secret."""
    return {
        "url": view.url,
        "model": view.model,
        "role": view.role,
        "contract": view.contract,
        "labels": dict(view.labels),
        "priority": view.priority,
        "cost": view.cost,
        "api_key": "(set)" if view.has_key else "",
        "draining": view.status == "draining",
    }
