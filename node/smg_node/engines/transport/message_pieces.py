"""Message pieces: a large request as the buffers it consists of, so that nobody has to join them. Pure.

A picture's tensor has up to 145 MB; joining it with the fields around it costs as much as making it. A transport that
can writes the pieces one after the other, another one joins them itself.
"""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

Piece: TypeAlias = bytes | bytearray | memoryview


class MessagePieces:
    """One message in pieces; `len` is its size in bytes. Whoever reads it must find the buffers unchanged."""

    __slots__ = ("_pieces", "_size")

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._pieces = tuple(view for piece in pieces if (view := memoryview(piece).cast("B")))
        self._size = sum([len(view) for view in self._pieces])

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[memoryview]:
        return iter(self._pieces)

    def joined(self) -> bytes:
        """Return the message in one piece: a copy."""
        return b"".join(self._pieces)


Body: TypeAlias = bytes | MessagePieces
"""A serialised message, in one piece or several."""
