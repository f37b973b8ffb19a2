"""Reply stream: one request's answer as server-sent events, kept so that it can be asked for again after a cut."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from smg_chaos.mcp.tools import Progress

_HEADERS: Final = {"content-type": "text/event-stream", "cache-control": "no-store"}
_RETRY_MS: Final = 50


class StreamLog:
    """The events of all streams, by stream; ids are `<stream>-<place>`."""

    def __init__(self) -> None:
        self._streams: dict[str, list[bytes]] = {}
        self._unasked: list[bytes] = []
        """What is said in streams that belong to no request."""
        self._changed = asyncio.Condition()

    def new(self) -> str:
        """Return the name of a new stream."""
        name = f"stream{len(self._streams) + 1}"
        self._streams[name] = []
        return name

    async def add(self, name: str, data: bytes) -> bytes:
        """Keep an event; return it as bytes of a stream."""
        events = self._streams[name]
        event = b"id: %s-%d\nretry: %d\ndata: %s\n\n" % (
            name.encode(),
            len(events),
            _RETRY_MS,
            data,
        )
        events.append(event)
        async with self._changed:
            self._changed.notify_all()
        return event

    async def say(self, body: Mapping[str, Any]) -> None:
        """Say something in every stream that belongs to no request."""
        data = json.dumps({"jsonrpc": "2.0", **body}).encode()
        self._unasked.append(b"data: %s\n\n" % data)
        async with self._changed:
            self._changed.notify_all()

    async def replay(self, request: web.Request) -> web.StreamResponse:
        """Answer a GET: the events after the one it names, as they come; without one, what is said from now on."""
        response = web.StreamResponse(headers=_HEADERS)
        await response.prepare(request)
        name, _, place = request.headers.get("last-event-id", "").rpartition("-")
        events = self._streams.get(name, self._unasked)
        at = int(place) + 1 if name in self._streams and place.isdigit() else len(events)
        while True:
            while at < len(events):
                await response.write(events[at])
                is_result = b'"result"' in events[at] or b'"error"' in events[at]
                at += 1
                if is_result:
                    return response
            async with self._changed:
                await self._changed.wait()


class ReplyStream:
    """The answer to one request; without a log it is no stream, and progress is not told."""

    def __init__(self, request: web.Request, log: StreamLog | None) -> None:
        self._request = request
        self._log = log
        self._response: web.StreamResponse | None = None
        self._name = ""
        self._cut = False

    async def begin(self, *, cut: bool) -> None:
        """Send the head and a first event that only has an id. `cut`: then close the connection, and go on."""
        assert self._log is not None, "only a stream is begun"
        self._name = self._log.new()
        self._response = web.StreamResponse(headers=_HEADERS)
        await self._response.prepare(self._request)
        await self._response.write(await self._log.add(self._name, b""))
        if cut:
            self._cut = True
            self._response.force_close()
            await self._response.write_eof()

    def progress_of(self, token: Any) -> Progress:
        """Return what tells of progress by that token."""

        async def progress(done: int, total: int) -> None:
            if self._log is not None and token is not None:
                params = {"progressToken": token, "progress": done, "total": total}
                await self._send({"method": "notifications/progress", "params": params})

        return progress

    @property
    def response(self) -> web.StreamResponse:
        """The response that was begun."""
        assert self._response is not None, "it was begun"
        return self._response

    async def end(self, body: Mapping[str, Any]) -> None:
        """Send the result, which is the last event."""
        await self._send(body)

    async def _send(self, body: Mapping[str, Any]) -> None:
        assert self._log is not None, "only a stream has events"
        data = json.dumps({"jsonrpc": "2.0", **body}).encode()
        event = await self._log.add(self._name, data)
        if not self._cut:
            await self.response.write(event)
