"""What a server does wrong: to one call it ends that one, to the connection all, and never raises."""

from collections.abc import Callable
from typing import TypeAlias
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.engines.transport.h2.protocol import frames
from smg_node.engines.transport.h2.protocol.connection import IDLE_FRAMES_MAX, Connection
from smg_node.engines.transport.h2.protocol.hpack import literal
from smg_node.engines.transport.h2.protocol.stream_state import STREAM_WINDOW, Flow
from smg_node.engines.transport.transport import StatusCode
from support.engines.h2_server import FINE, HEAD, answer, body, head, message, tail
from support.tools.compiled_forms import twins
from support.tools.example_counts import example_count

LIMIT = 100_000
S = StatusCode

Quick: TypeAlias = Callable[..., tuple[int, int, bool]]


def nothing_quickly(data: bytes, at: int, *_rest: object) -> tuple[int, int, bool]:
    """Leave every frame to the long way."""
    return at, 0, False


PYTHON, *COMPILED = twins("engines.transport.h2.protocol.connection")
WAYS: list[tuple[type[Connection], Quick | None]] = [
    (PYTHON.Connection, nothing_quickly),
    *[
        (PYTHON.Connection, each.quick_frames)
        for each in twins("engines.transport.h2.protocol.fast_frames")
    ],
    # Its calls of what is compiled go straight there.
    *[(each.Connection, None) for each in COMPILED],
]


def connected(calls: int = 2, kind: type[Connection] = Connection) -> tuple[Connection, list[Flow]]:
    connection = kind(LIMIT)
    connection.receive(frames.settings())
    flows = [Flow() for _ in range(calls)]
    for flow in flows:
        connection.begin(flow, b"\x83", b"ask")
    connection.sending.taken()
    return connection, flows


