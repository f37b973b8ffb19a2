"""Chunked body end: finds the end of a chunked body in its frames, without its content. Pure."""

from typing import Final

_LINE_BYTES_MAX: Final = 8192
"""Nobody sends a longer size of a chunk, or a longer trailer."""


class ChunkedEnd:
    """Follows a chunked body, cut anywhere. One that is not well framed has no end."""

    __slots__ = ("_broken", "_last", "_left", "_line", "reached")

    def __init__(self) -> None:
        self.reached = False
        """Whether the last byte has passed."""
        self._left = 0
        self._line = b""
        self._last = False
        self._broken = False

    def count(self, data: bytes) -> None:
        """Feed passed bytes; bytes after the end are ignored."""
        at = 0
        while at < len(data) and not (self.reached or self._broken):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
                at += step
            else:
                at = self._read_line(data, at)

    def _read_line(self, data: bytes, at: int) -> int:
        end = data.find(b"\n", at)
        if end < 0:
            self._line += data[at:]
            self._broken = len(self._line) > _LINE_BYTES_MAX
            return len(data)
        line = (self._line + data[at:end]).strip()
        self._line = b""
        if self._last:
            self.reached = not line
        else:
            self._begin(line)
        return end + 1

    def _begin(self, line: bytes) -> None:
        """Take the size of the next chunk, whose content has a line end of its own."""
        try:
            size = int(line.partition(b";")[0], 16)
        except ValueError:
            size = -1
        self._broken = size < 0
        self._last = size == 0
        self._left = size + 2 if size > 0 else 0
