"""Answers with opaque state, what a client sees of them, and the turn that it sends back."""

import json
from collections.abc import Sequence
from typing import Any

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
from smg_node.core.generation.request import ChatPrompt, Turn
from smg_node.dialects.dialect import Unknown
from smg_node.dialects.messages.request.reader import MessagesReader
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.opaque_envelope import pack
from smg_node.dialects.options import ReaderOptions
from support.answers.messages_answers import BEGIN, SEALS, body, frames, presenter

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


def without_ids(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != "id"} for one in said]


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
stated_blocks = st.one_of(
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
