"""Send window: frames of requests waiting to be written, within the server's flow-control windows.
Pure.

A request larger than the windows waits in its flow, one frame of each waiting flow at a time, so that
64 MB of one call hold up no other. What is collected is written once per wake-up. What waits is not copied: frames are
views of the buffers that the request came in.
"""

from typing import Final

from smg_node.engines.transport.h2.protocol import frames
from smg_node.engines.transport.h2.protocol.frames import HEAD, MESSAGE_HEAD, PREFIX, BrokenError
from smg_node.engines.transport.h2.protocol.stream_state import Flow
from smg_node.engines.transport.message_pieces import Body, MessagePieces

WRITE_BYTES: Final = 1024 * 1024
"""How much of the waiting requests is handed to the socket before it is asked whether it copes."""

_PIECE_MAX: Final = 256 * 1024
"""Of one frame: a server may take 16 MB at once, which would hold up all other calls for as long."""
_DATA: Final = frames.DATA
_HEADERS: Final = frames.HEADERS
_END_HEADERS: Final = frames.END_HEADERS
_END_STREAM: Final = frames.END_STREAM
_PREFIX_BYTES: Final = frames.PREFIX_BYTES


class Sending:
    """Frames to be written, within the windows. `whole_max` is what a new call can send in one
    frame, by its own window.
    """

    __slots__ = ("frame_max", "initial", "last", "out", "waiting", "whole_max", "window")

    def __init__(self) -> None:
        self.out: list[bytes | memoryview] = []
        self.window = frames.DEFAULT_WINDOW
        self.initial = frames.DEFAULT_WINDOW
        self.frame_max = frames.FRAME_MAX_BYTES
        self.whole_max = min(self.initial, self.frame_max)
        self.last = -1
        self.waiting: dict[Flow, None] = {}
        """Flows with more to send whose own window is open; the connection's may be shut."""

    def begin(self, flow: Flow, block: bytes, message: Body) -> None:
        """Give `flow` the next number and write its call: whole, or what it is, and the rest by `pump`.

        Of a message in pieces, or a long one, the buffers are kept until they are written.
        """
        number = flow.number = self.last = self.last + 2
        size, width = len(message), len(block)
        whole = size + _PREFIX_BYTES
        if whole > self.whole_max or whole > self.window or self.waiting or width > self.frame_max:
            self._begin_in_pieces(flow, block, message)
            return
        self.window -= whole
        flow.window = self.initial - whole
        self.out += (
            HEAD.pack(width << 8 | _HEADERS, _END_HEADERS, number),
            block,
            MESSAGE_HEAD.pack(whole << 8, _END_STREAM, number, 0, size),
            message.joined() if isinstance(message, MessagePieces) else message,
        )

    def _begin_in_pieces(self, flow: Flow, block: bytes, message: Body) -> None:
        flow.window = self.initial
        self.out.append(frames.headers(flow.number, block, self.frame_max, last=False))
        pieces = list(message) if isinstance(message, MessagePieces) else [memoryview(message)]
        # The first one last: they are taken from the end.
        flow.unsent = [*reversed(pieces), memoryview(PREFIX.pack(0, len(message)))]
        flow.unsent_size = len(message) + _PREFIX_BYTES
        if flow.window > 0:
            self.waiting[flow] = None

    def pump(self, most: int) -> bool:
        """Write what may be sent, about `most` bytes of it; return whether more may be sent at once."""
        waiting = self.waiting
        while waiting and self.window > 0:
            if most <= 0:
                return True
            flow = next(iter(waiting))
            del waiting[flow]
            size = flow.unsent_size
            piece = min(size, self.frame_max, _PIECE_MAX, self.window, flow.window)
            if piece <= 0:
                # Its own window is shut: it comes back when that opens.
                continue
            last = _END_STREAM if piece == size else 0
            self.out.append(HEAD.pack(piece << 8 | _DATA, last, flow.number))
            self._cut(flow, piece)
            self.window -= piece
            flow.window -= piece
            most -= piece
            if last:
                flow.unsent = []
            else:
                waiting[flow] = None
        return False

    def _cut(self, flow: Flow, size: int) -> None:
        """Take the next `size` bytes of a request, as views of its buffers."""
        unsent, out = flow.unsent, self.out
        flow.unsent_size -= size
        while size > 0:
            next_ = len(unsent) - 1
            view = unsent[next_]
            length = len(view)
            if length <= size:
                out.append(view)
                unsent.pop()
            else:
                out.append(view[:size])
                unsent[next_] = view[size:]
            size -= length

    def drop(self, flow: Flow) -> None:
        """Send no more of a call."""
        if flow.unsent:
            flow.unsent = []
            self.waiting.pop(flow, None)

    def widen(self, flow: Flow, more: int) -> bool:
        """Let a call send more; return False if that is more than a window can be."""
        flow.window += more
        if flow.window > frames.WINDOW_MAX:
            return False
        if flow.unsent and flow.window > 0:
            self.waiting[flow] = None
        return True

    def widen_all(self, more: int) -> None:
        """Let the connection send more; BrokenError if that is more than a window can be."""
        self.window += more
        if self.window > frames.WINDOW_MAX:
            raise BrokenError(frames.FLOW_CONTROL_ERROR, "a window larger than windows can be")

    def enlarge(self, frame_max: int) -> None:
        """Send frames of another size from now on."""
        self.frame_max = frame_max
        self.whole_max = min(self.initial, frame_max)

    def reopen(self, initial: int, flows: list[Flow]) -> None:
        """Begin flows with another window from now on, and move those of `flows` by the difference."""
        if initial > frames.WINDOW_MAX:
            raise BrokenError(frames.FLOW_CONTROL_ERROR, "a window larger than windows can be")
        more = initial - self.initial
        self.initial = initial
        self.whole_max = min(initial, self.frame_max)
        widened = [self.widen(flow, more) for flow in flows]
        if not all(widened):
            raise BrokenError(frames.FLOW_CONTROL_ERROR, "a window larger than windows can be")

    def taken(self) -> bytes:
        """Return what is to be written, once, in one piece."""
        data = b"".join(self.out)
        self.out.clear()
        return data

    def views(self) -> list[bytes | memoryview]:
        """Return what is to be written, once, as it was put together."""
        data, self.out = self.out, []
        return data
