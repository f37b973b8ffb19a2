"""A vendor's own stream passes event by event at any cut, nothing before its first word, nothing after its failure."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Usage
from smg_node.dialects.sse_reader import EVENT_MAX_BYTES
from smg_node.dialects.worker_errors import WorkerError
from smg_node.pipeline.relay.relayed_events import KEPT_MAX_BYTES
from smg_node.pipeline.relay.vendors.native_stream import NativeStream


class Judge:
    """Takes a `w` for the first word, an `x` for an error and a `d` for the end."""

    def __init__(self) -> None:
        self.begun = self.done = False
        self.failure: SmgError | WorkerError | None = None
        self.usage: Usage | None = None
        self.deltas = 0
        self.heard: list[tuple[bytes, bytes]] = []

    def take(self, name: bytes, data: bytes) -> None:
        self.heard.append((name, data))
        self.begun = self.begun or data.startswith(b"w")
        self.done = self.done or data == b"d"
        if data == b"x":
            self.failure = WorkerError(529, "full", "overloaded_error")

    def finish(self) -> None:
        if not self.done:
            self.failure = SmgError(ErrorKind.UPSTREAM_FAILED, "cut")

    def whole(self, body: bytes) -> None:
        raise AssertionError("it is a stream")


class Same:
    def event(self, data: bytes) -> bytes | None:
        return data

    def whole(self, body: bytes) -> bytes:
        return body


class Renamed(Same):
    """Gives `w` another name, and keeps `u` to itself."""

    def event(self, data: bytes) -> bytes | None:
        if data == b"u":
            return None
        return data.replace(b"w", b"W") if b"w" in data else data


STREAM = b"event: start\r\ndata: s\r\n\r\n: ping\n\ndata: w1\n\nevent: t\ndata: w2\ndata: w3\n\ndata: d\r\n\r\n"


def passed(stream: NativeStream, *pieces: bytes) -> bytes:
    return b"".join(stream.feed(piece) for piece in pieces) + stream.finish()


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_a_stream_passes_byte_for_byte_at_any_cut(cuts: list[int]) -> None:
    judge = Judge()
    ends = sorted({0, *cuts, len(STREAM)})
    pieces = [STREAM[a:b] for a, b in itertools.pairwise(ends)]
    assert passed(NativeStream(judge, Same()), *pieces) == STREAM
    assert judge.heard == [(b"start", b"s"), (b"", b"w1"), (b"t", b"w2\nw3"), (b"", b"d")]


def test_nothing_passes_before_the_first_word() -> None:
    stream = NativeStream(Judge(), Same())
    assert stream.feed(b"data: s\n\n: ping\n\n") == b""
    assert stream.feed(b"data: w\n\n") == b"data: s\n\n: ping\n\ndata: w\n\n"
    assert stream.feed(b"data: w2\n\n") == b"data: w2\n\n"


def test_a_long_beginning_passes_though_no_word_has_come() -> None:
    stream = NativeStream(Judge(), Same())
    event = b"data: " + b"s" * KEPT_MAX_BYTES + b"\n\n"
    assert stream.feed(event) == event


def test_an_error_does_not_pass_nor_what_follows_it() -> None:
    stream = NativeStream(Judge(), Same())
    assert stream.feed(b"data: w\n\ndata: x\n\ndata: w\n\n") == b"data: w\n\n"
    assert isinstance(stream.failure, WorkerError)
    assert stream.feed(b"data: w\n\n") == stream.finish() == b""


def test_an_error_before_the_first_word_lets_nothing_out() -> None:
    stream = NativeStream(Judge(), Same())
    assert passed(stream, b"data: s\n\ndata: x\n\n") == b""
    assert isinstance(stream.failure, WorkerError)


def test_a_stream_without_its_end_is_cut() -> None:
    stream = NativeStream(Judge(), Same())
    assert passed(stream, b"data: w\n\n") == b"data: w\n\n"
    assert isinstance(stream.failure, SmgError)
    assert stream.failure.message == "cut"


def test_the_last_event_may_lack_its_blank_line() -> None:
    stream = NativeStream(Judge(), Same())
    assert passed(stream, b"data: w\n\ndata: d") == b"data: w\n\ndata: d\n\n"
    assert stream.failure is None
    assert stream.done


def test_what_is_undressed_is_written_anew_and_the_rest_stays() -> None:
    stream = NativeStream(Judge(), Renamed())
    told = passed(
        stream, b"event: t\r\ndata: w1\r\ndata: 2\r\n\r\ndata: u\n\ndata: s\n\ndata: d\n\n"
    )
    assert told == b"event: t\ndata: W1\ndata: 2\r\n\r\ndata: s\n\ndata: d\n\n"


def test_an_event_without_end_is_refused() -> None:
    stream = NativeStream(Judge(), Same())
    half = b"x" * (EVENT_MAX_BYTES // 2 + 1)
    assert stream.feed(half) == stream.feed(half) == b""
    assert isinstance(stream.failure, SmgError)
    assert "more than" in stream.failure.message


@pytest.mark.parametrize("garbage", [b"", b"\n\n\n\n", b"\x00\xff\n\n", b"event: a\n\n", b":\n\n"])
def test_garbage_is_no_answer(garbage: bytes) -> None:
    stream = NativeStream(Judge(), Same())
    passed(stream, garbage)
    assert stream.failure is not None


def test_bytes_that_are_no_event_do_not_pass() -> None:
    stream = NativeStream(Judge(), Same())
    assert passed(stream, b"data: w\n\n\xfe\xff\x00{]\n\n", b"\xfe\xfe") == b"data: w\n\n"
    assert isinstance(stream.failure, SmgError)
