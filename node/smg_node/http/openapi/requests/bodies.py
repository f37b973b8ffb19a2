"""Request bodies in `/openapi.json`: one schema for each reader, with a key for each row of its table.

A key of a table without a schema, or a schema without a key, is an error here: the document cannot
be made. What depends on several keys is said as the combinations that are refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from smg_node.dialects.chat import reader as chat
from smg_node.dialects.completions import reader as completions
from smg_node.dialects.embeddings import reader as embeddings
from smg_node.dialects.messages.request import reader as messages
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.parse import reader as parse
from smg_node.dialects.responses.request import reader as responses
from smg_node.dialects.responses.request.output_parameters import LOGPROBS
from smg_node.dialects.tokenize import reader as tokenize
from smg_node.http.openapi.requests.anthropic import ANTHROPIC_SCHEMAS
from smg_node.http.openapi.requests.makers import (
    FLAG,
    NULL,
    TOKEN_ID,
    TOKEN_IDS,
    Schema,
    array,
    described,
    either,
    integer,
    keyed,
    only,
    text,
    word,
)
from smg_node.http.openapi.requests.messages import (
    MESSAGE,
    TEMPLATE_SCHEMAS,
    TOOL_SCHEMAS,
    VARIABLE_SCHEMAS,
)
from smg_node.http.openapi.requests.responses import RESPONSE_SCHEMAS
from smg_node.http.openapi.requests.sampling import (
    CONSTRAINT_SCHEMAS,
    EXTRA_SCHEMAS,
    JSON_SCHEMA,
    SAMPLING_SCHEMAS,
    STREAM_SCHEMAS,
)
from smg_node.parsers.selection.parser_labels import reasoning_names, tool_names

_LIMITS: Final = ReaderOptions()
_ENGINE: Final[Mapping[str, Schema]] = {
    **SAMPLING_SCHEMAS,
    **CONSTRAINT_SCHEMAS,
    **STREAM_SCHEMAS,
    **EXTRA_SCHEMAS,
}
_MODEL: Final = EXTRA_SCHEMAS["model"]
_REQUIRED_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final = array(_REQUIRED_TEXT, 1, _LIMITS.choices_max, required=True)
_PROMPT: Final = either(
    _REQUIRED_TEXT,
    _TEXTS,
    TOKEN_IDS,
    array(TOKEN_IDS, 1, _LIMITS.choices_max, required=True),
)


def _body(
    table: Mapping[str, Any],
    schemas: Mapping[str, Schema],
    required: Sequence[str],
    forbidden: Sequence[Schema] = (),
) -> dict[str, Any]:
    """Return the schema of bodies that this table's reader takes."""
    assert set(table) <= set(schemas), sorted(set(table) - set(schemas))
    found: dict[str, Any] = {
        "type": "object",
        "properties": {key: schemas[key] for key in table},
        # Where two workers of a request meet is decided here.
        "patternProperties": {"^bootstrap_": NULL},
        "required": list(required),
    }
    if forbidden:
        found["not"] = {"anyOf": list(forbidden)}
    return found


def _both(**values: Schema) -> Schema:
    """Return the schema of objects with all of these values."""
    return {"required": list(values), "properties": values}


def _unmet(choice: str, wanted: Schema, tools: str, declared: Schema) -> Schema:
    """Return the schema of objects with such a choice, but without such a declaration of tools."""
    return {**_both(**{choice: wanted}), "not": _both(**{tools: declared})}


