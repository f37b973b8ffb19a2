"""Messages answer: blocks, usage, and events as Anthropic and its hostings stream them."""

from typing import Any, Final

from smg_chaos.vendor.answers.answer import Answer, Cost
from smg_chaos.vendor.apis.call import Call

_STOPS: Final = {
    "stop": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "refusal": "refusal",
    "filter": "refusal",
    "stop_sequence": "stop_sequence",
}
_EARLY_TOKENS_MAX: Final = 88
_SPARSE_SHARE: Final = 4
Event = tuple[str, dict[str, Any], int]


def usage_of(cost: Cost) -> dict[str, Any]:
    """Return what an answer cost: reads and writes of the cache stand beside the input."""
    return {
        "input_tokens": cost.new,
        "cache_creation_input_tokens": cost.written,
        "cache_read_input_tokens": cost.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": cost.written - cost.written_long,
            "ephemeral_1h_input_tokens": cost.written_long,
        },
        "output_tokens": cost.answer,
        "service_tier": "standard",
    }


class MessageBlocks:
    """The blocks of one answer."""

    def __init__(self, call: Call, answer: Answer) -> None:
        self._call = call
        self._answer = answer

    def all(self) -> list[dict[str, Any]]:
        """Return the blocks, whole."""
        blocks: list[dict[str, Any]] = []
        if self._answer.thinks:
            blocks.append(self._thought())
        if self._answer.text:
            blocks.append({"type": "text", "text": self._answer.text})
        for at, one in enumerate(self._answer.calls):
            block = {"type": "tool_use", "id": self._call_id(at), "name": one.name}
            blocks.append({**block, "input": one.arguments})
        return blocks

    def _call_id(self, at: int) -> str:
        counted = "call_counter" in self._call.quirks
        return f"call_{at}" if counted else self._answer.name("toolu_01", at)

    def _thought(self) -> dict[str, Any]:
        answer, seals = self._answer, self._call.seals
        if answer.draft.redacted:
            sealed = seals.seal("redacted", "anthropic", "", answer.seed)
            return {"type": "redacted_thinking", "data": sealed}
        sealed = seals.seal("thinking", "anthropic", answer.thought, answer.seed)
        return {"type": "thinking", "thinking": answer.thought, "signature": sealed}


def stop_of(answer: Answer) -> dict[str, Any]:
    """Return why the answer ended, as the whole message and the last delta say it."""
    ending = answer.draft.ending
    stop: dict[str, Any] = {
        "stop_reason": _STOPS[ending],
        "stop_sequence": answer.draft.stop or None,
    }
    if _STOPS[ending] == "refusal":
        said = "The request was declined by the stand-in."
        stop["stop_details"] = {"type": "refusal", "category": None, "explanation": said}
    return stop


def whole_message(call: Call, answer: Answer) -> dict[str, Any]:
    """Return a whole answer."""
    return {
        "id": answer.name("msg_01"),
        "type": "message",
        "role": "assistant",
        "model": call.model,
        "content": MessageBlocks(call, answer).all(),
        **stop_of(answer),
        "usage": usage_of(answer.cost),
    }


def message_events(call: Call, answer: Answer) -> list[Event]:
    """Return an answer as events: name, data, and tokens of the answer in it."""
    early = 1 + int(answer.seed[:4], 16) % _EARLY_TOKENS_MAX
    usage = usage_of(answer.cost)
    begun = {
        **whole_message(call, answer),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": early},
    }
    begun.pop("stop_details", None)
    events: list[Event] = [("message_start", {"type": "message_start", "message": begun}, 0)]
    for at, block in enumerate(MessageBlocks(call, answer).all()):
        _block_events(events, at, block, answer)
    sparse = int(answer.seed[4:8], 16) % _SPARSE_SHARE == 0
    told = {"output_tokens": answer.cost.answer} if sparse else usage
    last = {"type": "message_delta", "delta": stop_of(answer), "usage": told}
    events.append(("message_delta", last, 0))
    events.append(("message_stop", {"type": "message_stop"}, 0))
    return events


def _block_events(events: list[Event], at: int, block: dict[str, Any], answer: Answer) -> None:
    kind = block["type"]
    empty = {
        "thinking": {"type": "thinking", "thinking": "", "signature": ""},
        "text": {"type": "text", "text": ""},
        "tool_use": {**block, "input": {}},
    }
    start = {"type": "content_block_start", "index": at, "content_block": empty.get(kind, block)}
    events.append(("content_block_start", start, 0))
    if at == 0:
        events.append(("ping", {"type": "ping"}, 0))
    for delta, tokens in _deltas(kind, block, answer):
        value = {"type": "content_block_delta", "index": at, "delta": delta}
        events.append(("content_block_delta", value, tokens))
    events.append(("content_block_stop", {"type": "content_block_stop", "index": at}, 0))


def _deltas(kind: str, block: dict[str, Any], answer: Answer) -> list[tuple[dict[str, Any], int]]:
    draft = answer.draft
    if kind == "text":
        return [({"type": "text_delta", "text": piece}, 1) for piece in draft.text]
    if kind == "thinking":
        shown = draft.thought if answer.thought else ()
        deltas = [({"type": "thinking_delta", "thinking": piece}, 1) for piece in shown]
        return [*deltas, ({"type": "signature_delta", "signature": block["signature"]}, 0)]
    if kind != "tool_use":
        return []
    made = next(one for one in answer.calls if one.arguments is block["input"])
    rows = [({"type": "input_json_delta", "partial_json": ""}, 0)]
    if not made.arguments:
        return [*rows, ({"type": "input_json_delta", "partial_json": "{}"}, 1)]
    return rows + [
        ({"type": "input_json_delta", "partial_json": piece}, 1) for piece in made.slices
    ]
