"""Worker routes: list, add, change, drain, probe and remove workers of the whole cluster."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from smg_node.config.worker_url import ROLES
from smg_node.core.errors import SmgError, invalid, unsupported
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import query_switch, query_word
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply, name_list
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.node import Workers, WorkerView
from smg_node.http.ports.shared_state import AuditService
from smg_node.http.query_bounds import WORKER_STATES
from smg_node.http.routes.workers.worker_body import (
    CHANGEABLE,
    KNOWN,
    read_change,
    read_replacement,
    read_status,
    read_worker_request,
)
from smg_node.http.routes.workers.worker_views import audited, worker_object, worker_stats


class WorkerRoutes:
    """Serves the fleet."""

    def __init__(self, workers: Workers, audit: AuditService, bodies: BodyReader) -> None:
        self._workers = workers
        self._audit = audit
        self._bodies = bodies

    # ── Seeing ───────────────────────────────────────────────────────────────

    async def workers(self, request: HttpRequest) -> Reply:
        """List the workers that match `?model=`, `?status=` and `?role=`, and count them."""
        query_word(request, "status", WORKER_STATES)
        query_word(request, "role", ROLES)
        wanted = {
            key: request.query[key] for key in ("model", "status", "role") if key in request.query
        }
        chosen = [
            worker
            for worker in self._workers.workers()
            if all(getattr(worker, key) == value for key, value in wanted.items())
        ]
        return json_reply(
            {
                "workers": [worker_object(worker) for worker in chosen],
                "total": len(chosen),
                "stats": worker_stats(chosen),
            }
        )

    async def worker(self, request: HttpRequest) -> Reply:
        """Show one worker."""
        return _shown(self._workers.worker(request.values["id"]))

    async def cluster_workers(self, request: HttpRequest) -> Reply:
        """List the workers with each node's view of them."""
        model, worker_id = request.query.get("model", ""), request.query.get("id", "")
        rows = [
            row
            for row in self._workers.cluster_workers()
            if model in ("", row.model) and worker_id in ("", row.id)
        ]
        return json_reply({"workers": rows, "total": len(rows)})

    async def loads(self, request: HttpRequest) -> Reply:
        """Ask every ready worker for its load; one that fails has a row that says so."""
        rows = await self._workers.loads()
        return json_reply({"loads": msgspec.to_builtins(rows)})

    # ── Changing ─────────────────────────────────────────────────────────────

    async def add_worker(self, request: HttpRequest) -> Reply:
        """Register a worker; it is probed afterwards, so the answer is only that it was accepted."""
        body = await self._bodies.large.decoded(await self._bodies.json(request))
        wish = read_worker_request(body)
        before = self._known(wish.url)
        worker = self._workers.add(wish)
        self._record(request, "worker.add", worker, before=before)
        location = f"/workers/{quote(worker.id, safe='')}"
        reply = json_reply(
            {
                "status": "accepted",
                "worker_id": worker.id,
                "url": worker.url,
                "location": location,
                "message": "it gets requests once it is ready",
            },
            202,
        )
        reply.headers["location"] = location
        ignored = sorted(key for key in body if key not in KNOWN)
        if ignored:
            reply.headers["x-smg-ignored-params"] = name_list(ignored)
        return reply

    async def patch_worker(self, request: HttpRequest) -> Reply:
        """Change a worker's fields; `status` `draining` sends it no new work, `ready` takes that
        back.
        """
        body = await self._bodies.large.decoded(await self._bodies.json(request))
        if not body:
            raise invalid(f"say what to change: {', '.join(CHANGEABLE)}")
        for key in body:
            if key not in CHANGEABLE:
                raise unsupported(f"{key[:64]!r} of a worker cannot be changed", key[:64])
        change = read_change(body, draining=read_status(body))
        before = self._workers.worker(request.values["id"])
        worker = self._workers.change(before.id, change)
        self._record(request, "worker.change", worker, before=before)
        return _shown(worker)

    async def replace_worker(self, request: HttpRequest) -> Reply:
        """Make a worker equal to the body, with defaults for absent fields; its URL stays."""
        body = await self._bodies.large.decoded(await self._bodies.json(request))
        before = self._workers.worker(request.values["id"])
        url = body.get("url")
        if url is not None and str(url).partition("?")[0].rstrip("/") != before.url:
            raise invalid("the url of a worker is what it is; remove it and add another", "url")
        worker = self._workers.change(before.id, read_replacement(body))
        self._record(request, "worker.change", worker, before=before)
        reply = _shown(worker)
        ignored = sorted(key for key in body if key not in KNOWN)
        if ignored:
            reply.headers["x-smg-ignored-params"] = name_list(ignored)
        return reply

    async def remove_worker(self, request: HttpRequest) -> Reply:
        """Forget a worker when its requests have ended, or at once with `?force=true`."""
        before = self._workers.worker(request.values["id"])
        await self._workers.remove(before.id, force=query_switch(request, "force"))
        self._audit.record(
            caller_of(request), "worker.remove", before.id, before=audited(before), after=None
        )
        return json_reply({"status": "removed", "worker_id": before.id})

    async def drain_worker(self, request: HttpRequest) -> Reply:
        """Send a worker no new work, from any node."""
        before = self._workers.worker(request.values["id"])
        worker = self._workers.drain(before.id)
        self._record(request, "worker.drain", worker, before=before)
        return _shown(worker)

    async def undrain_worker(self, request: HttpRequest) -> Reply:
        """Send a worker work again."""
        before = self._workers.worker(request.values["id"])
        worker = self._workers.undrain(before.id)
        self._record(request, "worker.undrain", worker, before=before)
        return _shown(worker)

    async def probe_worker(self, request: HttpRequest) -> Reply:
        """Probe a worker now and show the result."""
        return _shown(await self._workers.probe(request.values["id"]))

    def _known(self, url: str) -> WorkerView | None:
        """Return the worker at this address, if it is registered already."""
        try:
            return self._workers.worker(url.partition("?")[0].rstrip("/"))
        except SmgError:
            return None

    def _record(
        self, request: HttpRequest, action: str, worker: WorkerView, *, before: WorkerView | None
    ) -> None:
        was: Mapping[str, Any] | None = None if before is None else audited(before)
        self._audit.record(caller_of(request), action, worker.id, before=was, after=audited(worker))


def _shown(view: WorkerView) -> Reply:
    return json_reply(worker_object(view))
