"""Chunk stream: interface of one running generation call: its single reader, its end, its
cancellation.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import ClassVar, Protocol, TypeAlias

from smg_node.engines.chunk import Chunk
from smg_node.native.stream_messages import ChunkReader

Take: TypeAlias = Callable[[Sequence[Chunk]], bool]
"""Told what one wake-up brought, at least one chunk; says whether it wants more."""
Pass: TypeAlias = Callable[[Sequence[bytes]], bool | None]
"""Shown the messages of one wake-up before anybody makes chunks of them: whether it wants more, None if they are not for it."""


class ChunkStream(Protocol):
    """The chunks of one call, for one reader at a time. The caller that began it closes it, however
    it ended.
    """

    async def pour(self, take: Take) -> bool:
        """Hand what each wake-up brings to `take`, within that wake-up, until there is no more of it.

        True when every choice has had its `finish`; False when `take` had enough, and what is said from then on
        waits at the engine until it is poured again. Raises `SmgError` as told at `Engine.generate`, and
        whatever `take` raised.
        """
        ...

    @property
    def plain(self) -> ChunkReader | None:
        """Reader of plain chunks for a call that comes as messages; None where it does not, or raw
        messages may not be shown.
        """
        ...

    def pass_by(self, first: Pass | None) -> None:
        """Show messages to `first` from now on, which takes plain chunks of choices that have begun and not ended."""
        ...

    async def aclose(self) -> None:
        """Cancel what is still under way; harmless the second time."""
        ...


class PulledChunks:
    """A `ChunkStream` over an iterator of batches: for calls that are made of other calls."""

    plain: ClassVar[ChunkReader | None] = None

    def __init__(self, batches: AsyncGenerator[Sequence[Chunk], None]) -> None:
        self._batches = batches

    async def pour(self, take: Take) -> bool:
        """See `ChunkStream`."""
        async for chunks in self._batches:
            if not take(chunks):
                return False
        return True

    def pass_by(self, first: Pass | None) -> None:
        """See `ChunkStream`."""
        assert first is None, "there are no messages"

    async def aclose(self) -> None:
        """See `ChunkStream`."""
        await self._batches.aclose()


async def pulled(make: Callable[[], ChunkStream]) -> AsyncGenerator[Sequence[Chunk], None]:
    """Yield the chunks of the call that `make` begins, batch by batch; closing this closes it."""
    stream = make()
    # It may know pictures, which are not to stay as long as the answer takes.
    del make
    got: list[Sequence[Chunk]] = []

    def take(chunks: Sequence[Chunk]) -> bool:
        got.append(chunks)
        return False

    try:
        over = False
        while not over:
            over = await stream.pour(take)
            while got:
                yield got.pop()
    finally:
        await stream.aclose()


async def ends_itself(stream: ChunkStream, patience_s: float) -> None:
    """Wait a moment for a call to end whose answer is no longer wanted; how it ends does not
    matter.
    """
    try:
        async with asyncio.timeout(patience_s):
            await stream.pour(_unwanted)
    except TimeoutError:
        return


def _unwanted(_chunks: Sequence[Chunk]) -> bool:
    return True
