"""SSE reader: incremental parser of server-sent events: bytes in, data of whole events out. Pure.

Comments and event names are dropped; the data alone tells what an event is.
"""

from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.sse_lines import SseLines

EVENT_MAX_BYTES: Final = 16 * 1024 * 1024
"""No event of an answer is that long."""
_DATA: Final = b"data:"


class EventLines(SseLines[bytes]):
    """Parser of one stream, fed piece by piece; UPSTREAM_FAILED for an event that is too large."""

    def finish(self) -> list[bytes]:
        """Return the data of an unterminated last event, if there is any."""
        told: list[bytes] = []
        self._take(b"".join(self._held), told)
        self._take(b"", told)
        self._held = []
        return told

    def _take(self, line: bytes, events: list[bytes]) -> None:
        if line.startswith(_DATA):
            self._data.append(line[len(_DATA) :].removeprefix(b" "))
        elif not line and self._data:
            events.append(b"\n".join(self._data))
            self._data = []

    def _check(self) -> None:
        if self._size > EVENT_MAX_BYTES:
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                f"the worker sent an event of more than {EVENT_MAX_BYTES} bytes",
            )
