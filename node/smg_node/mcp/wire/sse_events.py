"""SSE events with name, id and retry time: incremental parser of a stream that can be resumed. Pure.

Lines end with a line feed, a carriage return, or both, also where a piece ends between them. An id holds from the event
that has it, also one without data, as a server sends to mark where a stream began. A field whose event never ended
counts for nothing.
"""

import re
from typing import Final, NamedTuple

_ENDS: Final = re.compile(rb"\r\n|\n|\r")
_ID_BYTES_MAX: Final = 4096
_BOM: Final = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """One event: its name, `message` where it has none, and its data."""

    name: str
    data: bytes


class TooLargeError(Exception):
    """An event has more bytes than are taken."""


class SseEvents:
    """Parser of one stream, fed piece by piece; no event may be larger than `event_bytes_max`."""

    def __init__(self, event_bytes_max: int) -> None:
        self.last_id = ""
        """The id of the last event that had one, "" before."""
        self.retry_ms: int | None = None
        """How long to wait before the stream is asked for again, as the server last said."""
        self.event_bytes_max = event_bytes_max
        self._held: list[bytes] = []
        self._size = 0
        self._data: list[bytes] = []
        self._name = b""
        self._id: str | None = None
        self._after_return = False
        self._first = True

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Return the events that are whole now; TooLargeError for one above the limit."""
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
        events: list[SseEvent] = []
        for line in lines:
            if self._first:
                line, self._first = line.removeprefix(_BOM), False
            self._take(line, events)
        self._size = len(rest) + sum(map(len, self._data))
        self._check()
        return events

    def _take(self, line: bytes, events: list[SseEvent]) -> None:
        if not line:
            self._end(events)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
        elif field == b"id" and b"\0" not in value and len(value) <= _ID_BYTES_MAX:
            self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)

    def _end(self, events: list[SseEvent]) -> None:
        if self._id is not None:
            self.last_id = self._id
        if self._data:
            data = b"\n".join(self._data)
            if len(data) > self.event_bytes_max:
                raise TooLargeError
            if data:
                events.append(SseEvent(self._name.decode("utf-8", "replace") or "message", data))
        self._data, self._name, self._id = [], b"", None

    def _check(self) -> None:
        # A line may carry the name of its field besides.
        if self._size > self.event_bytes_max + _ID_BYTES_MAX:
            raise TooLargeError
