"""SSE events: any cut of the bytes gives the same events, ids and retry times; what is too large is said."""

import itertools
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.wire.sse_events import SseEvent, SseEvents, TooLargeError

STREAM = (
    b"\xef\xbb\xbf: hello\r\n\r\n"
    b"id: 1\nretry: 250\ndata:\n\n"
    b'event: message\rid: 2\rdata: {"a":\rdata:1}\r\r'
    b"event:endpoint\r\ndata:  /messages?x=1\r\n\r\n"
    b"retry: soon\nid: bad\0id\ndata: last\nunknown: x\nnothing\n\n"
    b"data: unfinished\n"
)
EVENTS = [
    SseEvent("message", b'{"a":\n1}'),
    SseEvent("endpoint", b" /messages?x=1"),
    SseEvent("message", b"last"),
]


def pieces(text: bytes, cuts: Sequence[int]) -> Iterator[bytes]:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    for start, end in itertools.pairwise(places):
        yield text[start:end]


def test_a_stream_is_its_events() -> None:
    parser = SseEvents(1000)
    assert parser.feed(STREAM) == EVENTS
    assert parser.last_id == "2"
    assert parser.retry_ms == 250


@given(st.lists(st.integers(0, 1000), max_size=12))
def test_any_cut_gives_the_same_events(cuts: list[int]) -> None:
    parser = SseEvents(1000)
    told = [event for piece in pieces(STREAM, cuts) for event in parser.feed(piece)]
    assert (told, parser.last_id, parser.retry_ms) == (EVENTS, "2", 250)


def test_byte_by_byte_gives_the_same_events() -> None:
    parser = SseEvents(1000)
    assert [event for at in STREAM for event in parser.feed(bytes([at]))] == EVENTS


@given(st.lists(st.sampled_from([b"data: x", b"\n", b"\r", b"id: 7", b":", b"event: e", b"\xff"])))
def test_any_lines_are_read_without_an_error(parts: list[bytes]) -> None:
    parser, whole = SseEvents(10_000), SseEvents(10_000)
    told = [event for part in parts for event in parser.feed(part)]
    assert told == whole.feed(b"".join(parts))


def test_an_id_without_data_counts_and_an_unfinished_event_does_not() -> None:
    parser = SseEvents(100)
    assert parser.feed(b"id: 9\n\nid: 10\ndata: x\n") == []
    assert parser.last_id == "9"


@pytest.mark.parametrize(
    "text",
    [b"data: " + b"x" * 6000, b"data: xxxxxxxx\n" * 20 + b"\n", b"data: " + b"y" * 101 + b"\n\n"],
)
def test_an_event_above_the_limit_is_an_error(text: bytes) -> None:
    with pytest.raises(TooLargeError):
        SseEvents(100).feed(text)


def test_an_event_at_the_limit_is_none() -> None:
    assert SseEvents(100).feed(b"data: " + b"x" * 100 + b"\n\n") == [
        SseEvent("message", b"x" * 100)
    ]