def _names(known: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names of parsers, and those they have elsewhere."""
    return sorted({*known, *(label for labels in known.values() for label in labels)})


def _given(key: str) -> Schema:
    """Return the schema of objects with this key, not null."""
    return {"required": [key], "properties": {key: {"not": NULL}}}


def _two_of(keys: Sequence[str]) -> Iterator[Schema]:
    """Yield the schemas of objects with two of these keys."""
    for at, key in enumerate(keys[:-1]):
        yield {**_given(key), "anyOf": [_given(other) for other in keys[at + 1 :]]}


def _without(key: str, other: str, schema: Schema) -> Schema:
    """Return the schema of objects with `key`, but not with `other` of that schema."""
    return {**_given(key), "not": {"required": [other], "properties": {other: schema}}}


_GRAMMARS: Final = tuple(
    key
    for key in CONSTRAINT_SCHEMAS
    if key not in ("guided_decoding_backend", "guided_whitespace_pattern")
)
_TRUE: Final[Schema] = {"const": True}
_FALSE: Final[Schema] = {"const": False}
_ONE_OR_MORE: Final[Schema] = {"type": "integer", "minimum": 1}
_SOME: Final[Schema] = {"type": "array", "minItems": 1}
_ANY_LIST: Final[Schema] = {"type": "array"}
# Two names of one parameter agree, and what depends on others is of use with them only.
_CONTRADICTIONS: Final[Sequence[Schema]] = (
    _both(no_stop_trim=_TRUE, include_stop_str_in_output=_FALSE),
    _both(no_stop_trim=_FALSE, include_stop_str_in_output=_TRUE),
    *_two_of(("lora_path", "lora_id")),
    _both(best_of={"const": 1}, n={"type": "integer", "minimum": 2}),
    _both(stream=_TRUE, prompt_logprobs={"not": NULL}),
    _without("stream_options", "stream", _TRUE),
)
_BEGUN: Final = {
    "required": ["role", "content"],
    "properties": {
        "role": {"const": "assistant"},
        "content": {"type": "string", "minLength": 1},
    },
}
_UNCONTINUED: Final[Sequence[Schema]] = (
    _both(continue_final_message=_TRUE, add_generation_prompt=_TRUE),
    _unmet("continue_final_message", _TRUE, "messages", {"type": "array", "contains": _BEGUN}),
)
_UNMET_CHOICES: Final[Sequence[Schema]] = (
    *_two_of(("tools", "functions")),
    _unmet("tool_choice", {"not": {"enum": ["none", "auto", None]}}, "tools", _SOME),
    _unmet("tool_choice", {"const": "auto"}, "tools", _ANY_LIST),
    _unmet("function_call", {"not": {"enum": ["none", "auto", None]}}, "functions", _SOME),
    _unmet("function_call", {"const": "auto"}, "functions", _ANY_LIST),
    *_UNCONTINUED,
    _both(include_reasoning=_FALSE, logprobs=_TRUE),
    _both(include_reasoning=_FALSE, return_token_ids=_TRUE),
)
_FORMATTED_TEXT: Final[Mapping[str, Any]] = {
    "required": ["text"],
    "properties": {
        "text": {
            "type": "object",
            "required": ["format"],
            "properties": {
                "format": {"properties": {"type": {"enum": ["json_object", "json_schema"]}}}
            },
        }
    },
}
_MESSAGES_API: Final = {**_ENGINE, **VARIABLE_SCHEMAS, **ANTHROPIC_SCHEMAS}
_MESSAGES_API_CONTRADICTIONS: Final = (
    *_two_of([key for key in _GRAMMARS if key in messages.PARAMETERS]),
    *_CONTRADICTIONS,
    _unmet("tool_choice", keyed(("type",), type={"enum": ["any", "tool"]}), "tools", _SOME),
    _both(thread={"not": NULL}),
)
_SOMETHING: Final = either(text(1, required=True), {"type": "array", "minItems": 1})

BODY_SCHEMAS: Final[Mapping[str, Schema]] = {
    "Message": MESSAGE,
    "JsonSchema": JSON_SCHEMA,
    "ChatRequest": _body(
        chat.PARAMETERS,
        {
            **_ENGINE,
            **TEMPLATE_SCHEMAS,
            **TOOL_SCHEMAS,
            "logprobs": FLAG,
            "top_logprobs": described(integer(0, 20), "Only with `logprobs`."),
            "modalities": {"enum": [["text"], None]},
            "audio": only(why="Engines answer in text."),
            "echo": only(False, why="Not in Chat Completions."),
            "separate_reasoning": FLAG,
            "include_reasoning": FLAG,
            "stream_reasoning": FLAG,
        },
        ("model", "messages"),
        (
            *_two_of(_GRAMMARS),
            *_CONTRADICTIONS,
            *_UNMET_CHOICES,
            {**_both(top_logprobs=_ONE_OR_MORE), "not": _both(logprobs=_TRUE)},
        ),
    ),
    "CompletionRequest": _body(
        completions.PARAMETERS,
        {
            **_ENGINE,
            "prompt": _PROMPT,
            "add_special_tokens": FLAG,
            "echo": FLAG,
            "logprobs": integer(0, 5),
            "max_tokens": described(integer(0), "0: only the prompt, with `echo`."),
            "suffix": only("", why="No model here is known to fill in the middle."),
        },
        ("model", "prompt"),
        (*_two_of(_GRAMMARS), *_CONTRADICTIONS),
    ),
    "MessagesRequest": _body(
        messages.PARAMETERS,
        _MESSAGES_API,
        ("model", "max_tokens", "messages"),
        _MESSAGES_API_CONTRADICTIONS,
    ),
    "CountTokensRequest": _body(
        messages.PARAMETERS, _MESSAGES_API, ("model", "messages"), _MESSAGES_API_CONTRADICTIONS
    ),
    "EmbeddingsRequest": _body(
        embeddings.PARAMETERS,
        {
            "model": _MODEL,
            "input": either(
                _REQUIRED_TEXT,
                array(_REQUIRED_TEXT, 1, embeddings.INPUTS_MAX, required=True),
                TOKEN_IDS,
                array(TOKEN_IDS, 1, embeddings.INPUTS_MAX, required=True),
            ),
            "encoding_format": word("float", "base64"),
            "dimensions": described(integer(1), "Only where the model's workers shorten vectors."),
            "user": text(),
        },
        ("model", "input"),
    ),
    "TokenizeRequest": _body(
        tokenize.TOKENIZE,
        {
            **TEMPLATE_SCHEMAS,
            **TOOL_SCHEMAS,
            "model": _MODEL,
            "prompt": either(_REQUIRED_TEXT, _TEXTS, NULL),
            "messages": either(TEMPLATE_SCHEMAS["messages"], NULL),
        },
        ("model",),
        (
            *_two_of(("prompt", "messages")),
            {"not": {"anyOf": [_given("prompt"), _given("messages")]}},
            *_UNCONTINUED,
            *_two_of(("tools", "functions")),
        ),
    ),
    "DetokenizeRequest": _body(
        tokenize.DETOKENIZE,
        {
            "model": _MODEL,
            "tokens": either(
                array(TOKEN_ID, required=True),
                array(TOKEN_IDS, 1, _LIMITS.choices_max, required=True),
            ),
            "skip_special_tokens": FLAG,
        },
        ("model", "tokens"),
    ),
    "ParseCallsRequest": _body(
        parse.CALLS,
        {
            "text": _REQUIRED_TEXT,
            "tool_call_parser": {"enum": _names(tool_names())},
            "prompt": text(),
            "tools": TOOL_SCHEMAS["tools"],
        },
        ("text", "tool_call_parser"),
    ),
    "ParseReasoningRequest": _body(
        parse.REASONING,
        {
            "text": _REQUIRED_TEXT,
            "reasoning_parser": {"enum": _names(reasoning_names())},
            "prompt": text(),
        },
        ("text", "reasoning_parser"),
    ),
    "ResponseRequest": _body(
        responses.PARAMETERS,
        {**_ENGINE, **VARIABLE_SCHEMAS, **RESPONSE_SCHEMAS},
        ("model",),
        (
            *_two_of([key for key in _GRAMMARS if key in responses.PARAMETERS]),
            {
                **_FORMATTED_TEXT,
                "anyOf": [_given(key) for key in _GRAMMARS if key in responses.PARAMETERS],
            },
            *_two_of(("previous_response_id", "conversation")),
            *_CONTRADICTIONS,
            _unmet("tool_choice", {"not": {"enum": ["none", "auto", None]}}, "tools", _SOME),
            {
                "required": ["background", "store"],
                "properties": {"background": _TRUE, "store": {"const": False}},
            },
            {
                **_both(top_logprobs=_ONE_OR_MORE),
                "not": _both(include={"type": "array", "contains": {"const": LOGPROBS}}),
            },
            {
                "not": {
                    "anyOf": [
                        _given("previous_response_id"),
                        _given("conversation"),
                        {"required": ["input"], "properties": {"input": _SOMETHING}},
                    ]
                }
            },
        ),
    ),
}
