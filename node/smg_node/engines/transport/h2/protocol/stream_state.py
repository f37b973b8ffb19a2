"""Stream state: one HTTP/2 stream of a gRPC call: what may be sent, what has come, how it ended.
Pure.
"""

from typing import Final

from smg_node.engines.transport.h2.protocol.frames import PREFIX, PREFIX_BYTES
from smg_node.engines.transport.h2.protocol.response_head import Ending
from smg_node.engines.transport.transport import StatusCode

STREAM_WINDOW: Final = 128 * 1024
"""What a server may send while nobody reads: 5,000 tokens, or 250 with twenty alternatives each, which are
1 MB as JSON. A far engine (10 ms) still gets 10 MB/s through it."""
REFILL_AT: Final = STREAM_WINDOW // 2


class DamagedError(Exception):
    """A message that cannot be taken: the call ends with this status, the connection does not."""

    def __init__(self, status: StatusCode, why: str) -> None:
        super().__init__(why)
        self.status = status


class Flow:
    """State of one call on a connection. The reader takes `messages` and looks at `ending`.

    `room` is what the server may still send; it is the reader's to have it refilled. `whole` says that the
    next byte begins a message; it is the loop's one question per message. `touched` says that
    this wake-up brought something and that the reader will hear of it. `unsent` has what is to be sent yet of its
    request, the next piece last, of `unsent_size` bytes together.
    """

    __slots__ = (
        "answered",
        "ending",
        "messages",
        "number",
        "part",
        "room",
        "touched",
        "unsent",
        "unsent_size",
        "whole",
        "window",
    )

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        """Be a call of which nothing is known. What inherits calls it in place of `__init__`, a detour where both are compiled."""
        self.number = 0
        self.messages: list[bytes] = []
        self.ending: Ending | None = None
        self.room = STREAM_WINDOW
        self.window = 0
        self.unsent: list[memoryview] = []
        self.unsent_size = 0
        self.answered = self.whole = self.touched = False
        self.part: bytearray | None = None

    def deliver(self) -> None:
        """Take notice, once a wake-up, that something is new; for the reader. Never raises."""

    def feed(self, payload: bytes, message_max_bytes: int) -> None:
        """Take a piece of the answer's body; DamagedError for what cannot be read."""
        part = self.part
        if part is not None:
            part += payload
            if not _holds_message(part, message_max_bytes):
                return
            payload = bytes(part)
            self.part = None
        at, end = 0, len(payload)
        while end - at >= PREFIX_BYTES:
            size = _size(payload, at, message_max_bytes)
            stop = at + PREFIX_BYTES + size
            if stop > end:
                break
            self.messages.append(payload[at + PREFIX_BYTES : stop])
            at = stop
        self.whole = at == end
        if not self.whole:
            self.part = bytearray(payload[at:])


def _holds_message(part: bytearray, message_max_bytes: int) -> bool:
    if len(part) < PREFIX_BYTES:
        return False
    return len(part) >= PREFIX_BYTES + _size(part, 0, message_max_bytes)


def _size(payload: bytes | bytearray, at: int, message_max_bytes: int) -> int:
    squeezed: int
    size: int
    squeezed, size = PREFIX.unpack_from(payload, at)
    if squeezed:
        raise DamagedError(StatusCode.INTERNAL, "a compressed message, which was not asked for")
    if size > message_max_bytes:
        raise DamagedError(
            StatusCode.DATA_LOSS,
            f"a message of {size} bytes, at most {message_max_bytes} are taken",
        )
    return size
