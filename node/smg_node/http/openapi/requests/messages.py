"""Messages, tools and template parameters in `/openapi.json`, for chats and whatever is rendered like them."""

from collections.abc import Mapping
from typing import Final, get_args

from smg_node.core.generation.request import DETAILS, Effort
from smg_node.dialects.openai.functions import NAME_PATTERN
from smg_node.dialects.openai.hosted_tools import HOSTED
from smg_node.dialects.options import ReaderOptions
from smg_node.http.openapi.requests.makers import (
    FLAG,
    OBJECT,
    TEXT,
    Schema,
    array,
    described,
    either,
    integer,
    keyed,
    number,
    only,
    optional,
    text,
    word,
)

_LIMITS: Final = ReaderOptions()
_TEXT_PART: Final = keyed(("type", "text"), type={"const": "text"}, text={"type": "string"})
REFUSAL_PART: Final = keyed(
    ("type", "refusal"), type={"const": "refusal"}, refusal={"type": "string"}
)
_URL: Final = either(
    text(1, required=True), keyed(("url",), url=text(1, required=True), detail=TEXT)
)
_PICTURE: Final = keyed(
    ("type", "image_url"),
    type={"const": "image_url"},
    image_url=either(
        text(1, required=True),
        keyed(
            ("url",),
            url=described(text(1, required=True), "An http, https or data URL."),
            detail=described(
                word(*DETAILS), "`low` bounds the picture's area; all others leave it to the model."
            ),
        ),
    ),
    uuid=described(text(0, 256), "The client's name for the picture. It comes beside the picture."),
)
_MEDIA_PARTS: Final = (
    _PICTURE,
    *(
        keyed(("type", kind), **{"type": {"const": kind}, kind: _URL})
        for kind in ("video_url", "audio_url")
    ),
)
AUDIO_PART: Final = keyed(
    ("type", "input_audio"),
    type={"const": "input_audio"},
    input_audio=keyed(
        ("data", "format"),
        data=text(1, required=True),
        format={"type": "string", "pattern": "^[0-9A-Za-z]{1,16}$"},
    ),
)
_FILE_PART: Final = keyed(
    ("type", "file"),
    type={"const": "file"},
    file=keyed(
        ("file_data",),
        file_data=text(1, required=True),
        filename=text(0, 256),
        file_id=only(why="This gateway stores no files."),
    ),
)


def _is(key: str) -> Schema:
    return {"required": [key], "properties": {key: {"const": True}}}


def _content(*parts: Schema) -> Schema:
    return either({"type": "string"}, array(either(*parts), 1, required=True))


_NAME: Final = text(1, 128)
_CALL: Final = either(
    keyed(
        ("id", "function"),
        id=text(0, 256, required=True),
        type=word("function"),
        function=keyed(
            ("name",),
            name=text(1, 128, required=True),
            arguments={"type": ["string", "object", "null"]},
        ),
    ),
    keyed(
        ("id", "type", "custom"),
        id=text(0, 256, required=True),
        type={"const": "custom"},
        custom=keyed(("name", "input"), name=text(1, 128, required=True), input={"type": "string"}),
    ),
)
_SAID: Final = optional(_content(_TEXT_PART, REFUSAL_PART))
_OUTPUT: Final[Mapping[str, Schema]] = {
    "role": {"const": "assistant"},
    "name": _NAME,
    "content": _SAID,
    "reasoning_content": TEXT,
    "reasoning": TEXT,
    "refusal": TEXT,
    "tool_calls": array(_CALL, 0, 1_024),
    "audio": only(why="No engine here remembers spoken answers."),
    "prefix": described(FLAG, "In the last message, with text: the answer goes on from it."),
    "partial": described(FLAG, "Another name of `prefix`."),
}

# Only an answer with text, and nothing else, can be gone on from.
_UNCONTINUED: Final[Schema] = {
    "allOf": [
        {"anyOf": [_is("prefix"), _is("partial")]},
        {
            "anyOf": [
                {"properties": {"content": {"enum": ["", None]}}},
                {"required": ["tool_calls"], "properties": {"tool_calls": {"minItems": 1}}},
            ]
        },
    ]
}
_NO_PREFIX: Final[Mapping[str, Schema]] = dict.fromkeys(
    ("prefix", "partial"), only(False, why="Of an assistant's message.")
)

