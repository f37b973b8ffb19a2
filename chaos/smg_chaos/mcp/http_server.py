"""HTTP server of an MCP server on purpose: `/mcp` in both eras, `/sse` in the old way, and `/_mcp` for who watches.

GET  /_mcp/counts   what was asked and run
PUT  /_mcp/faults   a JSON list of SPECs, in place of the faults so far
POST /_mcp/forget   forget all sessions
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aiohttp import web

from smg_chaos.mcp.book import Book
from smg_chaos.mcp.conversation import MODERN, Conversation, tool_of, version_of
from smg_chaos.mcp.faults import Fault, first_hit, parse_fault
from smg_chaos.mcp.old_transport import OldTransport
from smg_chaos.mcp.reply_stream import ReplyStream, StreamLog
from smg_chaos.mcp.tools import TOOLS, RpcError, text
from smg_node.mcp.serving.header_values import decoded_header

BODY_MAX_BYTES: Final = 64 << 20
_GRACE_S: Final = 0.1
_NEVER_ENCODED: Final = ("mcp-method", "mcp-protocol-version")
_HTML: Final = "<html><body>not for clients</body></html>"


class HttpServer:
    """One server on a port. `answers` is `json`, or `sse` for streams of events; `token` is wanted as bearer.

    What goes on after its client is gone runs in `group`.
    """

    def __init__(
        self,
        group: asyncio.TaskGroup,
        era: str,
        *,
        faults: Sequence[Fault] = (),
        answers: str = "json",
        token: str = "",
        page: int = 100,
    ) -> None:
        self.book = Book()
        self._group = group
        self.faults = list(faults)
        self.port = 0
        self._conversation = Conversation(era, self.book, page=page)
        self._answers = answers
        self._token = token
        self._log = StreamLog()
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._old = OldTransport(group, Conversation("handshake", self.book), self.book)
        self._runner: web.AppRunner | None = None

    async def listen(self, host: str, port: int) -> int:
        """Listen; return the port, which the system chooses if `port` is 0."""
        app = web.Application(client_max_size=BODY_MAX_BYTES)
        app.router.add_get("/sse", self._old.open)
        app.router.add_post("/messages", self._old.post)
        app.router.add_get("/_mcp/counts", self._counts)
        app.router.add_put("/_mcp/faults", self._set_faults)
        app.router.add_post("/_mcp/forget", self._forget)
        app.router.add_route("*", "/mcp", self._mcp)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=_GRACE_S
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port, backlog=1024).start()
        self.port = self._runner.addresses[0][1]
        return self.port

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def become(self, era: str) -> None:
        """Speak as a server of that era from now on, as after an update."""
        self._conversation = Conversation(era, self.book)

    async def say(self, **body: Any) -> None:
        """Say something that no client asked for, in the streams by GET."""
        await self._log.say(body)

    def end_streams(self) -> None:
        """End all streams of the old transport."""
        self._old.close()

    async def close(self) -> None:
        """Close the port and every connection."""
        self._old.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _counts(self, request: web.Request) -> web.Response:
        hits = {fault.name: fault.hits for fault in self.faults}
        return web.json_response({**self.book.counts(), "hits": hits})

    async def _set_faults(self, request: web.Request) -> web.Response:
        try:
            self.faults = [parse_fault(spec) for spec in await request.json()]
        except (ValueError, TypeError) as error:
            return web.Response(status=400, text=str(error))
        return web.json_response({"faults": len(self.faults)})

    async def _forget(self, request: web.Request) -> web.Response:
        self.book.forget()
        return web.json_response({})

    async def _mcp(self, request: web.Request) -> web.StreamResponse:
        if self._token and request.headers.get("authorization") != f"Bearer {self._token}":
            return web.Response(status=401, headers={"www-authenticate": "Bearer"})
        if request.method == "POST":
            return await self._post(request)
        session = request.headers.get("mcp-session-id", "")
        if self._conversation.era == "modern" or request.method not in ("GET", "DELETE"):
            return web.Response(status=405)
        if session not in self.book.sessions:
            return web.Response(status=404 if session else 400)
        if request.method == "DELETE":
            del self.book.sessions[session]
            self.book.deleted += 1
            return web.Response(status=200)
        self.book.streams += 1
        return await self._log.replay(request)

    async def _post(self, request: web.Request) -> web.StreamResponse:
        try:
            message = json.loads(await request.read())
        except ValueError:
            return _error(None, RpcError(-32700, "Parse error", status=400))
        id_, method = message.get("id"), str(message.get("method", ""))
        if "method" not in message or id_ is None:
            return self._noted(message)
        self.book.methods[method] += 1
        self.book.request_ids.append(str(id_))
        fault = first_hit(self.faults, method, tool_of(message))
        if fault is not None and (early := await self._before(fault, request, message)) is not None:
            return early
        if (refusal := self._refusal(request, message)) is not None:
            return _error(id_, refusal)
        return await self._answer(request, message, fault)

    def _noted(self, message: Mapping[str, Any]) -> web.Response:
        if "method" not in message:
            self.book.answers.append(message)
        if message.get("method") == "notifications/cancelled":
            self.book.methods["notifications/cancelled"] += 1
            running = self._running.get(str((message.get("params") or {}).get("requestId")))
            if running is not None:
                running.cancel()
        return web.Response(status=202)

    def _refusal(self, request: web.Request, message: Mapping[str, Any]) -> RpcError | None:
        """Return why a request is refused for its headers."""
        headers, method = request.headers, message["method"]
        version = version_of(message)
        if version is not None and self._conversation.era != "handshake":
            named = {"mcp-method": method, "mcp-protocol-version": version}
            if method == "tools/call":
                named["mcp-name"] = tool_of(message)
                named |= _mirrored(message)
            for name, value in named.items():
                said = headers.get(name)
                if said is not None and name not in _NEVER_ENCODED:
                    said = decoded_header(said)
                if said != value:
                    return RpcError(-32020, f"Header mismatch: {name}", status=400)
            return None
        if self._conversation.era == "modern" or method == "initialize":
            return None
        session = headers.get("mcp-session-id", "")
        if not session:
            return RpcError(-32000, "Bad Request: no session id", status=400)
        known = session in self.book.sessions
        return None if known else RpcError(-32001, "Session not found", status=404)

    async def _before(
        self, fault: Fault, request: web.Request, message: Mapping[str, Any]
    ) -> web.StreamResponse | None:
        """Return what a fault answers in place of everything else, None if it comes later or waits only."""
        values = fault.values
        match fault.name:
            case "status":
                after = {"retry-after": str(values["retry_after"])} if values["retry_after"] else {}
                return web.Response(
                    status=values["code"], text=_HTML, content_type="text/html", headers=after
                )
            case "401":
                return web.Response(status=401, headers={"www-authenticate": "Bearer"})
            case "error":
                refusal = RpcError(values["code"], "on purpose", status=values["status"])
                return _error(message["id"], refusal)
            case "accepted":
                return web.Response(status=202)
            case "garbage":
                return web.Response(body=b"\xff{garbage", content_type="application/json")
            case "redirect":
                return web.Response(status=values["code"], headers={"location": values["to"]})
            case "hang":
                await asyncio.Event().wait()
            case "slow":
                await asyncio.sleep(values["seconds"])
            case "forget":
                self.book.forget()
            case _:
                pass
        return None

    async def _answer(
        self, request: web.Request, message: Mapping[str, Any], fault: Fault | None
    ) -> web.StreamResponse:
        cuts = fault is not None and fault.name == "cut"
        is_call = message["method"] == "tools/call"
        streams = (self._answers == "sse" and is_call) or cuts
        stream = ReplyStream(request, self._log if streams else None)
        if streams:
            await stream.begin(cut=cuts)
        if cuts:
            self._group.create_task(self._finish(message, stream))
            return stream.response
        whole = await self._whole(message, stream, fault)
        if fault is not None and fault.name == "reset":
            assert request.transport is not None, "a request that is served has a connection"
            request.transport.abort()
            return web.Response()
        status = whole.pop("status", 200)
        body = {"jsonrpc": "2.0", "id": message["id"], **whole}
        if streams:
            await stream.end(body)
            return stream.response
        headers = {}
        if message["method"] == "initialize" and "result" in whole:
            session = self.book.open_session(whole["result"]["protocolVersion"])
            headers["mcp-session-id"] = session
        return web.json_response(body, status=status, headers=headers)

    async def _finish(self, message: Mapping[str, Any], stream: ReplyStream) -> None:
        """Go on with a request whose stream was cut."""
        whole = await self._whole(message, stream, None)
        whole.pop("status", None)
        await stream.end({"id": message["id"], **whole})

    async def _whole(
        self, message: Mapping[str, Any], stream: ReplyStream, fault: Fault | None
    ) -> dict[str, Any]:
        try:
            return await self._result(message, stream, fault)
        except RpcError as error:
            return {"error": _error_body(error), "status": error.status}

    async def _result(
        self, message: Mapping[str, Any], stream: ReplyStream, fault: Fault | None
    ) -> dict[str, Any]:
        if fault is not None and fault.name == "huge":
            self.book.runs[tool_of(message)] += 1
            kind = {"resultType": "complete"} if version_of(message) == MODERN else {}
            return {"result": {**kind, **text("x" * fault.values["bytes"])}}
        token = (message.get("params") or {}).get("_meta", {}).get("progressToken")
        work = self._conversation.answer(message, stream.progress_of(token))
        async with asyncio.TaskGroup() as group:
            running = group.create_task(_caught(work))
            self._running[str(message["id"])] = running
            try:
                outcome = await running
            except asyncio.CancelledError:
                self.book.cancelled += 1
                raise
            finally:
                self._running.pop(str(message["id"]), None)
        if isinstance(outcome, RpcError):
            raise outcome
        return {"result": outcome}


async def _caught(work: Any) -> Any:
    try:
        return await work
    except RpcError as error:
        return error


def _mirrored(message: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that a call of a tool with marked arguments must have."""
    params = message["params"]
    tool = TOOLS.get(tool_of(message))
    marked = (
        {name: part.get("x-mcp-header") for name, part in tool.properties.items()} if tool else {}
    )
    arguments = params.get("arguments") or {}
    return {
        f"mcp-param-{token.lower()}": arguments[name]
        for name, token in marked.items()
        if token and isinstance(arguments.get(name), str)
    }


def _error_body(error: RpcError) -> dict[str, Any]:
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    return body if error.about is None else {**body, "data": error.about}


def _error(id_: Any, error: RpcError) -> web.Response:
    body = {"jsonrpc": "2.0", "id": id_, "error": _error_body(error)}
    return web.json_response(body, status=error.status)
