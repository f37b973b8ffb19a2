"""HTTP door: requests by POST, answered by JSON or by a stream of events, which is resumed where that is possible.

Each request has an answer of its own, so a connection that breaks loses one request and no other. A stream of the
handshake era that broke after an event with an id is asked for again by GET, from any connection that has the session
id. Such a GET, made while the call is at work, may stay silent past the call's end where a later one has everything:
so it is given up after `SILENCE_S` and made anew. What a server answers as in a session that it does not know is sent
again, on another connection (`session.forgotten_session`).
"""

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Raw

from smg_node.engines.http.transport import HttpAnswer
from smg_node.engines.transport.transport import TransportError
from smg_node.mcp.doors.door import Exchange, OnChange, OnProgress, Spawn
from smg_node.mcp.doors.http_calls import HttpCalls, header
from smg_node.mcp.failures import Failure, FailureKind, bare_status, lost, unreadable
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.session.forgotten_session import MAY_FORGET, RESENDS_MANY, forgets, resends
from smg_node.mcp.session.session import (
    Answered,
    Notification,
    Outcome,
    Progressed,
    Request,
    Session,
    Success,
    ToolsChanged,
)
from smg_node.mcp.wire.answer_reader import AnswerReader
from smg_node.mcp.wire.headers import GET_HEADERS, LAST_EVENT_ID, SESSION_ID
from smg_node.mcp.wire.messages import Message
from smg_node.mcp.wire.sse_events import SseEvents

RETRY_S: Final = 1.0
"""Before a stream is asked for again, where the server does not say how long."""
RETRY_S_MAX: Final = 30.0
SILENCE_S: Final = 2.0
RESUMES_MAX: Final = 10
_DRAIN_S: Final = 1.0
_TELL_S: Final = 5.0
_LISTEN_RETRY_S_MAX: Final = 60.0
_HARMLESS: Final = ("server/discover", "initialize", "tools/list", "tasks/get")
"""Requests that may be sent again where no answer came: they do nothing."""
_BROKE: Final = "the connection broke before the answer came; what was asked may have run"


