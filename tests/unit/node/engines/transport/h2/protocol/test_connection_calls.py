"""Calls on a connection without a network: what is sent, what is handed out, within which windows."""

import pytest

from smg_node.engines.transport.h2.protocol import frames
from smg_node.engines.transport.h2.protocol.connection import Connection
from smg_node.engines.transport.h2.protocol.hpack import read_block
from smg_node.engines.transport.h2.protocol.preface import CONNECTION_WINDOW
from smg_node.engines.transport.h2.protocol.request_head import RequestHeads
from smg_node.engines.transport.h2.protocol.response_head import Ending
from smg_node.engines.transport.h2.protocol.stream_state import STREAM_WINDOW, Flow
from smg_node.engines.transport.transport import StatusCode
from support.engines.h2_server import answer, body, head, message, tail

LIMIT = 1 << 20


def connected(*settings: tuple[int, int]) -> Connection:
    connection = Connection(LIMIT)
    connection.sending.taken()
    connection.receive(frames.settings(*settings))
    connection.sending.taken()
    return connection


def begun(connection: Connection, request: bytes = b"ask") -> Flow:
    flow = Flow()
    connection.begin(flow, b"\x83", request)
    while connection.sending.pump(1 << 20):
        pass
    return flow


def sent(connection: Connection) -> list[tuple[int, int, int, bytes]]:
    """Return kind, flags, stream and payload of every frame that was written since the last look."""
    data, found = connection.sending.taken(), []
    while data:
        word, flags, number = frames.HEAD.unpack_from(data)
        found.append((word & 0xFF, flags, number, data[9 : 9 + (word >> 8)]))
        data = data[9 + (word >> 8) :]
    return found


def ending(flow: Flow) -> Ending:
    assert flow.ending is not None
    return flow.ending


def test_it_introduces_itself_and_waits_for_the_server_to_do_so() -> None:
    connection = Connection(LIMIT)
    hello = connection.sending.taken()
    assert hello.startswith(frames.PREFACE + b"\x00\x00")
    assert len(connection.flows) >= connection.flows_max
    connection.receive(frames.settings())
    assert len(connection.flows) < connection.flows_max
    assert sent(connection) == [(frames.SETTINGS, frames.ACK, 0, b"")]


def test_a_call_is_one_write_and_its_answer_is_messages_and_an_end() -> None:
    connection = connected()
    flow = begun(connection)
    assert sent(connection) == [
        (frames.HEADERS, frames.END_HEADERS, 1, b"\x83"),
        (frames.DATA, frames.END_STREAM, 1, message(b"ask")),
    ]
    assert connection.receive(answer(1, b"one", b"", b"three")) == [flow]
    assert flow.messages == [b"one", b"", b"three"]
    assert ending(flow).status is StatusCode.OK
    assert not connection.flows
    assert sent(connection) == []


@pytest.mark.parametrize("size", [1, 2, 5, 9, 10, 13, 14, 15, 100])
def test_wherever_the_bytes_are_cut_the_messages_are_the_same(size: int) -> None:
    connection = connected()
    flow = begun(connection)
    said = message(b"one") + message(b"") + message(b"x" * 50)
    transcript = (
        head(1) + body(1, said[:7]) + body(1, b"") + body(1, said[7:60]) + body(1, said[60:])
    )
    transcript += tail(1)
    for at in range(0, len(transcript), size):
        connection.receive(transcript[at : at + size])
        flow.touched = False
    assert flow.messages == [b"one", b"", b"x" * 50]
    assert ending(flow).status is StatusCode.OK


def test_many_calls_share_a_wake_up_and_each_hears_once() -> None:
    connection = connected()
    flows = [begun(connection) for _ in range(5)]
    assert [flow.number for flow in flows] == [1, 3, 5, 7, 9]
    data = b"".join([head(number) for number in (1, 3, 5, 7, 9)])
    data += b"".join([body(number, message(b"t")) * 3 for number in (9, 1, 5)])
    touched = connection.receive(data)
    assert touched == [flows[4], flows[0], flows[2]]
    assert [len(flow.messages) for flow in flows] == [3, 0, 3, 0, 3]


