"""The document promises of each body what its reader takes, and no more: value by value."""

import copy
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest

from smg_node.core.errors import SmgError
from smg_node.dialects.chat.reader import ChatReader
from smg_node.dialects.completions.reader import CompletionsReader
from smg_node.dialects.embeddings.reader import read_embeddings
from smg_node.dialects.messages.request.reader import MessagesReader
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.parse.reader import read_parse_calls, read_parse_reasoning
from smg_node.dialects.responses.request.reader import ResponsesReader
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals
from smg_node.dialects.tokenize.reader import read_detokenize, read_tokenize
from smg_node.http.openapi.document import document
from smg_node.http.route_table import ROUTES
from support.answers.gemini_bodies import HI as CONTENT
from support.answers.gemini_bodies import parsed as read_contents

OPTIONS = ReaderOptions()
DOCUMENT = document(ROUTES, version="1")
SCHEMAS = DOCUMENT["components"]["schemas"]
TOOL = {"type": "function", "function": {"name": "f"}}
HI = {"role": "user", "content": "hi"}
Read = Callable[[dict[str, Any]], Any]

BODIES: dict[str, tuple[Read, dict[str, Any]]] = {
    "ChatRequest": (ChatReader(OPTIONS).read, {"model": "m", "messages": [HI]}),
    "CompletionRequest": (CompletionsReader(OPTIONS).read, {"model": "m", "prompt": "hi"}),
    "EmbeddingsRequest": (
        lambda body: read_embeddings(body, OPTIONS),
        {"model": "m", "input": "hi"},
    ),
    "TokenizeRequest": (lambda body: read_tokenize(body, OPTIONS), {"model": "m", "prompt": "hi"}),
    "DetokenizeRequest": (
        lambda body: read_detokenize(body, OPTIONS),
        {"model": "m", "tokens": [1]},
    ),
    "ParseCallsRequest": (
        lambda body: read_parse_calls(body, OPTIONS),
        {"text": "x", "tool_call_parser": "hermes"},
    ),
    "ParseReasoningRequest": (
        lambda body: read_parse_reasoning(body, OPTIONS),
        {"text": "x", "reasoning_parser": "qwen3"},
    ),
    "MessagesRequest": (
        MessagesReader(OPTIONS, ThoughtSeals(PlainVault())).read,
        {"model": "m", "max_tokens": 2**31 - 1, "messages": [HI]},
    ),
    "CountTokensRequest": (
        MessagesReader(OPTIONS, ThoughtSeals(PlainVault())).read_count,
        {"model": "m", "messages": [HI]},
    ),
    "ResponseRequest": (ResponsesReader(OPTIONS).read, {"model": "m", "input": "hi"}),
    "GenerateContentRequest": (read_contents, {"contents": [CONTENT]}),
}
PROBES: list[Any] = [
    *(None, True, False),
    *(0, 1, -1, -2, -3, 2, 5, 6, 16, 17, 20, 21, 1_023, 1_024, 2**31 - 1, 2**31, -(2**31), 2**63, -(2**63) - 1),
    *(0.0, 1.0, 0.5, 1.5, 2.0, 2.5, -2.5, 10.0, 100.5),
    *("", "x", "auto", "text", "high", "none", "disabled", "float", "x" * 65, "x" * 129, "x" * 257, "x" * 513),
    *([], [1], [-1], [1.5], [2.0], [[1]], [[]], ["x"], [""], ["text"], [{}], [{"a": 1}], [None], ["x"] * 17, ["x", 1]),
    *({}, {"a": 1}, {"a": "b"}, {"1": 5}, {"1": 500}, {"x": 1}, {"type": "text"}, {"id": "x"}, {"id": ""}),
    *({"type": "enabled"}, {"type": "enabled", "budget_tokens": 1_023}, {"effort": "low"}, {"effort": "x"}),
    *({"type": "json_object"}, {"type": "json_object", "schema": {"type": "object"}}, {"type": "json_schema"}),
    *([TOOL], [TOOL, TOOL], [{"type": "function"}], [{"name": "f"}], [{"name": "a b"}], [{"type": "function", "name": "f"}]),
    *([HI], [{"role": "x"}], [{"role": "user"}], [{"role": "assistant", "content": None}]),
    *({"type": "function", "function": {"name": "f"}}, {"name": "f"}, {"type": "function", "name": "f"}),
]  # fmt: skip
# Parameters whose checks no schema can hold: contents of strings, names of other parameters' values, or what
# the reader leaves to the route.
SEMANTIC: dict[str, frozenset[str]] = {
    "ChatRequest": frozenset(
        {
            *("json_schema", "guided_json", "structural_tag", "structured_outputs"),
            *("ebnf", "grammar", "guided_grammar", "regex", "guided_regex"),
            *("stop", "continue_final_message", "tool_choice", "function_call", "best_of"),
        }
    ),
    # Whether vectors can be shortened is the model's and its workers' to say.
    "EmbeddingsRequest": frozenset({"dimensions"}),
    "ParseCallsRequest": frozenset({"tool_call_parser"}),
    "ParseReasoningRequest": frozenset({"reasoning_parser"}),
}
SEMANTIC["CompletionRequest"] = SEMANTIC["ChatRequest"]
SEMANTIC["ResponseRequest"] = SEMANTIC["ChatRequest"] | {"conversation", "text", "tools"}
SEMANTIC["MessagesRequest"] = SEMANTIC["ChatRequest"] - {"tool_choice"}
SEMANTIC["CountTokensRequest"] = SEMANTIC["MessagesRequest"] | {"max_tokens"}
SEMANTIC["TokenizeRequest"] = SEMANTIC["ChatRequest"]


