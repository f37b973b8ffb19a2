"""Old transport of an MCP server on purpose: a stream by GET that carries all answers, requests by POST."""

import asyncio
import json
from typing import Any, Final

from aiohttp import web

from smg_chaos.mcp.book import Book
from smg_chaos.mcp.conversation import Conversation
from smg_chaos.mcp.tools import Progress, RpcError

_HEADERS: Final = {"content-type": "text/event-stream", "cache-control": "no-store"}


class OldTransport:
    """The streams of one server, and what is sent in them."""

    def __init__(self, group: asyncio.TaskGroup, conversation: Conversation, book: Book) -> None:
        self._group = group
        self._conversation = conversation
        self._book = book
        self._streams: dict[str, asyncio.Queue[bytes | None]] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._opened = 0

    def close(self) -> None:
        """End all streams, and what runs for them."""
        for running in self._running.values():
            running.cancel()
        for queue in self._streams.values():
            queue.put_nowait(None)

    async def open(self, request: web.Request) -> web.StreamResponse:
        """Answer the GET of a client: say where it posts, then all answers."""
        self._opened += 1
        name = f"old-{self._opened}"
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._streams[name] = queue
        response = web.StreamResponse(headers=_HEADERS)
        await response.prepare(request)
        try:
            await response.write(f"event: endpoint\ndata: /messages?session={name}\n\n".encode())
            while (event := await queue.get()) is not None:
                await response.write(event)
        finally:
            del self._streams[name]
        return response

    async def post(self, request: web.Request) -> web.Response:
        """Answer a POST with 202, and what it asks in the stream."""
        queue = self._streams.get(request.query.get("session", ""))
        if queue is None:
            return web.Response(status=404)
        message = json.loads(await request.read())
        if message.get("id") is None or "method" not in message:
            self._noted(message)
            return web.Response(status=202)
        self._book.methods[message["method"]] += 1
        answering = self._group.create_task(self._answer(message, queue))
        self._running[str(message["id"])] = answering
        return web.Response(status=202)

    def _noted(self, message: Any) -> None:
        if message.get("method") == "notifications/cancelled":
            running = self._running.get(str(message["params"]["requestId"]))
            if running is not None and running.cancel():
                self._book.cancelled += 1

    async def _answer(self, message: Any, queue: asyncio.Queue[bytes | None]) -> None:
        try:
            whole = await self._whole(message, queue)
        finally:
            self._running.pop(str(message["id"]), None)
        queue.put_nowait(_event({"id": message["id"], **whole}))

    async def _whole(self, message: Any, queue: asyncio.Queue[bytes | None]) -> dict[str, Any]:
        token = (message.get("params") or {}).get("_meta", {}).get("progressToken")
        try:
            return {"result": await self._conversation.answer(message, _progress(queue, token))}
        except RpcError as error:
            return {"error": {"code": error.code, "message": error.message}}


def _progress(queue: asyncio.Queue[bytes | None], token: Any) -> Progress:
    async def progress(done: int, total: int) -> None:
        if token is not None:
            params = {"progressToken": token, "progress": done, "total": total}
            queue.put_nowait(_event({"method": "notifications/progress", "params": params}))

    return progress


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps({"jsonrpc": "2.0", **body}).encode() + b"\n\n"