def test_padding_priorities_and_unknown_frames_change_nothing() -> None:
    connection = connected()
    flow = begun(connection)
    block = b"\x04" + bytes(5) + b"\x88" + bytes(4)
    connection.receive(
        frames.frame(
            frames.HEADERS, frames.END_HEADERS | frames.PADDED | frames.WITH_PRIORITY, 1, block
        )
        + frames.frame(0xFA, 0xFF, 1, b"whatever")
        + frames.frame(frames.PRIORITY, 0, 1, bytes(5))
        + body(1, b"\x03" + message(b"hi") + bytes(3), frames.PADDED)
        + tail(1)
    )
    assert flow.messages == [b"hi"]
    assert ending(flow).status is StatusCode.OK


def test_headers_may_come_in_pieces_and_after_some_that_only_say_wait() -> None:
    connection = connected()
    flow = begun(connection)
    wait = frames.headers(1, b"\x08\x03103", frames.FRAME_MAX_BYTES, last=False)
    pieces = frames.headers(1, b"\x88" + b"\x00\x01a\x01b" * 20, 7, last=False)
    connection.receive(wait + pieces + body(1, message(b"hi")) + tail(1))
    assert flow.messages == [b"hi"]
    assert ending(flow).status is StatusCode.OK


def test_a_large_request_goes_out_within_the_windows_and_holds_up_no_other() -> None:
    connection = connected((frames.INITIAL_WINDOW, 20_000), (frames.MAX_FRAME, 16_384))
    large = begun(connection, b"x" * 100_000)
    small = begun(connection, b"small")
    wrote = [(number, len(p)) for kind, _, number, p in sent(connection) if kind == frames.DATA]
    assert wrote == [(1, 16_384), (1, 3_616), (3, 10)]
    got = 20_000
    while large.unsent:
        connection.receive(frames.window_update(1, 7_000))
        connection.receive(frames.window_update(0, 7_000))
        connection.sending.pump(1 << 20)
        got += sum([len(p) for kind, _, _, p in sent(connection) if kind == frames.DATA])
    assert got == 100_005
    connection.receive(answer(1, b"a") + answer(3, b"b"))
    assert (large.messages, small.messages) == ([b"a"], [b"b"])


def test_large_requests_take_turns() -> None:
    connection = connected((frames.INITIAL_WINDOW, 1 << 20))
    for _ in range(2):
        connection.begin(Flow(), b"\x83", b"x" * 200_000)
    connection.receive(frames.window_update(0, 1 << 20))
    sent(connection)
    connection.sending.pump(4 * 16_384)
    assert [number for _, _, number, _ in sent(connection)] == [1, 3, 1, 3]


def test_a_window_that_is_made_smaller_under_way_is_paid_back_first() -> None:
    connection = connected((frames.INITIAL_WINDOW, 10_000))
    flow = begun(connection, b"x" * 15_000)
    connection.receive(frames.settings((frames.INITIAL_WINDOW, 4_000)))
    assert flow.window == -6_000
    connection.receive(frames.window_update(1, 6_000))
    connection.sending.pump(1 << 20)
    assert not [
        one for one in sent(connection) if one[2] == 1 and one[0] == frames.DATA and one[3][5:]
    ][1:]
    connection.receive(frames.settings((frames.INITIAL_WINDOW, 30_000)))
    connection.sending.pump(1 << 20)
    assert not flow.unsent


