"""SSE lines: incremental splitting of a stream of server-sent events into lines, for parsers of their fields. Pure.

Lines end as the format allows, with a line feed, a carriage return, or both, also where a piece ends between them. What
has not ended yet is held as it came, so a line of many pieces is put together once.

Source: HTML Standard, section 9.2.6, "Interpreting an event stream".
"""

import re
from abc import ABC, abstractmethod
from typing import Final, Generic, TypeVar

_ENDS: Final = re.compile(rb"\r\n|\n|\r")
_Event = TypeVar("_Event")


class SseLines(ABC, Generic[_Event]):
    """Splitter of one stream, fed piece by piece; a parser takes the lines, and says what is too large."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        """Pieces of a line that is not over."""
        self._data: list[bytes] = []
        """The data of an event that is not over."""
        self._size = 0
        """The bytes of both."""
        self._after_return = False

    def feed(self, piece: bytes) -> list[_Event]:
        """Return the events that are whole now; what `_check` raises for one that is too large."""
        if self._after_return and piece:
            piece = piece.removeprefix(b"\n")
            self._after_return = False
        if not piece:
            return []
        self._size += len(piece)
        if b"\n" not in piece and b"\r" not in piece:
            self._held.append(piece)
            self._check()
            return []
        self._after_return = piece.endswith(b"\r")
        *lines, rest = _ENDS.split(b"".join((*self._held, piece)))
        self._held = [rest] if rest else []
        events: list[_Event] = []
        for line in lines:
            self._take(line, events)
        self._size = len(rest) + sum(map(len, self._data))
        self._check()
        return events

    @abstractmethod
    def _take(self, line: bytes, events: list[_Event]) -> None:
        """Take a line, and add the event that ends with it, if one does."""

    @abstractmethod
    def _check(self) -> None:
        """Raise if what is held, `_size` bytes, is too large."""
