"""Truth of Converse: whole answers, and streams whose frames botocore takes apart."""

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from botocore.eventstream import EventStreamBuffer

from support.recordings.recorded_answer import RecordedAnswer
from support.recordings.truth import Tokens, Truth, arguments, number

_FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}


def frames_of(body: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the frames of a stream: what happened, and its JSON."""
    buffer = EventStreamBuffer()
    buffer.add_data(body)
    for frame in buffer:
        headers = frame.headers
        yield headers.get(":event-type") or headers[":exception-type"], json.loads(frame.payload)


def converse_truth(answer: RecordedAnswer) -> Truth:
    """Return what an answer says."""
    if not answer.streamed:
        told = json.loads(answer.body)
        return _truth(told["output"]["message"]["content"], told)
    blocks: dict[int, dict[str, Any]] = {}
    end: dict[str, Any] = {}
    for kind, told in frames_of(answer.body):
        if kind.endswith("Exception"):
            return Truth(error=True)
        if kind in ("messageStop", "metadata"):
            end |= told
        if "contentBlockIndex" in told:
            block = blocks.setdefault(told["contentBlockIndex"], {})
            _take(block, {**told.get("start", {}), **told.get("delta", {})})
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = arguments(block["toolUse"].get("input", ""))
    return _truth([blocks[index] for index in sorted(blocks)], end)


def _take(block: dict[str, Any], told: Any) -> None:
    if "text" in told:
        block["text"] = block.get("text", "") + told["text"]
    if "toolUse" in told:
        call = block.setdefault("toolUse", {})
        call["name"] = told["toolUse"].get("name") or call.get("name")
        call["input"] = call.get("input", "") + told["toolUse"].get("input", "")
    if "reasoningContent" in told:
        thought = block.setdefault("reasoningContent", {"reasoningText": {"text": ""}})
        thought["reasoningText"]["text"] += told["reasoningContent"].get("text", "")
        if "signature" in told["reasoningContent"]:
            thought["reasoningText"]["signature"] = told["reasoningContent"]["signature"]
        if "redactedContent" in told["reasoningContent"]:
            thought["redactedContent"] = told["reasoningContent"]["redactedContent"]


def _truth(content: Any, end: Any) -> Truth:
    truth = Truth()
    for block in content:
        truth.text += block.get("text", "")
        thought = block.get("reasoningContent", {}).get("reasoningText", {})
        truth.thought += thought.get("text", "")
        truth.state += [thought["signature"]] if thought.get("signature") else []
        if redacted := block.get("reasoningContent", {}).get("redactedContent"):
            # Bytes, which for Anthropic are the text that its own API has.
            truth.state.append(b64decode(redacted).decode())
        if "toolUse" in block:
            truth.calls.append((block["toolUse"]["name"], block["toolUse"]["input"]))
    truth.finish = _FINISHES[end["stopReason"]]
    told = end["usage"]
    read, wrote = number(told, "cacheReadInputTokens"), number(told, "cacheWriteInputTokens")
    prompt = number(told, "inputTokens") + read + wrote
    assert prompt + number(told, "outputTokens") == number(told, "totalTokens")
    truth.tokens = Tokens(prompt, number(told, "outputTokens"), read, 0, wrote)
    return truth
