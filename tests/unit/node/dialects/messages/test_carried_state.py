"""Opaque state in Messages: what a vendor wants back is shown in forms that clients know, and returns to its places."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import (
    BlockEnd,
    BlockKind,
    BlockStart,
    Delta,
    End,
    Event,
    Finish,
    FinishReason,
    Usage,
)
from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.request import ChatPrompt, Turn, TurnBlock
from smg_node.dialects.answer_blocks import AnswerBlocks
from smg_node.dialects.dialect import ParsedBody, Unknown
from smg_node.dialects.messages.fast_presenter import PlainPresenter
from smg_node.dialects.messages.message_object import BLANKS
from smg_node.dialects.messages.provider.dialect import PROVIDER
from smg_node.dialects.messages.request.reader import MessagesReader
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.opaque_envelope import PREFIX, Envelope, pack, unpack
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.provider_dialect import WriterOptions
from support.answers.messages_answers import BEGIN, SEALS, body, frames, presenter, streamed
from support.clients import messages_judge as judge
from support.providers.strict_messages import refusal

READER = MessagesReader(ReaderOptions(), SEALS)
CLAUDE = Opaque("anthropic", "signature", "c2lnbmVk+/==")
REDACTED = Opaque("anthropic", "redacted", "eHl6")
GOOGLE = Opaque("google", "signature", "Z29vZ2xl", "call_1")
OPENAI = Opaque("openai", "encrypted", "b3BlbmFp", "rs_1")
KEPT = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
OMITTED = MessagesView("claude-x", display="omitted")


class Somebody(Unknown):
    tenant = "t"


def block(
    kind: BlockKind, text: str = "", *opaque: Opaque, at: int = 0, late: bool = False
) -> list[Event]:
    """Return the events of a block; `late`: its state is not known when it starts."""
    name, call_id = ("f", f"call_{at}") if kind == "call" else ("", "")
    early = opaque if kind == "call" and not late else ()
    deltas = [Delta(0, at, text, 1)] if text else []
    return [
        BlockStart(0, at, kind, name, call_id, early),
        *deltas,
        BlockEnd(0, at, kind, text, name, call_id, opaque),
    ]


def answer(
    *blocks: list[Event], reason: FinishReason = "stop", usage: Usage | None = None
) -> list[Event]:
    numbered: list[Event] = []
    for at, events in enumerate(blocks):
        for event in events:
            assert isinstance(event, BlockStart | Delta | BlockEnd)
            call_id = f"call_{at}" if getattr(event, "kind", "") == "call" else ""
            more = {} if isinstance(event, Delta) else {"call_id": call_id}
            numbered.append(_replaced(event, block=at, **more))
    return [BEGIN, *numbered, Finish(0, reason), usage or Usage(30, 9, 20, 2), End()]


def _replaced(event: Any, **changes: Any) -> Event:
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    made: Event = type(event)(**{**fields, **changes})
    return made


def content(events: Sequence[Event], view: MessagesView | None = None) -> list[dict[str, Any]]:
    """Return the content that a client sees, whole and put together from a stream."""
    shown = presenter() if view is None else presenter(view)
    found: list[dict[str, Any]] = json.loads(body(shown, events))["content"]
    return found


def put_together(raw: bytes) -> list[dict[str, Any]]:
    """Return the content of a stream as any client puts it together."""
    blocks: list[dict[str, Any]] = []
    for frame in frames(raw):
        if frame["type"] == "content_block_start":
            assert frame["index"] == len(blocks)
            blocks.append({**frame["content_block"]})
        elif frame["type"] == "content_block_delta":
            delta, last = frame["delta"], blocks[frame["index"]]
            if delta["type"] == "text_delta":
                last["text"] += delta["text"]
            elif delta["type"] == "thinking_delta":
                last["thinking"] += delta["thinking"]
            elif delta["type"] == "signature_delta":
                last["signature"] = delta["signature"]
            else:
                last["partial"] = last.get("partial", "") + delta["partial_json"]
        elif frame["type"] == "content_block_stop":
            last = blocks[frame["index"]]
            if last["type"] == "tool_use":
                last["input"] = json.loads(last.pop("partial", "") or "{}")
    return blocks


def returned(said: list[dict[str, Any]], **more: Any) -> Turn:
    """Return the assistant's turn that the reader makes of content that comes back."""
    calls = [one["id"] for one in said if one["type"] == "tool_use"]
    heard = [{"type": "tool_result", "tool_use_id": one} for one in calls]
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": said},
        {"role": "user", "content": heard or "And?"},
    ]
    raw = {"model": "llama", "max_tokens": 5, "messages": messages, **more}
    [prompt] = READER.read(json.loads(json.dumps(raw)), Somebody()).request.prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt.turns[1]


