"""Opaque state, refusals and vendors' ends in Chat Completions: shown, put together by the official client, read again."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Finish,
    FinishReason,
    Usage,
)
from smg_node.core.generation.opaque import ENCRYPTED, REDACTED, SIGNATURE, Opaque
from smg_node.core.generation.request import ChatPrompt, Turn, TurnBlock
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions
from support.answers.grammatical_streams import streams
from support.answers.sse_client import read_frames

DIALECT = ChatDialect(ReaderOptions())
GOOGLE = Opaque("google", SIGNATURE, "c2ln")
CLAUDE = Opaque("anthropic", SIGNATURE, "c2ln")
HIDDEN = Opaque("anthropic", REDACTED, "cmVk")
OPENAI = Opaque("openai", ENCRYPTED, "ZW5j", "rs_1")
PHASE = Opaque("openai", "phase", "commentary")
ROW = {"type": "reasoning.text", "text": "Why", "signature": "c2ln", "index": 0}
DETAIL = Opaque("openrouter", "detail", json.dumps(ROW, separators=(",", ":")))
ASKED = {"role": "user", "content": "Hi"}


def block(kind: Any, text: str, *opaque: Opaque, call_id: str = "c") -> TurnBlock:
    name, call_id = ("f", call_id) if kind == "call" else ("", "")
    return TurnBlock(kind, text, name, call_id, opaque)


def events_of(blocks: Sequence[TurnBlock], reason: FinishReason = "stop") -> list[Event]:
    told: list[Event] = [Begin("1", "m", 5, 3)]
    for number, one in enumerate(blocks):
        named = (one.name, one.call_id)
        told += [
            BlockStart(0, number, one.kind, *named),
            Delta(0, number, one.text, 1),
            BlockEnd(0, number, one.kind, one.text, *named, opaque=one.opaque),
        ]
    return [*told, Finish(0, reason), Usage(9, 2, 1, 0, 3, 1), End()]


def body(**more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [ASKED], **more}


def streamed(events: list[Event], **more: Any) -> Any:
    """Return the answer that the official client puts together."""
    options = {"include_usage": True}
    reading = DIALECT.read(body(stream=True, stream_options=options, **more))
    state = ChatCompletionStreamState()
    for chunk in read_frames(DIALECT.presenter(reading).frames(events)).chunks:
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    return json.loads(state.current_completion_snapshot.to_json())


def whole(events: list[Event], **more: Any) -> Any:
    collector = Collector(1)
    collector.feed(events)
    return json.loads(DIALECT.presenter(DIALECT.read(body(**more))).answer(collector.answer()))


def turn_of(message: dict[str, Any]) -> Turn:
    """Return the turn that a message is read as when it comes back."""
    prompt = DIALECT.read(body(messages=[ASKED, message, ASKED])).request.prompts[0]
    assert isinstance(prompt, ChatPrompt)
    return prompt.turns[1]


STATES: list[list[TurnBlock]] = [
    [block("reasoning", "Why", CLAUDE), block("text", "So")],
    [block("reasoning", "", CLAUDE), block("reasoning", "", HIDDEN), block("call", "{}")],
    [
        block("text", "A"),
        block("reasoning", "Why", OPENAI),
        block("text", "B"),
        block("call", "{}"),
    ],
    [block("reasoning", "Why"), block("text", "A", PHASE), block("text", "B")],
    [
        block("reasoning", "Why", CLAUDE),
        block("call", '{"a":1}', GOOGLE),
        block("call", "{}", call_id="d"),
    ],
    [block("text", "Привет", GOOGLE), block("call", "{}", GOOGLE)],
]


@pytest.mark.parametrize("blocks", STATES)
@pytest.mark.parametrize("told", [streamed, whole])
def test_blocks_come_back_as_they_were(blocks: list[TurnBlock], told: Any) -> None:
    message = told(events_of(blocks))["choices"][0]["message"]
    assert turn_of(message).blocks == tuple(blocks)
    [row] = message["reasoning_details"]
    assert (row["type"], row["index"], sorted(row)) == (
        "reasoning.encrypted",
        0,
        ["data", "index", "type"],
    )


@pytest.mark.parametrize(
    "view",
    [{"separate_reasoning": False}, {"include_reasoning": False}, {"stream_reasoning": False}],
)
def test_blocks_come_back_however_the_thought_was_shown(view: dict[str, Any]) -> None:
    blocks = [block("reasoning", "Why", CLAUDE), block("text", "So"), block("call", "{}")]
    for told in (streamed, whole):
        message = told(events_of(blocks), **view)["choices"][0]["message"]
        assert turn_of(message).blocks == tuple(blocks)


def test_googles_signature_stands_on_its_call() -> None:
    blocks = [block("reasoning", "Why"), block("text", "So"), block("call", "{}", GOOGLE)]
    for told in (streamed, whole):
        message = told(events_of(blocks))["choices"][0]["message"]
        [call] = message["tool_calls"]
        assert call["extra_content"] == {"google": {"thought_signature": "c2ln"}}
        assert "reasoning_details" not in message
        assert turn_of(message).blocks == tuple(blocks)


def test_a_signature_that_is_known_is_told_with_the_call() -> None:
    start = BlockStart(0, 0, "call", "f", "c", (GOOGLE,))
    end = BlockEnd(0, 0, "call", "", "f", "c", (GOOGLE,))
    reading = DIALECT.read(body(stream=True))
    told = DIALECT.presenter(reading).frames([Begin("1", "m", 5, 3), start, end])
    calls = [chunk["choices"][0]["delta"].get("tool_calls") for chunk in read_frames(told).chunks]
    assert [bool(one and "extra_content" in one[0]) for one in calls] == [False, True, False]


def test_openrouters_rows_are_shown_and_read_as_they_came() -> None:
    blocks = [block("reasoning", "Why", DETAIL), block("text", "So")]
    for told in (streamed, whole):
        message = told(events_of(blocks))["choices"][0]["message"]
        assert message["reasoning_details"] == [ROW]
        turn = turn_of(message)
        assert turn.blocks == tuple(blocks)
        assert turn.extra == {"reasoning_details": [ROW]}


@pytest.mark.parametrize(
    "change",
    [
        lambda message: message.update(content="Other"),
        lambda message: message.update(reasoning_content="Wh"),
        lambda message: message["reasoning_details"][0].update(data="smg1b.!"),
        lambda message: message["reasoning_details"][0].update(data="smg1b.W10="),
        lambda message: message.update(reasoning_details=[7]),
        lambda message: message.update(reasoning_details="x"),
        lambda message: message.pop("reasoning_details"),
    ],
)
def test_state_that_does_not_fit_any_more_is_left_out(change: Any) -> None:
    message = whole(events_of([block("reasoning", "Why", CLAUDE), block("text", "So")]))
    message = message["choices"][0]["message"]
    change(message)
    assert turn_of(message).blocks == ()


def test_a_message_without_state_has_no_blocks() -> None:
    function = {"name": "f", "arguments": "{}"}
    call: dict[str, Any] = {"id": "c", "type": "function", "function": function}
    message = {
        "role": "assistant",
        "content": "So",
        "reasoning_content": "Why",
        "tool_calls": [call],
    }
    assert turn_of(message).blocks == ()
    call["extra_content"] = {"google": {"thought_signature": 7}}
    assert turn_of(message).blocks == ()


def test_what_carried_blocks_is_no_templates_business() -> None:
    message = whole(events_of([block("reasoning", "Why", CLAUDE), block("text", "So")]))
    assert turn_of(message["choices"][0]["message"]).extra == {}


@settings(max_examples=60, deadline=None)
@given(streams(kinds=("text", "reasoning", "call")), st.booleans())
def test_any_state_comes_back_whole(events: list[Event], separate: bool) -> None:
    ended = [one for one in events if isinstance(one, BlockEnd)]
    message = whole(events, separate_reasoning=separate)["choices"][0]["message"]
    if not message["content"] and not message.get("tool_calls"):
        return
    turn = turn_of(message)
    own = [one for block in ended for one in block.opaque]
    if not any(one.issuer not in ("google", "openrouter") for one in own):
        return
    assert [
        (one.kind, one.text or "{}" * (one.kind == "call"), one.opaque) for one in turn.blocks
    ] == [(one.kind, one.text or "{}" * (one.kind == "call"), one.opaque) for one in ended]


# ── Refusals, ends, usage ────────────────────────────────────────────────────


def refused(reason: FinishReason) -> list[Event]:
    told: list[Event] = [
        BlockStart(0, 0, "refusal"),
        Delta(0, 0, "I won't"),
        BlockEnd(0, 0, "refusal", "I won't"),
    ]
    return [Begin("1", "m", 5, 3), *told, Finish(0, reason), Usage(3, 2, 0), End()]


@pytest.mark.parametrize("reason", ["refusal", "stop"])
def test_a_refusal_is_shown_as_openai_shows_it(reason: FinishReason) -> None:
    for told in (streamed, whole):
        [choice] = told(refused(reason))["choices"]
        assert choice["message"]["refusal"] == "I won't"
        assert choice["finish_reason"] == "stop"
    assert whole(refused(reason))["choices"][0]["message"]["content"] is None


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("refusal", "content_filter"),
        ("pause", "stop"),
        ("context_window", "length"),
        ("tool_calls", "tool_calls"),
    ],
)
def test_ends_that_only_vendors_have_are_told_in_this_apis_words(
    reason: FinishReason, expected: str
) -> None:
    events = events_of([TurnBlock("text", "So")], reason)
    for more in ({}, {"user": "x"}, {"n": 1, "logprobs": False}):
        assert whole(events, **more)["choices"][0]["finish_reason"] == expected
        assert streamed(events, **more)["choices"][0]["finish_reason"] == expected


def test_tokens_written_into_a_cache_are_told_where_there_are_any() -> None:
    events = events_of([TurnBlock("text", "So")])
    details = {"cached_tokens": 1, "cache_write_tokens": 3}
    assert whole(events)["usage"]["prompt_tokens_details"] == details
    assert streamed(events)["usage"]["prompt_tokens_details"] == details
    events[-2] = Usage(9, 2, 1)
    assert whole(events)["usage"]["prompt_tokens_details"] == {"cached_tokens": 1}
