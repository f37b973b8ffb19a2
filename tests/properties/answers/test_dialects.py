"""Any value into a reader, any bytes into the decoder, any grammatical stream into a presenter."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.answer import Collector
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import Event, Fail
from smg_node.dialects.chat.reader import PARAMETERS as CHAT_PARAMETERS
from smg_node.dialects.completions.reader import PARAMETERS as COMPLETIONS_PARAMETERS
from smg_node.dialects.dialect import Dialect, ParsedBody
from smg_node.dialects.json_body import read_json
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.registry import CHAT, COMPLETIONS, Dialects
from smg_node.dialects.tokenize.reader import (
    DetokenizeBody,
    TokenizeBody,
    read_detokenize,
    read_tokenize,
)
from support.answers.grammatical_streams import streams
from support.answers.sse_client import assemble_chat, read_frames
from support.tools.example_counts import example_count

T = TypeVar("T")
OPTIONS = ReaderOptions()
DIALECTS = Dialects(OPTIONS)
REJECTING = Dialects(ReaderOptions(unknown_parameters="reject", template_from_request=True))

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(
        ["user", "assistant", "tool", "text", "function", "none", "auto", "json_schema"]
    )
)
KEYS = [
    "role", "content", "type", "text", "image_url", "url", "input_audio", "data", "format", "file",
    "tool_calls", "id", "function", "name", "arguments", "tool_call_id", "refusal", "reasoning",
    "reasoning_content", "parameters", "strict", "schema", "json_schema", "json", "choice", "regex",
    "properties", "items", "anyOf", "$ref", "enum", "include_usage", "continuous_usage_stats", "1", "",
]  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=20,
)
WHOLE = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "prompt": "hi"}


def bodies(parameters: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Bodies that are nearly right: known keys with any value, over a base that is good."""
    keys = st.sampled_from(sorted(parameters)) | st.text(max_size=8)
    return st.builds(
        lambda base, body: {**base, **body},
        st.sampled_from([WHOLE, {}]),
        st.dictionaries(keys, values, max_size=6),
    )


def attempt(read: Callable[[], T]) -> T | SmgError:
    """Return what was read, or the refusal; any other exception is the test's failure."""
    try:
        return read()
    except SmgError as error:
        return error


def understood(dialect: Dialect, body: dict[str, Any]) -> ParsedBody[Any] | None:
    """Return the reading, or None after checking that the refusal is a proper one."""
    result = attempt(lambda: dialect.read(body))
    if not isinstance(result, SmgError):
        return result
    assert result.status == 400
    shown = json.loads(dialect.error_body(result, "req_1"))["error"]
    assert shown["message"]
    assert shown["param"] == result.where
    return None


@given(bodies(CHAT_PARAMETERS))
@settings(max_examples=example_count(200))
def test_any_chat_body_is_read_or_refused(body: dict[str, Any]) -> None:
    for dialects in (DIALECTS, REJECTING):
        reading = understood(dialects[CHAT], body)
        if reading is not None:
            assert isinstance(reading.request.model, str)
            assert reading.request.choices >= 1
            assert all(name.isascii() and name.isprintable() for name in reading.request.ignored)


@given(bodies(COMPLETIONS_PARAMETERS))
@settings(max_examples=example_count(200))
def test_any_completions_body_is_read_or_refused(body: dict[str, Any]) -> None:
    for dialects in (DIALECTS, REJECTING):
        reading = understood(dialects[COMPLETIONS], body)
        if reading is not None:
            assert 1 <= reading.request.choices <= OPTIONS.choices_max


@given(st.sampled_from(sorted(CHAT_PARAMETERS)), values)
@settings(max_examples=example_count(400))
def test_any_value_of_a_known_parameter_is_read_or_refused(name: str, value: Any) -> None:
    understood(DIALECTS[CHAT], {**WHOLE, name: value})
    understood(DIALECTS[COMPLETIONS], {**WHOLE, name: value})


messages_lists = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool", "function"]) | values},
        optional={key: st.text(max_size=3) | values for key in KEYS[1:15]},
    )
    | st.fixed_dictionaries({"role": values, "content": st.text(max_size=3) | values})
    | values,
    max_size=4,
)


