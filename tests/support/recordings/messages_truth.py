"""Truth of Messages: whole answers, streams, and streams in AWS's frames."""

import base64
import json
from typing import Any

from support.recordings.converse_truth import frames_of
from support.recordings.recorded_answer import RecordedAnswer
from support.recordings.truth import Tokens, Truth, arguments, event_objects, number

_FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "stop",
    "model_context_window_exceeded": "context_window",
}


def messages_truth(answer: RecordedAnswer) -> Truth:
    """Return what an answer says."""
    if not answer.streamed:
        return _truth(json.loads(answer.body))
    return _truth(_joined(_events(answer)))


def _events(answer: RecordedAnswer) -> list[Any]:
    if not answer.framed:
        return list(event_objects(answer.body))
    return [json.loads(base64.b64decode(told["bytes"])) for _, told in frames_of(answer.body)]


def _joined(events: list[Any]) -> Any:
    """Return the message that a stream is."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    inputs: dict[int, str] = {}
    for event in events:
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                delta, block = event["delta"], blocks[event["index"]]
                if "partial_json" in delta:
                    inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
                for name in ("text", "thinking", "signature"):
                    if name in delta:
                        block[name] = block.get(name, "") + delta[name]
            case "message_delta":
                message |= {"stop_reason": event["delta"]["stop_reason"]}
                message["usage"] = {**message["usage"], **event["usage"]}
            case _:
                pass
    for index, text in inputs.items():
        blocks[index]["input"] = arguments(text)
    return {**message, "content": [blocks[index] for index in sorted(blocks)]}


def _truth(message: Any) -> Truth:
    """Return what a whole message says."""
    truth = Truth()
    for block in message["content"]:
        match block["type"]:
            case "text":
                truth.text += block["text"]
            case "thinking":
                truth.thought += block["thinking"]
                truth.state += [block["signature"]] if block["signature"] else []
            case "redacted_thinking":
                truth.state.append(block["data"])
            case "tool_use":
                truth.calls.append((block["name"], block["input"]))
            case _:
                pass
    truth.finish = _FINISHES[message["stop_reason"]]
    if truth.finish == "stop" and truth.calls:
        truth.finish = "tool_calls"
    told = message["usage"]
    summed = [one for one in told.get("iterations") or () if one["type"] == "compaction"]
    truth.tokens = Tokens(*map(sum, zip(*map(_tokens, (told, *summed)), strict=True)))
    return truth


def _tokens(told: Any) -> Tokens:
    """Return what a `usage` says: the input is without what was read from or written to the cache."""
    cached, written = (
        number(told, "cache_read_input_tokens"),
        number(told, "cache_creation_input_tokens"),
    )
    long = number(told, "cache_creation", "ephemeral_1h_input_tokens")
    prompt = number(told, "input_tokens") + cached + written
    return Tokens(prompt, number(told, "output_tokens"), cached, 0, written, long)
