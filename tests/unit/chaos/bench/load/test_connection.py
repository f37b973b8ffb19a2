import asyncio
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.bench.load.connection import Connection, Exchange

EVENT = b'data: {"choices":[{"delta":{"content":"word"}}]}\n\n'
ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
STREAM = ROLE + EVENT * 3 + b"data: [DONE]\n\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


CHUNKS = b"".join(map(chunk, (ROLE, EVENT, EVENT, EVENT, b"data: [DONE]\n\n"))) + b"0\r\n\r\n"
WHOLE = b'{"choices":[{"message":{"content":"word"}}]}'
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(WHOLE), WHOLE)


class Wire:
    """A transport that remembers."""

    def __init__(self) -> None:
        self.sent = b""
        self.closed = ""

    def write(self, content: bytes) -> None:
        self.sent += content

    def close(self) -> None:
        self.closed = self.closed or "closed"

    def abort(self) -> None:
        self.closed = "aborted"

    def is_closing(self) -> bool:
        return bool(self.closed)


class Talk:
    """A connection under test, and what it said."""

    def __init__(self) -> None:
        self.ended: list[tuple[Exchange, str]] = []
        self.lost = 0
        self.connection = Connection(3, ended=self._end, lost=self._lose)
        self.wire = Wire()
        self.connection.connection_made(cast(asyncio.Transport, self.wire))

    def _end(self, connection: Connection, exchange: Exchange, problem: str) -> None:
        self.ended.append((exchange, problem))

    def _lose(self, connection: Connection) -> None:
        self.lost += 1

    def ask(self, answer: bytes, cuts: list[int]) -> None:
        self.connection.ask(b"GET", 1.0)
        places = sorted({0, len(answer), *(cut % len(answer) for cut in cuts)})
        for start, end in pairwise(places):
            self.connection.data_received(answer[start:end])


@given(st.lists(st.integers(0, 2000), max_size=60))
def test_a_stream_is_the_same_however_it_is_cut(cuts: list[int]) -> None:
    talk = Talk()
    talk.ask(HEAD + CHUNKS, cuts)
    ((exchange, problem),) = talk.ended
    assert (problem, exchange.status, exchange.chunked) == ("", 200, True)
    assert exchange.body == CHUNKS
    assert 0 < exchange.first_s <= exchange.last_s <= exchange.ended_s or exchange.tokens == 0


def test_a_stream_that_comes_byte_by_byte_ends() -> None:
    talk = Talk()
    talk.ask(HEAD + CHUNKS, list(range(2000)))
    ((exchange, _),) = talk.ended
    assert exchange.body == CHUNKS


def test_tokens_are_counted_as_they_arrive() -> None:
    talk = Talk()
    talk.connection.ask(b"GET", 1.0)
    talk.connection.data_received(HEAD + chunk(ROLE))
    assert talk.connection.seen == 0
    talk.connection.data_received(chunk(EVENT))
    talk.connection.data_received(chunk(EVENT) + chunk(EVENT))
    assert talk.connection.seen == 3
    talk.connection.data_received(b"0\r\n\r\n")
    assert talk.ended[0][0].tokens == 3


@given(st.lists(st.integers(0, 2000), max_size=30))
def test_an_answer_of_known_length_is_the_same_however_it_is_cut(cuts: list[int]) -> None:
    talk = Talk()
    talk.ask(PLAIN, cuts)
    assert [(one.body, problem) for one, problem in talk.ended] == [(WHOLE, "")]


def test_one_connection_asks_many_times() -> None:
    talk = Talk()
    for answer in (PLAIN, HEAD + CHUNKS, PLAIN, HEAD + b"0\r\n\r\n", PLAIN):
        talk.ask(answer, [7, 90])
    assert [problem for _, problem in talk.ended] == [""] * 5
    assert talk.connection.is_open
    assert talk.wire.sent == b"GET" * 5


def test_an_answer_without_length_ends_with_the_connection() -> None:
    talk = Talk()
    talk.ask(b"HTTP/1.1 500 No\r\nConnection: close\r\n\r\nsorry", [])
    assert talk.ended == []
    talk.connection.connection_lost(None)
    assert [(one.status, one.body, problem) for one, problem in talk.ended] == [(500, b"sorry", "")]
    assert talk.lost == 1


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200", HEAD, HEAD + CHUNKS[:50], PLAIN[:-1]])
def test_a_connection_lost_in_the_middle_is_a_problem(sent: bytes) -> None:
    talk = Talk()
    talk.connection.ask(b"GET", 1.0)
    talk.connection.data_received(sent)
    talk.connection.connection_lost(ConnectionResetError())
    ((_, problem),) = talk.ended
    assert "lost" in problem
    assert not talk.connection.is_open


def test_a_server_that_wants_to_close_is_not_asked_again() -> None:
    talk = Talk()
    talk.ask(PLAIN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), [])
    assert talk.ended[0][1] == ""
    assert not talk.connection.is_open


def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    talk = Talk()
    talk.connection.data_received(b"HTTP/1.1 200 OK\r\n\r\n")
    assert talk.wire.closed == "aborted"


def test_a_head_without_end_is_a_problem() -> None:
    talk = Talk()
    talk.connection.ask(b"GET", 1.0)
    for _ in range(70):
        if not talk.ended:
            talk.connection.data_received(b"x" * 1024)
    assert "head" in talk.ended[0][1]
    assert talk.wire.closed == "aborted"
