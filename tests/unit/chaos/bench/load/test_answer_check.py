import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_chaos.bench.load.answer_check import Judge
from smg_chaos.bench.load.answer_forms import (
    Answer,
    WrongAnswerError,
    dechunked,
    events,
    read_interaction,
    read_message,
    read_messages_stream,
    read_response,
    read_stream,
    read_whole,
)
from smg_chaos.bench.load.job import Api
from support.tools.example_counts import example_count

TEXT = "The gateway asks. An engine answers.\nIt is late"
PIECES = ["The", " gateway", " asks", ".", " An", " engine", " answers", ".\n", "It is", " late"]
N = len(PIECES)


def usage(*, prompt: int = 21, completion: int = N, total: int | None = None) -> dict[str, int]:
    total = prompt + completion if total is None else total
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}


def event(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "choices": [choice], "usage": None}


def stream(
    pieces: list[str] = PIECES,
    *,
    finish: str = "length",
    counts: dict[str, int] | None = None,
    done: bool = True,
    compact: bool = True,
) -> bytes:
    told = [event({"role": "assistant", "content": ""})]
    told += [event({"content": piece}) for piece in pieces]
    told += [event({}, finish), {"id": "x", "choices": [], "usage": counts or usage()}]
    separators = (",", ":") if compact else (", ", ": ")
    lines = [json.dumps(one, separators=separators) for one in told]
    return "".join(f"data: {line}\n\n" for line in [*lines, *(["[DONE]"] * done)]).encode()


def whole(
    text: str = TEXT, *, finish: str = "length", counts: dict[str, int] | None = None
) -> bytes:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": finish,
    }
    body = {"id": "x", "choices": [choice], "usage": counts or usage()}
    return json.dumps(body, separators=(",", ":")).encode()