def envelope(*opaque: Opaque, thought: str = "", place: str = "") -> dict[str, Any]:
    return {"type": "thinking", "thinking": "", "signature": pack(opaque, thought, place)}


# ── What a client sees ───────────────────────────────────────────────────────

CALL = {"type": "tool_use", "name": "f", "input": {"a": 1}}


@pytest.mark.parametrize(
    ("blocks", "seen"),
    [
        (
            [block("reasoning", "I think", CLAUDE)],
            [{"type": "thinking", "thinking": "I think", "signature": CLAUDE.data}],
        ),
        (
            [block("reasoning", "", CLAUDE)],
            [{"type": "thinking", "thinking": "", "signature": CLAUDE.data}],
        ),
        ([block("reasoning", "", REDACTED)], [{"type": "redacted_thinking", "data": "eHl6"}]),
        (
            [block("reasoning", " \nI think", CLAUDE)],
            [{**envelope(CLAUDE, thought=" \nI think"), "thinking": "I think"}],
        ),
        ([block("reasoning", "\n", CLAUDE)], [envelope(CLAUDE, thought="\n")]),
        ([block("reasoning", "", OPENAI)], [envelope(OPENAI)]),
        ([block("reasoning", "Sum", OPENAI)], [{**envelope(OPENAI), "thinking": "Sum"}]),
        ([block("reasoning", "", CLAUDE, OPENAI)], [envelope(CLAUDE, OPENAI)]),
        ([block("call", '{"a":1}', GOOGLE)], [envelope(GOOGLE, place="next"), CALL]),
        (
            [block("text", "So", GOOGLE), block("call", '{"a":1}')],
            [{"type": "text", "text": "So"}, envelope(GOOGLE, place="last"), CALL],
        ),
        (
            [block("call", '{"a":1}'), block("text", "", GOOGLE)],
            [CALL, envelope(GOOGLE, place="text")],
        ),
        (
            [block("text", "\n", GOOGLE)],
            [envelope(GOOGLE, thought="\n", place="text")],
        ),
    ],
)  # fmt: skip
def test_state_has_a_form_that_clients_know(
    blocks: list[list[Event]], seen: list[dict[str, Any]]
) -> None:
    events = answer(*blocks)
    assert without_ids(content(events)) == seen
    assert without_ids(put_together(streamed(presenter(), events))) == seen


def without_ids(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != "id"} for one in said]


def test_state_that_is_known_only_when_a_call_is_over_follows_it_in_a_stream() -> None:
    events = answer(block("call", '{"a":1}', GOOGLE, late=True), block("text", "So"))
    text = {"type": "text", "text": "So"}
    seen = [CALL, envelope(GOOGLE, place="last"), text]
    assert without_ids(put_together(streamed(presenter(), events))) == seen
    assert without_ids(content(events)) == [envelope(GOOGLE, place="next"), CALL, text]


def test_a_call_starts_with_the_state_that_came_with_its_name() -> None:
    out: list[Event] = []
    blocks = AnswerBlocks()
    blocks.call(0, "call_1", "f", "{", out, (GOOGLE,))
    blocks.call(0, "", "", "}", out, (OPENAI,))
    blocks.close(out)
    assert out[0] == BlockStart(0, 0, "call", "f", "call_1", (GOOGLE,))
    assert out[-1] == BlockEnd(0, 0, "call", "{}", "f", "call_1", (GOOGLE, OPENAI))