class HttpDoor:
    """Door to one URL with one credential. `on_change` is called when the server says that its tools changed."""

    def __init__(
        self, calls: HttpCalls, limits: McpLimits, spawn: Spawn, on_change: OnChange
    ) -> None:
        self.closed = ""
        self._calls = calls
        self._limits = limits
        self._spawn = spawn
        self._on_change = on_change

    async def ask(self, session: Session, request: Request, on_progress: OnProgress) -> Exchange:
        """See `Door`."""
        tries = 0
        while True:
            exchange = await self._asked(session, request, on_progress)
            if not forgets(session, exchange.outcome):
                _note(session, exchange.outcome, tries)
                return exchange
            if tries >= resends(session, _now_s()):
                return exchange
            tries += 1
            session.again(request)

    async def _asked(self, session: Session, request: Request, on_progress: OnProgress) -> Exchange:
        answer = await self._calls.send("POST", request.headers, request.body)
        if isinstance(answer, Failure) and answer.sent and request.method in _HARMLESS:
            # A kept connection may be closed by the server in the moment it is used again.
            answer = await self._calls.send("POST", request.headers, request.body)
        if isinstance(answer, Failure):
            session.close_request(request.id)
            return Exchange(answer)
        reader = AnswerReader(answer.status, dict(answer.headers), self._limits.answer_bytes_max)
        exchange = _Reading(self, session, request.id, on_progress)
        outcome = await exchange.read(answer, reader)
        if outcome is None:
            outcome = await self._after_end(exchange, reader)
            session.close_request(request.id)
        return Exchange(outcome, header(answer, SESSION_ID))

    async def tell(self, session: Session, notification: Notification) -> Failure | None:
        """See `Door`."""
        try:
            async with asyncio.timeout(_TELL_S):
                answer = await self._in_session("POST", session, notification)
        except TimeoutError:
            return lost("a notification was not taken in time", sent=True)
        if isinstance(answer, Failure):
            return answer
        return None if answer.status < 300 else bare_status(answer.status)

    async def listen(self, session: Session, begun: Callable[[], None]) -> Failure | None:
        """See `Door`: a stream by GET, made anew when it ends, until the server says that there is none."""
        if session.revision.modern:
            return None
        stream = SseEvents(self._limits.answer_bytes_max)
        pause_s = RETRY_S
        while not (self.closed or session.ended):
            reading = _Reading(self, session, "", lambda _progress: None)
            answer = await self._get(session, stream.last_id)
            if isinstance(answer, Failure):
                if answer.status and answer.status < 500:
                    return answer
            else:
                begun()
                following = SseEvents(self._limits.answer_bytes_max)
                following.last_id, following.retry_ms = stream.last_id, stream.retry_ms
                await reading.events(answer, following, None)
                stream = following
                pause_s = RETRY_S
            wait_s = max(pause_s, (stream.retry_ms or 0) / 1000)
            pause_s = min(pause_s * 2, _LISTEN_RETRY_S_MAX)
            await asyncio.sleep(min(wait_s, _LISTEN_RETRY_S_MAX))
        return None

    async def end(self, session: Session) -> None:
        """See `Door`: by DELETE."""
        try:
            async with asyncio.timeout(_TELL_S):
                if session.session_id:
                    await self._in_session("DELETE", session, Notification(b"", {}))
        except TimeoutError:
            pass  # The server lets go of it by itself.
        finally:
            session.ended = True

    async def close(self, session: Session | None) -> None:
        """See `Door`."""
        self.closed = "closed"
        if session is not None:
            await self.end(session)
        await self._calls.close()

    async def _in_session(
        self, method: str, session: Session, notification: Notification
    ) -> HttpAnswer | Failure:
        """Send what needs no answer; return the answer, which has been read to its end."""
        headers = {**session.stream_headers(), **notification.headers}
        if method == "DELETE":
            left = RESENDS_MANY if session.scattered else 0
        else:
            left = resends(session, _now_s())
        tries = 0
        while True:
            answer = await self._calls.send(method, headers, notification.body)
            if isinstance(answer, Failure):
                return answer
            await _drained(answer)
            if answer.status not in MAY_FORGET or tries >= left:
                if answer.status < 300:
                    _note(session, Success(Raw(b"")), tries)
                return answer
            tries += 1

    def drain(self, answer: HttpAnswer) -> None:
        """Read to its end a stream of which nothing more is wanted, so that its connection can be used again."""
        self._spawn(_drained(answer))

    def changed(self) -> None:
        """Note that the server's list of tools is out of date."""
        self._on_change()

    async def _after_end(self, reading: "_Reading", reader: AnswerReader) -> Outcome:
        """Return the outcome of a request whose answer ended without one."""
        if reader.failure is not None:
            return reader.failure
        if reader.stream is None:
            if reading.broke:
                return lost(_BROKE, sent=True)
            return unreadable(
                "the server answered another request than it was asked", reader.status
            )
        if reading.session.revision.modern or not reader.stream.last_id:
            return lost(_BROKE, sent=True)
        return await self._resumed(reading, reader.stream)

    async def _resumed(self, reading: "_Reading", stream: SseEvents) -> Outcome:
        left = RESUMES_MAX
        pause_s = _retry_s(stream)
        while left:
            left -= 1
            await asyncio.sleep(pause_s)
            answer = await self._get(reading.session, stream.last_id)
            pause_s = SILENCE_S
            if isinstance(answer, Failure):
                if answer.status and answer.status < 500:
                    return lost(f"{_BROKE}; {answer.message} when asked for the rest", sent=True)
                continue
            resumed = SseEvents(self._limits.answer_bytes_max)
            resumed.last_id = stream.last_id
            reading.heard_any = False
            outcome = await reading.events(answer, resumed, SILENCE_S)
            if outcome is not None:
                return outcome
            if reading.heard_any or resumed.last_id != stream.last_id:
                left = RESUMES_MAX
            pause_s = 0.0 if reading.silent else _retry_s(resumed)
            stream = resumed
        return lost(f"{_BROKE}; it was asked for {RESUMES_MAX} times", sent=True)

    async def _get(self, session: Session, last_id: str) -> HttpAnswer | Failure:
        """Return a stream by GET, or why there is none."""
        headers = {**GET_HEADERS, **session.stream_headers()}
        if last_id:
            headers[LAST_EVENT_ID] = last_id
        tries = 0
        while True:
            answer = await self._calls.send("GET", headers)
            if isinstance(answer, Failure):
                return answer
            is_stream = header(answer, "content-type").lower().startswith("text/event-stream")
            if answer.status == 200 and is_stream:
                _note(session, Success(Raw(b"")), tries)
                return answer
            answer.close()
            if answer.status not in MAY_FORGET or tries >= resends(session, _now_s()):
                return bare_status(answer.status if answer.status != 200 else 406)
            tries += 1