def chunked(content: bytes, cuts: list[int]) -> bytes:
    places = sorted({0, len(content), *(cut % (len(content) + 1) for cut in cuts)})
    parts = [content[a:b] for a, b in pairwise(places)]
    return b"".join(b"%X\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def judge(*, streamed: bool = True, text: str | None = TEXT) -> Judge:
    return Judge(tokens=N, stream=streamed, text=text)


def test_a_stream_says_what_its_events_say() -> None:
    assert read_stream(stream()) == Answer(TEXT, "length", 21, N, 21 + N)
    assert read_stream(stream(compact=False)) == read_stream(stream())


def test_an_answer_that_is_not_streamed_says_the_same() -> None:
    assert read_whole(whole()) == read_stream(stream())


@given(st.lists(st.integers(0, 5000), max_size=40))
def test_chunks_may_begin_and_end_anywhere(cuts: list[int]) -> None:
    body = chunked(stream(), cuts)
    assert dechunked(body) == stream()
    assert judge().prompt_tokens(body, chunked=True) == 21


@given(st.lists(st.integers(0, 5000), max_size=40))
def test_the_quick_look_agrees_or_says_nothing(cuts: list[int]) -> None:
    assert judge().quick(chunked(stream(), cuts)) in (21, None)
    assert judge().quick(chunked(stream(["a", *PIECES[1:]]), cuts)) is None


def test_what_gateways_usually_write_needs_only_a_quick_look() -> None:
    one = judge()
    for _ in range(32):
        assert one.prompt_tokens(chunked(stream(), []), chunked=True) == 21
    assert one.careful == 2
    assert judge(streamed=False).quick(whole()) == 21


def test_unusual_spelling_is_read_completely() -> None:
    one = judge()
    for _ in range(3):
        assert one.prompt_tokens(stream(compact=False), chunked=False) == 21
    assert one.careful == 3


WRONG = {
    "another text": stream(["The", *PIECES[2:]]),
    "a text that goes on": stream([*PIECES, " and"]),
    "a text that stops early": stream(PIECES[:-1]),
    "too few tokens": stream(counts=usage(completion=N - 1)),
    "more tokens by a digit": stream(counts=usage(completion=N * 10)),
    "usage that does not add up": stream(counts=usage(total=5)),
    "a prompt of nothing": stream(counts=usage(prompt=0)),
    "another reason to stop": stream(finish="stop"),
    "no end": stream(done=False),
    "something after the end": stream() + b'data: {"choices":[]}\n\n',
    "an error": b'data: {"error":{"message":"no"}}\n\n' + stream(),
    "no JSON": b"data: {\n\n" + stream(),
    "no object": b"data: 3\n\n" + stream(),
    "nothing": b"",
    "nothing but the end": b"data: [DONE]\n\n",
}


ONLY_SAMPLED = {"usage that does not add up", "no JSON", "no object"}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("seen", [0, 1], ids=["sampled", "quick"])
def test_a_wrong_stream_is_never_taken_for_right(name: str, seen: int) -> None:
    one = judge()
    for _ in range(seen):
        one.prompt_tokens(stream(), chunked=False)
    if name in ONLY_SAMPLED and seen:
        assert one.prompt_tokens(WRONG[name], chunked=False) == 21
        return
    with pytest.raises(WrongAnswerError):
        one.prompt_tokens(WRONG[name], chunked=False)


@pytest.mark.parametrize(
    "body",
    [
        whole(TEXT + "!"),
        whole(TEXT[:-1]),
        whole(finish="stop"),
        whole(counts=usage(completion=1)),
        b"{}",
        b'{"choices":[]}',
        b'{"choices":[null],"usage":{}}',
        b"[]",
        b"<html>",
    ],
)
@pytest.mark.parametrize("seen", [0, 1], ids=["sampled", "quick"])
def test_a_wrong_answer_is_never_taken_for_right(body: bytes, seen: int) -> None:
    one = judge(streamed=False)
    for _ in range(seen):
        one.prompt_tokens(whole(), chunked=False)
    with pytest.raises(WrongAnswerError):
        one.prompt_tokens(body, chunked=False)


def test_where_the_text_is_unknown_any_will_do_but_none_will_not() -> None:
    one = judge(text=None)
    short = stream(["Hi"], finish="stop", counts=usage(completion=1))
    assert one.prompt_tokens(short, chunked=False) == 21
    with pytest.raises(WrongAnswerError):
        one.prompt_tokens(stream([], counts=usage(completion=1)), chunked=False)
    with pytest.raises(WrongAnswerError):
        one.prompt_tokens(stream(counts=usage(completion=N + 1)), chunked=False)


@pytest.mark.parametrize(
    "body",
    [b"", b"5\r\nhell", b"5\r\nhello!\r\n0\r\n\r\n", b"x\r\nhello\r\n0\r\n\r\n", b"3\r\nabc\r\n"],
)
def test_a_broken_chunk_is_wrong(body: bytes) -> None:
    with pytest.raises(WrongAnswerError):
        dechunked(body)


def test_comments_and_other_line_ends_do_no_harm() -> None:
    content = stream().replace(b"\n", b"\r\n")
    assert read_stream(b": keep-alive\r\n\r\n" + content).text == TEXT
    assert list(events(b"event: x\ndata: 1\ndata: 2\n\n\n\n: c\n\n")) == [b"1\n2"]


@settings(max_examples=example_count(200))
@given(st.binary(max_size=300))
def test_any_bytes_give_an_answer_or_a_wrong_one(body: bytes) -> None:
    for streamed in (True, False):
        for is_chunked in (True, False):
            with pytest.raises(WrongAnswerError):
                judge(streamed=streamed).prompt_tokens(body, chunked=is_chunked)


# ── Messages ─────────────────────────────────────────────────────────────────


def message(text: str = TEXT, *, stop: str = "max_tokens", completion: int = N) -> bytes:
    usage_said = {"input_tokens": 5, "cache_read_input_tokens": 16, "output_tokens": completion}
    body = {
        "type": "message",
        "content": [{"type": "text", "text": text}],
        "stop_reason": stop,
        "usage": usage_said,
    }
    return json.dumps(body, separators=(",", ":")).encode()


def message_stream(
    pieces: list[str] = PIECES, *, stop: str = "max_tokens", done: bool = True
) -> bytes:
    told: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {"content": [], "usage": {"input_tokens": 21, "output_tokens": 0}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ]
    told += [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": piece},
        }
        for piece in pieces
    ]
    said = {"input_tokens": 5, "cache_read_input_tokens": 16, "output_tokens": N}
    told += [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": said},
    ]
    told += [{"type": "message_stop"}] * done
    return "".join(
        f"event: {one['type']}\ndata: {json.dumps(one, separators=(',', ':'))}\n\n" for one in told
    ).encode()


READ = Answer(TEXT, "length", 21, N, 21 + N)


def test_messages_are_read_whole_and_streamed() -> None:
    assert read_message(message()) == READ
    assert read_messages_stream(message_stream()) == READ


@pytest.mark.parametrize("stream_it", [False, True])
def test_messages_are_judged_at_a_glance_and_carefully(stream_it: bool) -> None:
    judge = Judge(tokens=N, stream=stream_it, text=TEXT, api="messages")
    good = message_stream() if stream_it else message()
    assert judge.quick(good) == 5
    assert [judge.prompt_tokens(good, chunked=False) for _ in range(3)] == [21, 5, 5]
    assert judge.careful == 1


