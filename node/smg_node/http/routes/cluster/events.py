"""Event routes: the cluster's events, as a list or as a stream of server-sent events.

A stream begins at once with a comment, carries each event with its id, so that a client that was
cut off can go on with `Last-Event-ID`, and ends when the node stops listening: no drain waits for a
watcher.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.message.event_stream import EventStream
from smg_node.http.message.field_reader import query_switch
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.message.reply import Reply, Streamed, json_reply
from smg_node.http.middleware.inflight import Inflight
from smg_node.http.ports.node import Cluster, ClusterEvent
from smg_node.http.query_bounds import EVENT_ID_DIGITS_MAX
from smg_node.http.routes.inference.answer_headers import close_events

WATCHERS_MAX: Final = 64
"""More people than look at one node; each holds a connection."""
_HELLO: Final = b": watching\n\n"


class EventRoutes:
    """Serves the events of the members."""

    def __init__(self, cluster: Cluster, pulse: KeepaliveTimer, inflight: Inflight) -> None:
        self._cluster = cluster
        self._pulse = pulse
        self._inflight = inflight
        self._encode = msgspec.json.Encoder().encode

    async def events(self, request: HttpRequest) -> Reply | Streamed:
        """Return the events after `?after=`; with `?stream=true` go on as they happen."""
        after = _after(request.query, request.headers)
        if query_switch(request, "stream") and request.method != "HEAD":
            return await self._stream(request, after)
        card = self._cluster.card()
        events = self._cluster.events(after)
        return json_reply({"node": card.node, "boot": card.boot, "events": events})

    async def _stream(self, request: HttpRequest, after: int) -> Streamed:
        if self._inflight.watching >= WATCHERS_MAX:
            raise SmgError(
                ErrorKind.OVERLOADED,
                f"{WATCHERS_MAX} clients watch this node already",
                code="too_many_watchers",
                retry_after_s=10.0,
            )
        self._inflight.watch(request)
        stream = EventStream(request.wire, lambda: request.reply_headers)
        self._pulse.add(stream)
        events = self._cluster.watch(after)
        try:
            await stream.send(_HELLO)
            async for event in events:
                await stream.send(self._frame(event))
            stream.end(b"")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if request.cut is None or task is None:
                raise
            task.uncancel()
            stream.end(b"")
        finally:
            self._pulse.remove(stream)
            await close_events(events)
        return Streamed()

    def _frame(self, event: ClusterEvent) -> bytes:
        head = f"id: {event.id}\nevent: {event.kind}\ndata: ".encode()
        return head + self._encode(event) + b"\n\n"


def _after(query: Mapping[str, str], headers: Mapping[str, str]) -> int:
    """Return the id after which to begin: the query's, else the last one a reconnecting client saw,
    else 0.
    """
    text = query["after"] if "after" in query else headers.get("last-event-id") or "0"
    if not (text.isascii() and text.isdecimal() and len(text) <= EVENT_ID_DIGITS_MAX):
        raise invalid("after must be the id of an event", "after")
    return int(text)
