"""Connection: HTTP/2 client state machine of one gRPC server; bytes in, messages of flows and bytes
out. Pure.

Whatever comes, the outcome is frames to send, flows that have something new, or a broken connection: never
an exception. What goes wrong with one call ends that call; what breaks the protocol ends them all with
UNAVAILABLE. Frames that are one whole message each, which tokens are, are taken run by run, compiled; everything
else takes the long way.
"""

from collections.abc import Callable
from typing import Final

from smg_node.engines.transport.h2.protocol import frames
from smg_node.engines.transport.h2.protocol.fast_frames import quick_frames
from smg_node.engines.transport.h2.protocol.frames import HEAD, SETTING, BrokenError
from smg_node.engines.transport.h2.protocol.header_blocks import Block, Sections
from smg_node.engines.transport.h2.protocol.hpack import HEADERS_MAX_BYTES
from smg_node.engines.transport.h2.protocol.preface import CONNECTION_WINDOW, GREETING
from smg_node.engines.transport.h2.protocol.response_head import FINE, Ending, reset_by
from smg_node.engines.transport.h2.protocol.send_window import Sending
from smg_node.engines.transport.h2.protocol.stream_state import STREAM_WINDOW, DamagedError, Flow
from smg_node.engines.transport.message_pieces import Body
from smg_node.engines.transport.transport import StatusCode

STREAMS_ASSUMED: Final = 100
"""Until the server says how many calls it takes at once; RFC 9113 asks servers for no fewer."""
_GENEROUS: Final = 100
_KEPT: Final = 4
"""Of a generous server's calls, for those that go before all others."""
IDLE_FRAMES_MAX: Final = 10_000
"""Frames in a row that carry nothing for any call; a server that sends more of them wants us busy."""

_HEAD_BYTES: Final = frames.HEAD_BYTES
_FRAME_MAX_BYTES: Final = frames.FRAME_MAX_BYTES
_LAST_NUMBER: Final = frames.NUMBER_MAX
"""No call is begun after the one of this number: it would have none."""


