"""Chat Completions, printed: whole answers and frames; and the official SDK's opinion of both."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    PromptEcho,
    TokenLogprob,
    TopLogprob,
    Usage,
)
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions
from support.answers.grammatical_streams import streams
from support.answers.sse_client import read_frames

BEGIN = Begin("1", "m", 5, 3, "fp_1")
HELLO: list[Event] = [
    BEGIN,
    BlockStart(0, 0, "text"),
    Delta(0, 0, "Hel", 1, (), (7,)),
    Delta(0, 0, "lo", 1, (), (8,)),
    BlockEnd(0, 0, "text", "Hello"),
    Finish(0, "stop", "END"),
    Usage(3, 2, 1),
    End(),
]
CALLS: list[Event] = [
    BEGIN,
    BlockStart(0, 0, "call", "f", "call_a"),
    Delta(0, 0, '{"x":', 1),
    Delta(0, 0, "1}", 1),
    BlockEnd(0, 0, "call", '{"x":1}', "f", "call_a"),
    BlockStart(0, 1, "call", "g", "call_b"),
    BlockEnd(0, 1, "call", "", "g", "call_b"),
    Finish(0, "tool_calls"),
    Usage(3, 2, 0),
    End(),
]
THOUGHT: list[Event] = [
    BEGIN,
    BlockStart(0, 0, "reasoning"),
    Delta(0, 0, "h", 1),
    Delta(0, 0, "m", 1),
    BlockEnd(0, 0, "reasoning", "hm"),
    BlockStart(0, 1, "text"),
    Delta(0, 1, "4", 1),
    BlockEnd(0, 1, "text", "4"),
    Finish(0, "stop"),
    Usage(3, 3, 0, 2),
    End(),
]


def presented(
    events: list[Event], options: ReaderOptions | None = None, /, **parameters: Any
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the chunks and the whole answer for one stream."""
    dialect = ChatDialect(options or ReaderOptions())
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **parameters}
    reading = dialect.read({**body, "stream": True})
    chunks = read_frames(dialect.presenter(reading).frames(events)).chunks
    parameters.pop("stream_options", None)
    whole = dialect.read({**body, "stream_options": None})
    collector = Collector(whole.request.choices)
    collector.feed(events)
    return chunks, json.loads(dialect.presenter(whole).answer(collector.answer()))


def deltas(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"]]


def test_an_answer_has_every_field_clients_read() -> None:
    _, answer = presented(HELLO)
    assert answer == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 2,
            "total_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 1},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        "system_fingerprint": "fp_1",
    }


