"""Encode legs: the pictures of one engine call, each encoded by a worker of its own, before the call itself.

    encode, encode, …   at once, a call for each picture, on the worker that was chosen by the picture's digest
    then the call       with the rooms in which its engine is handed the encoded pictures, and without their values
                        (rooms); or as it is, because its engine finds them in a store by their hashes (cache)

An encoder accepts a picture and answers; that the embedding arrives is between it and the engine that waits for it. So
a picture that nobody takes breaks the call before it has begun, and it is retried elsewhere as any call is. What
becomes of an accepted one is known by whether the answer begins: until then each encoder is counted in with the
picture's tokens, and an answer that does not begin has them all looked at.

The calls belong to the reader of the stream: closing it cancels those that are under way.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from msgspec.structs import replace

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import Sampling
from smg_node.core.ports import Clock
from smg_node.engines.chunk import Chunk
from smg_node.engines.chunk_stream import ChunkStream, Pass, Take
from smg_node.engines.contracts.media.item_cuts import Item, items_of, single
from smg_node.engines.disaggregation import Encoding, Room
from smg_node.engines.engine import Encoder, EngineRequest, ModelCard
from smg_node.engines.transport.grpc_status import DEADLINE_CODE
from smg_node.media.engine_media import TensorBatch
from smg_node.native.stream_messages import ChunkReader
from smg_node.pipeline.reservation import Reservation

Begin: TypeAlias = Callable[[EngineRequest], ChunkStream]

AT_ONCE_MAX: Final = 16
"""Encode calls of one request that run at a time: each holds its picture's message until it is sent."""
_ONE_TOKEN: Final = Sampling(max_tokens=1, ignore_eos=True, temperature=0.0)
"""What an engine without a call for it draws after a picture; nobody reads it."""


@dataclass(frozen=True, slots=True)
class EncodeParts:
    """Collaborators of all encode calls: built once, with the first of them."""

    clock: Clock
    observe: Callable[[str, float], None]
    """Told how one encode call ended (ok, failed, cancelled), and how many seconds it took."""


class EncodeLegs:
    """The encoders of one call, one reservation a picture, in their order.

    `numbers` are those of their rooms. Each has `timeout_s` for its picture.
    """

    def __init__(
        self,
        parts: EncodeParts,
        style: Encoding,
        holds: Sequence[Reservation],
        numbers: Sequence[int],
        *,
        timeout_s: float,
    ) -> None:
        assert holds, "a call without pictures has no encoders"
        assert len(holds) == len(numbers), "each picture has a room"
        self.fault: Reservation | None = None
        """That of the encoder that broke first; None while none has."""
        self._parts = parts
        self._style: Final = style
        self._holds = holds
        self._numbers = numbers
        self._timeout_s = timeout_s
        self._accepted = False

    def seen_by(self, card: ModelCard) -> ModelCard:
        """Return the card of the engine that is handed the values of pictures, where `card` is that of the call's own."""
        return self._holds[0].card if self._style == "room" else card

    def stream(self, request: EngineRequest, begin: Begin) -> ChunkStream:
        """Return the stream of a call that `begin` begins once its pictures are encoded."""
        media = request.media
        if isinstance(media, TensorBatch) and len(media.ranges) == len(self._holds):
            return EncodedStream(self, request, begin)
        # It is handed to its engine in a form that no encoder takes.
        self.release(self._parts.clock.monotonic_s())
        return begin(request)

    async def encode(self, request: EngineRequest) -> EngineRequest:
        """Have all pictures of `request` encoded, and return the request to the engine that is handed them.

        The first SmgError cancels the other calls, and is raised when they have ended.
        """
        batch, began_s = request.media, self._parts.clock.monotonic_s()
        assert isinstance(batch, TensorBatch), "see `stream`"
        waiting = list(enumerate(items_of(batch)))
        waiting.reverse()

        async def work() -> None:
            while waiting:
                at, item = waiting.pop()
                await self._encoded(at, self._asked(request, batch, at, item))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(AT_ONCE_MAX, len(waiting))):
                    group.create_task(work(), name="encode leg")
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0]  # noqa: B904  # its own cause is what tells why
        left_s = request.timeout_s - (self._parts.clock.monotonic_s() - began_s)
        if left_s <= 0:
            raise SmgError(
                ErrorKind.UPSTREAM_TIMEOUT,
                "the request's time was up when its pictures were encoded",
                code=DEADLINE_CODE,
            )
        self._accepted = True
        if self._style == "cache":
            return replace(request, timeout_s=left_s)
        return replace(request, timeout_s=left_s, rooms=self._rooms(), pixels=False)

    def begun(self) -> None:
        """Take in that the answer has begun: every picture has arrived."""
        now_s = self._parts.clock.monotonic_s()
        for hold in self._holds:
            hold.ended(now_s)
            hold.release(now_s)

    def broke(self) -> None:
        """Take in that the answer broke before it began: pictures that were accepted may not have arrived.

        Nobody knows whose fault that is; an encoder that is gone is found by looking.
        """
        if self._accepted:
            for hold in self._holds:
                hold.worker.suspect()

    def release(self, now_s: float) -> None:
        """Count all encoders out; harmless the second time."""
        for hold in self._holds:
            hold.release(now_s)

    def _rooms(self) -> tuple[Room, ...]:
        pairs = zip(self._holds, self._numbers, strict=True)
        return tuple([Room(*hold.worker.meeting, number) for hold, number in pairs])

    def _asked(
        self, request: EngineRequest, batch: TensorBatch, at: int, item: Item
    ) -> EngineRequest:
        """Return the request to the encoder of picture `at`: its place in the prompt, and its tensors."""
        place, hold = batch.ranges[at], self._holds[at]
        return replace(
            request,
            # New for every attempt, as that of the call is; engines tell pictures apart by it.
            request_id=f"{request.request_id}-e{at}",
            ids=request.ids[place.offset : place.offset + place.length],
            sampling=_ONE_TOKEN,
            timeout_s=min(request.timeout_s, self._timeout_s),
            room=Room("", 0, self._numbers[at]) if self._style == "room" else None,
            transfer="",
            rank=hold.rank,
            packed=None,
            media=single(batch, at, item),
        )

    async def _encoded(self, at: int, request: EngineRequest) -> None:
        """Have one picture encoded; its encoder is judged by how that goes."""
        parts, hold = self._parts, self._holds[at]
        encoder, began_s = hold.engine, parts.clock.monotonic_s()
        assert isinstance(encoder, Encoder), "only such workers are chosen"
        said = "cancelled"
        try:
            await encoder.encode(request)
            said = "ok"
        except SmgError as error:
            said = "failed"
            why = _limited(error, request.timeout_s, self._timeout_s)
            if self.fault is None:
                self.fault = hold
                hold.failed(why, parts.clock.monotonic_s())
            raise why from error.__cause__
        finally:
            parts.observe(said, parts.clock.monotonic_s() - began_s)