class _Reading:
    """Reading of what belongs to one request, from one answer or several; "" for what belongs to none."""

    def __init__(
        self, door: HttpDoor, session: Session, asked: str, on_progress: OnProgress
    ) -> None:
        self.session = session
        self.broke = False
        self.silent = False
        self.heard_any = False
        self._door = door
        self._asked = asked
        self._on_progress = on_progress

    async def read(self, answer: HttpAnswer, reader: AnswerReader) -> Outcome | None:
        """Return the outcome in an answer, None if it ends without one: then its reader may say why."""
        close = answer.close
        try:
            while reader.failure is None:
                piece = await answer.read()
                messages = reader.feed(piece) if piece else reader.finish()
                outcome = await self._take(messages, answer.status)
                if outcome is not None:
                    if piece:
                        self._door.drain(answer)
                        close = _nothing
                    return outcome
                if not piece:
                    return None
        except TransportError:
            self.broke = True
        finally:
            close()
        return None

    async def events(
        self, answer: HttpAnswer, stream: SseEvents, silence_s: float | None
    ) -> Outcome | None:
        """Return the outcome in a stream by GET, None if it ends, breaks, or is silent for so long."""
        reader = AnswerReader(answer.status, dict(answer.headers), stream.event_bytes_max)
        reader.stream = stream
        self.silent = False
        try:
            while True:
                async with asyncio.timeout(silence_s):
                    piece = await answer.read()
                if not piece:
                    return None
                outcome = await self._take(reader.feed(piece), answer.status)
                if outcome is not None or reader.failure is not None:
                    return outcome or reader.failure
        except TimeoutError:
            self.silent = True
        except TransportError:
            self.broke = True
        finally:
            answer.close()
        return None

    async def _take(self, messages: list[Message], status: int) -> Outcome | None:
        for message in messages:
            self.heard_any = True
            match self.session.heard(message, status=status, asked=self._asked):
                case Answered(id=id_, outcome=outcome) if id_ == self._asked:
                    return outcome
                case Progressed(id=id_) as progress if id_ == self._asked:
                    self._on_progress(progress)
                case ToolsChanged():
                    self._door.changed()
                case Notification() as reply:
                    await self._door.tell(self.session, reply)
                case _:
                    pass
        return None


def _nothing() -> None:
    """Leave an answer open: somebody else reads it to its end."""


async def _drained(answer: HttpAnswer) -> None:
    try:
        async with asyncio.timeout(_DRAIN_S):
            while await answer.read():
                pass
    except (TransportError, TimeoutError):
        pass  # Its connection is not used again.
    finally:
        answer.close()


def _note(session: Session, outcome: Outcome, tries: int) -> None:
    """Note that a server has answered in a session, after it was so often not known."""
    if isinstance(outcome, Success) or outcome.kind is FailureKind.PROTOCOL:
        session.known, session.known_s = True, _now_s()
        session.scattered = session.scattered or tries > 0


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _retry_s(stream: SseEvents) -> float:
    return RETRY_S if stream.retry_ms is None else min(stream.retry_ms / 1000, RETRY_S_MAX)