def test_a_reader_who_takes_nothing_stops_its_own_sender_and_no_other() -> None:
    connection = connected()
    slow, quick = begun(connection), begun(connection)
    connection.receive(head(1) + head(3))
    sent(connection)
    piece = message(b"x" * 10_000)
    for _ in range(STREAM_WINDOW // len(piece)):
        connection.receive(body(1, piece))
    assert sent(connection) == []
    for _ in range(3 * CONNECTION_WINDOW // len(piece)):
        connection.receive(body(3, piece))
        quick.messages.clear()
        connection.refill(quick)
    updates = [number for kind, _, number, _ in sent(connection) if kind == frames.WINDOW_UPDATE]
    assert updates.count(0) >= 2
    assert slow.ending is None
    assert slow.room < len(piece)
    connection.refill(slow)
    assert sent(connection)[0][2] == 1


def test_a_message_larger_than_the_window_asks_for_more_of_it() -> None:
    connection = connected()
    flow = begun(connection)
    connection.receive(head(1))
    whole = message(b"x" * (3 * STREAM_WINDOW))
    for at in range(0, len(whole), 16_384):
        assert connection.receive(body(1, whole[at : at + 16_384])) == [flow]
        flow.touched = False
        connection.refill(flow)
    assert flow.messages == [whole[5:]]


def test_pings_are_answered_and_settings_acknowledged() -> None:
    connection = connected()
    connection.receive(frames.frame(frames.PING, 0, 0, b"12345678"))
    connection.receive(frames.frame(frames.PING, frames.ACK, 0, b"12345678"))
    connection.receive(frames.settings((frames.MAX_STREAMS, 1)))
    assert [(kind, flags) for kind, flags, _, _ in sent(connection)] == [
        (frames.PING, frames.ACK),
        (frames.SETTINGS, frames.ACK),
    ]
    begun(connection)
    assert len(connection.flows) >= connection.flows_max


def test_a_dropped_call_is_reset_and_what_still_comes_for_it_is_forgotten() -> None:
    connection = connected()
    flow, other = begun(connection), begun(connection)
    sent(connection)
    connection.drop(flow, Ending(StatusCode.CANCELLED))
    assert sent(connection) == [(frames.RST_STREAM, 0, 1, b"\0\0\0\x08")]
    connection.drop(flow, Ending(StatusCode.CANCELLED))
    touched = connection.receive(answer(1, b"late") + frames.reset(1, 0) + answer(3, b"hers"))
    assert touched == [other]
    assert flow.messages == []


def test_calls_that_a_leaving_server_has_not_begun_are_told_from_those_that_it_has() -> None:
    connection = connected()
    first, second, third = begun(connection), begun(connection), begun(connection)
    farewell = frames.frame(frames.GOAWAY, 0, 0, b"\0\0\0\x03" + bytes(4))
    assert connection.receive(farewell) == [third]
    assert ending(third).status is StatusCode.UNAVAILABLE
    assert len(connection.flows) >= connection.flows_max
    for flow in (first, second):
        connection.receive(answer(flow.number, b"x"))
        assert ending(flow).status is StatusCode.OK


def test_the_headers_of_a_call_are_what_grpc_wants() -> None:
    heads = RequestHeads("engine:50051", secure=False)
    headers = {"traceparent": "00-1", "x-long": "v" * 300, "Bad Key": "x", "grpc-timeout": "1S"}
    read = read_block(heads.block("/a.B/Generate", headers, 1.5))
    assert read == [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/a.B/Generate"),
        (b":authority", b"engine:50051"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
        (b"user-agent", b"grpc-smg-node"),
        (b"grpc-timeout", b"1500m"),
        (b"traceparent", b"00-1"),
        (b"x-long", b"v" * 300),
    ]
    assert dict(read_block(heads.block("/m", None, 1e-9)))[b"grpc-timeout"] == b"1m"
    assert dict(read_block(heads.block("/m", None, 1e6)))[b"grpc-timeout"] == b"1000000S"
    assert dict(read_block(heads.block("/m", None, 1e12)))[b"grpc-timeout"] == b"99999999S"
