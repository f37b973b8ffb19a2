"""Answers of a vendor's Messages API for tests: blocks as a body and as the stream of it, cut into deltas anywhere."""

import json
from typing import Any

import msgspec
from hypothesis import strategies as st

Block = dict[str, Any]
PING = b'event: ping\ndata: {"type": "ping"}\n\n'
USAGE: dict[str, Any] = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 7,
    "cache_read_input_tokens": 20,
    "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 3},
    "output_tokens": 12,
    "output_tokens_details": {"thinking_tokens": 5},
    "service_tier": "standard",
}
"""37 tokens of a prompt, 20 of them cached, 7 written, 3 of these for an hour."""


def event(kind: str, **said: Any) -> bytes:
    """Return an event as the vendor writes it."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), json.dumps({"type": kind, **said}).encode())


def message(
    *blocks: Block, reason: str | None = "end_turn", usage: Any = None, **more: Any
) -> dict[str, Any]:
    """Return a whole message."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": list(blocks),
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": USAGE if usage is None else usage,
        **more,
    }


def start(usage: Any = None) -> bytes:
    """Return the first event: its length of the answer means nothing."""
    said = {**(USAGE if usage is None else usage), "output_tokens": 1}
    said.pop("output_tokens_details", None)
    return event("message_start", message=message(reason=None, usage=said))


def stop(reason: str | None = "end_turn", *, usage: Any = None, **delta: Any) -> bytes:
    """Return the last two events."""
    said = {"output_tokens": 12, "output_tokens_details": {"thinking_tokens": 5}}
    delta = {"stop_reason": reason, "stop_sequence": None, **delta}
    told = event("message_delta", delta=delta, usage=said if usage is None else usage)
    return told + event("message_stop")


def block_start(index: int, block: Block) -> bytes:
    """Return the event by which a block starts."""
    return event("content_block_start", index=index, content_block=block)


def delta(index: int, kind: str, **said: Any) -> bytes:
    """Return one delta."""
    return event("content_block_delta", index=index, delta={"type": kind, **said})


def block_stop(index: int) -> bytes:
    """Return the event by which a block stops."""
    return event("content_block_stop", index=index)


def _deltas(index: int, block: Block, width: int) -> tuple[Block, list[bytes]]:
    """Return a block as it starts, and its deltas of so many characters."""
    kind = block["type"]

    def cut(text: str) -> list[str]:
        return [text[at : at + width] for at in range(0, len(text), width)]

    if kind == "text":
        parts = [delta(index, "text_delta", text=piece) for piece in cut(block["text"])]
        cited = delta(index, "citations_delta", citation={"cited_text": "x"})
        return {**block, "text": ""}, [*parts, cited]
    if kind == "thinking":
        parts = [delta(index, "thinking_delta", thinking=piece) for piece in cut(block["thinking"])]
        if block["signature"]:
            parts.append(delta(index, "signature_delta", signature=block["signature"]))
        return {**block, "thinking": "", "signature": ""}, parts
    if kind in ("tool_use", "server_tool_use"):
        pieces = ["", *cut(msgspec.json.encode(block["input"]).decode())]
        parts = [delta(index, "input_json_delta", partial_json=piece) for piece in pieces]
        return {**block, "input": {}}, parts if block["input"] else parts[:1]
    return block, []


def stream(blocks: list[Block], *, reason: str = "end_turn", width: int = 3) -> bytes:
    """Return the stream of a message with these blocks, with a ping in every one of them."""
    told = [start(), PING]
    for index, block in enumerate(blocks):
        begun, parts = _deltas(index, block, width)
        told += [block_start(index, begun), PING, *parts, block_stop(index)]
    return b"".join((*told, stop(reason)))


# ── Drawn ────────────────────────────────────────────────────────────────────

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_signatures = st.sampled_from(("", "c2lnbmVk+/==", "A" * 200))
_inputs = st.dictionaries(_texts, st.none() | st.integers(-9, 9) | _texts, max_size=2)
blocks = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, _texts),
    st.builds(
        lambda text, sign: {"type": "thinking", "thinking": text, "signature": sign},
        _texts,
        _signatures,
    ),
    st.builds(lambda data: {"type": "redacted_thinking", "data": data}, _signatures),
    st.builds(
        lambda given, name: {"type": "tool_use", "id": "toolu_1", "name": name, "input": given},
        _inputs,
        st.sampled_from(("f", "look_up")),
    ),
    st.builds(
        lambda given: {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": given,
        },
        _inputs,
    ),
    st.just(
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"a": "b"}]}
    ),
    st.just({"type": "compaction", "content": "So far"}),
    st.just({"type": "unheard_of", "text": "x"}),
)
REASONS = (
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "unheard_of",
)
answers = st.lists(blocks, max_size=5).map(
    lambda drawn: [
        {**block, "id": f"id_{at}"} if "id" in block else block for at, block in enumerate(drawn)
    ]
)
"""Blocks of one message, each call with an id of its own."""
