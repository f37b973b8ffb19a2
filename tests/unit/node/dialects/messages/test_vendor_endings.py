"""Endings, refusals and cache writes of vendors in Messages, by both presenters."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import (
    BlockKind,
    Event,
    FinishReason,
    Usage,
)
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.messages.fast_presenter import PlainPresenter
from support.answers.messages_answers import SEALS, body, frames, presenter, streamed
from support.answers.stated_answers import (
    Somebody,
    answer,
    block,
    stated_blocks,
)
from support.clients import messages_judge as judge

REFUSED = {"type": "refusal", "category": None, "explanation": None}


@pytest.mark.parametrize(
    ("kind", "reason", "word", "details"),
    [
        ("refusal", "stop", "refusal", REFUSED),
        ("refusal", "length", "max_tokens", None),
        ("text", "refusal", "refusal", REFUSED),
        ("text", "content_filter", "refusal", REFUSED),
        ("text", "pause", "pause_turn", None),
        ("text", "context_window", "model_context_window_exceeded", None),
        ("text", "stop", "end_turn", None),
    ],
)
def test_reasons_of_vendors(kind: BlockKind, reason: FinishReason, word: str, details: Any) -> None:
    events = answer(block(kind, "No"), reason=reason)
    whole = json.loads(body(presenter(), events))
    assert whole["content"] == [{"type": "text", "text": "No"}]
    [last] = [
        one for one in frames(streamed(presenter(), events)) if one["type"] == "message_delta"
    ]
    for told in (whole, last["delta"]):
        assert (told["stop_reason"], told["stop_details"]) == (word, details)
    assert judge.read_stream(streamed(presenter(), events))[0]["stop_reason"] == word


def test_cache_writes_are_no_part_of_the_input() -> None:
    used = Usage(37, 12, 20, 5, 7, 3)
    created = {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 3}
    events = answer(block("text", "Hi"), usage=used)
    whole = json.loads(body(presenter(), events))["usage"]
    [last] = [
        one for one in frames(streamed(presenter(), events)) if one["type"] == "message_delta"
    ]
    for told in (whole, last["usage"]):
        assert (told["input_tokens"], told["cache_read_input_tokens"]) == (10, 20)
        assert (told["cache_creation_input_tokens"], told["cache_creation"]) == (7, created)
    put = judge.read_stream(streamed(presenter(), events))[0]["usage"]
    assert (put["input_tokens"], put["cache_creation_input_tokens"]) == (10, 7)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(stated_blocks, max_size=3),
    st.sampled_from(("stop", "refusal", "pause", "context_window", "length")),
    st.sampled_from((Usage(37, 12, 20), Usage(37, 12, 20, 0, 7, 3))),
    st.data(),
)
def test_the_fast_presenter_gives_the_same_bytes(
    blocks: list[list[Event]], reason: FinishReason, used: Usage, data: st.DataObject
) -> None:
    events = answer(*blocks, reason=reason, usage=used)

    def fast() -> PlainPresenter:
        one = presenter(tools=False)
        return PlainPresenter(_reading(one), Somebody(), SEALS)

    at, shown, one = 0, b"", fast()
    while at < len(events):
        size = data.draw(st.integers(1, 6))
        shown += one.frames(events[at : at + size])
        at += size
    assert shown == streamed(presenter(tools=False), events)
    assert body(fast(), events) == body(presenter(tools=False), events)


def _reading(one: Any) -> Any:
    return ParsedBody(one._request, one._view)
