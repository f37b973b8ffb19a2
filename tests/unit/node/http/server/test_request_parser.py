"""What our own server takes for a request: the same as the framework's parser, or less."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast
from unittest import mock

import pytest
from aiohttp import http_exceptions
from aiohttp.http_parser import HttpRequestParser
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.request_head import FramingError, split_target
from smg_node.http.server.request_parser import RequestReader
from support.tools.example_counts import example_count

HOST = b"Host: x\r\n"
LINE_MAX_BYTES = 200
HEADERS_MAX = 8


@dataclass
class Read:
    """What a reader made of some bytes."""

    requests: list[HttpRequest] = field(default_factory=list)
    error: SmgError | None = None

    def bodies(self) -> list[bytes | None]:
        """Return each body, None for one that has not ended, or never will."""
        return [request.body.take() if request.body.whole else None for request in self.requests]

    def shapes(self) -> list[tuple[Any, ...]]:
        pairs = zip(self.requests, self.bodies(), strict=True)
        return [
            (
                each.method,
                each.head.target,
                dict(each.headers),
                each.head.http11,
                each.head.keep_alive,
                body,
            )
            for each, body in pairs
        ]


class Flow:
    peer = ""
    certificate = None

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def read(*parts: bytes) -> Read:
    found = Read()
    flow = cast("Any", Flow())
    reader = RequestReader(
        flow, flow, found.requests.append, line_max_bytes=LINE_MAX_BYTES, headers_max=HEADERS_MAX
    )
    try:
        for part in parts:
            reader.feed(part)
    except SmgError as error:
        found.error = error
        # Whatever comes then is nobody's.
        reader.feed(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return found


def get(*lines: bytes, version: bytes = b"HTTP/1.1") -> bytes:
    return b"GET / " + version + b"\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def post(*lines: bytes, body: bytes = b"") -> bytes:
    head = b"".join(line + b"\r\n" for line in (b"Host: x", *lines))
    return b"POST /a HTTP/1.1\r\n" + head + b"\r\n" + body


CHUNKED = b"Transfer-Encoding: chunked"


@pytest.mark.parametrize(
    "bad",
    [
        get(),
        get(b"Host: x", b"hOST: y"),
        get(b"Host: x", version=b"HTTP/2.0"),
        get(b"Host: x", version=b"HTTP/0.9"),
        get(b"Host: x", version=b"HTTP/1.2"),
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\nHost: x\n\n",
        b"GET / HTTP/1.1\r\nHost: x\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\n",
        b"GET / HTTP/1.1\r\nHost: x\rA: b\r\n\r\n",
        get(b"Host: x", b" folded: b"),
        get(b"Host: x", b"A: b", b"\tfolded"),
        get(b"Host : x"),
        get(b"Host: x", b"no colon"),
        get(b"Host: x", b": no name"),
        get(b"Host: x", b"A: b\x00c"),
        get(b"Host: x", b"A: b\x01c"),
        get(b"Host: x", b"A(: b"),
        get(b"Host: x", b"\xc3\xa9: b"),
        b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b" GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        post(b"Content-Length: 1", b"Content-Length: 1", body=b"x"),
        post(b"Content-Length: 1, 1", body=b"x"),
        post(b"Content-Length: +1", body=b"x"),
        post(b"Content-Length: -1", body=b"x"),
        post(b"Content-Length: 1_0", body=b"x"),
        post(b"Content-Length: 0x1", body=b"x"),
        post(b"Content-Length:", body=b"x"),
        post(b"Content-Length: 99999999999999999999", body=b"x"),
        post(b"Content-Length: 1", CHUNKED, body=b"0\r\n\r\n"),
        post(CHUNKED, b"Content-Length: 1", body=b"0\r\n\r\n"),
        post(CHUNKED, CHUNKED, body=b"0\r\n\r\n"),
        post(b"Transfer-Encoding: gzip", body=b"0\r\n\r\n"),
        post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
        post(b"Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n"),
        post(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n"),
        post(b"Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n"),
        post(b"Transfer-Encoding:", body=b"0\r\n\r\n"),
        b"POST / HTTP/1.0\r\n" + CHUNKED + b"\r\n\r\n0\r\n\r\n",
    ],
)
def test_what_two_servers_could_read_differently_is_no_request(bad: bytes) -> None:
    found = read(bad)
    assert not found.requests
    assert found.error is not None
    assert (found.error.status, found.error.code) == (400, "invalid_http")


@pytest.mark.parametrize(
    "body",
    [
        b"zz\r\n",
        b"\r\nabc\r\n0\r\n\r\n",
        b"3 \r\nabc\r\n0\r\n\r\n",
        b"0x3\r\nabc\r\n0\r\n\r\n",
        b"3\nabc\r\n0\r\n\r\n",
        b"3\r\nabc\n0\r\n\r\n",
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"3;a\nabc\r\n0\r\n\r\n",
        b"ffffffffffffffffff\r\nabc",
        b"-1\r\nabc\r\n0\r\n\r\n",
        b"0\r\nContent-Length: 3\r\n\r\n",
        b"0\r\nbroken trailer\r\n\r\n",
    ],
)
async def test_a_body_that_is_framed_wrongly_is_broken_and_ends_the_reading(body: bytes) -> None:
    found = read(post(CHUNKED, body=body) + get(b"Host: x"))
    (request,) = found.requests
    assert found.error is None
    assert not request.body.whole
    with pytest.raises(FramingError):
        await request.body.more()


@pytest.mark.parametrize(
    "body",
    [
        b"3\r\nabc\r\n0\r\n\r\n",
        b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
        b"3;some=thing\r\nabc\r\n0\r\n\r\n",
        b'3;some="a;b"\r\nabc\r\n0\r\n\r\n',
        b"03\r\nabc\r\n000\r\n\r\n",
        b"3\r\nabc\r\n0\r\nSome: trailer\r\n\r\n",
    ],
)
def test_a_body_in_chunks_is_read_and_what_belongs_to_the_chunks_is_dropped(body: bytes) -> None:
    found = read(post(CHUNKED, body=body) + get(b"Host: x"))
    assert found.error is None
    assert found.bodies() == [b"abc", b""]
    assert "some" not in found.requests[0].headers


def test_names_are_lower_case_and_the_first_of_several_counts() -> None:
    sent = get(b"HOST: x", b"Accept: a", b"ACCEPT: b", b"x-Odd: \xc3\xa9\xff \t", b"Empty:")
    (request,) = read(sent).requests
    assert request.headers == {"host": "x", "accept": "a", "x-odd": "é\udcff", "empty": ""}
    assert request.head.raw[1:3] == [(b"Accept", b"a"), (b"ACCEPT", b"b")]


@pytest.mark.parametrize(
    ("sent", "goes_on"),
    [
        (get(b"Host: x"), True),
        (get(b"Host: x", b"Connection: close"), False),
        (get(b"Host: x", b"Connection: Keep-Alive"), True),
        (get(version=b"HTTP/1.0"), False),
        (get(b"Connection: keep-alive", version=b"HTTP/1.0"), True),
        (b"CONNECT h:80 HTTP/1.1\r\nHost: x\r\n\r\n", False),
    ],
)
def test_a_request_says_whether_another_may_follow(sent: bytes, *, goes_on: bool) -> None:
    found = read(sent + get(b"Host: x", version=b"HTTP/1.1"))
    assert found.error is None
    assert found.requests[0].head.keep_alive is goes_on
    assert len(found.requests) == 1 + goes_on


@pytest.mark.parametrize(
    ("framing", "body", "read_as"),
    [
        (b"", b"", b""),
        (b"Content-Length: 0\r\n", b"", b""),
        (b"Content-Length: 3\r\n", b"abc", b"abc"),
        (b"Transfer-Encoding: chunked\r\n", b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", b"abc"),
    ],
)
def test_an_offer_of_another_protocol_is_ignored(
    framing: bytes, body: bytes, read_as: bytes
) -> None:
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    sent = b"POST /a HTTP/1.1\r\n" + HOST + offer + framing + b"\r\n" + body + get(b"Host: x") * 2
    for cut in range(len(sent) + 1):
        found = read(sent[:cut], sent[cut:])
        assert found.error is None
        assert found.bodies() == [read_as, b"", b""]
        assert [request.head.target for request in found.requests] == ["/a", "/", "/"]


@pytest.mark.parametrize(
    "parts",
    [
        [get(b"Host: x", b"big: " + b"a" * LINE_MAX_BYTES)],
        [get(b"Host: x", *[b"a: b"] * HEADERS_MAX)],
        [b"GET /" + b"a" * LINE_MAX_BYTES + b" HTTP/1.1\r\n"],
        [b"GET / HTTP/1.1\r\nHost: x\r\nbig:", *[b"a" * 50] * 6],
        [b"GET / HTTP/1.1\r\n", *[b"a", b"a"] * LINE_MAX_BYTES],
        [b"GET / HTTP/1.1\r\n", *[b"a: b\r\n"] * (HEADERS_MAX + 2)],
        [post(CHUNKED, body=b"0\r\n"), *[b"a: b\r\n"] * (HEADERS_MAX + 2)],
    ],
    ids=["line", "count", "target", "a line that never ends", "a name", "many", "trailers"],
)
def test_a_head_that_is_too_large_is_refused_before_it_has_ended(parts: list[bytes]) -> None:
    found = read(*parts)
    assert found.error is not None
    assert (found.error.status, found.error.code) == (431, "header_too_large")


def test_a_head_of_exactly_the_limits_is_read() -> None:
    lines = [b"Host: x", b"big: " + b"a" * (LINE_MAX_BYTES - 3), *[b"a: b"] * (HEADERS_MAX - 2)]
    sent = get(*lines)
    assert len(read(sent).requests) == 1
    assert len(read(*(sent[at : at + 1] for at in range(len(sent)))).requests) == 1


def test_a_whole_body_has_one_end_and_a_lost_one_none() -> None:
    found = Read()
    flow = cast("Any", Flow())
    reader = RequestReader(
        flow, flow, found.requests.append, line_max_bytes=LINE_MAX_BYTES, headers_max=HEADERS_MAX
    )
    reader.feed(post(b"Content-Length: 3", body=b"ab"))
    reader.close()
    reader.close()
    assert found.bodies() == [None]
    with pytest.raises(FramingError):
        found.requests[0].body.take()


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a", "/a", {}),
        ("/a%2Fb?x=1&x=2&y=%C3%A9+z&e", "/a%2Fb", {"x": "1", "y": "é z", "e": ""}),
        ("/a?x=1#y=2", "/a", {"x": "1"}),
        ("//a", "//a", {}),
        ("http://h:80/a%20b?c=d", "/a%20b", {"c": "d"}),
        ("http://h", "/", {}),
        ("http://[h/a", "http://[h/a", {}),
        ("*", "*", {}),
        ("h:80", "h:80", {}),
    ],
)
def test_a_target_is_a_path_and_parameters(target: str, path: str, query: dict[str, str]) -> None:
    assert split_target(target) == (path, query)


# ── However it is cut, and compared with another parser ──────────────────────

TOKEN = st.text(st.sampled_from("abcXYZ019-_!#$"), min_size=1, max_size=12).map(str.encode)
VALUE = st.text(st.sampled_from("abc ,;=\t\"'{}é"), max_size=20).map(str.encode)
BODY = st.binary(max_size=60)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    method = draw(st.sampled_from([b"GET", b"POST", b"PUT", b"DELETE", b"HEAD"]))
    target = draw(st.sampled_from([b"/", b"/v1/models", b"/a?b=c&d", b"http://h/x"]))
    names = draw(st.lists(TOKEN, max_size=4))
    lines = [b"X-%s: %s" % (name, draw(VALUE)) for name in names]
    body = draw(BODY)
    framing = draw(st.sampled_from(["none", "length", "chunked"]))
    if framing == "length":
        lines.append(b"content-length: %d" % len(body))
    elif framing == "chunked":
        lines.append(CHUNKED)
        size = draw(st.integers(1, 20))
        pieces = [body[at : at + size] for at in range(0, len(body), size)]
        body = b"".join(b"%X\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        body = b""
    lines.insert(draw(st.integers(0, len(lines))), b"Host: x")
    return b"\r\n".join([b"%s %s HTTP/1.1" % (method, target), *lines, b"", body])


def pieces_of(sent: bytes, cuts: Sequence[int]) -> Iterator[bytes]:
    places = [0, *sorted(cut % (len(sent) + 1) for cut in cuts), len(sent)]
    for start, end in pairwise(places):
        yield sent[start:end]


@settings(max_examples=example_count(150))
@given(st.lists(requests(), min_size=1, max_size=3), st.lists(st.integers(0, 4000), max_size=6))
def test_requests_are_the_same_however_they_are_cut_and_as_the_framework_reads_them(
    sent: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(sent)
    whole = read(stream)
    assert whole.error is None
    shapes = whole.shapes()
    assert len(shapes) == len(sent)
    assert read(*pieces_of(stream, cuts)).shapes() == shapes
    assert read(*(stream[at : at + 1] for at in range(len(stream)))).shapes() == shapes
    framework = asyncio.run(as_framework(stream))
    assert [(*shape[:2], shape[3], shape[4], shape[5]) for shape in shapes] == framework


async def as_framework(stream: bytes) -> list[tuple[Any, ...]]:
    parser = HttpRequestParser(
        mock.Mock(), asyncio.get_running_loop(), 65_536, auto_decompress=False
    )
    messages, _, _ = parser.feed_data(stream)
    return [
        (
            head.method,
            head.path,
            head.version >= (1, 1),
            not head.should_close,
            bytes(payload.read_nowait()),
        )
        for head, payload in messages
    ]


@settings(max_examples=example_count(200))
@given(requests(), st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=3)), min_size=1))
def test_broken_bytes_give_the_same_at_every_cut_and_never_more_than_the_framework_takes(
    sent: bytes, changes: list[tuple[int, bytes]]
) -> None:
    broken = bytearray(sent)
    for place, bytes_ in changes:
        at = place % (len(broken) + 1)
        broken[at : at + len(bytes_)] = bytes_
    stream = bytes(broken)
    whole = read(stream)
    single = read(*(stream[at : at + 1] for at in range(len(stream))))
    assert len(single.requests) == len(whole.requests)
    if whole.error is None:
        assert single.error is None
        assert single.shapes() == whole.shapes()
    try:
        taken = len(asyncio.run(as_framework(stream)))
    except http_exceptions.HttpProcessingError:
        # It drops what it had read of the same bytes; ours answers what came before what is wrong.
        return
    assert len(whole.requests) <= taken


@settings(max_examples=example_count(200))
@given(st.lists(st.binary(max_size=80), max_size=4))
def test_any_bytes_are_requests_or_one_refusal(parts: list[bytes]) -> None:
    found = read(*parts)
    assert found.error is None or found.error.status in (400, 431)
