"""SSE events with name, id and retry time: incremental parser of a stream that can be resumed. Pure.

An id holds from the event that has it, also one without data, as a server sends to mark where a stream began. A field
whose event never ended counts for nothing.
"""

from typing import Final, NamedTuple

from smg_node.core.sse_lines import SseLines

_ID_BYTES_MAX: Final = 4096
_BOM: Final = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """One event: its name, `message` where it has none, and its data."""

    name: str
    data: bytes


class TooLargeError(Exception):
    """An event has more bytes than are taken."""


class SseEvents(SseLines[SseEvent]):
    """Parser of one stream, fed piece by piece; TooLargeError for an event larger than `event_bytes_max`."""

    def __init__(self, event_bytes_max: int) -> None:
        super().__init__()
        self.last_id = ""
        """The id of the last event that had one, "" before."""
        self.retry_ms: int | None = None
        """How long to wait before the stream is asked for again, as the server last said."""
        self.event_bytes_max = event_bytes_max
        self._name = b""
        self._id: str | None = None
        self._first = True

    def _take(self, line: bytes, events: list[SseEvent]) -> None:
        if self._first:
            line, self._first = line.removeprefix(_BOM), False
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