ONE_CALL = {
    "half closed without trailers": (head(1) + body(1, message(b"a"), 1), S.UNKNOWN),
    "an end without a status": (head(1) + tail(1, literal(b"x", b"y")), S.UNKNOWN),
    "headers that are the end, without a status": (tail(1, HEAD), S.UNKNOWN),
    "trailers alone": (tail(1, HEAD + literal(b"grpc-status", b"8")), S.RESOURCE_EXHAUSTED),
    "a status nobody knows": (head(1) + tail(1, literal(b"grpc-status", b"99")), S.UNKNOWN),
    "a status that is no number": (head(1) + tail(1, literal(b"grpc-status", b"x")), S.UNKNOWN),
    "a status twice": (
        head(1) + tail(1, literal(b"grpc-status", b"5") + literal(b"grpc-status", b"7")),
        S.PERMISSION_DENIED,
    ),
    "no :status": (head(1, literal(b"content-type", b"application/grpc")), S.INTERNAL),
    "a page": (
        head(1, literal(b":status", b"200") + literal(b"content-type", b"text/html"))
        + body(1, b"<html>"),
        S.UNKNOWN,
    ),
    "HTTP 404": (tail(1, literal(b":status", b"404")), S.UNIMPLEMENTED),
    "HTTP 503 with a page": (head(1, literal(b":status", b"503")) + body(1, b"<p>"), S.UNAVAILABLE),
    "HTTP 418": (tail(1, literal(b":status", b"418")), S.UNKNOWN),
    "data before headers": (body(1, message(b"a")), S.INTERNAL),
    "trailers in the middle": (head(1) + head(1, FINE), S.INTERNAL),
    "an end within a message": (head(1) + body(1, message(b"abc")[:6]) + tail(1), S.INTERNAL),
    "a compressed message": (head(1) + body(1, message(b"a", squeezed=1)), S.INTERNAL),
    "a message over the limit": (
        head(1) + body(1, frames.PREFIX.pack(0, LIMIT + 1)),
        S.DATA_LOSS,
    ),
    "headers over the limit": (
        frames.headers(1, literal(b"x", b"y" * 70_000), frames.FRAME_MAX_BYTES, last=True),
        S.RESOURCE_EXHAUSTED,
    ),
    "a window that opens by nothing": (head(1) + frames.window_update(1, 0), S.INTERNAL),
    "a window beyond all windows": (
        head(1) + frames.window_update(1, frames.WINDOW_MAX),
        S.INTERNAL,
    ),
    "more than its window": (
        head(1) + body(1, bytes(16_000)) * (STREAM_WINDOW // 16_000 + 1),
        S.INTERNAL,
    ),
    "refused": (frames.reset(1, frames.REFUSED_STREAM), S.UNAVAILABLE),
    "reset as a cancel": (head(1) + frames.reset(1, frames.CANCEL), S.CANCELLED),
    "told to be calm": (frames.reset(1, frames.ENHANCE_YOUR_CALM), S.RESOURCE_EXHAUSTED),
    "not safe enough": (frames.reset(1, frames.INADEQUATE_SECURITY), S.PERMISSION_DENIED),
    "reset for no reason": (head(1) + frames.reset(1, frames.NO_ERROR), S.INTERNAL),
}


@pytest.mark.parametrize("name", ONE_CALL)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_call_that_goes_wrong_ends_alone(name: str, at_once: bool) -> None:
    data, status = ONE_CALL[name]
    connection, (wrong, other) = connected()
    for piece in (data,) if at_once else [data[at : at + 1] for at in range(len(data))][:4000]:
        connection.receive(piece)
    if not at_once and len(data) > 4000:
        connection.receive(data[4000:])
    assert wrong.ending is not None
    assert wrong.ending.status is status
    connection.receive(frames.reset(1, frames.NO_ERROR) + answer(3, b"fine"))
    assert other.messages == [b"fine"]
    assert connection.broken is None


def frame_of(kind: int, flags: int, number: int, payload: bytes) -> bytes:
    return frames.frame(kind, flags, number, payload)


THE_CONNECTION = {
    "a promise": frame_of(frames.PUSH_PROMISE, 4, 1, bytes(4)),
    "a frame too large": b"\x00\x40\x01" + bytes(6) + bytes(16_385),
    "all padding": head(1) + body(1, b"\x05abcd", frames.PADDED),
    "a call that nobody began": head(99),
    "a call of its own": body(2, b""),
    "data of no call": body(0, b"x"),
    "headers that do not go on": frame_of(frames.HEADERS, 0, 1, HEAD) + body(1, b""),
    "a continuation of nothing": frame_of(frames.CONTINUATION, 4, 1, HEAD),
    "headers without end": frame_of(frames.HEADERS, 0, 1, b"")
    + frame_of(frames.CONTINUATION, 0, 1, b"") * 70_000,
    "a table that nobody allowed": head(1, b"\x3f\x01\x88"),
    "an entry of an empty table": head(1, b"\xbe"),
    "a header cut off": head(1, b"\x00\x05ab"),
    "a broken Huffman code": head(1, b"\x00\x81\x00\x00"),
    "a setting of another size": frame_of(frames.SETTINGS, 0, 0, bytes(5)),
    "settings of a call": frame_of(frames.SETTINGS, 0, 1, b""),
    "frames of an impossible size": frames.settings((frames.MAX_FRAME, 1)),
    "a window of an impossible size": frames.settings((frames.INITIAL_WINDOW, 1 << 31)),
    "a server that may be pushed to": frames.settings((frames.ENABLE_PUSH, 1)),
    "a ping of another size": frame_of(frames.PING, 0, 0, bytes(7)),
    "a ping of a call": frame_of(frames.PING, 0, 1, bytes(8)),
    "a reset of another size": frame_of(frames.RST_STREAM, 0, 1, bytes(3)),
    "a farewell of another size": frame_of(frames.GOAWAY, 0, 0, bytes(3)),
    "a window of another size": frame_of(frames.WINDOW_UPDATE, 0, 0, bytes(3)),
    "a window that opens by nothing": frames.window_update(0, 0),
    "a window beyond all windows": frames.window_update(0, frames.WINDOW_MAX),
    "headers of no length": frame_of(frames.HEADERS, 0x24, 1, bytes(4)),
    "pings without end": frame_of(frames.PING, 0, 0, bytes(8)) * (IDLE_FRAMES_MAX + 1),
    "settings without end": frames.settings() * (IDLE_FRAMES_MAX + 1),
    "empty data without end": head(1) + body(1, b"") * (IDLE_FRAMES_MAX + 1),
    "garbage": b"\xff" * 100,
}


@pytest.mark.parametrize("name", THE_CONNECTION)
def test_a_connection_that_goes_wrong_ends_all_its_calls_and_says_so(name: str) -> None:
    connection, flows = connected()
    touched = connection.receive(THE_CONNECTION[name])
    assert connection.broken is not None
    assert set(flows) <= set(touched)
    for flow in flows:
        assert flow.ending is not None
        assert flow.ending.status is StatusCode.UNAVAILABLE
    assert connection.receive(answer(1, b"x")) == []
    wrote = connection.sending.taken()
    assert wrote[-17:-8] == frames.frame(frames.GOAWAY, 0, 0, bytes(8))[:9]


@pytest.mark.parametrize(
    ("hello", "says"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1"),
        (b"\x15\x03\x01\x00\x02\x02\x46 more of it", "too large"),
        (frames.frame(frames.PING, 0, 0, bytes(8)), "introduce"),
    ],
)
def test_who_does_not_speak_http_2_is_told_from_who_does(hello: bytes, says: str) -> None:
    connection = Connection(LIMIT)
    connection.receive(hello)
    assert connection.broken is not None
    assert says in connection.broken
    assert len(connection.flows) >= connection.flows_max


KINDS: list[Callable[[int], bytes]] = [
    head,
    tail,
    lambda number: body(number, message(b"token")),
    lambda number: body(number, message(b"token") * 2, 1),
    lambda number: body(number, b"\x00\x00"),
    lambda number: frames.reset(number, 8),
    lambda number: frames.window_update(number, 100),
    lambda number: frames.settings((frames.INITIAL_WINDOW, number * 1000)),
    lambda number: frames.frame(frames.GOAWAY, 0, 0, number.to_bytes(4, "big") + bytes(4)),
    lambda number: frames.headers(number, HEAD, 5, last=False),
]


@given(st.binary(max_size=300), st.integers(1, 40))
@settings(max_examples=example_count(150), deadline=None)
def test_any_bytes_at_any_cut_give_messages_or_a_broken_connection(data: bytes, size: int) -> None:
    connection, _ = connected(3)
    for at in range(0, len(data), size):
        for flow in connection.receive(data[at : at + size]):
            flow.touched = False


@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from([0, 1, 2, 3, 5, 7])), max_size=20),
    st.integers(1, 60),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=2),
)
@settings(max_examples=example_count(250), deadline=None)
def test_frames_in_any_order_with_any_byte_wrong_give_the_same_at_every_cut(
    said: list[tuple[Callable[[int], bytes], int]], size: int, wrong: list[tuple[int, int]]
) -> None:
    data = bytearray(b"".join([make(number) for make, number in said]))
    for at, value in wrong:
        if at < len(data):
            data[at] = value
    ends = [
        heard(bytes(data), step, kind, quick, known=known)
        for step in (size, len(data) + 1)
        for kind, quick in WAYS
        for known in (False, True)
    ]
    assert all(end == ends[0] for end in ends)


def heard(
    data: bytes, step: int, kind: type[Connection], quick: Quick | None, *, known: bool
) -> list[object]:
    """What three calls hear of `data`, cut every `step` bytes, and whether the connection holds.

    `quick` takes the usual frames. `known`: the head and the end of good answers have been seen before.
    """
    connection, flows = connected(3, kind)
    if known:
        connection._sections.read(HEAD)
        connection._sections.read(FINE)
    with patch.object(PYTHON, "quick_frames", quick):
        feed(connection, data, step)
    said = [(flow.messages, flow.ending and flow.ending.status, flow.part or b"") for flow in flows]
    # Of a connection that is over nobody counts what there is room for.
    rooms = [flow.room for flow in flows] if connection.broken is None else []
    room = connection._room if connection.broken is None else None
    return [*said, rooms, room, connection.broken is None]


def feed(connection: Connection, data: bytes, step: int) -> None:
    for at in range(0, len(data), step):
        for flow in connection.receive(data[at : at + step]):
            assert flow.touched
            flow.touched = False
