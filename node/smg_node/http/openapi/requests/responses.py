"""Responses parameters and input items in `/openapi.json`; items by the table of their types."""

from collections.abc import Mapping
from typing import Any, Final, get_args

from smg_node.core.generation.request import DETAILS, Effort
from smg_node.dialects.openai.functions import NAME_PATTERN
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.items.item_types import (
    ADDITIONAL_TOOLS,
    ITEM_REFERENCE,
    KINDS,
    ItemKind,
)
from smg_node.dialects.responses.request.input_items import LENGTHS, PHASES, STATUSES
from smg_node.dialects.responses.request.output_parameters import INCLUDABLE
from smg_node.http.openapi.requests.makers import (
    FLAG,
    NULL,
    OBJECT,
    TEXT,
    Schema,
    array,
    described,
    either,
    integer,
    keyed,
    only,
    optional,
    text,
    word,
)
from smg_node.http.openapi.requests.messages import AUDIO_PART, HOSTED_TOOL, REFUSAL_PART

_LIMITS: Final = ReaderOptions()
ID_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$"
_JSON_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    list: "array",
    dict: "object",
    bool: "boolean",
}
_NO_FILES: Final = only(why="This gateway stores no files.")

_INPUT_TEXT: Final = keyed(("type", "text"), type={"const": "input_text"}, text={"type": "string"})
_INPUT_IMAGE: Final = keyed(
    ("type", "image_url"),
    type={"const": "input_image"},
    image_url=text(1, required=True),
    detail=word(*DETAILS),
    file_id=_NO_FILES,
)
_INPUT_FILE: Final = keyed(
    ("type", "file_data"),
    type={"const": "input_file"},
    file_data=text(1, required=True),
    filename=text(0, 256),
    file_url=NULL,
    file_id=_NO_FILES,
)
_LINKED_FILE: Final = keyed(
    ("type", "file_url"),
    type={"const": "input_file"},
    file_url=text(1, required=True),
    filename=text(0, 256),
    file_id=_NO_FILES,
)
_OUTPUT_TEXT: Final = keyed(
    ("type", "text"),
    type={"const": "output_text"},
    text={"type": "string"},
    annotations={"type": ["array", "null"]},
    logprobs={"type": ["array", "null"]},
)
_STATUS: Final = word(*STATUSES)
_MESSAGE_KEYS: Final[Mapping[str, Schema]] = {
    "type": {"enum": ["message", None]},
    "id": TEXT,
    "status": _STATUS,
    "phase": word(*PHASES),
}
_GIVEN: Final = keyed(
    ("role", "content"),
    **_MESSAGE_KEYS,
    role={"enum": ["user", "system", "developer"]},
    content=either(
        {"type": "string"},
        array(
            either(_INPUT_TEXT, _INPUT_IMAGE, _INPUT_FILE, _LINKED_FILE, AUDIO_PART),
            1,
            required=True,
        ),
    ),
)
_SAID: Final = keyed(
    ("role", "content"),
    **_MESSAGE_KEYS,
    role={"const": "assistant"},
    content=either({"type": "string"}, array(either(_OUTPUT_TEXT, REFUSAL_PART), required=True)),
)
_OUTPUT: Final = either(
    {"type": "string"},
    array(either(_INPUT_TEXT, _INPUT_IMAGE, _INPUT_FILE, _LINKED_FILE), required=True),
)

_FUNCTION: Final = keyed(
    ("type", "name"),
    type={"const": "function"},
    name={"type": "string", "pattern": NAME_PATTERN},
    description=TEXT,
    parameters=described(OBJECT, "A JSON Schema."),
    strict=FLAG,
)
_CUSTOM: Final = keyed(
    ("type", "name"),
    type={"const": "custom"},
    name={"type": "string", "pattern": NAME_PATTERN},
    description=TEXT,
    format=optional(
        either(
            keyed(("type",), type={"const": "text"}),
            keyed(
                ("type", "syntax", "definition"),
                type={"const": "grammar"},
                syntax={"enum": ["lark", "regex"]},
                definition=text(1, required=True),
            ),
        )
    ),
)
_NAMESPACE: Final = keyed(
    ("type", "name", "tools"),
    type={"const": "namespace"},
    name=text(1, 128, required=True),
    description=TEXT,
    tools=array(either(_FUNCTION, _CUSTOM, HOSTED_TOOL), required=True),
)
_TOOLS: Final[Schema] = {
    **described(
        array(either(_FUNCTION, _CUSTOM, _NAMESPACE, HOSTED_TOOL)),
        f"At most {_LIMITS.tools_max}; no two have one name.",
    ),
    "uniqueItems": True,
}


def _thoughts(kind: str) -> Schema:
    return array(keyed(("type", "text"), type={"const": kind}, text={"type": "string"}))