def test_a_stream_starts_with_the_role_and_ends_with_the_reason() -> None:
    chunks, _ = presented(HELLO)
    assert deltas(chunks) == [
        {"role": "assistant", "content": ""},
        {"content": "Hel"},
        {"content": "lo"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, None, "stop"]
    assert all(chunk["object"] == "chat.completion.chunk" for chunk in chunks)
    assert not any("usage" in chunk for chunk in chunks)


def test_every_choice_has_its_role_before_anything_else() -> None:
    events: list[Event] = [BEGIN, Finish(1, "stop"), Finish(0, "length"), Usage(3, 0, 0), End()]
    chunks, answer = presented(events, n=2)
    roles = [chunk["choices"][0]["index"] for chunk in chunks[:2]]
    assert roles == [0, 1]
    assert [c["message"]["content"] for c in answer["choices"]] == ["", ""]
    assert [c["finish_reason"] for c in answer["choices"]] == ["length", "stop"]


def test_usage_comes_last_and_is_null_before() -> None:
    chunks, answer = presented(HELLO, stream_options={"include_usage": True})
    assert [chunk["usage"] for chunk in chunks[:-1]] == [None] * 4
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == answer["usage"]


def test_usage_may_stand_on_every_chunk() -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks, _ = presented(HELLO, stream_options=options)
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == [0, 1, 2, 2, 2]
    assert [chunk["usage"]["total_tokens"] for chunk in chunks] == [3, 4, 5, 5, 5]


def test_calls_are_announced_and_their_arguments_follow() -> None:
    chunks, answer = presented(CALLS)
    calls = [delta["tool_calls"][0] for delta in deltas(chunks)[1:-1]]
    assert calls == [
        {
            "index": 0,
            "id": "call_a",
            "type": "function",
            "function": {"name": "f", "arguments": ""},
        },
        {"index": 0, "function": {"arguments": '{"x":'}},
        {"index": 0, "function": {"arguments": "1}"}},
        {
            "index": 1,
            "id": "call_b",
            "type": "function",
            "function": {"name": "g", "arguments": ""},
        },
        {"index": 1, "function": {"arguments": "{}"}},
    ]
    message = answer["choices"][0]["message"]
    assert message["content"] is None
    assert [call["function"]["arguments"] for call in message["tool_calls"]] == ['{"x":1}', "{}"]
    assert answer["choices"][0]["finish_reason"] == "tool_calls"


def test_a_legacy_client_gets_one_function_call() -> None:
    chunks, answer = presented(CALLS, functions=[{"name": "f"}, {"name": "g"}])
    assert deltas(chunks)[1:] == [
        {"function_call": {"name": "f", "arguments": ""}},
        {"function_call": {"arguments": '{"x":'}},
        {"function_call": {"arguments": "1}"}},
        {},
    ]
    message = answer["choices"][0]["message"]
    assert message["function_call"] == {"name": "f", "arguments": '{"x":1}'}
    assert "tool_calls" not in message
    assert chunks[-1]["choices"][0]["finish_reason"] == "function_call"
    assert answer["choices"][0]["finish_reason"] == "function_call"


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("reasoning_content", ["reasoning_content"]),
        ("reasoning", ["reasoning"]),
        ("both", ["reasoning_content", "reasoning"]),
    ],
)
def test_thoughts_stand_under_the_configured_names(field: Any, names: list[str]) -> None:
    chunks, answer = presented(THOUGHT, ReaderOptions(reasoning_field=field))
    assert deltas(chunks)[1:-1] == [
        dict.fromkeys(names, "h"),
        dict.fromkeys(names, "m"),
        {"content": "4"},
    ]
    message = answer["choices"][0]["message"]
    assert {name: message[name] for name in names} == dict.fromkeys(names, "hm")
    assert message["content"] == "4"
    assert answer["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}


@pytest.mark.parametrize(
    ("parameters", "said", "content", "reasoning"),
    [
        ({"separate_reasoning": False}, [{"content": "h"}, {"content": "m"}], "hm4", None),
        ({"include_reasoning": False}, [], "4", None),
        ({"include_reasoning": False, "separate_reasoning": False}, [], "4", None),
        ({"stream_reasoning": False}, [{"reasoning_content": "hm"}], "4", "hm"),
        (
            {"stream_reasoning": False, "separate_reasoning": False},
            [{"content": "hm"}],
            "hm4",
            None,
        ),
    ],
)
def test_thoughts_are_shown_as_asked(
    parameters: dict[str, Any], said: Any, content: str, reasoning: str | None
) -> None:
    chunks, answer = presented(THOUGHT, **parameters)
    assert deltas(chunks)[1:-1] == [*said, {"content": "4"}]
    message = answer["choices"][0]["message"]
    assert (message["content"], message.get("reasoning_content")) == (content, reasoning)


TOKEN = TokenLogprob(
    9,
    "é",
    "é".encode(),
    -0.25,
    (TopLogprob(9, "é", "é".encode(), -0.25), TopLogprob(4, "x", b"x", float("-inf"))),
)
LOGPROBS: list[Event] = [
    BEGIN,
    BlockStart(0, 0, "text"),
    Delta(0, 0, "", 1, (TOKEN,), (9,)),
    Delta(0, 0, "é", 1, (TOKEN,), (9,)),
    BlockEnd(0, 0, "text", "é"),
    Finish(0, "length"),
    Usage(3, 2, 0),
    End(),
]
ROW = {
    "token": "é",
    "logprob": -0.25,
    "bytes": [195, 169],
    "top_logprobs": [
        {"token": "é", "logprob": -0.25, "bytes": [195, 169]},
        {"token": "x", "logprob": -9999.0, "bytes": [120]},
    ],
}


def test_log_probabilities_travel_with_their_text() -> None:
    chunks, answer = presented(LOGPROBS, logprobs=True, top_logprobs=2)
    streamed = [chunk["choices"][0]["logprobs"] for chunk in chunks]
    row = {"content": [ROW], "refusal": None}
    assert streamed == [None, row, row, None]
    assert answer["choices"][0]["logprobs"] == {"content": [ROW, ROW], "refusal": None}


def test_tokens_may_be_named_by_id() -> None:
    _, answer = presented(LOGPROBS, logprobs=True, return_tokens_as_token_ids=True)
    row = answer["choices"][0]["logprobs"]["content"][0]
    assert row["token"] == "token_id:9"
    assert [top["token"] for top in row["top_logprobs"]] == ["token_id:9", "token_id:4"]


def test_ids_are_returned_when_asked_for() -> None:
    events = [BEGIN, PromptEcho(0, "", (1, 2)), *HELLO[1:]]
    chunks, answer = presented(events, return_token_ids=True)
    assert [chunk["choices"][0].get("token_ids") for chunk in chunks] == [
        None,
        None,
        [7],
        [8],
        None,
    ]
    assert [chunk.get("prompt_token_ids") for chunk in chunks] == [None, [1, 2], None, None, None]
    assert answer["choices"][0]["token_ids"] == [7, 8]
    assert answer["prompt_token_ids"] == [1, 2]
    silent_chunks, silent = presented(events)
    assert "token_ids" not in json.dumps([silent_chunks, silent])


def test_log_probabilities_of_the_prompt_are_those_of_vllm() -> None:
    first = TokenLogprob(1, "a", b"a", None, ())
    events = [BEGIN, PromptEcho(0, "", (1, 9), (first, TOKEN)), *HELLO[1:]]
    dialect = ChatDialect(ReaderOptions())
    reading = dialect.read(
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "prompt_logprobs": 2}
    )
    collector = Collector(1)
    collector.feed(events)
    answer = json.loads(dialect.presenter(reading).answer(collector.answer()))
    assert answer["prompt_logprobs"] == [
        None,
        {
            "9": {"logprob": -0.25, "rank": 1, "decoded_token": "é"},
            "4": {"logprob": -9999.0, "rank": 2, "decoded_token": "x"},
        },
    ]


