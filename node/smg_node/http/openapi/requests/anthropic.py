"""Anthropic parameters in `/openapi.json`: messages, tools, thinking and edits of the context."""

from collections.abc import Mapping
from typing import Final

from smg_node.dialects.messages.request.client_tools import CLIENT_TOOLS
from smg_node.dialects.messages.request.system_messages import EFFORTS
from smg_node.dialects.messages.request.turns import MESSAGES_MAX
from smg_node.dialects.options import ReaderOptions
from smg_node.http.openapi.requests.makers import (
    FLAG,
    OBJECT,
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

_LIMITS: Final = ReaderOptions()
_CACHE: Final = optional(
    keyed(("type",), type={"const": "ephemeral"}, ttl=word("5m", "1h")),
)
_TEXT: Final = keyed(
    ("type", "text"),
    type={"const": "text"},
    text={"type": "string"},
    cache_control=_CACHE,
    citations=array(OBJECT),
)
_TEXTS: Final = either({"type": "string"}, array(_TEXT, required=True))
_BLOCK: Final = keyed(("type",), type=text(required=True), cache_control=_CACHE)
_BLOCKS: Final = array(_BLOCK, required=True)
_EFFORT: Final = word(*EFFORTS)
_MESSAGE: Final = either(
    keyed(
        ("role", "content"),
        role={"const": "user"},
        content=described(
            either({"type": "string"}, array(_BLOCK, 1, required=True)),
            "Blocks: text, image, document, search_result, tool_result.",
        ),
    ),
    keyed(
        ("role", "content"),
        role={"const": "assistant"},
        content=described(
            either({"type": "string"}, _BLOCKS),
            "Blocks: text, thinking, redacted_thinking, tool_use.",
        ),
    ),
    keyed(
        ("role",),
        role={"const": "system"},
        content=described(
            either({"type": ["string", "null"]}, _BLOCKS),
            "Blocks: text, tool_addition, tool_removal.",
        ),
        clear_at=word("next_user_message", "never"),
        output_config=optional(keyed(effort=_EFFORT)),
    ),
)
_SHARED: Final[Mapping[str, Schema]] = {
    "cache_control": _CACHE,
    "defer_loading": described(FLAG, "Not in the prompt's list; told by a `tool_reference`."),
    "strict": FLAG,
    "input_examples": array({"type": "object"}, 0, 64),
    "allowed_callers": described(array(text(required=True)), "With `direct` among them."),
}
_CUSTOM: Final = keyed(
    ("name", "input_schema"),
    type=word("custom"),
    name={"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"},
    description=text(),
    input_schema=keyed(type=word("object")),
    eager_input_streaming=FLAG,
    **_SHARED,
)
_CLIENT: Final = keyed(
    ("type", "name"),
    type={"enum": sorted(CLIENT_TOOLS)},
    name={"enum": sorted({tool.name for tool in CLIENT_TOOLS.values()})},
    **_SHARED,
)
_COUNT: Final = keyed(("type", "value"), type=text(required=True), value=integer(0))
_EDIT: Final = either(
    keyed(
        ("type",),
        type={"const": "clear_thinking_20251015"},
        keep=either({"const": "all"}, {"type": "null"}, keyed(("type",), type=text(required=True))),
    ),
    keyed(
        ("type",),
        type={"const": "clear_tool_uses_20250919"},
        trigger=optional(_COUNT),
        keep=optional(_COUNT),
        clear_at_least=optional(_COUNT),
        exclude_tools=array(text(required=True)),
        clear_tool_inputs=either(FLAG, array(text(required=True))),
    ),
    keyed(("type",), type={"const": "compact_20260112"}),
)
_FORMAT: Final = optional(
    keyed(
        ("type", "schema"),
        type={"const": "json_schema"},
        schema={"$ref": "#/components/schemas/JsonSchema"},
    )
)
_DISPLAY: Final = word("summarized", "omitted", "updates")
_BINDING: Final = optional(keyed(prefix_mismatch_behavior=word("error", "drop_block")))
_NO_EFFECT: Final = "Has no effect here."

ANTHROPIC_SCHEMAS: Final[Mapping[str, Schema]] = {
    "max_tokens": described(
        {"type": "integer", "minimum": 0}, "0: only the prompt is read, and nothing answered."
    ),
    "messages": array(_MESSAGE, 1, MESSAGES_MAX, required=True),
    "system": either({"type": ["string", "null"]}, array(_TEXT, required=True)),
    "stop_sequences": described(
        array(text(1, required=True), 0, _LIMITS.stop_max),
        f"At most {_LIMITS.stop_max_bytes} bytes each.",
    ),
    "metadata": optional(keyed(user_id=text(0, 1_024))),
    "service_tier": word("auto", "standard_only"),
    "cache_control": described(_CACHE, "Engines keep prompts by themselves."),
    "context_management": optional(keyed(edits=array(_EDIT, 0, 16))),
    "diagnostics": OBJECT,
    "mcp_servers": only([], why="Tools of MCP servers are not served here."),
    "speed": described(word("standard", "fast"), _NO_EFFECT),
    "inference_geo": described(text(0, 1_024), _NO_EFFECT),
    "user_profile_id": described(text(0, 1_024), _NO_EFFECT),
    "workspace_id": described(text(0, 1_024), _NO_EFFECT),
    "billing_policy": described(OBJECT, _NO_EFFECT),
    "fallbacks": described({"type": ["string", "array", "null"]}, _NO_EFFECT),
    "fallback_credit_token": described({"type": ["string", "object", "null"]}, _NO_EFFECT),
    "compaction": only(why="This gateway sums up no conversations."),
    "container": only(why="This gateway executes no code."),
    "skills": only(why="This gateway executes no code."),
    "tools": described(
        array(either(_CUSTOM, _CLIENT), 0, _LIMITS.tools_max), "No two have one name."
    ),
    "tool_choice": described(
        optional(
            either(
                keyed(("type",), type={"enum": ["auto", "any"]}, disable_parallel_tool_use=FLAG),
                keyed(
                    ("type", "name"),
                    type={"const": "tool"},
                    name=text(required=True),
                    disable_parallel_tool_use=FLAG,
                ),
                keyed(("type",), type={"const": "none"}),
            )
        ),
        "Any and tool need `tools`, of which it names one.",
    ),
    "thinking": optional(
        either(
            keyed(
                ("type", "budget_tokens"),
                type={"const": "enabled"},
                budget_tokens={"type": "integer", "minimum": 1_024},
                display=_DISPLAY,
                block_binding=_BINDING,
            ),
            keyed(("type",), type={"const": "adaptive"}, display=_DISPLAY, block_binding=_BINDING),
            keyed(("type",), type={"enum": ["disabled", "between_tools"]}),
        )
    ),
    "output_config": optional(
        keyed(
            effort=_EFFORT,
            format=_FORMAT,
            task_budget=optional(
                keyed(("type", "total"), type={"const": "tokens"}, total=integer(1))
            ),
        )
    ),
    "output_format": described(_FORMAT, "An older place of `output_config.format`."),
}
"""Schemas of what this API has and the others have not, or have otherwise."""
