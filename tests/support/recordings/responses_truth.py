"""Truth of Responses: whole answers, and of streams the whole response that their last event has."""

import json
from typing import Any

from support.recordings.recorded_answer import RecordedAnswer
from support.recordings.truth import Tokens, Truth, arguments, event_objects, number

_LAST = ("response.completed", "response.incomplete", "response.failed")


def responses_truth(answer: RecordedAnswer) -> Truth:
    """Return what an answer says."""
    if not answer.streamed:
        return _truth(json.loads(answer.body), [])
    events = list(event_objects(answer.body))
    if any(event["type"] == "error" for event in events):
        return Truth(error=True)
    [last] = [event for event in events if event["type"] in _LAST]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    return _truth(last["response"], done)


def _truth(response: Any, done: list[Any]) -> Truth:
    """Return what a response says; `done` are its items as they ended, where it leaves them out itself."""
    truth = Truth(error=response["status"] == "failed" or bool(response.get("error")))
    # A stream tells its state with each item, and at the end another spelling of the same.
    thoughts = [item for item in done or response["output"] if item["type"] == "reasoning"]
    truth.state = [item["encrypted_content"] for item in thoughts if item.get("encrypted_content")]
    for item in response["output"] or done:
        match item["type"]:
            case "message":
                for part in item["content"]:
                    truth.text += part.get("text", "")
                    truth.refusal += part.get("refusal", "")
            case "reasoning":
                shown = item.get("content") or item.get("summary") or []
                truth.thought += "\n\n".join(part["text"] for part in shown)
            case "function_call":
                truth.calls.append((item["name"], arguments(item["arguments"])))
            case "custom_tool_call":
                truth.calls.append((item["name"], {"input": item["input"]}))
            case _:
                pass
    truth.finish = _finish(response, truth)
    told = response.get("usage")
    if told and told["total_tokens"]:
        prompt, answer = number(told, "input_tokens"), number(told, "output_tokens")
        cached = number(told, "input_tokens_details", "cached_tokens")
        thought = number(told, "output_tokens_details", "reasoning_tokens")
        truth.tokens = Tokens(prompt, answer, cached, thought)
    return truth


def _finish(response: Any, truth: Truth) -> str:
    if response["status"] == "incomplete":
        reason = response["incomplete_details"]["reason"]
        return "content_filter" if reason == "content_filter" else "length"
    return "tool_calls" if truth.calls else "refusal" if truth.refusal else "stop"
