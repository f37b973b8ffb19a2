"""The public object: what it repeats of the request, and what it says of the answer."""

from collections.abc import Sequence
from typing import Any

from smg_node.core.generation.events import Begin
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from support.answers.generations import text, whole
from support.answers.responses import (
    RESPONSE_ID,
    THREAD,
    ask_of,
    decoded,
    teller_of,
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


def numbers_of(told: Sequence[NumberedEvent]) -> list[tuple[float, float]]:
    shown = [row["response"] for row in decoded(told) if "response" in row]
    return [(body["temperature"], body["top_p"]) for body in shown]


def test_what_a_models_makers_recommend_is_shown_where_the_client_says_nothing() -> None:
    begin = Begin("1", "m", 1, 3, temperature=0.6, top_p=0.95)
    cases: list[tuple[dict[str, Any], tuple[float, float]]] = [
        ({}, (0.6, 0.95)),
        ({"temperature": 0}, (0.0, 0.95)),
        ({"top_p": 0.5}, (0.6, 0.5)),
        ({"temperature": None, "top_p": None}, (0.6, 0.95)),
    ]
    for asked, shown in cases:
        teller = teller_of(ask_of(**asked))
        teller.drawn_with(begin)
        assert numbers_of(teller.begin()) == [shown, shown]


def test_a_response_that_waits_shows_what_its_model_says_from_when_it_begins() -> None:
    teller = teller_of()
    waiting = numbers_of(teller.queue())
    teller.drawn_with(Begin("1", "m", 1, 3, temperature=0.6))
    assert waiting == [(1.0, 1.0)] * 2
    assert numbers_of(teller.begin()) == [(0.6, 1.0)]


def test_what_was_not_asked_for_is_shown_as_what_it_amounts_to() -> None:
    body = decoded(told_whole(whole()))[-1]["response"]
    numbers = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs")
    assert [body[name] for name in numbers] == [1.0, 1.0, 0.0, 0.0, 0]
    assert body["text"] == {"format": {"type": "text"}, "verbosity": "medium"}
    assert body["tool_choice"] == "auto"
    assert "conversation" not in body
    linked = decoded(told_whole(whole(), ask_of(conversation="conv_1")))[0]["response"]
    assert linked["conversation"] == {"id": "conv_1"}