@given(messages_lists)
@settings(max_examples=example_count(300))
def test_any_messages_are_read_or_refused_at_a_path_inside_them(messages: list[Any]) -> None:
    result = attempt(lambda: DIALECTS[CHAT].read({"model": "m", "messages": messages}))
    if isinstance(result, SmgError):
        assert (result.where or "").startswith("messages")


@given(bodies(["model", "prompt", "messages", "tools", "tokens", "skip_special_tokens"]))
@settings(max_examples=example_count(200))
def test_any_tokenize_body_is_read_or_refused(body: dict[str, Any]) -> None:
    readers: list[Callable[..., TokenizeBody | DetokenizeBody]] = [read_tokenize, read_detokenize]
    for read in readers:
        result = attempt(partial(read, body, OPTIONS))
        assert result.status == 400 if isinstance(result, SmgError) else result.model


@given(
    st.binary(max_size=60) | st.text(alphabet='{}[]",:\\u0d8 1eE.-tfn', max_size=40).map(str.encode)
)
@settings(max_examples=example_count(500))
def test_any_bytes_give_an_object_or_a_refusal(body: bytes) -> None:
    result = attempt(lambda: read_json(body))
    if isinstance(result, SmgError):
        assert (result.status, result.code) == (400, "invalid_json")
    else:
        assert type(result) is dict


@given(st.dictionaries(st.text(), values))
def test_what_json_prints_is_read_back(value: dict[str, Any]) -> None:
    try:
        printed = json.dumps(value, allow_nan=False).encode()
    except ValueError:
        return
    assert read_json(printed) == value


@given(st.integers(1, 200), st.sampled_from(['{"a":', "["]), st.booleans())
def test_nesting_is_counted_outside_of_strings_only(depth: int, opener: str, quoted: bool) -> None:
    closer = "}" if opener.startswith("{") else "]"
    nested = opener * depth + "1" + closer * depth
    body = json.dumps({"x": nested}) if quoted else f'{{"x":{nested}}}'
    if quoted or depth < 128:
        assert "x" in read_json(body.encode())
    else:
        with pytest.raises(SmgError, match="nests deeper"):
            read_json(body.encode())


# ── Presenters ───────────────────────────────────────────────────────────────


def answer_of(dialect: Dialect, reading: ParsedBody[Any], events: list[Event]) -> dict[str, Any]:
    collector = Collector(reading.request.choices)
    collector.feed(events)
    body: dict[str, Any] = json.loads(dialect.presenter(reading).answer(collector.answer()))
    return body


def stream_of(
    dialect: Dialect, reading: ParsedBody[Any], events: list[Event], cuts: list[int]
) -> bytes:
    """Present a stream in batches of the given sizes."""
    presenter = dialect.presenter(reading)
    raw, at = b"", 0
    for size in cuts:
        raw += presenter.frames(events[at : at + size])
        at += size
    return raw + presenter.frames(events[at:])


@st.composite
def chats(draw: st.DrawFn, *, failing: bool = False) -> tuple[dict[str, Any], list[Event]]:
    """A Chat Completions body and a stream that could answer it."""
    logprobs, choices = draw(st.booleans()), draw(st.integers(1, 3))
    body: dict[str, Any] = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "n": choices,
        "stream": True,
        "logprobs": logprobs,
        "return_token_ids": draw(st.booleans()),
        "separate_reasoning": draw(st.booleans()),
        "stream_reasoning": draw(st.booleans()),
        "stream_options": {
            "include_usage": draw(st.booleans()),
            "continuous_usage_stats": draw(st.booleans()),
        },
    }
    if not (logprobs or body["return_token_ids"]):
        body["include_reasoning"] = draw(st.booleans())
    if draw(st.booleans()):
        body["functions"] = [{"name": "look_up"}]
    echo = draw(st.booleans())
    events = draw(streams(choices=choices, logprobs=logprobs, echo=echo, failing=failing))
    Grammar(choices).feed(events)
    return body, events


