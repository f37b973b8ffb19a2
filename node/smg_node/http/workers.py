"""The routes by which an operator sees and changes the fleet."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from smg_node.core.errors import invalid, unsupported
from smg_node.dialects.json_body import read_json
from smg_node.http.body import BodyReader
from smg_node.http.ports import Workers
from smg_node.http.reply import Reply, json_reply, name_list
from smg_node.http.request import HttpRequest

_URL_MAX: Final = 2048
_NAME_MAX: Final = 256
_LABELS_MAX: Final = 64
_KNOWN: Final = frozenset({"url", "model", "model_id", "role", "worker_type", "labels"})
_YES: Final = frozenset({"1", "true", "yes"})


class WorkerRoutes:
    """Serves the fleet."""

    def __init__(self, workers: Workers, bodies: BodyReader) -> None:
        self._workers = workers
        self._bodies = bodies

    async def workers(self, request: HttpRequest) -> Reply:
        """List the workers that match `?model=`, `?status=` and `?role=`, and count them."""
        wanted = {
            key: request.query[key] for key in ("model", "status", "role") if key in request.query
        }
        chosen = [
            worker
            for worker in self._workers.workers()
            if all(getattr(worker, key) == value for key, value in wanted.items())
        ]
        by_status = Counter(worker.status for worker in chosen)
        stats = {
            "total": len(chosen),
            "by_status": dict(sorted(by_status.items())),
            "inflight": sum(worker.inflight for worker in chosen),
        }
        return json_reply({"workers": chosen, "total": len(chosen), "stats": stats})

    async def worker(self, request: HttpRequest) -> Reply:
        """Show one worker."""
        return json_reply(self._workers.worker(request.values["id"]))

    async def add_worker(self, request: HttpRequest) -> Reply:
        """Register a worker; it is probed afterwards, so the answer is only that it was accepted."""
        body = read_json(await self._bodies.json(request))
        url = _text(body, "url", _URL_MAX)
        if url is None:
            raise invalid("a worker needs a url", "url", "missing_required_parameter")
        model = _text(body, "model", _NAME_MAX) or _text(body, "model_id", _NAME_MAX)
        role = _text(body, "role", _NAME_MAX) or _text(body, "worker_type", _NAME_MAX)
        worker = self._workers.add(url, model=model, role=role, labels=_labels(body))
        location = f"/workers/{quote(worker.id, safe='')}"
        reply = json_reply(
            {"status": "accepted", "worker_id": worker.id, "url": worker.url, "location": location},
            202,
        )
        reply.headers["location"] = location
        ignored = sorted(key for key in body if key not in _KNOWN)
        if ignored:
            reply.headers["x-smg-ignored-params"] = name_list(ignored)
        return reply

    async def patch_worker(self, request: HttpRequest) -> Reply:
        """Change a worker's status: `draining` sends it no new work, `ready` takes that back."""
        body = read_json(await self._bodies.json(request))
        for key in body:
            if key != "status":
                raise unsupported(f"{key[:64]!r} of a worker cannot be changed", key[:64])
        status = _text(body, "status", _NAME_MAX)
        if status == "draining":
            return json_reply(self._workers.drain(request.values["id"]))
        if status == "ready":
            return json_reply(self._workers.undrain(request.values["id"]))
        raise invalid("status must be 'draining' or 'ready'", "status")

    async def remove_worker(self, request: HttpRequest) -> Reply:
        """Forget a worker when its requests have ended, or at once with `?force=true`."""
        worker_id = request.values["id"]
        force = request.query.get("force", "").lower() in _YES
        await self._workers.remove(worker_id, force=force)
        return json_reply({"status": "removed", "worker_id": worker_id})

    async def drain_worker(self, request: HttpRequest) -> Reply:
        """Send a worker no new work."""
        return json_reply(self._workers.drain(request.values["id"]))

    async def undrain_worker(self, request: HttpRequest) -> Reply:
        """Send a worker work again."""
        return json_reply(self._workers.undrain(request.values["id"]))

    async def probe_worker(self, request: HttpRequest) -> Reply:
        """Look at a worker now and show what was seen."""
        return json_reply(await self._workers.probe(request.values["id"]))

    async def loads(self, request: HttpRequest) -> Reply:
        """Ask every ready worker for its load; one that fails has a row that says so."""
        rows = await self._workers.loads()
        return json_reply({"loads": msgspec.to_builtins(rows)})


def _text(body: Mapping[str, Any], key: str, length_max: int) -> str | None:
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= length_max:
        raise invalid(f"{key} must be a string of 1 to {length_max} characters", key)
    return value


def _labels(body: Mapping[str, Any]) -> Mapping[str, str]:
    labels = body.get("labels")
    if labels is None:
        return {}
    if not isinstance(labels, dict) or len(labels) > _LABELS_MAX:
        raise invalid(f"labels must be an object of at most {_LABELS_MAX} strings", "labels")
    for name, value in labels.items():
        if not isinstance(value, str) or len(value) > _NAME_MAX or not 0 < len(name) <= _NAME_MAX:
            raise invalid(f"labels.{name[:64]} must be a string", f"labels.{name[:64]}")
    return labels