_DEEPER: Final[Mapping[str, Mapping[str, Schema]]] = {
    "function_call": {"status": _STATUS},
    "function_call_output": {"status": _STATUS, "output": _OUTPUT},
    "custom_tool_call": {"status": _STATUS},
    "custom_tool_call_output": {"status": _STATUS, "output": _OUTPUT},
    "reasoning": {
        "status": _STATUS,
        "summary": _thoughts("summary_text"),
        "content": _thoughts("reasoning_text"),
        "encrypted_content": TEXT,
    },
    ADDITIONAL_TOOLS: {"tools": {**_TOOLS, "type": "array"}},
    ITEM_REFERENCE: {"id": {"type": "string", "pattern": ID_PATTERN}},
}
"""What readers check of an item beyond the table of types."""


def _item(name: str, kind: ItemKind) -> Schema:
    keys: dict[str, Schema] = {"type": {"const": name}, "id": TEXT, "status": TEXT}
    for key, wanted in kind.required.items():
        low, high = (1, LENGTHS[key]) if key in LENGTHS else (0, None)
        keys[key] = (
            text(low, high, required=True) if wanted is str else {"type": _JSON_TYPES[wanted]}
        )
    keys |= _DEEPER.get(name, {})
    outputs = ("output",) if "output" in _DEEPER.get(name, {}) else ()
    return keyed(("type", *kind.required, *outputs), **keys)


INPUT_ITEM: Final[Schema] = {
    "anyOf": [
        _GIVEN,
        _SAID,
        *(_item(name, kind) for name, kind in KINDS.items() if name != "message"),
    ]
}
_ITEM: Final = {"$ref": "#/components/schemas/InputItem"}

_NAMED: Final = either(
    keyed(
        ("type", "name"),
        type={"enum": ["function", "custom"]},
        name={"type": "string"},
        namespace=text(1),
    ),
    keyed(("type", "name"), type={"const": "namespace"}, name={"type": "string"}),
)
_JSON: Final = {"$ref": "#/components/schemas/JsonSchema"}

RESPONSE_SCHEMAS: Final[Mapping[str, Schema]] = {
    "input": either({"type": "string"}, array(_ITEM, 0, _LIMITS.messages_max)),
    "instructions": TEXT,
    "max_output_tokens": integer(1),
    "previous_response_id": described(
        {"type": ["string", "null"], "pattern": ID_PATTERN}, "Not with `conversation`."
    ),
    "conversation": either(text(1), keyed(("id",), id=text(1, required=True))),
    "text": optional(
        keyed(
            format=either(
                keyed(("type",), type={"const": "text"}),
                keyed(
                    ("type",), type={"const": "json_object"}, schema=optional(_JSON), strict=FLAG
                ),
                keyed(
                    ("type", "name", "schema"),
                    type={"const": "json_schema"},
                    name=text(1, 64, required=True),
                    description=TEXT,
                    strict=FLAG,
                    schema=_JSON,
                ),
                NULL,
            ),
            verbosity=word("low", "medium", "high"),
        )
    ),
    "reasoning": optional(
        keyed(
            effort=word(*get_args(Effort)),
            summary=word("auto", "concise", "detailed"),
            generate_summary=word("auto", "concise", "detailed"),
            context=word("auto", "current_turn", "all_turns"),
            mode=text(0, 64),
        )
    ),
    "include": array({"enum": list(INCLUDABLE)}, 0, 64),
    "top_logprobs": described(integer(0, 20), "More than 0 needs log probabilities in `include`."),
    "store": FLAG,
    "background": described(FLAG, "Only with `store`."),
    "stream": FLAG,
    "stream_options": described(optional(keyed(include_obfuscation=FLAG)), "Only with `stream`."),
    "truncation": word("disabled", "auto"),
    "safety_identifier": text(0, 128),
    "user": text(0, 512),
    "prompt_cache_options": {},
    "prompt_cache_retention": {},
    "image": {},
    "access_programs": {},
    "context_management": array({}, 0, 16),
    "prompt": only(why="This gateway stores no prompt templates."),
    "n": only(1, why="One answer."),
    "tools": _TOOLS,
    "tool_choice": described(
        either(
            word("none", "auto", "required"),
            _NAMED,
            keyed(
                ("type", "mode", "tools"),
                type={"const": "allowed_tools"},
                mode={"enum": ["auto", "required"]},
                tools=array(_NAMED, 1, required=True),
            ),
        ),
        "Names one of `tools`.",
    ),
    "parallel_tool_calls": FLAG,
    "max_tool_calls": integer(1),
}


def metadata_schema() -> dict[str, Any]:
    """Return the schema of labels that a response or conversation keeps."""
    return {
        "type": ["object", "null"],
        "propertyNames": {"maxLength": 64},
        "additionalProperties": {"type": "string", "maxLength": 512},
        "maxProperties": _LIMITS.metadata_max,
    }