MESSAGE: Final[Schema] = {
    "oneOf": [
        keyed(
            ("role", "content"),
            role={"enum": ["system", "developer"]},
            **_NO_PREFIX,
            content=_content(_TEXT_PART),
            name=_NAME,
        ),
        keyed(
            ("role", "content"),
            role={"const": "user"},
            **_NO_PREFIX,
            content=_content(_TEXT_PART, *_MEDIA_PARTS, AUDIO_PART, _FILE_PART),
            name=_NAME,
        ),
        {
            **keyed(
                ("role", "content"),
                **{**_OUTPUT, "content": _content(_TEXT_PART, REFUSAL_PART)},
            ),
            "not": _UNCONTINUED,
        },
        keyed(
            ("role", "tool_calls"),
            **{
                **_OUTPUT,
                **_NO_PREFIX,
                "content": {"type": "null"},
                "tool_calls": array(_CALL, 1, 1_024, required=True),
            },
        ),
        keyed(
            ("role", "content", "tool_call_id"),
            role={"const": "tool"},
            **_NO_PREFIX,
            content=_content(_TEXT_PART, *_MEDIA_PARTS, AUDIO_PART, _FILE_PART),
            tool_call_id=text(1, 256, required=True),
            name=_NAME,
        ),
        keyed(
            ("role", "name"),
            role={"const": "function"},
            **_NO_PREFIX,
            content=optional(_content(_TEXT_PART)),
            name=text(1, 128, required=True),
        ),
    ]
}
MESSAGES: Final = array(
    {"$ref": "#/components/schemas/Message"}, 1, _LIMITS.messages_max, required=True
)

_FUNCTION: Final = keyed(
    ("name",),
    name={"type": "string", "pattern": NAME_PATTERN},
    description=TEXT,
    parameters=described(OBJECT, "A JSON Schema."),
    strict=FLAG,
)
_TOOL: Final = keyed(("type", "function"), type={"const": "function"}, function=_FUNCTION)
_GRAMMAR: Final = keyed(
    ("syntax", "definition"),
    syntax={"enum": ["lark", "regex"]},
    definition=text(1, required=True),
)
_CUSTOM: Final = keyed(
    ("name",),
    name={"type": "string", "pattern": NAME_PATTERN},
    description=TEXT,
    format=optional(
        either(
            keyed(("type",), type={"const": "text"}),
            keyed(("type", "grammar"), type={"const": "grammar"}, grammar=_GRAMMAR),
        )
    ),
)
_CUSTOM_TOOL: Final = keyed(("type", "custom"), type={"const": "custom"}, custom=_CUSTOM)
_NAMED: Final = keyed(("name",), name={"type": "string"})
_NAMED_TOOL: Final = either(
    keyed(("type", "function"), type={"const": "function"}, function=_NAMED),
    keyed(("type", "custom"), type={"const": "custom"}, custom=_NAMED),
)

HOSTED_TOOL: Final = keyed(
    ("type",),
    type={
        "type": "string",
        "pattern": rf"^({'|'.join(sorted(HOSTED))})(_\d{{4}}_\d{{2}}_\d{{2}})?$",
        "description": "A tool that no engine here can execute: it is left out, and named as ignored.",
    },
)

_TOOLS: Final = f"At most {_LIMITS.tools_max}; no two have one name."

TOOL_SCHEMAS: Final[Mapping[str, Schema]] = {
    "tools": {
        **described(array(either(_TOOL, _CUSTOM_TOOL, HOSTED_TOOL)), _TOOLS),
        "uniqueItems": True,
    },
    "functions": {
        **described(
            array(_FUNCTION),
            "As `tools`, in their older form; not with them.",
        ),
        "uniqueItems": True,
    },
    "tool_choice": described(
        either(
            word("none", "auto", "required"),
            _NAMED_TOOL,
            keyed(
                ("type", "allowed_tools"),
                type={"const": "allowed_tools"},
                allowed_tools=keyed(
                    ("mode", "tools"),
                    mode={"enum": ["auto", "required"]},
                    tools=array(_NAMED_TOOL, 1, required=True),
                ),
            ),
        ),
        "Needs `tools`, and names one of them.",
    ),
    "function_call": described(
        either(word("none", "auto"), _NAMED), "As `tool_choice`, for `functions`."
    ),
    "parallel_tool_calls": FLAG,
}

_OWNED: Final = "Not what the gateway itself sets, such as `messages`."

VARIABLE_SCHEMAS: Final[Mapping[str, Schema]] = {
    "chat_template_kwargs": {**described(OBJECT, _OWNED), "maxProperties": 64},
    "reasoning_effort": either(word(*get_args(Effort)), number(0, 1e9)),
    "enable_thinking": FLAG,
    "thinking": either(
        FLAG,
        keyed(
            ("type",),
            type={"enum": ["enabled", "disabled", "adaptive"]},
            budget_tokens=described(integer(1_024), "Less than the answer may have."),
        ),
    ),
    "verbosity": word("low", "medium", "high"),
}

TEMPLATE_SCHEMAS: Final[Mapping[str, Schema]] = {
    "messages": MESSAGES,
    "chat_template": only(why="A template, where `templates.allow_from_request` is on."),
    "documents": array({"type": "object"}, 0, 1_024),
    "add_generation_prompt": FLAG,
    "continue_final_message": described(FLAG, "Needs a last message of the assistant, with text."),
    "add_special_tokens": FLAG,
    **VARIABLE_SCHEMAS,
}
