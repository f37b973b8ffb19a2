"""MCP server routes: the node's own MCP server, in both eras and without sessions, so that any node answers anything.

A call is answered by JSON, or by server-sent events where its client takes them and there is something to tell before
the end: progress, or a sign of life. Losing the client cancels the call. A page of a foreign origin is refused, since a
browser would let it use a node of its user's own network.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.forwardable_headers import forwardable
from smg_node.core.request_context import RequestContext
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.event_stream import EventStream
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.message.reply import Reply, Streamed
from smg_node.http.middleware.authorization import is_own_name
from smg_node.http.middleware.caller_context import context_of
from smg_node.http.routes.tools.tool_requests import ToolRequests
from smg_node.mcp.failures import INTERNAL_ERROR
from smg_node.mcp.serving.call_state import Vault
from smg_node.mcp.serving.incoming import Incoming, Message, Messages, read_messages
from smg_node.mcp.serving.replies import (
    Refusal,
    Result,
    batch_body,
    frame,
    progress_frame,
)
from smg_node.mcp.tool_servers import ResolvedServer, ToolServers

if TYPE_CHECKING:
    from smg_node.http.routes.tools.model_calls import ModelCalls

_EVENTS: Final = "text/event-stream"
_MODELS: Final = "models"
"""What the address of models ends with, where no server of tools is called so."""
_CALLS_AT_ONCE: Final = 8
"""Of one batch."""


class McpServerRoutes:
    """Serves `/mcp`, all tools, and `/mcp/{server}`, those of one server, or of models for `models`."""

    def __init__(
        self, parts: HttpParts, bodies: BodyReader, pulse: KeepaliveTimer, vault: Vault
    ) -> None:
        self._parts = parts
        self._bodies = bodies
        self._pulse = pulse
        self._vault = vault

    async def serve(self, request: HttpRequest) -> Reply | Streamed:
        """Answer one message, or a batch of them; FORBIDDEN for a foreign page, NOT_FOUND for an unknown server."""
        check_origin(request, self._parts.options.cors_allowed_origins)
        context = context_of(request, self._parts.options, streamed=True)
        headers = folded_headers(request)
        requests = self._requests(request, context, headers)
        raw = await self._bodies.json(request)
        read = await self._bodies.large.made(len(raw), lambda: read_messages(raw, headers))
        if read.is_batch:
            return await self._batch(requests, read)
        (message,) = read.all
        if isinstance(message, Incoming):
            if message.method == "tools/call" and _EVENTS in request.headers.get("accept", ""):
                return await self._streamed(requests, message, request)
            return _reply(await requests.answer(message))
        return _reply(message)

    def _requests(
        self, request: HttpRequest, context: RequestContext, headers: Mapping[str, str]
    ) -> ToolRequests:
        servers = self._parts.offered_tools()
        seen = _seen(servers, request, context)
        name = request.values.get("server")
        one = None
        models = self._models(request, context)
        if name is not None:
            one = next((server for server in seen if server.label == name), None)
            models = models if one is None and name == _MODELS else None
            if one is None and (models is None or not models.tools()):
                raise SmgError(
                    ErrorKind.NOT_FOUND,
                    f"there is no server of tools {name[:64]!r}",
                    code="mcp_server_not_found",
                )
            seen = () if one is None else (one,)
        clock = self._parts.clock
        return ToolRequests(
            servers,
            seen,
            one,
            headers,
            context,
            vault=self._vault,
            now_ms=clock.now_ms,
            left_s=lambda: context.deadline_s - clock.monotonic_s(),
            models=models,
        )

    def _models(self, request: HttpRequest, context: RequestContext) -> "ModelCalls | None":
        """Return the models that are tools for this caller; None where an operator exposes none."""
        exposed = self._parts.exposed_models()
        if not exposed:
            return None
        # Few nodes expose models.
        from smg_node.http.routes.tools.model_calls import ModelCalls

        plain = request.values.get("server") is not None
        return ModelCalls(self._parts, self._bodies, request, context, exposed, plain=plain)

    async def _batch(self, requests: ToolRequests, read: Messages) -> Reply:
        free = asyncio.Semaphore(_CALLS_AT_ONCE)

        async def answered(message: Message) -> Result | Refusal | None:
            if not isinstance(message, Incoming):
                return message
            async with free:
                return await requests.answer(message)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(answered(message)) for message in read.all]
        replies = [reply for task in tasks if (reply := task.result()) is not None]
        return Reply(200, batch_body(replies)) if replies else Reply(202)

    async def _streamed(
        self, requests: ToolRequests, message: Incoming, request: HttpRequest
    ) -> Reply | Streamed:
        """Answer a call, by events from the first sign of life on."""
        stream = EventStream(request.wire, lambda: request.reply_headers)
        token, told = message.progress_token, 0.0

        def noted(text: str, done: float | None, total: float | None) -> None:
            nonlocal told
            told = told + 1.0 if done is None else done
            # A client that does not read gets the result, and of the progress only what it has room for.
            if token is not None and not request.wire.gone and not request.wire.behind:
                stream.put(progress_frame(token, told, total, text))
                stream.quiet_ticks = 0

        self._pulse.add(stream)
        try:
            reply = await requests.answer(message, None if token is None else noted)
        except asyncio.CancelledError:
            if request.cut is None or not stream.committed:
                raise
            task = asyncio.current_task()
            assert task is not None, "a request is answered in a task"
            task.uncancel()
            request.error_code = request.cut.code
            reply = message.refusal(INTERNAL_ERROR, request.cut.message)
        except SmgError as error:
            if not stream.committed:
                raise
            request.error_code = error.code
            reply = message.refusal(INTERNAL_ERROR, error.message)
        finally:
            self._pulse.remove(stream)
        if not stream.committed:
            return _reply(reply)
        stream.end(frame(reply.body))
        return Streamed()


def check_origin(request: HttpRequest, allowed: Sequence[str]) -> None:
    """Return if no web page sent the request, or one of an allowed origin or of this node's own; FORBIDDEN otherwise.

    A page may come from the name by which this node is asked. But a foreign name that was made to lead here (DNS
    rebinding) looks the same, so without a key only addresses and localhost are own names.
    """
    origin = request.headers.get("origin", "")
    if not origin or origin in allowed or "*" in allowed:
        return
    host = request.headers.get("host", "")
    own = _host_of(origin) == host.lower() and bool(host)
    if own and (is_own_name(host) or request.identity.key_id):
        return
    raise SmgError(
        ErrorKind.FORBIDDEN,
        "pages of this origin may not use the node (http.cors_allowed_origins)",
        code="origin_not_allowed",
    )


def folded_headers(request: HttpRequest) -> Mapping[str, str]:
    """Return the headers, those of the protocol that came more than once as one value, as HTTP has it.

    Else a proxy that reads the last one would route by what is checked nowhere.
    """
    named = [(name.lower(), value) for name, value in request.head.raw]
    protocols = [name for name, _ in named if name.startswith(b"mcp-")]
    if len(frozenset(protocols)) == len(protocols):
        return request.headers
    folded: dict[bytes, list[bytes]] = {name: [] for name in protocols}
    for name, value in named:
        if name in folded:
            folded[name].append(value.strip())
    joined = {
        name.decode("ascii"): b", ".join(values).decode("utf-8", "surrogateescape")
        for name, values in folded.items()
    }
    return {**request.headers, **joined}


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _seen(
    servers: ToolServers | None, request: HttpRequest, context: RequestContext
) -> Sequence[ResolvedServer]:
    """Return the servers that the caller may use here; those that leave no trace are not among them."""
    if servers is None:
        return ()
    visible = servers.visible(forwardable(request.headers), context)
    return [server for server in visible if not server.spec.internal]


def _reply(message: Result | Refusal | None) -> Reply:
    return Reply(202) if message is None else Reply(message.status, message.body)