def test_labels_and_tier_are_repeated() -> None:
    chunks, answer = presented(HELLO, metadata={"a": "b"}, service_tier="auto")
    assert (answer["metadata"], answer["service_tier"]) == ({"a": "b"}, "default")
    assert {chunk["service_tier"] for chunk in chunks} == {"default"}


def test_what_stopped_a_choice_is_told_only_if_configured() -> None:
    chunks, answer = presented(HELLO, ReaderOptions(matched_stop=True))
    assert chunks[-1]["choices"][0]["matched_stop"] == "END"
    assert answer["choices"][0]["matched_stop"] == "END"
    assert "matched_stop" not in json.dumps(presented(HELLO))


def test_a_failure_ends_the_stream_with_an_error() -> None:
    error = SmgError(ErrorKind.UPSTREAM_FAILED, "it broke")
    dialect = ChatDialect(ReaderOptions())
    reading = dialect.read(
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
    )
    for events in ([Fail(error)], [*HELLO[:3], BlockEnd(0, 0, "text", "Hel"), Fail(error)]):
        streamed = read_frames(dialect.presenter(reading).frames(events))
        assert not streamed.done
        assert streamed.chunks[-1] == {
            "error": {
                "message": "it broke",
                "type": "server_error",
                "param": None,
                "code": "upstream_error",
            }
        }


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\n", "\r", "\x0b", "\x1c"])
def test_no_text_can_end_a_line(separator: str) -> None:
    text = f"a{separator}é"
    events: list[Event] = [BEGIN, BlockStart(0, 0, "text"), Delta(0, 0, text, 1)]
    dialect = ChatDialect(ReaderOptions())
    reading = dialect.read(
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
    )
    chunks = read_frames(dialect.presenter(reading).frames(events)).chunks
    assert chunks[-1]["choices"][0]["delta"]["content"] == text


# ── The official SDK ─────────────────────────────────────────────────────────


@given(st.data())
@settings(max_examples=60)
def test_the_official_sdk_validates_whatever_we_print(data: st.DataObject) -> None:
    logprobs = data.draw(st.booleans())
    events = data.draw(streams(choices=2, logprobs=logprobs))
    legacy: dict[str, Any] = (
        {"functions": [{"name": "look_up"}]} if data.draw(st.booleans()) else {}
    )
    chunks, answer = presented(
        events,
        n=2,
        logprobs=logprobs,
        metadata={"a": "b"},
        service_tier="flex",
        stream_options={"include_usage": True},
        **legacy,
    )
    completion = ChatCompletion.model_validate(answer)
    assert completion.usage is not None
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk)
