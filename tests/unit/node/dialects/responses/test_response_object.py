"""The public object: what it repeats of the request, and what it says of the answer."""

from typing import Any

from support.generations import text, whole
from support.responses import (
    RESPONSE_ID,
    THREAD,
    ask_of,
    decoded,
    told_whole,
)

ASKED: dict[str, Any] = {
    "instructions": "Be brief.",
    "previous_response_id": RESPONSE_ID,
    "max_output_tokens": 7,
    "max_tool_calls": 2,
    "temperature": 0.5,
    "top_p": 0.25,
    "presence_penalty": 1,
    "frequency_penalty": 2,
    "metadata": {"a": "b"},
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "user": "u",
    "truncation": "auto",
    "text": {
        "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}},
        "verbosity": "low",
    },
    "reasoning": {"effort": "low"},
    "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "g"}],
    "tool_choice": "none",
    "service_tier": "priority",
}
SHOWN = {
    "id": RESPONSE_ID,
    "object": "response",
    "created_at": 5,
    "status": "completed",
    "completed_at": 9,
    "error": None,
    "incomplete_details": None,
    "usage": {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 5,
    },
    "model": "m",
    "background": False,
    "store": True,
    "instructions": "Be brief.",
    "previous_response_id": RESPONSE_ID,
    "max_output_tokens": 7,
    "max_tool_calls": 2,
    "parallel_tool_calls": True,
    "temperature": 0.5,
    "top_p": 0.25,
    "presence_penalty": 1.0,
    "frequency_penalty": 2.0,
    "top_logprobs": 0,
    "tool_choice": "none",
    "tools": [
        {"type": "function", "name": "f", "description": None, "parameters": None, "strict": None},
        {"type": "custom", "name": "g"},
    ],
    "text": {
        "format": {
            "type": "json_schema",
            "name": "n",
            "description": None,
            "strict": False,
            "schema": {"type": "object"},
        },
        "verbosity": "low",
    },
    "reasoning": {"effort": "low", "summary": None},
    "truncation": "auto",
    "service_tier": "default",
    "metadata": {"a": "b"},
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "user": "u",
}


def test_the_object_says_what_was_asked_and_what_came_of_it() -> None:
    body = decoded(told_whole(whole(text("Hi")), ask_of(**ASKED)))[-1]["response"]
    (message,) = body.pop("output")
    assert message == {
        "id": message["id"],
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}],
    }
    assert message["id"].startswith("msg_0198c0ffee00" + THREAD)
    assert body == SHOWN


def test_what_was_not_asked_for_is_shown_as_what_it_amounts_to() -> None:
    body = decoded(told_whole(whole()))[-1]["response"]
    numbers = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs")
    assert [body[name] for name in numbers] == [1.0, 1.0, 0.0, 0.0, 0]
    assert body["text"] == {"format": {"type": "text"}, "verbosity": "medium"}
    assert body["tool_choice"] == "auto"
    assert "conversation" not in body
    linked = decoded(told_whole(whole(), ask_of(conversation="conv_1")))[0]["response"]
    assert linked["conversation"] == {"id": "conv_1"}
