"""Truth of generateContent: whole answers, and streams whose events are answers of their own."""

import json
from typing import Any

from support.recordings.recorded_answer import RecordedAnswer
from support.recordings.truth import Tokens, Truth, event_objects, number

_FINISHES = {"STOP": "stop", "MAX_TOKENS": "length"}
_BROKEN = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MISSING_THOUGHT_SIGNATURE")


def gemini_truth(answer: RecordedAnswer) -> Truth:
    """Return what an answer says of its first candidate."""
    said = list(event_objects(answer.body)) if answer.streamed else json.loads(answer.body)
    truth, counts = Truth(), dict[str, Any]()
    for event in said if isinstance(said, list) else [said]:
        if "error" in event:
            truth.error = True
            return truth
        counts |= event.get("usageMetadata", {})
        if event.get("promptFeedback", {}).get("blockReason"):
            truth.finish = "content_filter"
        for candidate in event.get("candidates") or ():
            if candidate.get("index", 0) == 0:
                _take(truth, candidate)
    if truth.finish == "stop" and truth.calls:
        truth.finish = "tool_calls"
    truth.tokens = _tokens(counts) if counts else None
    return truth


def _take(truth: Truth, candidate: Any) -> None:
    for part in candidate.get("content", {}).get("parts") or ():
        if "thoughtSignature" in part and ("functionCall" in part or "text" in part):
            truth.state.append(part["thoughtSignature"])
        if "functionCall" in part:
            truth.calls.append((part["functionCall"]["name"], part["functionCall"].get("args", {})))
        elif part.get("thought"):
            truth.thought += part.get("text", "")
        else:
            truth.text += part.get("text", "")
    reason = candidate.get("finishReason")
    if reason in _BROKEN:
        truth.error = True
    elif reason:
        truth.finish = _FINISHES.get(reason, "content_filter")


def _tokens(told: Any) -> Tokens:
    prompt = number(told, "promptTokenCount") + number(told, "toolUsePromptTokenCount")
    thought = number(told, "thoughtsTokenCount")
    answer = number(told, "candidatesTokenCount") + thought
    return Tokens(prompt, answer, number(told, "cachedContentTokenCount"), thought)