def test_a_thought_that_is_not_shown_travels_in_its_envelope() -> None:
    events = answer(block("reasoning", "I think", CLAUDE), block("reasoning", "So", OPENAI))
    shown = content(events, OMITTED)
    assert shown == [envelope(CLAUDE, thought="I think"), envelope(OPENAI, thought="So")]
    assert put_together(streamed(presenter(OMITTED), events)) == shown
    assert [one.text for one in returned(shown).blocks] == ["I think", "So"]


def test_state_that_is_too_large_is_not_carried_and_the_thought_is_signed_here() -> None:
    large = Opaque("google", "signature", "A" * 300_000)
    [thought] = content(answer(block("reasoning", "I", large)))
    assert thought["signature"] == SEALS.sign("I", tenant="t", model="llama")
    assert content(answer(block("call", "{}", large)))[0]["type"] == "tool_use"


def test_the_official_client_takes_all_forms_and_may_send_them_back() -> None:
    events = answer(
        block("reasoning", "", REDACTED),
        block("reasoning", "", CLAUDE),
        block("reasoning", "I think", CLAUDE),
        block("reasoning", "Sum", OPENAI),
        block("text", "So", GOOGLE),
        block("call", '{"a":1}', GOOGLE),
        block("call", "{}", GOOGLE, late=True),
        block("text", "Done"),
        reason="tool_calls",
    )
    raw, whole = streamed(presenter(), events), body(presenter(), events)
    for message in (judge.read_stream(raw)[0], judge.read_whole(whole)[0]):
        blocks = returned([_sent(one) for one in message["content"]]).blocks
        assert [one.opaque for one in blocks] == [
            (REDACTED,), (CLAUDE,), (CLAUDE,), (OPENAI,), (GOOGLE,), (GOOGLE,), (GOOGLE,), (),
        ]  # fmt: skip
        sent = {
            "model": "m",
            "max_tokens": 5,
            "stream": True,
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": [_sent(one) for one in message["content"]]},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": one["id"]}
                        for one in message["content"]
                        if one["type"] == "tool_use"
                    ],
                },
            ],
            "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        }
        assert refusal(sent) == ""


def _sent(one: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in one.items() if value is not None and key != "parsed_output"
    }


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
    said = [
        {"type": "thinking", "thinking": "I", "signature": signature},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]
    turn = returned(said)
    assert (turn.reasoning, turn.blocks) == ("I", ())


def test_state_of_what_the_client_left_out_is_left_out() -> None:
    said = [
        envelope(GOOGLE, place="last"),
        {"type": "text", "text": "So"},
        envelope(GOOGLE, place="next"),
    ]
    assert returned(said).blocks == (TurnBlock("text", "So"),)


# ── There and back ───────────────────────────────────────────────────────────

_opaques = st.lists(
    st.builds(
        Opaque,
        st.sampled_from(("anthropic", "google", "openai")),
        st.sampled_from(("signature", "redacted", "encrypted")),
        st.sampled_from(("c2ln", "smg1.AAAA", "A" * 90)),
        st.sampled_from(("", "id_1")),
    ),
    max_size=2,
    unique=True,
).map(tuple)
_texts = st.sampled_from(("", " ", "\n", "Hi", " So it is.\n", "é😀"))
_blocks = st.one_of(
    st.builds(lambda text, state: block("text", text, *state), _texts, _opaques),
    st.builds(lambda text, state: block("reasoning", text, *state), _texts, _opaques),
    st.builds(lambda text: block("refusal", text), _texts),
    st.builds(
        lambda text, state, late: block("call", text, *state, late=late),
        st.sampled_from(("{}", '{"a":1}')),
        _opaques,
        st.booleans(),
    ),
)


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
@given(st.lists(_blocks, max_size=5), st.booleans(), st.booleans())
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
@given(st.lists(_blocks, max_size=4))
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


# ── Ends ─────────────────────────────────────────────────────────────────────

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
    st.lists(_blocks, max_size=3),
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


def test_an_envelope_says_where_its_state_belongs() -> None:
    [carrier, _call] = content(answer(block("call", "{}", GOOGLE)))
    assert unpack(carrier["signature"]) == Envelope((GOOGLE,), "", "next")
