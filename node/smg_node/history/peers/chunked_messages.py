"""Chunked messages: payloads too large for one message between nodes, sent and fetched in parts.

A payload belongs to the node that sends or fetches it, by name, and is dropped when it is complete,
when it was fetched, or after a while without progress. Memory is bounded: a node that brings more
is told to try again later.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

PART_BYTES: Final = 900_000
"""Of a message; the mesh takes a million bytes, and what stands around a part needs few."""
PARCEL_BYTES_MAX: Final = 256 << 20
"""Of one question or answer: more than any turn whose documents a store would take."""
ROOM_BYTES_MAX: Final = 512 << 20
"""Of all parcels that are not whole, or not fetched."""
PARCELS_MAX: Final = 256
FORGET_S: Final = 30.0
"""After so long without a further part; whoever sends them has given up long before."""

Key = tuple[str, bytes]
"""Whose it is, and its name."""


class NoRoomError(Exception):
    """There is no room at the moment; the sender may retry."""


class ChunkError(ValueError):
    """A part that belongs to no known payload, or contradicts it."""


@dataclass(slots=True)
class _Coming:
    count: int
    touched_s: float
    parts: dict[int, bytes] = field(default_factory=dict)
    bytes: int = 0


@dataclass(slots=True)
class _Kept:
    content: bytes
    touched_s: float


def parts_of(content: bytes) -> int:
    """Return the number of parts of this payload."""
    return max(1, -(-len(content) // PART_BYTES))


def part(content: bytes, index: int) -> bytes:
    """Return one of the parts."""
    return content[index * PART_BYTES : (index + 1) * PART_BYTES]


class ChunkedMessages:
    """Payloads that are being assembled or fetched on one node."""

    def __init__(self, now_s: Callable[[], float], *, room_bytes_max: int = ROOM_BYTES_MAX) -> None:
        self.bytes = 0
        """Of all that lies here."""
        self._now_s: Final = now_s
        self._room_bytes_max: Final = room_bytes_max
        self._coming: Final[dict[Key, _Coming]] = {}
        self._kept: Final[dict[Key, _Kept]] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._coming) + len(self._kept)

    def take_in(self, key: Key, index: int, count: int, content: bytes) -> bytes | None:
        """Take a part; return the whole payload if that was the last missing one. ChunkError,
        NoRoomError.
        """
        now_s = self._now_s()
        if not 0 <= index < count <= PARCEL_BYTES_MAX // PART_BYTES + 1:
            raise ChunkError("there is no such part")
        if not 0 < len(content) <= PART_BYTES:
            raise ChunkError("a part is not as long as parts are")
        self._forget(now_s)
        coming = self._coming.get(key)
        if coming is None:
            self._check_room(len(content))
            coming = self._coming[key] = _Coming(count, now_s)
        elif coming.count != count:
            raise ChunkError("it was of another number of parts")
        elif index not in coming.parts:
            self._check_room(len(content), new=False)
        if index not in coming.parts:
            coming.parts[index] = content
            coming.bytes += len(content)
            self.bytes += len(content)
        coming.touched_s = now_s
        if len(coming.parts) < count:
            return None
        self._drop_coming(key)
        return b"".join(coming.parts[each] for each in range(count))

    def keep(self, key: Key, content: bytes) -> None:
        """Keep a payload that is going to be fetched in parts; NoRoomError."""
        now_s = self._now_s()
        self._forget(now_s)
        self._check_room(len(content))
        self._kept[key] = _Kept(content, now_s)
        self.bytes += len(content)

    def give_out(self, key: Key, index: int) -> bytes:
        """Return a part of what is kept, and drop the payload with its last one; ChunkError if it
        is not here.
        """
        now_s = self._now_s()
        self._forget(now_s)
        kept = self._kept.get(key)
        if kept is None or not 0 <= index < parts_of(kept.content):
            raise ChunkError("there is no such parcel any more")
        kept.touched_s = now_s
        if index == parts_of(kept.content) - 1:
            self._drop_kept(key)
        return part(kept.content, index)

    def _check_room(self, more: int, *, new: bool = True) -> None:
        if self.bytes + more > self._room_bytes_max or (new and len(self) >= PARCELS_MAX):
            raise NoRoomError

    def _forget(self, now_s: float) -> None:
        """Drop payloads without progress; there are few."""
        before_s = now_s - FORGET_S
        for key in [key for key, one in self._coming.items() if one.touched_s < before_s]:
            self._drop_coming(key)
        for key in [key for key, one in self._kept.items() if one.touched_s < before_s]:
            self._drop_kept(key)

    def _drop_coming(self, key: Key) -> None:
        self.bytes -= self._coming.pop(key).bytes

    def _drop_kept(self, key: Key) -> None:
        self.bytes -= len(self._kept.pop(key).content)
