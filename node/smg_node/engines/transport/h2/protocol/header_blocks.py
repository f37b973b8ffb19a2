"""Header blocks: assembles HEADERS and CONTINUATION frames into one block, and remembers blocks
that come again. Pure.
"""

from typing import Final

from smg_node.engines.transport.h2.protocol import frames
from smg_node.engines.transport.h2.protocol.frames import BrokenError
from smg_node.engines.transport.h2.protocol.hpack import HEADERS_MAX_BYTES, read_block
from smg_node.engines.transport.h2.protocol.response_head import Section, read_section
from smg_node.engines.transport.transport import StatusCode

SKIPPED_MAX_BYTES: Final = 1024 * 1024
"""How much of a block that is too large is thrown away before the connection goes instead."""
OPENS: Final = frames.END_HEADERS
ENDS: Final = frames.END_HEADERS | frames.END_STREAM

_EMPTY_BYTES: Final = 16  # what an empty frame counts for: a million of them are no less work
_REMEMBERED_MAX: Final = 64
_REMEMBERED_MAX_BYTES: Final = 256


class Block:
    """Headers that come in several frames; `too_large` when there are more than are taken."""

    __slots__ = ("_pieces", "_size", "last", "number")

    def __init__(self, number: int, *, last: bool) -> None:
        self.number = number
        self.last = last
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        """Take one more piece; BrokenError where there is no end to them."""
        self._size += max(len(piece), _EMPTY_BYTES)
        if self._size <= HEADERS_MAX_BYTES:
            self._pieces.append(piece)
        elif self._size > SKIPPED_MAX_BYTES:
            raise BrokenError(frames.ENHANCE_YOUR_CALM, "headers without end")

    @property
    def whole(self) -> bytes | None:
        """All of it; None if that is more than is taken."""
        return b"".join(self._pieces) if self._size <= HEADERS_MAX_BYTES else None


class Sections:
    """Meanings of blocks. The head and the end of an answer are the same bytes for every answer.

    `usual` has whole blocks that were read before, each with the flags of the one frame in which it is as it should
    be: `OPENS` for the head of an answer, `ENDS` for the end of a call that ended well.
    """

    __slots__ = ("_remembered", "usual")

    def __init__(self) -> None:
        self._remembered: dict[bytes, Section] = {}
        self.usual: dict[bytes, int] = {}

    def read(self, block: bytes) -> Section:
        """Return the meaning of a whole block; BrokenError if it cannot be read."""
        section = self._remembered.get(block)
        if section is None:
            section = read_section(read_block(block))
            if len(block) <= _REMEMBERED_MAX_BYTES:
                self._remember(block, section)
        return section

    def _remember(self, block: bytes, section: Section) -> None:
        if len(self._remembered) >= _REMEMBERED_MAX:
            self._remembered.clear()
            self.usual.clear()
        self._remembered[block] = section
        if section.ending.status is StatusCode.OK:
            self.usual[block] = ENDS
        elif section.refusal is None:
            self.usual[block] = OPENS
