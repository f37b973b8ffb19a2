"""HTTP server of an API server on purpose: Kubernetes' own paths, and `/_kube` for who watches it.

GET  /_kube/audit     what was asked, and how many watches were open at once
PUT  /_kube/faults    a JSON object of faults, laid over those so far
POST /_kube/compact   forget all history
POST /_kube/cut       break all watches
"""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from aiohttp import web

from smg_chaos.kubernetes.answers import RefusedError, bookmark, forbidden, line, unauthorized
from smg_chaos.kubernetes.audit import Audit
from smg_chaos.kubernetes.cluster import Cluster
from smg_chaos.kubernetes.faults import BOOKMARK_BEFORE_END_S, Faults
from smg_chaos.kubernetes.listing import list_page
from smg_chaos.kubernetes.watches import Watch

_GROUPS: Final = {"pods": "/api/v1", "endpointslices": "/apis/discovery.k8s.io/v1"}
_VERSION: Final = {"major": "1", "minor": "20", "gitVersion": "v1.20.2-scripted"}
_LOOK_S: Final = 0.5
"""How often a fault that was set or taken away is looked for."""
Answer: TypeAlias = Callable[[web.Request, str], Awaitable[web.StreamResponse]]


class KubernetesServer:
    """One API server on a port."""

    def __init__(self, cluster: Cluster | None = None, *, faults: Faults | None = None) -> None:
        self.cluster = cluster or Cluster()
        self.faults = faults or Faults()
        self.audit = Audit()
        self.port = 0
        self._going = asyncio.Event()
        self._going.set()
        self._open: set[asyncio.Transport] = set()
        self._said: list[bytes] = []
        self._runner: web.AppRunner | None = None

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Listen; return the port, which the system chooses if `port` is 0."""
        app = web.Application(client_max_size=8 << 20)
        app.router.add_get("/version", self._version)
        app.router.add_get("/_kube/audit", self._audit)
        app.router.add_put("/_kube/faults", self._set_faults)
        app.router.add_post("/_kube/compact", self._compact)
        app.router.add_post("/_kube/cut", self._cut)
        for resource, root in _GROUPS.items():
            many = f"{root}/namespaces/{{namespace}}/{resource}"
            app.router.add_get(f"{root}/{resource}", self._answering(self._get_many, resource))
            app.router.add_get(many, self._answering(self._get_many, resource))
            app.router.add_post(many, self._answering(self._post, resource))
            one = f"{many}/{{name}}"
            app.router.add_get(one, self._answering(self._get, resource))
            app.router.add_patch(one, self._answering(self._patch, resource))
            app.router.add_patch(f"{one}/status", self._answering(self._patch, resource))
            app.router.add_delete(one, self._answering(self._delete, resource))
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await self._runner.setup()
        await web.TCPSite(
            self._runner, host, port, ssl_context=tls, backlog=1024, reuse_address=True
        ).start()
        self.port = self._runner.addresses[0][1]
        return self.port

    async def close(self) -> None:
        """Close the port and every connection, as if the process had been killed."""
        self.go_on()
        self.cut_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    # ── Faults ───────────────────────────────────────────────────────────────

    def stop(self) -> None:
        """Take connections and say nothing, until `go_on`."""
        self.faults.stopped = True
        self._going.clear()

    def go_on(self) -> None:
        """Say again what there is to say."""
        self.faults.stopped = False
        self._going.set()

    def cut_watches(self) -> None:
        """Break the connections of all watches."""
        for transport in list(self._open):
            transport.abort()

    def say(self, text: bytes) -> None:
        """Say these bytes in all watches that are open."""
        self._said.append(text)
        self.cluster.tell()

    # ── Requests ─────────────────────────────────────────────────────────────

    def _answering(self, answer: Answer, resource: str) -> Callable[[web.Request], Awaitable[Any]]:
        async def answered(request: web.Request) -> web.StreamResponse:
            await self._going.wait()
            try:
                self._check_token(request)
                return await answer(request, resource)
            except RefusedError as refusal:
                headers = {}
                if refusal.code in (429, 503) and self.faults.retry_after_s:
                    headers["retry-after"] = str(self.faults.retry_after_s)
                return _answer(refusal.object(), status=refusal.code, headers=headers)

        return answered

    def _check_token(self, request: web.Request) -> None:
        said = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.faults.tokens and said not in self.faults.tokens:
            self.audit.answered("ask", request.path_qs, 401)
            raise unauthorized()

    def _check_right(self, verb: str, resource: str, namespace: str) -> None:
        if verb in self.faults.denied:
            raise forbidden(verb, resource, namespace)
        status = self.faults.failing.get(verb)
        if status is not None:
            raise RefusedError(status, "InternalError", f"the {verb} fails on purpose")

    async def _get_many(self, request: web.Request, resource: str) -> web.StreamResponse:
        is_watch = request.query.get("watch", "") in ("1", "true")
        verb = "watch" if is_watch else "list"
        namespace = request.match_info.get("namespace", "")
        try:
            self._check_right(verb, resource, namespace)
            if is_watch:
                watch = Watch(self.cluster.versions, resource, namespace, request.query)
                self.audit.answered(verb, request.path_qs, 200)
                return await self._watch(request, watch, resource)
            # What version 0 asks for is in the server's memory.
            while self.faults.store_stopped and request.query.get("resourceVersion") != "0":
                await self._news(_LOOK_S)
            body = list_page(
                self.cluster.versions,
                resource,
                namespace,
                request.query,
                page_max=self.faults.page_max,
            )
        except RefusedError as refusal:
            self.audit.answered(verb, request.path_qs, refusal.code)
            raise
        self.audit.answered(verb, request.path_qs, 200)
        return _answer(body)

    async def _watch(self, request: web.Request, watch: Watch, resource: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(request)
        transport = request.transport
        assert transport is not None, "a request that is answered has a connection"
        self._open.add(transport)
        self.audit.opened()
        loop = asyncio.get_running_loop()
        seconds = float(request.query.get("timeoutSeconds", "1800"))
        try:
            await self._say_all(response, watch, resource, loop.time() + seconds)
        except ConnectionError:
            pass
        finally:
            self._open.discard(transport)
            self.audit.closed()
        return response

    async def _say_all(
        self, response: web.StreamResponse, watch: Watch, resource: str, until: float
    ) -> None:
        """Say what there is to say until the watch's time is over, or what it was about is known no more."""
        now = asyncio.get_running_loop().time
        epoch = self.cluster.epoch
        said = len(self._said)
        last = until - BOOKMARK_BEFORE_END_S
        bookmark_at = min(now() + self.faults.bookmark_s, last) if last > now() else until
        while now() < until and self.cluster.epoch == epoch:
            for text in self._said[said:]:
                await response.write(text)
            said = len(self._said)
            if not self.faults.silent and not self.faults.store_stopped:
                try:
                    for text in watch.lines():
                        await response.write(text)
                except RefusedError as refusal:
                    await response.write(line("ERROR", refusal.object()))
                    return
            if now() >= bookmark_at:
                if not self.faults.silent and watch.has_news:
                    await response.write(bookmark(resource, watch.version))
                later = now() + self.faults.bookmark_s
                bookmark_at = later if later < last or now() >= last else last
            await self._news(min(until, bookmark_at) - now())
            await self._going.wait()

    async def _news(self, seconds: float) -> None:
        """Return when something was written or is to be said, or the time is over."""
        try:
            async with asyncio.timeout(min(max(seconds, 0), _LOOK_S)):
                await self.cluster.changed()
        except TimeoutError:
            pass

    async def _post(self, request: web.Request, resource: str) -> web.StreamResponse:
        made = self.cluster.create(resource, request.match_info["namespace"], await _json(request))
        return _answer(made, status=201)

    async def _get(self, request: web.Request, resource: str) -> web.StreamResponse:
        return _answer(self.cluster.get(_key(request, resource)))

    async def _patch(self, request: web.Request, resource: str) -> web.StreamResponse:
        patch = await _json(request)
        is_status = request.path.endswith("/status")
        after = self.cluster.patch(_key(request, resource), patch, is_status=is_status)
        return _answer(after)

    async def _delete(self, request: web.Request, resource: str) -> web.StreamResponse:
        said = await _json(request) if request.can_read_body else {}
        grace = said.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
        last = self.cluster.delete(
            _key(request, resource), int(grace) if grace is not None else None
        )
        return _answer(last)

    # ── For who watches ──────────────────────────────────────────────────────

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response(_VERSION)

    async def _audit(self, request: web.Request) -> web.Response:
        return web.json_response(self.audit.object())

    async def _set_faults(self, request: web.Request) -> web.Response:
        try:
            self.faults.set(await _json(request))
        except ValueError as error:
            return web.Response(status=400, text=str(error))
        if self.faults.stopped:
            self.stop()
        else:
            self.go_on()
        return web.json_response({})

    async def _compact(self, request: web.Request) -> web.Response:
        self.cluster.compact()
        return web.json_response({})

    async def _cut(self, request: web.Request) -> web.Response:
        self.cut_watches()
        return web.json_response({})


def _answer(
    said: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    text = json.dumps(said, separators=(",", ":")).encode()
    return web.Response(body=text, status=status, headers=headers, content_type="application/json")


def _key(request: web.Request, resource: str) -> tuple[str, str, str]:
    return resource, request.match_info["namespace"], request.match_info["name"]


async def _json(request: web.Request) -> dict[str, Any]:
    try:
        said = json.loads(await request.read() or b"{}")
    except ValueError:
        raise RefusedError(400, "BadRequest", "the body is no JSON") from None
    if not isinstance(said, dict):
        raise RefusedError(400, "BadRequest", "the body is no object")
    return said
