"""A head read before means what it meant then, and only where nothing but its length differs."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.http.message.body_stream import ArrivedBody
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.request_head import FramingError
from smg_node.http.server.begin_budget import BeginBudget
from smg_node.http.server.connections import ConnectionLimits
from smg_node.http.server.http1_connection import DirectConnection
from smg_node.http.server.request_parser import RequestReader


class Flow:
    peer = ""
    certificate = None

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def shape(one: HttpRequest, *, take: bool = True) -> tuple[Any, ...]:
    body = one.body.take() if take and one.body.whole else None
    return (
        one.method, one.head.target, dict(one.headers), list(one.head.raw), one.head.http11, one.head.keep_alive, body,
    )  # fmt: skip


def read(packets: list[bytes]) -> tuple[list[tuple[Any, ...]], str, list[bool]]:
    """Return the requests of one connection, what was wrong, and which were read by a known head."""
    found: list[HttpRequest] = []
    flow = cast("Any", Flow())
    reader = RequestReader(flow, flow, found.append, line_max_bytes=200, headers_max=8)
    error = ""
    try:
        for packet in packets:
            reader.feed(packet)
    except SmgError as wrong:
        error = wrong.code
    reader.close()
    return [shape(one) for one in found], error, [type(one.body) is ArrivedBody for one in found]


def bytewise(packets: list[bytes]) -> list[bytes]:
    return [bytes((one,)) for packet in packets for one in packet]


def post(body: bytes, *lines: bytes, length: bytes | None = None, tail: bytes = b"") -> bytes:
    size = str(len(body)).encode() if length is None else length
    head = (
        b"POST /v1/x?a=1 HTTP/1.1",
        b"Host: h",
        *lines,
        b"Content-Length: " + size,
        b"X-Last: z",
    )
    return b"\r\n".join(head) + b"\r\n\r\n" + body + tail


def test_a_head_like_the_last_one_is_known_and_its_length_is_its_own() -> None:
    packets = [post(b"{}"), post(b"longer"), post(b"x" * 12_000), post(b"")]
    requests, error, known = read(packets)
    assert (error, known) == ("", [False, True, True, True])
    assert requests == read(bytewise(packets))[0]
    assert [one[2]["content-length"] for one in requests] == ["2", "6", "12000", "0"]
    assert [dict(one[3])[b"Content-Length"] for one in requests] == [b"2", b"6", b"12000", b"0"]


lines = st.sampled_from(
    [
        (), (b"Authorization: Bearer k",), (b"x-request-id: 7",), (b"Connection: close",), (b"Expect: 100-continue",),
        (b"content-length: 2",), (b"Transfer-Encoding: chunked",), (b"Upgrade: h2c", b"Connection: upgrade"),
        (b"Host: again",), (b"Odd : name",), (b"x: content-length: 4",), (b"Content-Encoding: gzip",),
    ]
)  # fmt: skip
requests = st.builds(
    post,
    st.binary(max_size=12) | st.just(b"5\r\nhello\r\n0\r\n\r\n"),
    length=st.sampled_from([None, None, None, b"2", b"002", b"+2", b" 2", b"2 ", b"", b"9" * 30]),
    tail=st.sampled_from([b"", b"", b"\r\n", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"]),
)
with_lines = st.builds(
    lambda body, extra, length: post(body, *extra, length=length),
    st.binary(max_size=12),
    lines,
    st.sampled_from([None, None, b"2"]),
)
plain = st.binary(max_size=12).map(post)


@given(
    st.lists(plain | with_lines | requests | st.binary(max_size=8), max_size=7), st.integers(0, 30)
)
def test_packets_mean_what_their_bytes_mean_one_by_one(packets: list[bytes], cut: int) -> None:
    if packets:
        packets[-1] = packets[-1][: max(len(packets[-1]) - cut, 0)]
    packets = [packet for packet in packets if packet]
    at_once, error, _ = read(packets)
    slowly, error_slowly, _ = read(bytewise(packets))
    assert at_once == slowly
    assert error == error_slowly


class Door:
    """Remembers what it is asked, with how that was read."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, ...]] = []
        self.error = ""

    async def serve(self, incoming: HttpRequest) -> bool:
        assert incoming.task is asyncio.current_task()
        at, said = len(self.found), b""
        self.found.append(shape(incoming, take=False))
        try:
            while True:
                part = await incoming.body.more()
                said += part
                if not part:
                    break
        except FramingError:
            return False
        self.found[at] = (*self.found[at][:-1], said)
        return incoming.head.keep_alive

    def unparsed(self, _line: Any, error: SmgError) -> None:
        self.error = error.code


