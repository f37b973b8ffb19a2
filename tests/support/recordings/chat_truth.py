"""Truth of Chat Completions: whole answers and streams, with the fields that vendors add."""

import json
from typing import Any

from support.recordings.recorded_answer import RecordedAnswer
from support.recordings.truth import Tokens, Truth, arguments, event_objects, number

_FINISHES = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


def chat_truth(answer: RecordedAnswer) -> Truth:
    """Return what an answer says of its first choice."""
    chunks = list(event_objects(answer.body)) if answer.streamed else [json.loads(answer.body)]
    truth, calls = Truth(), dict[int, list[str]]()
    for chunk in chunks:
        if chunk.get("error"):
            truth.error = True
            return truth
        told = chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage")
        if told:
            truth.tokens = tokens_of(told)
        for choice in chunk.get("choices") or ():
            if choice.get("index", 0) == 0:
                _take(truth, calls, choice)
    truth.calls = [(name, arguments(text)) for _, (name, text) in sorted(calls.items())]
    if truth.finish == "stop" and calls:
        truth.finish = "tool_calls"
    elif truth.finish == "stop" and truth.refusal:
        truth.finish = "refusal"
    return truth


def _take(truth: Truth, calls: dict[int, list[str]], choice: Any) -> None:
    said = choice.get("delta") or choice.get("message") or {}
    content = said.get("content")
    if isinstance(content, list):
        truth.thought += "".join(map(_thinking, content))
        content = "".join(one.get("text") or "" for one in content)
    truth.text += content or ""
    details = said.get("reasoning_details") or []
    shown = said.get("reasoning_content") or said.get("reasoning")
    truth.thought += shown or "".join(
        one.get("text") or one.get("summary") or "" for one in details
    )
    truth.refusal += said.get("refusal") or ""
    truth.state += _signed(said)
    for place, call in enumerate(said.get("tool_calls") or ()):
        row = calls.setdefault(call.get("index") or place, ["", ""])
        function = call.get("function") or {}
        truth.state += _signed(call)
        given = function.get("arguments") or ""
        row[0] = row[0] or function.get("name") or ""
        row[1] += given if isinstance(given, str) else json.dumps(given)
    if choice.get("finish_reason"):
        truth.finish = _FINISHES[choice["finish_reason"]]


def _signed(part: Any) -> list[str]:
    """Return the signature of a message or a call of Gemini's OpenAI door."""
    found = (part.get("extra_content") or {}).get("google", {}).get("thought_signature")
    return [found] if found else []


def _thinking(part: Any) -> str:
    """Return the thought in a part of Mistral's."""
    return "".join(one["text"] for one in part.get("thinking") or ())


def tokens_of(told: Any) -> Tokens:
    """Return what a `usage` says: a total that is more than its parts counts the thought."""
    prompt, total = number(told, "prompt_tokens"), number(told, "total_tokens")
    answer = max(number(told, "completion_tokens"), total - prompt)
    details = told.get("prompt_tokens_details") or {}
    thought = number(told, "completion_tokens_details", "reasoning_tokens")
    cached = max(
        number(details, "cached_tokens"),
        number(told, "num_cached_tokens"),
        number(told, "prompt_cache_hit_tokens"),
    )
    written = number(details, "cache_write_tokens")
    return Tokens(prompt, answer, cached, min(thought, answer), written)