class Connection:
    """The client's side of one connection.

    `greeted` is whether the server has introduced itself, `leaving` whether it takes no new calls,
    `broken` why there is no connection any more. `flows_max` is how many calls there may be at once: none
    while none may be begun; `calls_max` is that without the places kept for calls that go before all others.
    What `sending` holds is to be written.
    """

    def __init__(self, message_max_bytes: int) -> None:
        self.flows: dict[int, Flow] = {}
        self.sending = Sending()
        self.sending.out.append(GREETING)
        self.flows_max = self.calls_max = 0
        self._streams_max = STREAMS_ASSUMED
        self.greeted = False
        self.leaving = False
        self.calm = False
        """Whether the server has asked for fewer pings."""
        self.broken: str | None = None
        self._message_max_bytes = message_max_bytes
        self._short = min(message_max_bytes, frames.FRAME_MAX_BYTES - frames.PREFIX_BYTES)
        """What a message of one frame can have."""
        self._rest = b""
        self._touched: list[Flow] = []
        self._block: Block | None = None
        self._room = CONNECTION_WINDOW
        self._idle_frames = 0
        self._sections = Sections()
        self._usual = self._sections.usual
        self._long: dict[int, Callable[[int, int, bytes], None]] = {
            frames.DATA: self._contents,
            frames.HEADERS: self._headers,
            frames.RST_STREAM: self._reset,
            frames.SETTINGS: self._settings,
            frames.PUSH_PROMISE: self._promise,
            frames.PING: self._ping,
            frames.GOAWAY: self._goaway,
            frames.WINDOW_UPDATE: self._window_update,
            frames.CONTINUATION: self._continuation,
        }

    # ── What callers do ─────────────────────────────────────────────────────

    def begin(self, flow: Flow, block: bytes, message: Body) -> None:
        """Begin a call with one request; there were fewer of them than `flows_max`."""
        self.sending.begin(flow, block, message)
        number = flow.number
        self.flows[number] = flow
        if number >= _LAST_NUMBER:
            self._admit()

    def drop(self, flow: Flow, ending: Ending, code: int = frames.CANCEL) -> None:
        """End a call from this side; its flow is not told of anything any more."""
        if self.flows.pop(flow.number, None) is not None:
            self.sending.out.append(frames.reset(flow.number, code))
            self.sending.drop(flow)
            flow.ending = ending

    def refill(self, flow: Flow) -> None:
        """Let the server send a full window again; for a reader that has taken all there was."""
        if flow.number in self.flows:
            self.sending.out.append(frames.window_update(flow.number, STREAM_WINDOW - flow.room))
            flow.room = STREAM_WINDOW

    def ping(self) -> None:
        """Ask the server for a sign of life; anything it sends counts as one."""
        self.sending.out.append(frames.frame(frames.PING, 0, 0, bytes(8)))

    def lost(self, why: str) -> list[Flow]:
        """Note that the connection is gone; return the flows that have ended by it."""
        self.broken = self.broken or why
        self._admit()
        ended = list(self.flows.values())
        for flow in ended:
            self._over(flow, Ending(StatusCode.UNAVAILABLE, why))
        return ended

    # ── What comes ──────────────────────────────────────────────────────────

    def receive(self, data: bytes) -> list[Flow]:
        """Take what has come; return each flow with something new once, in the order of its first byte.

        The caller clears their `touched`.
        """
        if self.broken is not None:
            return []
        touched: list[Flow] = []
        self._touched = touched
        if self._rest:
            data = self._rest + data
        try:
            self._rest = data[self._frames(data) :]
        except BrokenError as error:
            self._break(error)
        return touched

    def _frames(self, data: bytes) -> int:
        """Take every whole frame; return where the rest begins."""
        flows, touched, usual = self.flows, self._touched, self._usual
        at, end, taken = 0, len(data), 0
        while end - at >= _HEAD_BYTES:
            if self._block is None:
                # No header block is half read: good answers go the quick way.
                at, more, heard = quick_frames(data, at, flows, usual, FINE, self._short, touched)
                if heard:
                    self._idle_frames = 0
                    taken += more
                    if end - at < _HEAD_BYTES:
                        break
            word, flags, number = HEAD.unpack_from(data, at)
            if not self._frame(data, at, word, flags, number):
                break
            at += _HEAD_BYTES + (word >> 8)
        if taken:
            self._take_room(taken)
        return at

    def _frame(self, data: bytes, at: int, word: int, flags: int, number: int) -> bool:
        """Take the frame at `at` whatever it is; False if it is not all there."""
        kind, size = word & 0xFF, word >> 8
        if size > _FRAME_MAX_BYTES:
            if not self.greeted and data.startswith(b"HTTP/"):
                raise BrokenError(frames.PROTOCOL_ERROR, "it speaks HTTP/1, not HTTP/2")
            raise BrokenError(frames.FRAME_SIZE_ERROR, "a frame too large")
        at += _HEAD_BYTES
        if at + size > len(data):
            return False
        number &= frames.NUMBER_MAX
        block = self._block
        if block is not None and (kind != frames.CONTINUATION or number != block.number):
            raise BrokenError(frames.PROTOCOL_ERROR, "headers that do not go on")
        if not self.greeted and kind != frames.SETTINGS:
            raise BrokenError(frames.PROTOCOL_ERROR, "it does not introduce itself")
        self._idle_frames += 1
        if self._idle_frames > IDLE_FRAMES_MAX:
            raise BrokenError(frames.ENHANCE_YOUR_CALM, "frames that say nothing, without end")
        take = self._long.get(kind)
        if take is not None:
            take(flags, number, data[at : at + size])
        return True

    def _contents(self, flags: int, number: int, payload: bytes) -> None:
        length = len(payload)
        self._take_room(length)
        if flags & frames.PADDED:
            payload = frames.unpadded(payload)
        flow = self._flow(number)
        if flow is None:
            return
        flow.room -= length
        if flow.room < 0:
            self._fail(flow, StatusCode.INTERNAL, "more than its window", frames.FLOW_CONTROL_ERROR)
        elif not flow.answered:
            self._fail(flow, StatusCode.INTERNAL, "an answer without headers")
        else:
            self._body(flow, payload, last=bool(flags & frames.END_STREAM))

    def _body(self, flow: Flow, payload: bytes, *, last: bool) -> None:
        if payload:
            self._idle_frames = 0
            try:
                flow.feed(payload, self._message_max_bytes)
            except DamagedError as error:
                self._fail(flow, error.status, str(error), frames.CANCEL)
                return
        if last:
            self._end(flow, Ending(StatusCode.UNKNOWN, "the answer ended without a status"))
        else:
            # Also for a piece of a message: its reader may have to open the window.
            self._touch(flow)

    def _headers(self, flags: int, number: int, payload: bytes) -> None:
        if flags & frames.PADDED:
            payload = frames.unpadded(payload)
        if flags & frames.WITH_PRIORITY:
            if len(payload) < 5:
                raise BrokenError(frames.FRAME_SIZE_ERROR, "headers of no length")
            payload = payload[5:]
        last = bool(flags & frames.END_STREAM)
        if flags & frames.END_HEADERS:
            self._all_headers(number, payload, last=last)
        else:
            self._block = Block(number, last=last)
            self._block.add(payload)

    def _continuation(self, flags: int, number: int, payload: bytes) -> None:
        block = self._block
        if block is None:
            raise BrokenError(frames.PROTOCOL_ERROR, "headers that have not begun")
        block.add(payload)
        if flags & frames.END_HEADERS:
            self._block = None
            self._all_headers(number, block.whole, last=block.last)

    def _all_headers(self, number: int, block: bytes | None, *, last: bool) -> None:
        flow = self._flow(number)
        if flow is None:
            # Nothing is lost: blocks mean the same whether others were read or not.
            return
        self._idle_frames = 0
        if block is None:
            why = f"headers of more than {HEADERS_MAX_BYTES} bytes"
            self._fail(flow, StatusCode.RESOURCE_EXHAUSTED, why, frames.CANCEL)
            return
        section = self._sections.read(block)
        if last:
            self._end(flow, section.ending)
        elif flow.answered:
            self._fail(flow, StatusCode.INTERNAL, "trailers that are not the end")
        elif section.refusal is None:
            flow.answered = flow.whole = True
        elif not section.passing:
            refusal = section.refusal
            self._fail(flow, refusal.status, refusal.message, frames.CANCEL)

    def _reset(self, flags: int, number: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise BrokenError(frames.FRAME_SIZE_ERROR, "a reset of another length")
        flow = self._flow(number)
        if flow is not None:
            self._over(flow, reset_by(frames.read_word(payload)))
            self._touch(flow)

    def _settings(self, flags: int, number: int, payload: bytes) -> None:
        if number:
            raise BrokenError(frames.PROTOCOL_ERROR, "settings of a call")
        if flags & frames.ACK:
            return
        if len(payload) % SETTING.size:
            raise BrokenError(frames.FRAME_SIZE_ERROR, "settings of another length")
        for key, value in SETTING.iter_unpack(payload):
            self._setting(key, value)
        self.greeted = True
        self._admit()
        self.sending.out.append(frames.frame(frames.SETTINGS, frames.ACK, 0))

    def _setting(self, key: int, value: int) -> None:
        if key == frames.INITIAL_WINDOW:
            self.sending.reopen(value, list(self.flows.values()))
        elif key == frames.MAX_STREAMS:
            self._streams_max = value
        elif key == frames.MAX_FRAME:
            if not frames.FRAME_MAX_BYTES <= value <= frames.FRAME_LIMIT_BYTES:
                raise BrokenError(frames.PROTOCOL_ERROR, "frames of a size that there is not")
            self.sending.enlarge(value)
        elif key == frames.ENABLE_PUSH and value:
            raise BrokenError(frames.PROTOCOL_ERROR, "a server that wants to be pushed to")

    def _promise(self, flags: int, number: int, payload: bytes) -> None:
        raise BrokenError(frames.PROTOCOL_ERROR, "a promise that nobody asked for")

    def _ping(self, flags: int, number: int, payload: bytes) -> None:
        if number:
            raise BrokenError(frames.PROTOCOL_ERROR, "a ping of a call")
        if len(payload) != 8:
            raise BrokenError(frames.FRAME_SIZE_ERROR, "a ping of another length")
        if not flags & frames.ACK:
            self.sending.out.append(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _goaway(self, flags: int, number: int, payload: bytes) -> None:
        if number or len(payload) < 8:
            raise BrokenError(frames.FRAME_SIZE_ERROR, "a farewell of another length")
        self.leaving = True
        self._admit()
        code = frames.read_word(payload[4:])
        self.calm = self.calm or code == frames.ENHANCE_YOUR_CALM
        last = frames.read_word(payload) & frames.NUMBER_MAX
        for flow in [flow for flow in self.flows.values() if flow.number > last]:
            self._over(flow, Ending(StatusCode.UNAVAILABLE, "the server goes away: not processed"))
            self._touch(flow)

    def _window_update(self, flags: int, number: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise BrokenError(frames.FRAME_SIZE_ERROR, "a window of another length")
        more = frames.read_word(payload) & frames.WINDOW_MAX
        if not number:
            if not more:
                raise BrokenError(frames.PROTOCOL_ERROR, "a window that opens by nothing")
            self.sending.widen_all(more)
        elif (flow := self._flow(number)) is not None:
            if not more:
                self._fail(flow, StatusCode.INTERNAL, "a window that opens by nothing")
            elif not self.sending.widen(flow, more):
                why = "a window larger than windows can be"
                self._fail(flow, StatusCode.INTERNAL, why, frames.FLOW_CONTROL_ERROR)
        if self.sending.waiting:
            self._idle_frames = 0  # a large request is under way: this is its pace

    def _admit(self) -> None:
        """Work out again how many calls there may be at once."""
        open_ = self.greeted and not self.leaving and self.broken is None
        self.flows_max = self._streams_max if open_ and self.sending.last < _LAST_NUMBER else 0
        self.calls_max = max(0, self.flows_max - _KEPT) if self.generous else self.flows_max

    @property
    def generous(self) -> bool:
        """Whether it takes at least as many calls at once as a server should (RFC 9113, 6.5.2)."""
        return self._streams_max >= _GENEROUS

    # ── Ends ────────────────────────────────────────────────────────────────

    def _flow(self, number: int) -> Flow | None:
        """Return the call of that number; None if it is over. BrokenError if it never was."""
        flow = self.flows.get(number)
        if flow is None and (number > self.sending.last or not number % 2):
            raise BrokenError(frames.PROTOCOL_ERROR, "a call that nobody began")
        return flow

    def _end(self, flow: Flow, ending: Ending) -> None:
        """Note that the server has ended its side of a stream."""
        if flow.unsent:
            # It answers without reading on, and it need not.
            self.sending.out.append(frames.reset(flow.number, frames.NO_ERROR))
        if flow.part is not None and ending.status is StatusCode.OK:
            ending = Ending(StatusCode.INTERNAL, "the answer ended within a message")
        self._over(flow, ending if ending.status is not StatusCode.OK else FINE)
        self._touch(flow)

    def _fail(
        self, flow: Flow, status: StatusCode, why: str, code: int = frames.PROTOCOL_ERROR
    ) -> None:
        """End a call because of what its server sent."""
        self.sending.out.append(frames.reset(flow.number, code))
        self._over(flow, Ending(status, why))
        self._touch(flow)

    def _over(self, flow: Flow, ending: Ending) -> None:
        del self.flows[flow.number]
        self.sending.drop(flow)
        flow.ending = ending

    def _touch(self, flow: Flow) -> None:
        if not flow.touched:
            flow.touched = True
            self._touched.append(flow)

    def _take_room(self, taken: int) -> None:
        """Count bytes of answers; the window opens again at half, whether they are read or not."""
        self._room -= taken
        if self._room < 0:
            raise BrokenError(frames.FLOW_CONTROL_ERROR, "more than the connection's window")
        if self._room <= CONNECTION_WINDOW // 2:
            more = CONNECTION_WINDOW - self._room
            self.sending.out.append(frames.window_update(0, more))
            self._room = CONNECTION_WINDOW

    def _break(self, error: BrokenError) -> None:
        self.sending.out.append(frames.goaway(error.code))
        for flow in self.lost(f"the connection broke: {error}"):
            self._touch(flow)
