"""Relay call: one HTTP worker's answer, piece by piece, with its end, its errors and its API known.

An answer that is not streamed is held back until it is whole, or too large to hold: until then
another worker may give it. A stream is held back until its first word, and whole when its finish
reasons say so (`relayed_events`).
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.worker_errors import WorkerError
from smg_node.engines.http.http_engine import HttpEngine, RelayRequest
from smg_node.engines.http.response_stream import HttpStream
from smg_node.engines.http.status_mapping import failure, is_answer
from smg_node.engines.transport.grpc_status import DEADLINE_CODE
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.relay.relay_headers import from_worker
from smg_node.pipeline.relay.relay_request import Api, Relayable
from smg_node.pipeline.relay.relayed_events import RelayedEvents
from smg_node.pipeline.relay.response_filter import ResponseFilter
from smg_node.pipeline.relay.worker_answers import (
    check_answer,
    check_beginning,
    check_end,
    failure_of,
    lacks_route,
    refusal_words,
    refused,
)

KEPT_MAX_BYTES: Final = 1_048_576
"""So much of an answer that is not streamed is kept back."""
REFUSAL_MAX_BYTES: Final = 65_536
"""What a worker says at most of what is wrong with a request; the rest is cut off."""
TAIL_S: Final = 1.0
"""How long a worker may keep its connection open after the last event of a stream."""
_NO_SUCH_API: Final = frozenset({404, 405, 501})
_SSE: Final = "text/event-stream"
_JSON: Final = "application/json"
_PLAIN: Final = ("", "identity")


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers of an answer. `events`: it is an SSE stream. `whole`: the one piece that
    follows is all of it.
    """

    status: int
    content_type: str
    headers: Mapping[str, str]
    events: bool = False
    whole: bool = False


def request_of(
    headers: Mapping[str, str],
    names: tuple[str, str],
    *,
    streamed: bool,
    left_s: float,
    silences: int,
) -> RelayRequest:
    """Return what all calls of a request have in common; path and body are each worker's own.

    `names` are the id of this call, and the request's own. UPSTREAM_TIMEOUT if no time is left.
    """
    if left_s <= 0:
        raise SmgError(
            ErrorKind.UPSTREAM_TIMEOUT,
            "the request's time was up before it was sent",
            code=DEADLINE_CODE,
        )
    return RelayRequest(
        path="",
        body=b"",
        streamed=streamed,
        timeout_s=left_s,
        headers={
            **headers,
            # Servers make their own id of this one, and two of one id are mixed up by some.
            "x-request-id": names[0],
            "x-smg-request-id": names[1],
        },
        silences=silences,
    )


class MissingError(Exception):
    """The worker does not have that API."""


class RelayCall:
    """One call. `spoke` is called at the first word.

    An answer that is not streamed goes through `passage` when `known` returns: by then the figures
    to correct are known. `parsed`: whoever asked reads the answer here, and need not get a stream
    for a stream.
    """

    def __init__(
        self,
        engine: HttpEngine,
        asked: Relayable,
        passage: ResponseFilter,
        *,
        spoke: Callable[[], None],
        known: Callable[[], Awaitable[None]] | None = None,
        parsed: bool = False,
    ) -> None:
        self._engine = engine
        self._asked = asked
        self._passage = passage
        self._spoke = spoke
        self._known = known
        self._parsed = parsed

    async def pieces(self, request: RelayRequest) -> AsyncGenerator[Head | bytes, None]:
        """Yield the head, then the body. SmgError if there is no answer, or it breaks; `MissingError`."""
        stream = await self._engine.relay(request)
        api = None if self._parsed else self._asked.api
        try:
            if stream.status >= 300:
                raise await refusal(
                    self._engine, stream, self._asked.api, request.path, told_in=api
                )
            head = _head(stream)
            self._passage.opaque = not _is_plain(stream)
            told = self._body
            if head.events:
                told = self._unread if self._passage.opaque else self._events
            async with aclosing(told(stream, head)) as pieces:
                async for piece in pieces:
                    yield piece
        except WorkerError as said:
            words = self._engine.discreet(said.message.encode()).decode("utf-8", "replace")
            hidden = WorkerError(said.status, words, said.code, said.param)
            raise failure_of(hidden, api) from said
        finally:
            stream.close()

    # ── A stream ─────────────────────────────────────────────────────────────

    async def _events(self, stream: HttpStream, head: Head) -> AsyncGenerator[Head | bytes, None]:
        if not self._asked.streamed:
            raise _misfit(head)
        events, passage = RelayedEvents(self._asked.answers), self._passage
        said = False
        while piece := await _next(stream, events):
            passed = events.feed(piece)
            if passed and not said:
                said = True
                self._spoke()
                yield head
            if passed := passage.feed(passed) if passed else b"":
                yield passed
            if events.failure is not None:
                break
        rest = events.finish()
        if events.failure is None or rest:
            rest = passage.feed(rest) + passage.finish()
        if rest and not said:
            self._spoke()
            yield head
        if rest:
            yield rest
        if events.failure is not None:
            raise events.failure

    async def _unread(self, stream: HttpStream, head: Head) -> AsyncGenerator[Head | bytes, None]:
        """Yield a compressed stream as it comes: whether it is whole is not known."""
        said = False
        while piece := await stream.read():
            if not said:
                said = True
                self._spoke()
                yield head
            yield piece
        if not said:
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "the worker's answer is empty")

    # ── A body ───────────────────────────────────────────────────────────────

    async def _body(self, stream: HttpStream, head: Head) -> AsyncGenerator[Head | bytes, None]:
        """Yield an answer in one piece, or in pieces where it is large or cannot be read."""
        passage, kept, size = self._passage, list[bytes](), 0
        tail = b""
        while piece := await stream.read():
            if not size:
                self._spoke()
            size += len(piece)
            kept.append(piece)
            if size > KEPT_MAX_BYTES:
                if not tail:
                    self._check_large(head, kept)
                    await self._figures()
                    yield head
                tail = (tail + piece)[-64:]
                if passed := passage.feed(b"".join(kept)):
                    yield passed
                kept = []
        if tail:
            if not passage.opaque:
                check_end(tail)
            if rest := passage.finish():
                yield rest
            return
        body = b"".join(kept)
        self._check(head, body)
        await self._figures()
        yield replace(head, whole=True)
        yield passage.feed(body) + passage.finish()

    async def _figures(self) -> None:
        if self._known is not None:
            await self._known()

    def _check(self, head: Head, body: bytes) -> None:
        if not self._passage.opaque:
            check_answer(self._asked.api, body)
        elif not body:
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "the worker's answer is empty")
        if self._asked.streamed and not self._parsed:
            raise _misfit(head)

    def _check_large(self, head: Head, kept: list[bytes]) -> None:
        if not self._passage.opaque:
            check_beginning(b"".join(kept))
        if self._asked.streamed and not self._parsed:
            raise _misfit(head)


