"""Unsaved bytes: backpressure on all runs by the bytes of events that are not in the store yet."""

import asyncio
from typing import Final

HELD_BYTES_MAX: Final = 128 << 20
"""With so much on hand a node has heard a thousand answers of common length that no store has taken."""


class UnsavedBytes:
    """Counter of those bytes."""

    def __init__(self, bytes_max: int = HELD_BYTES_MAX) -> None:
        self.bytes = 0
        self._bytes_max: Final = bytes_max
        self._room: Final = asyncio.Event()
        self._room.set()

    def add(self, count: int) -> None:
        """Count bytes in."""
        self.bytes += count
        if self.bytes >= self._bytes_max:
            self._room.clear()

    def remove(self, count: int) -> None:
        """Count bytes out."""
        self.bytes -= count
        assert self.bytes >= 0, "what goes out came in"
        if self.bytes < self._bytes_max:
            self._room.set()

    @property
    def has_room(self) -> bool:
        """Whether there is room for more now."""
        return self.bytes < self._bytes_max

    async def room(self) -> None:
        """Return when there is room for more."""
        await self._room.wait()
