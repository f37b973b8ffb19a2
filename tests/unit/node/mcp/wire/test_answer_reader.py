"""Answers by HTTP: any bytes, cut anywhere, at any status, are messages or one failure of the table."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.failures import Failure, FailureKind
from smg_node.mcp.wire.answer_reader import AnswerReader
from smg_node.mcp.wire.messages import Answer, ErrorAnswer, Message

JSON = {"content-type": "application/json"}
SSE = {"content-type": "text/event-stream; charset=utf-8"}
RESULT = b'{"jsonrpc":"2.0","id":"a.1","result":{"content":[]}}'
ERROR = b'{"jsonrpc":"2.0","id":"a.1","error":{"code":-32602,"message":"no"}}'


def read(
    status: int, headers: dict[str, str], pieces: list[bytes], most: int = 10_000
) -> tuple[list[Message], Failure | None]:
    reader = AnswerReader(status, headers, most)
    messages = [one for piece in pieces for one in reader.feed(piece)]
    messages += reader.finish()
    return messages, reader.failure


def cut(text: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(one % (len(text) + 1) for one in cuts), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(places)]


CUTS = st.lists(st.integers(0, 500), max_size=8)


@given(CUTS)
def test_a_json_answer_is_the_same_however_it_is_cut(cuts: list[int]) -> None:
    messages, failure = read(200, JSON, cut(RESULT, cuts))
    assert failure is None
    assert [type(one) for one in messages] == [Answer]


@given(CUTS)
def test_a_stream_is_the_same_however_it_is_cut(cuts: list[int]) -> None:
    stream = (
        b'id: 1\ndata:\n\ndata: {"method":"m"}\n\nevent: other\ndata: x\n\ndata: '
        + RESULT
        + b"\n\n"
    )
    messages, failure = read(200, SSE, cut(stream, cuts))
    assert failure is None
    assert messages == read(200, SSE, [stream])[0]
    assert len(messages) == 2


@pytest.mark.parametrize("status", [200, 400, 401, 404, 500, 503])
@pytest.mark.parametrize("headers", [JSON, {}], ids=["json", "unsaid"])
def test_a_json_rpc_error_counts_at_any_status(status: int, headers: dict[str, str]) -> None:
    messages, failure = read(status, headers, [ERROR])
    assert failure is None
    assert messages == [ErrorAnswer("a.1", -32602, "no")]


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 429, 500, 503, 599, 799])
@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", RESULT, b"x" * 2_000_000])
def test_a_status_alone_is_a_failure_of_that_status(status: int, body: bytes) -> None:
    headers = {"content-type": "text/html", "retry-after": "7"}
    messages, failure = read(status, headers, [body])
    assert messages == []
    assert failure is not None
    assert (failure.kind, failure.code, failure.status) == (FailureKind.HTTP, status, status)
    assert failure.retry_after_s == 7


@pytest.mark.parametrize("said", ["", "soon", "-1", "9" * 30, "Wed, 21 Oct 2026 07:28:00 GMT", "٣"])
def test_a_retry_time_that_is_no_number_of_seconds_is_none(said: str) -> None:
    failure = read(503, {"retry-after": said}, [])[1]
    assert failure is not None
    assert failure.retry_after_s is None


@pytest.mark.parametrize("status", [202, 204])
def test_no_answer_to_a_request_is_a_failure(status: int) -> None:
    failure = read(status, JSON, [RESULT])[1]
    assert failure is not None
    assert failure.kind is FailureKind.PROTOCOL


@pytest.mark.parametrize("headers", [JSON, SSE], ids=["json", "sse"])
def test_answers_above_the_limit_fail_alike_in_both_forms(headers: dict[str, str]) -> None:
    big = json.dumps({"id": "a.1", "result": {"x": "y" * 20_000}}).encode()
    body = b"data: " + big + b"\n\n" if headers is SSE else big
    messages, failure = read(200, headers, [body])
    assert messages == []
    assert failure is not None
    assert "10000 bytes" in failure.message
    assert read(200, headers, [body], 30_000)[1] is None


def test_what_came_before_a_failure_is_handed_out() -> None:
    messages, failure = read(200, SSE, [b'data: {"method":"m"}\n\ndata: garbage\n\n'])
    assert len(messages) == 1
    assert failure is not None
    assert failure.kind is FailureKind.PROTOCOL


def test_a_compressed_answer_nobody_asked_for_is_not_read() -> None:
    failure = read(200, {**JSON, "content-encoding": "gzip"}, [RESULT])[1]
    assert failure is not None
    assert "compressed" in failure.message


@given(
    st.integers(200, 599),
    st.sampled_from([JSON, SSE, {}, {"content-type": "text/html"}]),
    st.lists(
        st.binary(max_size=60) | st.sampled_from([b"data: ", b"\n\n", RESULT, ERROR]), max_size=8
    ),
)
def test_any_bytes_are_messages_or_a_failure(
    status: int, headers: dict[str, str], pieces: list[bytes]
) -> None:
    messages, failure = read(status, headers, pieces)
    assert isinstance(messages, list)
    if status >= 300:
        assert failure is not None or len(messages) == 1