async def _next(stream: HttpStream, events: RelayedEvents) -> bytes:
    """Return the next piece of a stream, b"" at its end; whatever follows its last event is not
    waited for long.
    """
    if not events.done:
        return await stream.read()
    try:
        async with asyncio.timeout(TAIL_S):
            while await stream.read():
                pass
    except (SmgError, TimeoutError):
        pass
    return b""


async def refusal(
    engine: HttpEngine,
    stream: HttpStream,
    api: Api,
    path: str,
    *,
    told_in: Api | None,
) -> Exception:
    """Return the error for an answer whose status is none of success: an SmgError, or a
    `MissingError`.
    """
    status = stream.status
    if status in _NO_SUCH_API and not api.generates:
        engine.lacking.add(path)
        return MissingError(path)
    if not is_answer(status):
        return failure(status, stream.headers)
    said = refusal_words(
        engine.discreet(await _words(stream)), _kind(stream), readable=_is_plain(stream)
    )
    if status not in _NO_SUCH_API:
        return refused(said, status, told_in)
    if lacks_route(said):
        engine.lacking.add(path)
        return MissingError(path)
    return SmgError(
        ErrorKind.UPSTREAM_FAILED, f"the worker does not have what it was asked for: {said.message}"
    )


async def _words(stream: HttpStream) -> bytes:
    """Return what a worker says of an error, as far as it comes."""
    parts: list[bytes] = []
    size = 0
    while size < REFUSAL_MAX_BYTES and (piece := await stream.read()):
        parts.append(piece)
        size += len(piece)
    return b"".join(parts)[:REFUSAL_MAX_BYTES]


def _misfit(head: Head) -> SmgError:
    did = (
        "streamed an answer that was asked for whole"
        if head.events
        else "did not stream its answer"
    )
    return SmgError(ErrorKind.UPSTREAM_FAILED, f"the worker {did}")


def _head(stream: HttpStream) -> Head:
    kind = _kind(stream)
    events = kind.lower().startswith(_SSE)
    # A body was read as JSON, whatever its worker calls it; what cannot be read keeps its name.
    kind = kind if events or not _is_plain(stream) or kind.lower().startswith(_JSON) else ""
    return Head(stream.status, kind, from_worker(stream.headers), events=events)


def _kind(stream: HttpStream) -> str:
    kind = stream.headers.get("content-type", "")
    return kind if len(kind) <= 256 and kind.isascii() and kind.isprintable() else ""


def _is_plain(stream: HttpStream) -> bool:
    """Whether a body is not compressed."""
    return stream.headers.get("content-encoding", "").strip().lower() in _PLAIN


def may_have(worker: Worker, api: Api) -> bool:
    """Whether a worker may have an API: it speaks HTTP, and was not found to lack it."""
    engine = worker.engine
    if engine is None:
        return worker.relayed is not None
    return isinstance(engine, HttpEngine) and not engine.lacking.issuperset(api.paths)


def path_of(engine: HttpEngine, api: Api) -> str:
    """Return the worker's path of an API, as far as is known."""
    return next((path for path in api.paths if path not in engine.lacking), api.paths[0])
