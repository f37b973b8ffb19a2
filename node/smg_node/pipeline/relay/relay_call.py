"""Relay call: one HTTP worker's answer, piece by piece, with its end, its errors and its API known.

An answer that is not streamed is held back until it is whole, or too large to hold: until then
another worker may give it. A stream is complete when its last event says so; one that ends without
it was cut.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.http.http_engine import HttpEngine, RelayRequest
from smg_node.engines.http.response_stream import HttpStream
from smg_node.engines.http.status_mapping import failure, is_answer
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.relay.relay_headers import from_worker
from smg_node.pipeline.relay.relay_request import Api
from smg_node.pipeline.relay.response_filter import ResponseFilter, failed_at_once

KEPT_MAX_BYTES: Final = 1_048_576
"""So much of an answer that is not streamed is kept back."""
REFUSAL_MAX_BYTES: Final = 65_536
"""What a worker says at most of what is wrong with a request; the rest is cut off."""
_NO_SUCH_API: Final = frozenset({404, 405, 501})
_SSE: Final = "text/event-stream"


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


class MissingError(Exception):
    """The worker does not have that API."""


class RelayCall:
    """One call. `spoke` is called at the first piece; `refused` is the status of an answer that is
    a client error.

    An answer that is not streamed goes through `passage` when `known` returns: by then the figures
    to correct are known.
    """

    def __init__(
        self,
        engine: HttpEngine,
        api: Api,
        passage: ResponseFilter,
        *,
        spoke: Callable[[], None],
        known: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.refused = 0
        self._engine = engine
        self._api = api
        self._passage = passage
        self._spoke = spoke
        self._known = known

    async def pieces(self, request: RelayRequest) -> AsyncGenerator[Head | bytes, None]:
        """Yield the head, then the body. SmgError if there is no answer, or it breaks; `MissingError`."""
        stream = await self._engine.relay(request)
        try:
            if stream.status in _NO_SUCH_API and not self._api.generates:
                self._engine.lacking.add(request.path)
                raise MissingError(request.path)
            if not is_answer(stream.status):
                raise failure(stream.status, stream.headers)
            told = self._refusal if stream.status >= 400 else self._answer
            async with aclosing(told(stream)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            stream.close()

    async def _refusal(self, stream: HttpStream) -> AsyncGenerator[Head | bytes, None]:
        """Yield a worker's answer to a request that the client should not have made."""
        self.refused = stream.status
        head, words = await refusal(self._engine, stream)
        yield head
        yield words

    async def _answer(self, stream: HttpStream) -> AsyncGenerator[Head | bytes, None]:
        head, passage = _head(stream), self._passage
        passage.opaque = "content-encoding" in stream.headers
        kept: list[bytes] | None = None if head.events else []
        size = 0
        begun = False
        while piece := await stream.read():
            if not begun:
                begun = True
                if head.events and not passage.opaque and failed_at_once(piece):
                    raise SmgError(
                        ErrorKind.UPSTREAM_FAILED, "the worker failed before its first word"
                    )
                self._spoke()
                if head.events:
                    yield head
                elif self._known is not None:
                    await self._known()
            size += len(piece)
            piece = passage.feed(piece)
            if kept is None:
                if piece:
                    yield piece
                continue
            kept.append(piece)
            if size > KEPT_MAX_BYTES:
                yield head
                yield b"".join(kept)
                kept = None
        rest = passage.finish()
        if kept is not None:
            yield replace(head, whole=True)
            yield b"".join([*kept, rest])
            return
        if rest:
            yield rest
        if head.events and not passage.done:
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED, "the worker ended its answer before the end of it"
            )


async def refusal(engine: HttpEngine, stream: HttpStream) -> tuple[Head, bytes]:
    """Return head and body of a worker's client error."""
    parts: list[bytes] = []
    size = 0
    while size < REFUSAL_MAX_BYTES and (piece := await stream.read()):
        parts.append(piece)
        size += len(piece)
    words = engine.discreet(b"".join(parts)[:REFUSAL_MAX_BYTES])
    return replace(_head(stream), events=False, whole=True), words


def _head(stream: HttpStream) -> Head:
    kind = stream.headers.get("content-type", "")
    kind = kind if len(kind) <= 256 and kind.isascii() and kind.isprintable() else ""
    return Head(stream.status, kind, from_worker(stream.headers), events=kind.startswith(_SSE))


def may_have(worker: Worker, api: Api) -> bool:
    """Whether a worker may have an API: it speaks HTTP, and was not found to lack it."""
    engine = worker.engine
    if engine is None:
        return worker.relayed is not None
    return isinstance(engine, HttpEngine) and not engine.lacking.issuperset(api.paths)


def path_of(engine: HttpEngine, api: Api) -> str:
    """Return the worker's path of an API, as far as is known."""
    return next((path for path in api.paths if path not in engine.lacking), api.paths[0])