@pytest.mark.parametrize(
    "wrong",
    [
        message_stream([*PIECES[:-1], " later"]),
        message_stream(PIECES[:-1]),
        message_stream(stop="end_turn"),
        message_stream(done=False),
        message_stream() + b'event: ping\ndata: {"type":"ping"}\n\n',
        message_stream(done=False) + b'event: error\ndata: {"type":"error","error":{}}\n\n',
    ],
)
def test_a_wrong_stream_of_messages_is_found(wrong: bytes) -> None:
    judge = Judge(tokens=N, stream=True, text=TEXT, api="messages")
    assert judge.quick(wrong) is None
    for _ in range(2):
        with pytest.raises(WrongAnswerError):
            judge.prompt_tokens(wrong, chunked=False)


def response_stream(pieces: Sequence[str] = PIECES, *, status: str = "incomplete") -> bytes:
    usage = {"input_tokens": 21, "output_tokens": N, "total_tokens": 21 + N}
    told: list[dict[str, Any]] = [{"type": "response.created", "response": {"usage": None}}]
    told += [{"type": "response.output_text.delta", "delta": piece} for piece in pieces]
    told.append({"type": "response.output_text.done", "text": "".join(pieces)})
    told.append({"type": f"response.{status}", "response": {"status": status, "usage": usage}})
    return sse(told, "type")


def interaction_stream(pieces: Sequence[str] = PIECES, *, status: str = "incomplete") -> bytes:
    usage = {"total_input_tokens": 21, "total_output_tokens": N, "total_tokens": 21 + N}
    told: list[dict[str, Any]] = [{"event_type": "interaction.created", "interaction": {}}]
    for piece in pieces:
        delta = {"type": "text", "text": piece}
        told.append({"event_type": "step.delta", "delta": delta})
        told.append({"event_type": "interaction.status_update", "continuation_token": "x"})
    shown = {"status": status, "usage": usage}
    told.append({"event_type": "interaction.completed", "interaction": shown})
    return sse(told, "event_type")


def sse(told: Sequence[dict[str, Any]], key: str) -> bytes:
    frames = [f"event: {one[key]}\ndata: {json.dumps(one, separators=(',', ':'))}" for one in told]
    return "".join(f"{frame}\n\n" for frame in [*frames, "data: [DONE]"]).encode()


STORED = {"responses": response_stream, "interactions": interaction_stream}


@pytest.mark.parametrize("api", ["responses", "interactions"])
def test_streams_that_are_kept_are_judged_at_a_glance_and_carefully(api: Api) -> None:
    judge = Judge(tokens=N, stream=True, text=TEXT, api=api)
    good = STORED[api]()
    assert judge.quick(good) == 21
    assert [judge.prompt_tokens(good, chunked=False) for _ in range(3)] == [21, 21, 21]
    assert judge.careful == 1


@pytest.mark.parametrize("api", ["responses", "interactions"])
@pytest.mark.parametrize("change", ["text", "status", "end", "failure", "usage"])
def test_a_wrong_stream_that_is_kept_is_found(api: Api, change: str) -> None:
    make = STORED[api]
    wrong = {
        "text": make([*PIECES[:-1], " later"]),
        "status": make(status="completed"),
        "end": make().removesuffix(b"data: [DONE]\n\n"),
        "failure": b'data: {"type":"error","event_type":"error","error":{}}\n\n' + make(),
        "usage": make().replace(b'output_tokens":10', b'output_tokens":9'),
    }[change]
    judge = Judge(tokens=N, stream=True, text=TEXT, api=api)
    assert judge.quick(wrong) is None
    with pytest.raises(WrongAnswerError):
        judge.prompt_tokens(wrong, chunked=False)


def test_whole_answers_that_are_kept_are_read() -> None:
    part = {"text": TEXT}
    usage = {"input_tokens": 21, "output_tokens": N, "total_tokens": 21 + N}
    response = {"status": "incomplete", "output": [{"content": [part]}], "usage": usage}
    assert read_response(json.dumps(response).encode()) == READ
    total = {"total_input_tokens": 21, "total_output_tokens": N, "total_tokens": 21 + N}
    interaction = {"status": "incomplete", "steps": [{"content": [part]}], "usage": total}
    assert read_interaction(json.dumps(interaction).encode()) == READ
    for body in (b"{}", b'{"output":3,"steps":3}', b"[]"):
        for read in (read_response, read_interaction):
            with pytest.raises(WrongAnswerError):
                read(body)