def validator(name: str) -> Any:
    schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": SCHEMAS}}
    return jsonschema_rs.validator_for(schema, validate_formats=False)


def takes(read: Read, body: dict[str, Any]) -> bool:
    try:
        read(copy.deepcopy(body))
    except SmgError as error:
        return error.status != 400
    return True


@pytest.mark.parametrize("name", sorted(BODIES))
def test_a_value_is_promised_exactly_if_it_is_taken(name: str) -> None:
    read, base = BODIES[name]
    promised = validator(name)
    different = []
    for key in SCHEMAS[name]["properties"]:
        if key in SEMANTIC.get(name, frozenset()):
            continue
        for value in PROBES:
            body = {**base, key: value}
            if takes(read, body) != promised.is_valid(body):
                different.append((key, value, takes(read, body)))
    assert different == []


@pytest.mark.parametrize("name", sorted(BODIES))
def test_what_must_be_there_is_said_to_be_required(name: str) -> None:
    read, base = BODIES[name]
    promised = validator(name)
    assert takes(read, base)
    assert promised.is_valid(base)
    for key in base:
        for body in ({k: v for k, v in base.items() if k != key}, {**base, key: None}):
            assert not takes(read, body)
            assert not promised.is_valid(body)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("ChatRequest", {"regex": "x", "ebnf": "x"}),
        ("ChatRequest", {"guided_regex": "x", "response_format": {"type": "json_object"}}),
        ("ChatRequest", {"tools": [TOOL], "functions": [{"name": "f"}]}),
        ("ChatRequest", {"stream_options": {}}),
        ("ChatRequest", {"stream": False, "stream_options": {"include_usage": True}}),
        ("ChatRequest", {"top_logprobs": 2}),
        ("ChatRequest", {"stream": True, "prompt_logprobs": 1}),
        ("ChatRequest", {"no_stop_trim": True, "include_stop_str_in_output": False}),
        ("ChatRequest", {"tool_choice": "required"}),
        ("ChatRequest", {"tool_choice": "auto"}),
        ("ChatRequest", {"tool_choice": "required", "tools": []}),
        ("ChatRequest", {"include_reasoning": False, "logprobs": True}),
        ("ChatRequest", {"bootstrap_room": 1}),
        ("CompletionRequest", {"regex": "x", "choice": ["a"]}),
        ("CompletionRequest", {"best_of": 1, "n": 2}),
        ("TokenizeRequest", {"messages": [HI]}),
        ("ResponseRequest", {"previous_response_id": "resp_1", "conversation": "conv_1"}),
        ("ResponseRequest", {"background": True, "store": False}),
        ("ResponseRequest", {"top_logprobs": 2}),
        ("ResponseRequest", {"text": {"format": {"type": "json_object"}}, "regex": "x"}),
        ("ResponseRequest", {"tool_choice": "required"}),
        ("ResponseRequest", {"input": []}),
    ],
)
def test_what_cannot_go_together_is_not_promised(name: str, more: dict[str, Any]) -> None:
    read, base = BODIES[name]
    body = {**base, **more}
    assert not takes(read, body)
    assert not validator(name).is_valid(body)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("ChatRequest", {"regex": None, "ebnf": "x"}),
        ("ChatRequest", {"stream": True, "stream_options": {"include_usage": True}}),
        ("ChatRequest", {"tools": [], "tool_choice": "auto"}),
        ("ChatRequest", {"functions": [], "function_call": "auto"}),
        ("ChatRequest", {"tool_choice": "none"}),
        ("ChatRequest", {"logprobs": True, "top_logprobs": 20}),
        ("ChatRequest", {"max_tokens": 10.0, "n": 2.0, "seed": -1.0}),
        (
            "ChatRequest",
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"type": "object"}},
                }
            },
        ),
        ("ChatRequest", {"messages": [HI, {"role": "assistant", "content": "so", "prefix": True}]}),
        ("CompletionRequest", {"prompt": [1.0, 2.0]}),
        ("CompletionRequest", {"min_tokens": 100}),
        ("ChatRequest", {"min_tokens": 100, "max_completion_tokens": 500, "max_tokens": 5}),
        ("ResponseRequest", {"include": ["message.output_text.logprobs"], "top_logprobs": 2}),
        ("ResponseRequest", {"text": {"verbosity": "low"}, "regex": "x"}),
        ("ResponseRequest", {"previous_response_id": "resp_1", "input": []}),
    ],
)
def test_what_goes_together_is_promised(name: str, more: dict[str, Any]) -> None:
    read, base = BODIES[name]
    body = {**base, **more}
    assert takes(read, body)
    assert validator(name).is_valid(body)