@given(chats(), st.lists(st.integers(0, 4), max_size=12), st.sampled_from(["reasoning", "both"]))
@settings(max_examples=example_count(300))
def test_a_streamed_chat_adds_up_to_the_answer(
    chat: tuple[dict[str, Any], list[Event]], cuts: list[int], field: Any
) -> None:
    body, events = chat
    dialect = Dialects(ReaderOptions(reasoning_field=field, matched_stop=True))[CHAT]
    reading = dialect.read(body)
    streamed = read_frames(stream_of(dialect, reading, events, cuts))
    answer = answer_of(dialect, reading, events)
    assert streamed.done
    wholes = assemble_chat(streamed.chunks, body["n"])
    for whole, choice in zip(wholes, answer["choices"], strict=True):
        message = choice["message"]
        assert whole.content == (message["content"] or "")
        for name in ("reasoning_content", "reasoning"):
            assert whole.reasoning.get(name, "") == message.get(name, "")
        assert whole.refusal == (message["refusal"] or "")
        assert whole.details == message.get("reasoning_details", [])
        assert whole.calls == message.get("tool_calls", [])
        assert whole.function_call == message.get("function_call")
        assert whole.finish_reason == choice["finish_reason"]
        assert whole.matched_stop == choice["matched_stop"]
        assert whole.logprobs == (choice["logprobs"] or {"content": []})["content"]
        assert whole.token_ids == choice.get("token_ids", [])
    usages = [chunk["usage"] for chunk in streamed.chunks if chunk.get("usage")]
    if body["stream_options"]["include_usage"]:
        assert streamed.chunks[-1]["choices"] == []
        assert usages[-1] == answer["usage"]
    if not body["stream_options"]["continuous_usage_stats"]:
        assert len(usages) == body["stream_options"]["include_usage"]


@given(chats(failing=True))
@settings(max_examples=example_count(100))
def test_a_broken_chat_ends_with_an_error_and_without_done(
    chat: tuple[dict[str, Any], list[Event]],
) -> None:
    body, events = chat
    dialect = DIALECTS[CHAT]
    streamed = read_frames(stream_of(dialect, dialect.read(body), events, []))
    assert not streamed.done
    assert isinstance(events[-1], Fail)
    assert streamed.chunks[-1]["error"]["code"] == "upstream_error"
    assert not any("error" in chunk for chunk in streamed.chunks[:-1])


@st.composite
def completions(draw: st.DrawFn) -> tuple[dict[str, Any], list[Event]]:
    """A Completions body and a stream that could answer it."""
    prompts, n = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    body: dict[str, Any] = {
        "model": "m",
        "prompt": ["hi"] * prompts,
        "n": n,
        "stream": True,
        "echo": draw(st.booleans()),
        "logprobs": draw(st.none() | st.integers(0, 5)),
        "return_token_ids": draw(st.booleans()),
        "stream_options": {"include_usage": draw(st.booleans())},
    }
    logprobs = body["logprobs"] is not None
    echo = body["echo"] or body["return_token_ids"]
    events = draw(streams(choices=prompts * n, kinds=("text",), logprobs=logprobs, echo=echo))
    return body, events


@given(completions(), st.lists(st.integers(0, 4), max_size=12))
@settings(max_examples=example_count(300))
def test_a_streamed_completion_adds_up_to_the_answer(
    completion: tuple[dict[str, Any], list[Event]], cuts: list[int]
) -> None:
    body, events = completion
    dialect = DIALECTS[COMPLETIONS]
    reading = dialect.read(body)
    streamed = read_frames(stream_of(dialect, reading, events, cuts))
    answer = answer_of(dialect, reading, events)
    assert streamed.done
    for choice in answer["choices"]:
        chunks = [
            shown
            for chunk in streamed.chunks
            for shown in chunk["choices"]
            if shown["index"] == choice["index"]
        ]
        assert "".join(chunk["text"] for chunk in chunks) == choice["text"]
        assert [chunk["finish_reason"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
        assert chunks[-1]["finish_reason"] == choice["finish_reason"]
        rows = [chunk["logprobs"] for chunk in chunks if chunk["logprobs"]]
        for name, whole in (choice["logprobs"] or {}).items():
            assert [value for row in rows for value in row[name]] == whole
        ids = [token_id for chunk in chunks for token_id in chunk.get("token_ids", ())]
        assert ids == choice.get("token_ids", [])
    if body["stream_options"]["include_usage"]:
        assert streamed.chunks[-1]["usage"] == answer["usage"]
