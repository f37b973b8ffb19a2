"""Returned state: what a client sends back stands where it stood, for its issuer, and changes nothing for templates."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import (
    BlockEnd,
    Event,
)
from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.request import ChatPrompt, TurnBlock
from smg_node.dialects.messages.message_object import BLANKS
from smg_node.dialects.messages.provider.dialect import PROVIDER
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.opaque_envelope import PREFIX
from smg_node.dialects.provider_dialect import WriterOptions
from support.answers.messages_answers import presenter, streamed
from support.answers.stated_answers import (
    CLAUDE,
    GOOGLE,
    KEPT,
    OMITTED,
    OPENAI,
    READER,
    REDACTED,
    Somebody,
    answer,
    block,
    content,
    envelope,
    put_together,
    returned,
    stated_blocks,
)
from support.providers.strict_messages import refusal

# ── What comes back ──────────────────────────────────────────────────────────


def test_ordinary_turns_have_no_blocks() -> None:
    own = content(answer(block("reasoning", "I think"), block("call", "{}")))
    assert returned(own).blocks == ()
    assert returned(own).reasoning == "I think"


def test_what_is_not_read_here_is_left_out_for_templates_as_ever() -> None:
    said = [
        {"type": "thinking", "thinking": "I think", "signature": CLAUDE.data},
        {"type": "thinking", "thinking": "", "signature": CLAUDE.data},
        {"type": "redacted_thinking", "data": "eHl6"},
        envelope(GOOGLE, place="next"),
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]
    turn = returned(said)
    assert (turn.reasoning, turn.content, len(turn.calls)) == ("I think", None, 1)
    assert turn.blocks == (
        TurnBlock("reasoning", "I think", opaque=(CLAUDE,)),
        TurnBlock("reasoning", "", opaque=(CLAUDE,)),
        TurnBlock("reasoning", "", opaque=(REDACTED,)),
        TurnBlock("call", "{}", "f", "a", (GOOGLE,)),
    )


def test_who_asked_is_told_of_thoughts_that_nobody_here_can_read_and_of_no_other_state() -> None:
    said = [
        {"type": "thinking", "thinking": "", "signature": CLAUDE.data},
        {"type": "redacted_thinking", "data": "eHl6"},
        envelope(OPENAI),
        envelope(OPENAI, thought="Sum"),
        envelope(GOOGLE, place="next"),
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]
    binding = {"prefix_mismatch_behavior": "drop_block"}
    raw: dict[str, Any] = {
        "model": "llama",
        "max_tokens": 5,
        "thinking": {"type": "adaptive", "block_binding": binding},
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": said},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
        ],
    }
    read = READER.read(raw, Somebody())
    paths = [one["path"] for one in read.view.transformations]
    assert paths == [f"messages.1.content.{at}" for at in range(3)]


def test_state_of_earlier_turns_stays_for_its_issuer_unless_an_edit_says_otherwise() -> None:
    said = [
        {"type": "thinking", "thinking": "I", "signature": CLAUDE.data},
        {"type": "text", "text": "So"},
    ]
    turn = returned(said)
    assert (turn.reasoning, [one.opaque for one in turn.blocks]) == (None, [(CLAUDE,), ()])
    edits = {"edits": [{"type": "clear_thinking_20251015"}]}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": said},
        {"role": "user", "content": "And?"},
        {"role": "assistant", "content": said},
        {"role": "user", "content": "And?"},
    ]
    raw = {"model": "m", "max_tokens": 5, "messages": messages, "context_management": edits}
    [prompt] = READER.read(raw, Somebody()).request.prompts
    assert isinstance(prompt, ChatPrompt)
    assert [len(turn.blocks) for turn in prompt.turns] == [0, 0, 0, 2, 0]


def test_cleared_inputs_are_cleared_in_blocks_too() -> None:
    said = [
        {"type": "thinking", "thinking": "", "signature": CLAUDE.data},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"b": "c"}},
    ]
    clear = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "tool_uses", "value": 1},
        "keep": {"type": "tool_uses", "value": 0},
        "clear_tool_inputs": True,
    }
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]
    for _ in range(2):
        messages += [
            {"role": "assistant", "content": said},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": "long" * 50}],
            },
        ]
    raw = {
        "model": "m",
        "max_tokens": 5,
        "messages": messages,
        "context_management": {"edits": [clear]},
    }
    [prompt] = READER.read(raw, Somebody()).request.prompts
    assert isinstance(prompt, ChatPrompt)
    told = [turn.blocks[1].text for turn in prompt.turns if turn.role == "assistant"]
    assert told == ["{}", "{}"]


@pytest.mark.parametrize("signature", [PREFIX, PREFIX + "AAAA", "smg1.x", "smg1s.x"])
def test_signatures_of_this_node_are_state_of_nobody(signature: str) -> None:
    said: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "I", "signature": signature},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]
    turn = returned(said)
    assert (turn.reasoning, turn.blocks) == ("I", ())


def test_state_of_what_the_client_left_out_is_left_out() -> None:
    said: list[dict[str, Any]] = [
        envelope(GOOGLE, place="last"),
        {"type": "text", "text": "So"},
        envelope(GOOGLE, place="next"),
    ]
    assert returned(said).blocks == (TurnBlock("text", "So"),)


# ── There and back ───────────────────────────────────────────────────────────


def expected(events: Sequence[Event]) -> list[tuple[str, str, tuple[Opaque, ...]]]:
    found: list[tuple[str, str, tuple[Opaque, ...]]] = []
    for event in events:
        if not isinstance(event, BlockEnd):
            continue
        kind = "text" if event.kind == "refusal" else event.kind
        text = event.text
        if kind == "reasoning" and not event.opaque:
            text = text.lstrip(BLANKS)
        if kind == "text":
            text = text.strip(BLANKS)
        if text or event.opaque:
            found.append((kind, text, event.opaque))
    return found


@settings(max_examples=120, deadline=None)
@given(st.lists(stated_blocks, max_size=5), st.booleans(), st.booleans())
def test_state_comes_back_unchanged_at_its_places(
    blocks: list[list[Event]], omitted: bool, whole: bool
) -> None:
    events = answer(*blocks, reason="tool_calls")
    view = OMITTED if omitted else MessagesView("claude-x")
    said = content(events, view) if whole else put_together(streamed(presenter(view), events))
    turn = returned(said, context_management=KEPT)
    stated = any(isinstance(event, BlockEnd) and event.opaque for event in events)
    assert bool(turn.blocks) is stated
    if stated:
        found = [
            (one.kind, one.text.strip(BLANKS) if one.kind == "text" else one.text, one.opaque)
            for one in turn.blocks
        ]
        assert found == expected(events)


@settings(max_examples=60, deadline=None)
@given(st.lists(stated_blocks, max_size=4))
def test_it_goes_back_to_its_issuer_as_it_came(blocks: list[list[Event]]) -> None:
    events = answer(*blocks, reason="tool_calls")
    raw = {
        "model": "m",
        "max_tokens": 5,
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": content(events)},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": one["id"]}
                    for one in content(events)
                    if one["type"] == "tool_use"
                ]
                or "And?",
            },
        ],
    }
    request = READER.read(raw, Somebody()).request
    written = PROVIDER.write(request, WriterOptions("m", "anthropic")).fields
    assert refusal(written) == ""
    sent = {
        one.get("signature") or one["data"]
        for message in written["messages"]
        for one in message["content"]
        if one["type"] in ("thinking", "redacted_thinking")
    }
    ours = {
        one.data
        for event in events
        if isinstance(event, BlockEnd) and event.kind == "reasoning"
        for one in event.opaque
        if one.issuer == "anthropic"
    }
    assert sent <= ours
