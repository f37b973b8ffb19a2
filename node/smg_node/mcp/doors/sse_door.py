"""SSE door, the transport of 2024-11-05: requests by POST, all answers in one stream of events.

The stream's first event says where requests go; an address of another origin is refused. When the stream ends, all that
was asked is lost, which is why that transport was given up.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from smg_node.engines.http.transport import HttpAnswer
from smg_node.engines.transport.transport import TransportError
from smg_node.mcp.doors.door import Exchange, OnChange, OnProgress, Spawn
from smg_node.mcp.doors.http_calls import HttpCalls, header
from smg_node.mcp.doors.open_answers import OpenAnswers
from smg_node.mcp.failures import Failure, bare_status, lost, refused, timed_out, unreadable
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.session.session import Notification, Request, Session
from smg_node.mcp.wire.answer_reader import AnswerReader
from smg_node.mcp.wire.headers import GET_HEADERS, POST_HEADERS
from smg_node.mcp.wire.messages import ErrorAnswer, WireError, read_messages
from smg_node.mcp.wire.sse_events import SseEvent, SseEvents, TooLargeError

_PIECES_MAX: Final = 64
"""Of the body of an answer by POST, which holds nothing that is needed."""
_TELL_S: Final = 5.0


class SseDoor:
    """Door to one URL with one credential, after `open`."""

    def __init__(
        self, calls: HttpCalls, limits: McpLimits, spawn: Spawn, on_change: OnChange
    ) -> None:
        self.closed = "not open"
        self._calls = calls
        self._limits = limits
        self._spawn = spawn
        self._open = OpenAnswers(on_change)
        self._stream: HttpAnswer | None = None
        self._endpoint = ""

    async def open(self) -> Failure | None:
        """Open the stream and learn where requests go; return why not."""
        answer = await self._calls.send("GET", GET_HEADERS)
        if isinstance(answer, Failure):
            return answer
        is_stream = header(answer, "content-type").lower().startswith("text/event-stream")
        if answer.status != 200 or not is_stream:
            answer.close()
            what = "it answers GET with no stream of events"
            return bare_status(answer.status) if answer.status != 200 else unreadable(what)
        stream = SseEvents(self._limits.answer_bytes_max)
        try:
            async with asyncio.timeout(self._limits.connect_s):
                failure, rest = await self._first_event(answer, stream)
        except TimeoutError:
            failure, rest = (
                timed_out("it opens a stream and says no endpoint in it", sent=False),
                [],
            )
        if failure is not None:
            answer.close()
            return failure
        self._stream, self.closed = answer, ""
        self._spawn(self._follow(answer, stream, rest))
        return None

    async def ask(self, session: Session, request: Request, on_progress: OnProgress) -> Exchange:
        """See `Door`."""
        if self.closed:
            session.close_request(request.id)
            return Exchange(lost(self.closed, sent=False))
        answer = self._open.expect(session, request, on_progress)
        try:
            failure = await self._post(request.body)
            if failure is not None and not answer.done():
                session.close_request(request.id)
                return Exchange(failure)
            return Exchange(await answer)
        finally:
            self._open.forget(request)

    async def tell(self, session: Session, notification: Notification) -> Failure | None:
        """See `Door`."""
        return await self._told(notification)

    async def listen(self, session: Session, begun: Callable[[], None]) -> Failure | None:
        """See `Door`: its one stream is followed anyway."""
        return None

    async def end(self, session: Session) -> None:
        """See `Door`: its end is that of the stream."""

    async def close(self, session: Session | None) -> None:
        """See `Door`: the end of the stream ends the session."""
        self.closed = self.closed or "closed"
        if self._stream is not None:
            self._stream.close()
        await self._calls.close()

    async def _first_event(
        self, answer: HttpAnswer, stream: SseEvents
    ) -> tuple[Failure | None, list[SseEvent]]:
        """Take the endpoint; return why it cannot be, and the events that came with it."""
        try:
            while piece := await answer.read():
                events = stream.feed(piece)
                if events:
                    return self._endpoint_of(events[0]), events[1:]
        except (TransportError, TooLargeError):
            pass
        return unreadable("its stream of events ended before it said an endpoint"), []

    def _endpoint_of(self, event: SseEvent) -> Failure | None:
        if event.name != "endpoint":
            return unreadable("the first event of its stream is no endpoint")
        url = self._calls.within_origin(event.data.decode("utf-8", "replace").strip())
        if url is None:
            return refused("its endpoint is of another origin")
        self._endpoint = url
        return None

    async def _follow(self, answer: HttpAnswer, stream: SseEvents, events: list[SseEvent]) -> None:
        why = "the stream of events ended"
        try:
            self._hear(events)
            while piece := await answer.read():
                self._hear(stream.feed(piece))
        except TransportError:
            why = "the stream of events broke"
        except TooLargeError:
            why = f"the answer is larger than {self._limits.answer_bytes_max} bytes (mcp.answer_bytes_max)"
        finally:
            answer.close()
            self.closed = self.closed or why
            self._open.lose(why)

    def _hear(self, events: list[SseEvent]) -> None:
        for event in events:
            if event.name != "message":
                continue
            try:
                self._open.hear(read_messages(event.data))
            except WireError:
                continue  # It is nobody's answer; whoever waits for one has a time limit.
        replies, self._open.replies = self._open.replies, []
        for reply in replies:
            self._spawn(self._reply(reply))

    async def _reply(self, reply: Notification) -> None:
        await self._told(reply)

    async def _told(self, notification: Notification) -> Failure | None:
        try:
            async with asyncio.timeout(_TELL_S):
                return await self._post(notification.body)
        except TimeoutError:
            return lost("a notification was not taken in time", sent=True)

    async def _post(self, body: bytes) -> Failure | None:
        answer = await self._calls.send("POST", POST_HEADERS, body, self._endpoint)
        if isinstance(answer, Failure):
            return answer
        try:
            reader = AnswerReader(max(answer.status, 300), dict(answer.headers), 1 << 20)
            for _ in range(_PIECES_MAX):
                piece = await answer.read()
                if not piece:
                    break
                reader.feed(piece)
        except TransportError:
            return None if answer.status < 300 else bare_status(answer.status)
        finally:
            answer.close()
        return None if answer.status < 300 else _refusal(reader)


def _refusal(reader: AnswerReader) -> Failure:
    """Return the failure of a request that was not taken."""
    errors = [one for one in reader.finish() if isinstance(one, ErrorAnswer)]
    failure = reader.failure or bare_status(reader.status)
    return failure.with_note(errors[0].message) if errors and errors[0].message else failure
