"""Answer reader of one HTTP response of a server: head and bytes in, messages or a failure out. Pure.

A server answers a request by JSON or by a stream of events, as it likes, and by a JSON-RPC error at any status. Any
bytes give messages, or a failure of the one table; what came before a failure has been handed out.
"""

from collections.abc import Mapping
from typing import Final

from smg_node.mcp.failures import Failure, bare_status, too_large, unreadable
from smg_node.mcp.wire.messages import ErrorAnswer, Message, WireError, read_messages
from smg_node.mcp.wire.sse_events import SseEvents, TooLargeError

_ERROR_BYTES_MAX: Final = 1 << 20
"""Of the body of a 4xx or 5xx: an error message, or somebody's page, which is not read."""
_SUCCESS: Final = range(200, 300)
_NO_BODY: Final = (202, 204)
_RETRY_AFTER_MAX_S: Final = 86_400


class AnswerReader:
    """Reader of one answer. `headers` have names in lower case; no message may have more than `answer_bytes_max`."""

    def __init__(self, status: int, headers: Mapping[str, str], answer_bytes_max: int) -> None:
        self.failure: Failure | None = None
        """Why there is no message to come; None while there may be."""
        self.status = status
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        self.stream = SseEvents(answer_bytes_max) if kind == "text/event-stream" else None
        """The parser of a stream of events, None for a body in one piece."""
        self._max = answer_bytes_max
        self._is_error = status not in _SUCCESS
        self._retry_after_s = _seconds(headers.get("retry-after", ""))
        self._held: list[bytes] = []
        self._size = 0
        coding = headers.get("content-encoding", "identity").strip().lower()
        if status in _NO_BODY:
            self.failure = unreadable(f"the server answered a request with {status}", status)
        elif coding not in ("", "identity"):
            self.failure = unreadable("the server's answer is compressed, unasked", status)
        elif self._is_error:
            self.stream = None

    def feed(self, piece: bytes) -> list[Message]:
        """Return the messages that are whole now."""
        if self.failure is not None:
            return []
        if self.stream is not None:
            return self._events(self.stream, piece)
        self._size += len(piece)
        if self._is_error and self._size > _ERROR_BYTES_MAX:
            self._held, self.failure = [], self._bare()
        elif self._size > self._max:
            self._held, self.failure = [], too_large(self._max)
        else:
            self._held.append(piece)
        return []

    def finish(self) -> list[Message]:
        """Return what the end of the body makes whole: the messages of a body in one piece."""
        if self.failure is not None or self.stream is not None:
            return []
        body, self._held = b"".join(self._held), []
        try:
            messages = read_messages(body)
        except WireError:
            self.failure = self._bare() if self._is_error else self._unreadable()
            return []
        if self._is_error:
            errors: list[Message] = [one for one in messages if isinstance(one, ErrorAnswer)]
            if not errors:
                self.failure = self._bare()
            return errors[:1]
        return messages

    def _events(self, stream: SseEvents, piece: bytes) -> list[Message]:
        messages: list[Message] = []
        try:
            for event in stream.feed(piece):
                if event.name == "message":
                    messages += read_messages(event.data)
        except TooLargeError:
            self.failure = too_large(self._max)
        except WireError:
            self.failure = self._unreadable()
        return messages

    def _bare(self) -> Failure:
        return bare_status(self.status, self._retry_after_s)

    def _unreadable(self) -> Failure:
        return unreadable("the server's answer is no JSON-RPC message", self.status)


def _seconds(retry_after: str) -> float | None:
    """Return the seconds that a header says; a date is not understood, as no clock of a server is."""
    text = retry_after.strip()
    if not text.isascii() or not text.isdigit() or len(text) > len(str(_RETRY_AFTER_MAX_S)):
        return None
    return float(min(int(text), _RETRY_AFTER_MAX_S))
