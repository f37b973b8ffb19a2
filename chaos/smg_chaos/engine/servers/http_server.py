"""HTTP server with an OpenAI API in front of a simulated engine, for gateways that relay to HTTP
workers.

The engine is the same: its slots, its cache, its faults, its deaths. Its tokens become text here,
with its own tokenizer and a plain template. A fault before the first text is an HTTP status, one
after it cuts the connection. Embeddings, rerank and classify are made of digests: equal texts have
equal answers.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from aiohttp import web

from smg_chaos.engine.protocol.rpc_call import Code
from smg_chaos.engine.servers.http_call import HttpGeneration, MistakeError
from smg_chaos.engine.servers.http_objects import (
    Words,
    classified,
    embedded,
    metrics_page,
    reranked,
)
from smg_chaos.engine.servers.process_link import Passage
from smg_chaos.engine.simulator.engine import Engine
from smg_chaos.engine.simulator.engine_loop import Clockwork
from smg_node.core.ports import Clock

BODY_MAX_BYTES: Final = 64 * 1024 * 1024
_STATUS: Final[Mapping[Code, int]] = {
    Code.INVALID_ARGUMENT: 400,
    Code.OUT_OF_RANGE: 400,
    Code.NOT_FOUND: 404,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.UNAVAILABLE: 503,
    Code.UNIMPLEMENTED: 501,
    Code.DEADLINE_EXCEEDED: 504,
}
_Body = dict[str, Any]
_Serve = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HttpFace:
    """Serves one engine on one port; see `host.Face`. `apis` are those it has besides generating."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        *,
        api_key: str = "",
        apis: frozenset[str] = frozenset({"embeddings", "rerank", "classify"}),
    ) -> None:
        self.engine = engine
        self.seen: list[Mapping[str, str]] = []
        """The headers of the latest requests, names in lower case; at most 64."""
        self._clock = clock
        self._word = f"Bearer {api_key}" if api_key else ""
        self._apis = apis
        self._words = Words(engine.model, engine.bundle)
        self._runner: web.AppRunner | None = None
        self._clockwork: Clockwork | None = None
        self._passage: Passage | None = None

    async def listen(self, host: str, port: int) -> int:
        """Listen; return the port, which was chosen by the system if `port` is 0."""
        loop = asyncio.get_running_loop()
        self._clockwork = Clockwork(self.engine, self._clock, loop, lambda: None)
        app = web.Application(client_max_size=BODY_MAX_BYTES, middlewares=[self._door()])
        app.router.add_get("/health", self._health)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/version", self._version)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_post("/v1/chat/completions", self._serving(chat=True))
        app.router.add_post("/v1/completions", self._serving(chat=False))
        pages: Mapping[str, Callable[[_Body], Any]] = {
            "embeddings": embedded,
            "rerank": reranked,
            "classify": classified,
        }
        for name in sorted(self._apis):
            app.router.add_post(f"/v1/{name}", self._page(pages[name]))
        # A client that goes away ends its request at once, as servers do that stream.
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, logger=_silent(), shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self._passage = Passage(self.engine, self._clockwork.now_s, self._clockwork.settle)
        await self._passage.open(host)
        self._clockwork.arm()
        bound: int = self._runner.addresses[0][1]
        return bound

    async def close(self) -> None:
        """Close the port and every connection at once."""
        if self._clockwork is not None:
            self._clockwork.stop()
        if self._passage is not None:
            self._passage.close()
        if self._runner is not None:
            await self._runner.cleanup()

    # ── Pages ────────────────────────────────────────────────────────────────

    def _door(self) -> Callable[..., Awaitable[web.StreamResponse]]:
        @web.middleware
        async def door(request: web.Request, **given: _Serve) -> web.StreamResponse:
            headers = {name.lower(): value for name, value in request.headers.items()}
            if request.method == "POST":
                self.seen.append(headers)
                del self.seen[:-64]
            if self._word and headers.get("authorization") != self._word:
                return _error(401, "the API key is wrong or missing")
            if self.engine.down or self.engine.died is not None:
                _cut(request)
            try:
                return await given["handler"](request)
            except MistakeError as error:
                return _error(error.status, error.message)

        return door

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(status=200 if self.engine.serving and not self.engine.dead else 503)

    async def _models(self, request: web.Request) -> web.Response:
        return _json(self._words.models(self.engine.settings.context))

    async def _version(self, request: web.Request) -> web.Response:
        return _json({"version": "0.0-simulated"})

    async def _metrics(self, request: web.Request) -> web.Response:
        schedulers = [rank.scheduler for rank in self.engine.ranks]
        running = sum(one.running for one in schedulers)
        waiting = sum(one.waiting for one in schedulers)
        text = metrics_page(self.engine.model, running, waiting)
        return web.Response(text=text, content_type="text/plain")

    def _page(
        self, made: Callable[[_Body], Any]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def page(request: web.Request) -> web.Response:
            body = await self._body(request)
            self.engine.tally.requests += 1
            return _json(made(body))

        return page

    # ── Generations ──────────────────────────────────────────────────────────

    def _serving(self, *, chat: bool) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def serve(request: web.Request) -> web.StreamResponse:
            body = await self._body(request)
            clockwork = self._clockwork
            assert clockwork is not None, "the face listens"
            rank = request.headers.get("x-data-parallel-rank")
            if rank is not None and rank.isascii() and rank.isdigit():
                body.setdefault("data_parallel_rank", int(rank))
            call = HttpGeneration(self._words, body, chat=chat, name=_id_of(request))
            call.begin(self.engine, clockwork.now_s())
            clockwork.settle()
            try:
                if call.streamed:
                    return await self._stream(request, call)
                return await self._whole(request, call)
            finally:
                call.cancel(clockwork.now_s())
                clockwork.settle()

        return serve

    async def _whole(self, request: web.Request, call: HttpGeneration) -> web.Response:
        async for _ in call.frames():
            pass
        self._check_end(request, call, begun=False)
        return _json(call.answer())

    async def _stream(self, request: web.Request, call: HttpGeneration) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"content-type": "text/event-stream; charset=utf-8", "set-cookie": "a=b"}
        )
        begun = False
        async for frame in call.frames():
            if not begun:
                begun = True
                await response.prepare(request)
            await response.write(frame)
        self._check_end(request, call, begun=begun)
        await response.write(call.last_frames())
        await response.write_eof()
        return response

    def _check_end(self, request: web.Request, call: HttpGeneration, *, begun: bool) -> None:
        """Answer a failed call: by a status, or by breaking the connection."""
        end = call.end
        assert end is not None, "all frames were taken"
        if end.code is Code.OK:
            return
        gone = self.engine.down or self.engine.died is not None
        if begun or gone:
            _cut(request)
        raise MistakeError(_STATUS.get(end.code, 500), end.message)

    async def _body(self, request: web.Request) -> _Body:
        try:
            body = msgspec.json.decode(await request.read())
        except msgspec.DecodeError as error:
            raise MistakeError(400, f"no JSON: {error}") from error
        if not isinstance(body, dict):
            raise MistakeError(400, "the body must be an object")
        if body.get("model") != self.engine.model:
            raise MistakeError(404, f"The model `{body.get('model')}` does not exist.")
        return body


def _silent() -> logging.Logger:
    """Return a logger without output: what is cut on purpose is no error."""
    return logging.Logger("http face", logging.CRITICAL)


def _id_of(request: web.Request) -> str:
    """Return the engine's id of a request, made of its header as real servers do."""
    return f"cmpl-{request.headers.get('x-request-id') or id(request)}"


def _json(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def _error(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "BadRequestError", "param": None, "code": status}
    response = web.Response(
        status=status,
        body=msgspec.json.encode({"error": error}),
        content_type="application/json",
    )
    if status in (429, 503):
        response.headers["retry-after"] = "1"
    return response


def _cut(request: web.Request) -> None:
    """Break the connection off; the client sees it close in the middle."""
    if request.transport is not None:
        request.transport.abort()
    raise ConnectionResetError("cut on purpose")
