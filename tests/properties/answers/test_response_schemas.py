"""Whatever was asked and whatever was said: both public schemas have nothing against object and events."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import Event
from smg_node.dialects.responses.events.stored_replay import replayed
from smg_node.dialects.responses.request.output_parameters import LOGPROBS
from support.answers.grammatical_streams import streams
from support.answers.responses import ask_of, teller_of, told_whole
from support.clients.open_responses_schema import wrong_with
from support.clients.sdk_validation import opinion_of_response
from support.clients.stream_judge import wrong_with_stream
from support.tools.example_counts import example_count

SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}
FORMATS: list[Any] = [
    None,
    {"type": "text"},
    {"type": "json_object"},
    *(
        {"type": "json_schema", "name": "n", "schema": SCHEMA, **more}
        for more in (
            {},
            {"strict": None, "description": None},
            {"strict": True, "description": "d"},
        )
    ),
]
TOOLS: list[Any] = [
    {"type": "function", "name": "f"},
    {"type": "function", "name": "f", "description": None, "parameters": None, "strict": None},
    {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": True},
]
LEGAL: dict[str, list[Any]] = {
    "instructions": [None, "", "x"],
    "temperature": [None, 0, 1, 0.5],
    "top_p": [None, 1, 0.25],
    "presence_penalty": [None, -1, 0.5],
    "frequency_penalty": [None, 2, 0.0],
    "max_output_tokens": [None, 1, 2**40],
    "max_tool_calls": [None, 1],
    "parallel_tool_calls": [None, True],
    "store": [None, True, False],
    "background": [None, False],
    "truncation": [None, "auto", "disabled"],
    "metadata": [None, {}, {"a": "b", "é": ""}],
    "service_tier": [None, "auto", "default", "flex", "priority"],
    "safety_identifier": [None, "p"],
    "prompt_cache_key": [None, "k"],
    "user": [None, "u"],
    "tool_choice": [None, "auto", "none"],
    "include": [None, [], ["reasoning.encrypted_content"]],
    "reasoning": [None, {}, {"effort": None}, {"effort": "low", "summary": "auto"}, {"context": "auto"}],
    "text": [None, {}, {"verbosity": None}, {"verbosity": "high"}, *({"format": it} for it in FORMATS)],
    "tools": [None, [], *([tool] for tool in TOOLS)],
    "previous_response_id": [None],
    "conversation": [None],
    "stream": [None, True, False],
}  # fmt: skip
asks = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in LEGAL.items()}
)


@settings(max_examples=example_count(200), deadline=None)
@given(asks)
def test_what_is_repeated_of_any_request_is_right(parameters: dict[str, Any]) -> None:
    teller = teller_of(ask_of(**parameters))
    for moment in (teller.queue(), teller.begin()):
        assert moment
        body = teller.response()
        assert opinion_of_response(body) == []
        assert wrong_with("Response", json.loads(body)) == []


@settings(max_examples=60, deadline=None)
@given(
    st.booleans().flatmap(
        lambda failing: streams(kinds=("text", "reasoning", "call"), logprobs=True, failing=failing)
    ),
    st.booleans(),
    st.sampled_from(["sdk", "open"]),
)
def test_a_stream_of_any_shape_is_right(
    events: list[Event], wants_logprobs: bool, names: Any
) -> None:
    ask = ask_of(include=[LOGPROBS]) if wants_logprobs else ask_of()
    told = told_whole(events, ask, reasoning_events=names)
    assert wrong(told, names) == []
    document = json.dumps(json.loads(told[-1].data)["response"]).encode()
    assert wrong(replayed(document, reasoning_events=names), names) == []


def wrong(told: Any, names: str) -> list[str]:
    frames = (*(one.data for one in told), b"[DONE]")
    return list(wrong_with_stream(frames, open_names=names == "open"))
