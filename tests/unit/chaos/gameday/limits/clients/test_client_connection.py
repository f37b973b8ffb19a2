"""A client's connection: any split of an answer is the same answer, and whatever else comes is none."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.gameday.limits.clients.client_connection import Caller, Heard
from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN

BODY = b'{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":21,"completion_tokens":2}}'
WHOLE = (
    b"HTTP/1.1 200 OK\r\nX-RateLimit-Limit-Requests: 40\r\nx-ratelimit-remaining-requests: 7\r\n"
    b"x-ratelimit-reset-requests: 120ms\r\nx-smg-limit-state: exact\r\n"
    b"content-length: " + str(len(BODY)).encode() + b"\r\n\r\n" + BODY
)
STREAM = (
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx-ratelimit-limit-tokens: 900\r\n\r\n"
    b'20\r\ndata: {"choices":[{"finish_reason":"length"}]}\r\n'
    b'30\r\ndata: {"usage":{"prompt_tokens": 9,"completion_tokens": 33}}\r\n0\r\n\r\n'
)


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True


class Talked:
    """A caller that asked, and what it heard in the end."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.transport = FakeTransport()
        self.caller = Caller(lambda: 123)
        self.caller.connection_made(self.transport)
        self.ask()

    def ask(self) -> None:
        self.caller.ask(b"question", lambda caller, heard: self.heard.append(heard))

    def hears(self, parts: Sequence[bytes]) -> Heard:
        for part in parts:
            self.caller.data_received(part)
        (heard,) = self.heard
        return heard


def cuts(text: bytes) -> st.SearchStrategy[list[bytes]]:
    places = st.lists(st.integers(0, len(text)), max_size=6).map(sorted)

    def parts(at: list[int]) -> list[bytes]:
        ends = [0, *at, len(text)]
        return [text[a:b] for a, b in pairwise(ends) if a != b]

    return places.map(parts)


@given(cuts(WHOLE))
def test_a_whole_answer_is_read_however_it_is_cut(parts: list[bytes]) -> None:
    heard = Talked().hears(parts)
    assert (heard.status, heard.why, heard.head_us) == (200, "", 123)
    assert heard.limit() == (40, 7, 120)
    assert heard.headers["x-smg-limit-state"] == "exact"
    assert heard.tokens() == (21, 2)
    assert heard.finish() == "stop"


@given(cuts(STREAM))
def test_a_stream_is_read_however_it_is_cut(parts: list[bytes]) -> None:
    heard = Talked().hears(parts)
    assert (heard.status, heard.why) == (200, "")
    assert heard.limit() == (900, UNKNOWN, UNKNOWN)
    assert heard.tokens() == (9, 33)
    assert heard.finish() == "length"


def test_a_connection_is_used_again_and_closed_where_the_server_says_so() -> None:
    talked = Talked()
    talked.hears([WHOLE])
    talked.ask()
    assert talked.caller.is_open
    talked.caller.data_received(WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
    assert len(talked.heard) == 2
    assert not talked.caller.is_open
    assert talked.transport.written == b"questionquestion"


def test_an_error_in_a_stream_is_no_finish() -> None:
    stream = STREAM.replace(b'data: {"usage"', b'data: {"error": {"code":1},"usage"')
    assert Talked().hears([stream]).finish() == "error"


def test_an_answer_that_breaks_off_is_none() -> None:
    talked = Talked()
    talked.caller.data_received(WHOLE[:-5])
    assert talked.heard == []
    talked.caller.connection_lost(None)
    (heard,) = talked.heard
    assert (heard.status, heard.why) == (0, "the connection was lost")
    assert not talked.caller.is_open


def test_who_gives_up_says_why() -> None:
    talked = Talked()
    talked.caller.give_up("no answer in time")
    talked.caller.connection_lost(None)
    assert [heard.why for heard in talked.heard] == ["no answer in time"]


@pytest.mark.parametrize("garbage", [b"\x00" * 70_000, b"\r\n\r\n", b"HTTP/1.1 abc\r\n\r\nx"])
def test_garbage_is_no_answer(garbage: bytes) -> None:
    talked = Talked()
    talked.caller.data_received(garbage)
    talked.caller.connection_lost(None)
    assert [heard.status for heard in talked.heard] == [0]


def test_what_nobody_asked_for_ends_the_connection() -> None:
    talked = Talked()
    talked.hears([WHOLE])
    talked.caller.data_received(WHOLE)
    assert not talked.caller.is_open
    assert len(talked.heard) == 1


def refused(*headers: str, body: str = "{}", status: int = 429) -> Heard:
    """Return a refusal with these headers and that body."""
    lines = [f"HTTP/1.1 {status} No", *headers, f"content-length: {len(body)}"]
    return Talked().hears(["\r\n".join([*lines, "", body]).encode()])


@pytest.mark.parametrize(
    ("headers", "retry"),
    [
        (["retry-after: 3"], (3_000, 1_000)),
        (["retry-after: 3", "retry-after-ms: 2345"], (2_345, 0)),
        (["Retry-After-Ms: 0"], (0, 0)),
        (["retry-after-ms: soon", "retry-after: 2"], (2_000, 1_000)),
        (["retry-after-ms: -5"], (UNKNOWN, 0)),
        (["retry-after: Wed, 21 Oct 2026 07:28:00 GMT"], (UNKNOWN, 0)),
        ([], (UNKNOWN, 0)),
    ],
)
def test_milliseconds_are_believed_before_whole_seconds(
    headers: Sequence[str], retry: tuple[int, int]
) -> None:
    assert refused(*headers).retry() == retry


@pytest.mark.parametrize(
    ("headers", "body", "reason"),
    [
        (["x-smg-limit-reason: no_owner"], "{}", "no_owner"),
        (["x-smg-limit-reason: odd"], '{"error":{"code":"used_up"}}', "odd"),
        ([], '{"error":{"code": "used_up"}}', "used_up"),
        ([], '{"error":{"code":"rate_limit_exceeded","message":"nothing"}}', ""),
        ([], '{"error":{"message":"the limit of x is used up: 60 requests"}}', "used_up"),
        ([], '{"error":{"message":"this node has nothing left now"}}', "held_elsewhere"),
        ([], "{}", ""),
    ],
)
def test_the_reason_is_that_of_the_header_or_else_of_the_error(
    headers: Sequence[str], body: str, reason: str
) -> None:
    assert refused(*headers, body=body).reason() == reason
    assert refused(*headers, body=body, status=200).reason() == ""