async def served(packets: list[bytes]) -> tuple[list[tuple[Any, ...]], str]:
    """Return what came to the door of a connection, and what was wrong."""
    door = Door()
    limits = ConnectionLimits(9, 99, 200, 8, 9.0, 9.0, 99, 9.0)
    listener: Any = SimpleNamespace(
        limits=limits,
        door=door,
        budget=BeginBudget(),
        admit=lambda *_: True,
        forget=lambda _: None,
    )
    connection = DirectConnection(listener)
    transport: Any = SimpleNamespace(
        get_extra_info=lambda _: None, is_closing=lambda: True, close=lambda: None
    )
    connection.connection_made(transport)
    await asyncio.sleep(0)
    for packet in packets:
        connection.data_received(packet)
        for _ in range(4):
            await asyncio.sleep(0)
    connection.connection_lost(None)
    await asyncio.sleep(0)
    return door.found, door.error


@given(st.lists(plain | with_lines | requests | st.binary(max_size=8), max_size=7))
def test_a_connection_reads_what_its_reader_reads(packets: list[bytes]) -> None:
    packets = [packet for packet in packets if packet]
    found, error, _ = read(packets)
    assert asyncio.run(served(packets)) == (found, error)


def test_a_connection_knows_the_heads_that_its_reader_knows() -> None:
    packets = [post(b"{}"), post(b"ab"), post(b"cd"), b"\r\n", post(b"ef"), post(b"longer")]
    found, error = asyncio.run(served(packets * 2))
    assert (error, [one[-1] for one in found]) == (
        "",
        [b"{}", b"ab", b"cd", b"ef", b"longer"] * 2,
    )
    assert found == read(packets * 2)[0]


def test_what_is_silent_is_counted_for_each_request() -> None:
    whole = post(b"{}")
    at = whole.index(b"Host: ") + 6
    # Of the middle of a line nothing is heard before its end, which here comes with all that follows.
    pieces = [whole[:at], b"z" * 30, whole[at:]]
    found, error, _ = read(pieces * 20)
    assert (error, len(found)) == ("", 20)


@pytest.mark.parametrize(
    "second",
    [
        post(b"12", length=b"3") + b"3" + b"G",
        post(b"12") + b"\r\n",
        post(b"12", length=b"1"),
        post(b"12").replace(b"POST", b"PUT"),
        post(b"12").replace(b"X-Last: z", b"X-Last: zz"),
        post(b"12").lower().replace(b"post", b"POST").replace(b"http", b"HTTP"),
        b"\r\n" + post(b"12"),
    ],
)
def test_whatever_else_differs_is_read_anew(second: bytes) -> None:
    assert read([post(b"{}"), second])[2][:2] in ([False, False], [False])


def test_a_client_whose_heads_always_differ_is_not_learned_from_for_ever() -> None:
    packets = [post(b"{}", b"X-Request-Id: %d" % at) for at in range(12)] + [
        post(b"{}", b"X-Request-Id: 11")
    ]
    assert read(packets)[2] == [False] * 13
    assert read(packets[5:])[2][-1]


def test_other_limits_are_other_heads() -> None:
    found: list[HttpRequest] = []
    flow = cast("Any", Flow())
    reader = RequestReader(flow, flow, found.append, line_max_bytes=200, headers_max=8)
    reader.feed(post(b"{}"))
    reader.retune(line_max_bytes=200, headers_max=2)
    with pytest.raises(SmgError) as refused:
        reader.feed(post(b"{}"))
    assert refused.value.status == 431
