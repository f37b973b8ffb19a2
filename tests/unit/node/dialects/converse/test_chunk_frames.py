"""Events of Claude by Bedrock's invoke API: taken out of their frames, byte for byte, at any cut."""

import base64
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.converse.aws_frames import encode_frame, event_frame
from smg_node.dialects.converse.chunk_frames import ChunkFrames
from smg_node.dialects.sse_reader import EventLines
from smg_node.dialects.worker_errors import WorkerError
from support.providers.converse_answers import failure
from support.providers.converse_judge import events_of

START = b'{"type":"message_start","message":{"id":"msg_1","role":"assistant"}}'
DELTA = (
    b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\xc3\xa9\\n"}}'
)
STOP = (
    b'{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":9,'
    b'"outputTokenCount":4,"invocationLatency":5,"firstByteLatency":1}}'
)


def chunk(data: bytes) -> bytes:
    said = {"bytes": base64.b64encode(data).decode(), "p": "abcdef"}
    return event_frame("chunk", json.dumps(said).encode())


def is_object(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except ValueError:
        return False


def unframed(data: bytes, size: int) -> bytes:
    frames = ChunkFrames()
    told = b"".join(frames.feed(data[at : at + size]) for at in range(0, len(data), size))
    return told + frames.finish()


def test_events_come_out_as_they_are_at_any_cut() -> None:
    data = b"".join(map(chunk, (START, DELTA, STOP)))
    expected = (
        b"event: message_start\ndata: " + START + b"\n\n"
        b"event: content_block_delta\ndata: " + DELTA + b"\n\n"
        b"event: message_stop\ndata: " + STOP + b"\n\n"
    )
    for size in (1, 5, 100, len(data)):
        assert unframed(data, size) == expected
    theirs = events_of(data, "InvokeModelWithResponseStream", "body")
    assert [one["chunk"]["bytes"] for one in theirs] == [START, DELTA, STOP]


@pytest.mark.parametrize(
    ("said", "event"),
    [
        (b'{"index":0,"type":"ping"}', b'event: ping\ndata: {"index":0,"type":"ping"}'),
        (b'{ "type" : "ping" }', b'event: ping\ndata: { "type" : "ping" }'),
        (b'{"generation":"x"}', b'event: message\ndata: {"generation":"x"}'),
        (b'{"type":"a b"}', b'event: message\ndata: {"type":"a b"}'),
        (b'{\r\n "type": "ping",\n "x": [1.0]\n}', b'event: ping\ndata: {"type":"ping","x":[1.0]}'),
    ],
)
def test_an_event_is_one_line_with_the_name_of_its_type(said: bytes, event: bytes) -> None:
    told = unframed(chunk(said), 1_000)
    assert told == event + b"\n\n"
    assert [json.loads(data) for data in EventLines().feed(told)] == [json.loads(said)]


def test_frames_without_an_event_are_passed_over() -> None:
    data = event_frame("later", b"?") + chunk(b"") + event_frame("chunk", b"{}") + chunk(START)
    assert unframed(data, 9) == b"event: message_start\ndata: " + START + b"\n\n"


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b'{"bytes":5}', b'{"bytes":"="}', b'{"bytes":"\xff"}', b'{"bytes":"bm8="}'],
)
def test_a_chunk_that_is_none_is_an_error(payload: bytes) -> None:
    with pytest.raises(SmgError) as raised:
        unframed(event_frame("chunk", payload), 1_000)
    assert raised.value.kind is ErrorKind.UPSTREAM_FAILED


@pytest.mark.parametrize("message_type", ["exception", "error"])
def test_an_error_comes_behind_the_events_before_it(message_type: str) -> None:
    if message_type == "exception":
        broken = failure("modelTimeoutException", {"message": "Too slow."})
    else:
        headers: dict[str, Any] = {
            ":message-type": "error",
            ":error-code": "ModelTimeoutException",
            ":error-message": "Too slow.",
        }
        broken = encode_frame(headers, b"")
    frames = ChunkFrames()
    assert frames.feed(chunk(START) + broken + chunk(STOP)).startswith(b"event: message_start")
    with pytest.raises(WorkerError) as raised:
        frames.feed(b"")
    assert (raised.value.status, raised.value.message) == (408, "Too slow.")
    with pytest.raises(WorkerError):
        frames.finish()
    with pytest.raises(WorkerError):
        ChunkFrames().feed(broken)


def test_a_stream_that_is_cut_says_so() -> None:
    data = chunk(START)
    for size in range(1, len(data)):
        frames = ChunkFrames()
        assert frames.feed(data[:size]) == b""
        with pytest.raises(SmgError):
            frames.finish()


@given(st.lists(st.binary(max_size=40), max_size=5), st.integers(0, 2**32))
def test_any_bytes_in_chunks_are_events_or_our_error(said: list[bytes], seed: int) -> None:
    data = b"".join(map(chunk, said))
    size = Random(seed).randrange(1, 50)
    try:
        told = unframed(data, size)
    except SmgError:
        assert any(one and not is_object(one) for one in said)
        return
    assert [json.loads(one) for one in EventLines().feed(told)] == [
        json.loads(one) for one in said if one
    ]