class EncodedStream:
    """The stream of a call whose pictures are encoded first; see `ChunkStream`. It begins when it is first read."""

    def __init__(self, legs: EncodeLegs, request: EngineRequest, begin: Begin) -> None:
        self._legs = legs
        self._request: EngineRequest | None = request
        self._begin = begin
        self._call: ChunkStream | None = None
        self._pass: Pass | None = None

    @property
    def plain(self) -> ChunkReader | None:
        """See `ChunkStream`: what the call itself says, once it has begun."""
        return None if self._call is None else self._call.plain

    @property
    def shared(self) -> bool:
        """Whether any tensor went through shared memory to who works the prompt off; see `SharedCall`."""
        return bool(getattr(self._call, "shared", False))

    def pass_by(self, first: Pass | None) -> None:
        """See `ChunkStream`."""
        self._pass = first
        if self._call is not None:
            self._call.pass_by(first)

    async def pour(self, take: Take) -> bool:
        """See `ChunkStream`."""
        if self._call is not None:
            return await self._call.pour(take)
        legs, said = self._legs, False
        request, self._request = self._request, None
        assert request is not None, "it begins once"
        call = self._call = self._begin(await legs.encode(request))
        # Tensors are as large as pictures, and the answer may take minutes.
        del request
        call.pass_by(self._pass)

        def first(chunks: Sequence[Chunk]) -> bool:
            nonlocal said
            if not said:
                said = True
                legs.begun()
            return take(chunks)

        try:
            return await call.pour(first)
        except SmgError:
            if not said:
                legs.broke()
            raise

    async def aclose(self) -> None:
        """See `ChunkStream`."""
        if self._call is not None:
            await self._call.aclose()


def _limited(error: SmgError, allowed_s: float, limit_s: float) -> SmgError:
    """Return the error of an encoder that took too long in the words of what was up; any other as it is.

    That the request's own time was up says nothing of its encoder.
    """
    if error.kind is not ErrorKind.UPSTREAM_TIMEOUT:
        return error
    if allowed_s < limit_s:
        return SmgError(
            ErrorKind.UPSTREAM_TIMEOUT,
            "the request's time was up while its pictures were encoded",
            code=DEADLINE_CODE,
        )
    return SmgError(
        ErrorKind.UPSTREAM_TIMEOUT,
        f"the engine that encodes pictures took longer than {limit_s:g} s (routing.encode_timeout_s)",
        code="encode_timeout",
    )
