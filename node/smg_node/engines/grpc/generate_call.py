"""Generate call: one running Generate RPC; delivers chunks within the wake-up that brings them.

Its holder owns the call and its timer: closing it resets the stream at the engine at once.
"""

from collections.abc import Sequence
from typing import Protocol

from smg_node.core.errors import SmgError
from smg_node.engines.chunk import Chunk
from smg_node.engines.chunk_stream import Pass, Take
from smg_node.engines.engine import EngineRequest
from smg_node.engines.grpc.stream_reader import StreamReader
from smg_node.engines.transport.stream_timeouts import Watch, Watches
from smg_node.engines.transport.transport import MessageStream, TransportError
from smg_node.native.stream_messages import ChunkReader


class Owner(Protocol):
    """Interface of the engine that a call belongs to."""

    def finish(self, running: "RemoteCall") -> None:
        """Let go of a call, however it ended."""
        ...

    def why(self, running: "RemoteCall", error: TransportError) -> SmgError:
        """Count a call that broke at the transport, and return the error its caller gets."""
        ...

    def note_broken(self, error: SmgError) -> None:
        """Count a call whose messages made no sense."""
        ...


class RemoteCall(Watch):
    """One running generation with its own timeouts; see `ChunkStream`."""

    _take: Take

    __slots__ = (
        "_broken",
        "_closed",
        "_engine",
        "_enough",
        "_pass",
        "_reader",
        "_stream",
        "_take",
        "ended",
        "request_id",
    )

    def __init__(
        self,
        engine: Owner,
        request: EngineRequest,
        stream: MessageStream,
        reader: StreamReader,
        watches: Watches,
        *,
        first_event_s: float | None,
        stall_s: float | None,
    ) -> None:
        self._begin(watches, stream.cancel, request.timeout_s, first_event_s, stall_s)
        self._engine = engine
        self._stream = stream
        self._reader = reader
        self._broken: SmgError | None = None
        self._pass: Pass | None = None
        self._closed = self.ended = False
        """`ended` is whether the call has ended by itself."""
        self.request_id = request.request_id

    @property
    def abandoned(self) -> bool:
        """Whether the engine has to be told to stop: it does not end by itself, and does not know."""
        return not (self.ended or self._reader.aborted or self._reader.over)

    async def pour(self, take: Take) -> bool:
        """See `ChunkStream`."""
        reader = self._reader
        self._take, self._enough = take, False
        try:
            if self._broken is None:
                self.ended = await self._stream.pour(self._hand)
            if self._broken is not None:
                raise self._broken
            if self._enough:
                return False
            if not reader.over and (ends := reader.end()):
                take(ends)
        except TransportError as error:
            # Once all is said, how the call ends is of no interest; an abort of ours is how it should end.
            if not (reader.over or reader.aborted):
                raise self._engine.why(self, error) from error
            if ends := reader.end():
                take(ends)
        except SmgError as error:
            self._engine.note_broken(error)
            raise
        return True

    @property
    def plain(self) -> ChunkReader | None:
        """See `ChunkStream`."""
        return self._reader.plain

    def pass_by(self, first: Pass | None) -> None:
        """See `ChunkStream`."""
        self._pass = first

    def abort(self) -> None:
        """End the call with `abort`, at this node's own wish."""
        self._reader.aborted = True
        self._stream.cancel()

    async def aclose(self) -> None:
        """See `ChunkStream`."""
        if not self._closed:
            self._closed = True
            self.stop()
            self._stream.cancel()
            self._engine.finish(self)

    def _hand(self, batch: Sequence[bytes]) -> bool:
        """Take the messages of one wake-up; say whether more is wanted of the transport.

        A call whose answer is complete is read on to its end, for as long as its watch lets it.
        """
        reader = self._reader
        if reader.over:
            return True
        self._begun = True
        self._last_at = self._watches.time()
        if self._pass is not None:
            more = self._pass(batch)
            if more is not None:
                self._enough = not more
                return more
        chunks: list[Chunk] = []
        try:
            reader.take(batch, chunks)
        except SmgError as error:
            # What came before it is right, and is told first.
            self._broken = error
        if chunks and not self._take(chunks):
            self._enough = True
        if reader.over and not self._stream.ended:
            self.complete()
        return not self._enough and self._broken is None
