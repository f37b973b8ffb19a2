"""Media call: a Generate call of a request with pictures: checked, its tensors in shared memory where they can be.

Tensors in messages begin to go at once, as all calls do. To write them into shared memory takes tens of milliseconds
for a large picture, so that is done in a thread when the call is first read, and the call begins after it. However it
ends, what the engine did not read is removed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import structs

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.chunk import Chunk
from smg_node.engines.chunk_stream import ChunkStream, Pass, Take
from smg_node.engines.contracts.media.checks import MediaCheckError, check_media, shapes
from smg_node.engines.contracts.wire import NOWHERE, EncodeWire, MediaWire, Places, Wire
from smg_node.engines.engine import EngineRequest, MediaCard
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.shared_memory import SharedMemory
from smg_node.engines.transport.message_pieces import MessagePieces
from smg_node.engines.transport.transport import StatusCode, TransportError
from smg_node.media.engine_media import Tensor
from smg_node.native.stream_messages import ChunkReader

Begin: TypeAlias = Callable[[EngineRequest, Places], ChunkStream]
"""Begins the call itself."""
Send: TypeAlias = Callable[[MessagePieces], Awaitable[bytes]]
"""Sends a message, and returns its answer."""

_UNREAD: Final = frozenset(
    {
        StatusCode.INTERNAL,
        StatusCode.INVALID_ARGUMENT,
        StatusCode.NOT_FOUND,
        StatusCode.PERMISSION_DENIED,
        StatusCode.UNKNOWN,
    }
)
"""How engines end a call whose file they cannot open."""
_NO_PICTURES: Final = MediaCard(ways=frozenset())
_log = logging.getLogger("smg_node.engines")


class MediaCalls:
    """The calls with pictures to one engine. Until it is met, only its limits are not known."""

    def __init__(self, wire: Wire, options: EngineOptions, target: str) -> None:
        self._wire = wire
        # Asked once: it takes tens of microseconds.
        self._media_wire = wire if isinstance(wire, MediaWire) else None
        self._encode_wire = wire if isinstance(wire, EncodeWire) else None
        self._options = options
        self._target = target
        self._card: MediaCard | None = None
        self._memory: SharedMemory | None = None
        """Where this engine can open tensors by name."""

    async def meet(self, card: MediaCard | None) -> None:
        """Note what the engine says of pictures now, None for that it takes none."""
        self._card, self._memory = card or _NO_PICTURES, None
        if self._card.shared_memory and self._options.open_memory is not None:
            memory = await asyncio.to_thread(self._options.open_memory)
            if memory.namespace == self._card.shared_memory:
                self._memory = memory

    def call(self, request: EngineRequest, begin: Begin, plain: ChunkReader | None) -> ChunkStream:
        """Begin a call; INTERNAL, logged with shapes, for one whose pictures may not be sent.

        `begin` begins one whose tensors are in place.
        """
        wire = self._checked(request)
        memory = self._memory
        tensors = wire.shareable(request) if memory is not None else {}
        if memory is None or not tensors:
            return begin(request, NOWHERE)
        return SharedCall(memory, request, tensors, begin, self._distrust, plain)

    def body(self, request: EngineRequest, bias_width: int | None, places: Places) -> MessagePieces:
        """Return the GenerateRequest of a checked request; TOO_LARGE for one over the bound."""
        wire = self._media_wire
        assert wire is not None, "it was checked"
        return self._bounded(wire.generate_media(request, bias_width=bias_width, places=places))

    async def encode(self, request: EngineRequest, send: Send) -> None:
        """Have one picture encoded in a room; return when it was accepted. `send` sends the message, and has its answer.

        The engine has read what lies in shared memory when it answers.
        """
        checked, wire, memory = self._checked(request), self._encode_wire, self._memory
        assert wire is not None, "the contract has a service for it"
        tensors = checked.shareable(request) if memory is not None else {}
        places: dict[str, str] = {}
        try:
            if memory is not None and tensors:
                await _written(memory, tensors, places)
            answer = await send(self._bounded(wire.encode(request, places=places)))
        except SmgError as error:
            cause = error.__cause__
            if places and isinstance(cause, TransportError) and cause.status in _UNREAD:
                self._distrust()
            raise
        finally:
            if memory is not None and places:
                memory.release(tuple(places.values()))
        if not wire.accepted(answer):
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                "the engine did not take the picture",
                code="encode_refused",
            )

    def _bounded(self, body: MessagePieces) -> MessagePieces:
        most = self._options.media_message_max_bytes
        if len(body) > most:
            raise SmgError(
                ErrorKind.TOO_LARGE,
                f"the pictures make a message of {len(body)} bytes for the engine, at most {most} are sent"
                " (engine.media_message_max_bytes): send fewer or smaller ones, or have a lower max_pixels set for"
                " this model",
            )
        return body

    def _checked(self, request: EngineRequest) -> MediaWire:
        wire, media = self._media_wire, request.media
        assert media is not None
        try:
            if wire is None:
                raise MediaCheckError("this contract has no pictures")
            check_media(request, self._card)
        except MediaCheckError as error:
            name = self._wire.contract.value
            _log.error(
                "pictures for %s at %s were not sent: %s (%s)",
                name, self._target, error.found, shapes(media),
            )  # fmt: skip
            raise
        return wire

    def _distrust(self) -> None:
        """Send tensors in messages until the engine is asked again who it is."""
        if self._memory is not None:
            self._memory = None
            _log.warning(
                "%s at %s seems not to read tensors in shared memory: they go in messages from now on",
                self._wire.contract.value,
                self._target,
            )


async def _written(
    memory: SharedMemory, tensors: Mapping[str, Tensor], places: dict[str, str]
) -> None:
    """Write tensors into shared memory, in a thread; those for which there is no room stay where they are."""
    left = False

    def write() -> None:
        for key, tensor in tensors.items():
            name = None if left else memory.write(tensor.pieces)
            if name is not None:
                places[key] = name

    writing = asyncio.get_running_loop().run_in_executor(None, write)
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        left = True
        writing.add_done_callback(lambda _: memory.release(tuple(places.values())))
        raise


class SharedCall:
    """A call whose tensors go through shared memory; see `ChunkStream`. It begins when it is first read.

    `begin` begins the call with those in place that were written; a file that cannot be written is none. `unread` is
    called where the engine seems not to have been able to open a file.
    """

    def __init__(
        self,
        memory: SharedMemory,
        request: EngineRequest,
        tensors: Mapping[str, Tensor],
        begin: Begin,
        unread: Callable[[], None],
        plain: ChunkReader | None,
    ) -> None:
        self._memory = memory
        self._request = request
        self._tensors = tensors
        self._begin = begin
        self._unread = unread
        self._plain = plain
        self._pass: Pass | None = None
        self._call: ChunkStream | None = None
        self._places: dict[str, str] = {}
        self._closed = False

    @property
    def plain(self) -> ChunkReader | None:
        """See `ChunkStream`."""
        return self._plain

    @property
    def shared(self) -> bool:
        """Whether any tensor went through shared memory."""
        return bool(self._places)

    def pass_by(self, first: Pass | None) -> None:
        """See `ChunkStream`."""
        self._pass = first
        if self._call is not None:
            self._call.pass_by(first)

    async def pour(self, take: Take) -> bool:
        """See `ChunkStream`."""
        if self._call is not None:
            return await self._call.pour(take)
        call, said = await self._begun(), False

        def first(chunks: Sequence[Chunk]) -> bool:
            nonlocal said
            said = True
            return take(chunks)

        try:
            return await call.pour(first)
        except SmgError as error:
            cause = error.__cause__
            # Of an engine that has said something the tensors were read.
            if not said and isinstance(cause, TransportError) and cause.status in _UNREAD:
                self._unread()
            raise

    async def aclose(self) -> None:
        """See `ChunkStream`."""
        self._closed = True
        if self._call is not None:
            await self._call.aclose()
        self._let_go()

    async def _begun(self) -> ChunkStream:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._request.timeout_s
        writing = loop.run_in_executor(None, self._write)
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            writing.add_done_callback(lambda _: self._let_go())
            raise
        left_s = max(until_s - loop.time(), 0.001)
        request = structs.replace(self._request, timeout_s=left_s)
        self._call = self._begin(request, self._places)
        # Its pictures may be let go of before the answer is over.
        self._tensors, self._request = {}, structs.replace(request, media=None)
        self._call.pass_by(self._pass)
        return self._call

    def _write(self) -> None:
        """Write the tensors, in a thread; those for which there is no room stay where they are."""
        for key, tensor in self._tensors.items():
            name = None if self._closed else self._memory.write(tensor.pieces)
            if name is not None:
                self._places[key] = name

    def _let_go(self) -> None:
        self._memory.release(tuple(self._places.values()))
