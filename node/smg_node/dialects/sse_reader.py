"""SSE reader: incremental parser of server-sent events: bytes in, data of whole events out. Pure.

Lines end as the format allows, with a line feed, a carriage return, or both, also where a piece
ends between them. Comments and event names are dropped; the data alone tells what an event is.
"""

import re
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError

EVENT_MAX_BYTES: Final = 16 * 1024 * 1024
"""No event of an answer is that long."""
_ENDS: Final = re.compile(rb"\r\n|\n|\r")
_DATA: Final = b"data:"


class EventLines:
    """Parser of one stream, fed piece by piece."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        """Pieces of a line that is not over."""
        self._lines: list[bytes] = []
        """The data of an event that is not over."""
        self._size = 0
        self._after_return = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of those events that are whole now; UPSTREAM_FAILED for one that is too
        large.
        """
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
        told: list[bytes] = []
        for line in lines:
            self._take(line, told)
        self._size = len(rest) + sum(map(len, self._lines))
        self._check()
        return told

    def finish(self) -> list[bytes]:
        """Return the data of an unterminated last event, if there is any."""
        told: list[bytes] = []
        self._take(b"".join(self._held), told)
        self._take(b"", told)
        self._held = []
        return told

    def _take(self, line: bytes, told: list[bytes]) -> None:
        if line.startswith(_DATA):
            self._lines.append(line[len(_DATA) :].removeprefix(b" "))
        elif not line and self._lines:
            told.append(b"\n".join(self._lines))
            self._lines = []

    def _check(self) -> None:
        if self._size > EVENT_MAX_BYTES:
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                f"the worker sent an event of more than {EVENT_MAX_BYTES} bytes",
            )
