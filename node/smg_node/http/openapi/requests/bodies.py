"""Request bodies in `/openapi.json`: one schema for each reader, with a key for each row of its table.

A key of a table without a schema, or a schema without a key, is an error here: the document cannot
be made. What depends on several keys stands below as conditions.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from smg_node.dialects.chat import reader as chat
from smg_node.dialects.completions import reader as completions
from smg_node.dialects.embeddings import reader as embeddings
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.parse import reader as parse
from smg_node.dialects.responses.request import reader as responses
from smg_node.dialects.tokenize import reader as tokenize
from smg_node.http.openapi.requests.makers import (
    FLAG,
    NULL,
    TOKEN_ID,
    TOKEN_IDS,
    Schema,
    array,
    either,
    integer,
    only,
    text,
    told,
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
    conditions: Sequence[Schema] = (),
) -> dict[str, Any]:
    """Return the schema of bodies that this table's reader takes."""
    assert set(table) <= set(schemas), sorted(set(table) - set(schemas))
    found: dict[str, Any] = {
        "type": "object",
        "properties": {key: schemas[key] for key in table},
        "required": list(required),
    }
    if conditions:
        found["allOf"] = list(conditions)
    return found


def _names(known: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names of parsers, and those they have elsewhere."""
    return sorted({*known, *(label for labels in known.values() for label in labels)})


def _absent(key: str) -> Schema:
    """Return the schema of objects without this key, or with null."""
    return {"properties": {key: NULL}}


def _at_most_one(keys: Sequence[str]) -> Iterator[Schema]:
    """Yield the conditions under which no two of these keys are given."""
    for at, key in enumerate(keys[:-1]):
        others = {"properties": dict.fromkeys(keys[at + 1 :], NULL)}
        yield either(_absent(key), others)


def _needs(key: str, other: str, schema: Schema) -> Schema:
    """Return the condition that `key` goes with `other` of that schema."""
    return either(_absent(key), {"required": [other], "properties": {other: schema}})


_GRAMMARS: Final = tuple(
    key
    for key in CONSTRAINT_SCHEMAS
    if key not in ("guided_decoding_backend", "guided_whitespace_pattern")
)
_TRUE: Final[Schema] = {"const": True}
_STREAMED: Final = _needs("stream_options", "stream", _TRUE)
_UNSTREAMED: Final = either(
    _absent("prompt_logprobs"), {"properties": {"stream": {"enum": [False, None]}}}
)
_SOME: Final[Schema] = {"type": "array", "minItems": 1}

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
            "top_logprobs": told(integer(0, 20), "Only with `logprobs`."),
            "modalities": {"enum": [["text"], None]},
            "audio": only(why="Engines answer in text."),
            "echo": only(False, why="Not in Chat Completions."),
            "separate_reasoning": FLAG,
            "include_reasoning": FLAG,
            "stream_reasoning": FLAG,
        },
        ("model", "messages"),
        (
            *_at_most_one(_GRAMMARS),
            *_at_most_one(("tools", "functions")),
            _STREAMED,
            _UNSTREAMED,
            _needs("top_logprobs", "logprobs", _TRUE),
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
            "suffix": only("", why="No model here is known to fill in the middle."),
        },
        ("model", "prompt"),
        (*_at_most_one(_GRAMMARS), _STREAMED, _UNSTREAMED),
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
            "dimensions": told(integer(1), "Only where the model's workers shorten vectors."),
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
            either(
                {"required": ["prompt"], "properties": {"prompt": {"not": NULL}, "messages": NULL}},
                {
                    "required": ["messages"],
                    "properties": {"messages": {"not": NULL}, "prompt": NULL},
                },
            ),
            *_at_most_one(("tools", "functions")),
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
        responses.PARAMETERS, {**_ENGINE, **VARIABLE_SCHEMAS, **RESPONSE_SCHEMAS}, ("model",)
    ),
}
