"""Parameters of Messages in `/openapi.json`, besides those that engines share with other APIs."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.dialects.options import ReaderOptions
from smg_node.http.openapi.requests.makers import (
    FLAG,
    NULL,
    OBJECT,
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
_LABEL: Final = text(0, 1_024)
_TOOL_NAME: Final[Schema] = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"}
_EFFORTS: Final = word("low", "medium", "high", "xhigh", "max")
_DISPLAY: Final = word("summarized", "omitted", "updates")
_BINDING: Final = optional(keyed(prefix_mismatch_behavior=word("error", "drop_block")))
_CACHE: Final = described(
    optional(keyed(("type",), type={"const": "ephemeral"}, ttl=word("5m", "1h"))),
    "Without effect: engines cache by themselves.",
)
_BLOCK: Final = keyed(("type",), type={"type": "string"})
_TEXT_BLOCK: Final = keyed(("type", "text"), type={"const": "text"}, text={"type": "string"})
_CONTENT: Final = either({"type": "string"}, array(_BLOCK, required=True))
_NOT_OURS: Final = "Accepted, without effect here."
_NO_SUMMARIES: Final = only(why="This gateway sums up no conversations.")
_NO_CODE: Final = only(why="This gateway executes no code.")


def _thinking(kind: str, **more: Schema) -> dict[str, Any]:
    required = ("type", "budget_tokens") if kind == "enabled" else ("type",)
    return keyed(required, type={"const": kind}, **more)


_FORMAT: Final = optional(
    keyed(
        ("type", "schema"),
        type={"const": "json_schema"},
        schema={"$ref": "#/components/schemas/JsonSchema"},
    )
)
_MESSAGE: Final = keyed(
    ("role", "content"), role={"enum": ["user", "assistant", "system"]}, content=_CONTENT
)
_TOOL: Final = either(
    keyed(
        ("name", "input_schema"),
        type=word("custom"),
        name=_TOOL_NAME,
        description=text(),
        input_schema={"type": "object"},
        strict=FLAG,
        defer_loading=FLAG,
        eager_input_streaming=FLAG,
    ),
    keyed(("type", "name"), type={"type": "string"}, name={"type": "string"}),
)
_CHOICE: Final = optional(
    keyed(
        ("type",),
        type={"enum": ["auto", "any", "tool", "none"]},
        name=text(),
        disable_parallel_tool_use=FLAG,
    )
)

ANTHROPIC_SCHEMAS: Final[Mapping[str, Schema]] = {
    "max_tokens": described(
        {"type": "integer", "minimum": 0}, "0: the prompt is read, and nothing is answered."
    ),
    "messages": array(_MESSAGE, 1, 100_000, required=True),
    "system": either({"type": ["string", "null"]}, array(_TEXT_BLOCK, required=True)),
    "tools": array(_TOOL, 0, _LIMITS.tools_max),
    "tool_choice": _CHOICE,
    "thinking": either(
        NULL,
        _thinking(
            "enabled",
            budget_tokens={"type": "integer", "minimum": 1_024},
            display=_DISPLAY,
            block_binding=_BINDING,
        ),
        _thinking("disabled"),
        _thinking("adaptive", display=_DISPLAY, block_binding=_BINDING),
        _thinking("between_tools"),
    ),
    "output_config": optional(
        keyed(
            effort=_EFFORTS,
            format=_FORMAT,
            task_budget=optional(
                keyed(
                    ("type", "total"),
                    type={"const": "tokens"},
                    total={"type": "integer", "minimum": 1},
                    remaining=integer(0),
                )
            ),
        )
    ),
    "output_format": described(_FORMAT, "Older name of `output_config.format`."),
    "stop_sequences": described(
        array(text(1, required=True), 0, _LIMITS.stop_max),
        f"At most {_LIMITS.stop_max_bytes} bytes each.",
    ),
    "stream": FLAG,
    "temperature": number(0, 2),
    "metadata": optional(keyed(user_id=_LABEL)),
    "service_tier": word("auto", "standard_only"),
    "cache_control": _CACHE,
    "context_management": optional(
        keyed(
            edits=array(
                keyed(
                    ("type",),
                    type={
                        "enum": [
                            "clear_thinking_20251015",
                            "clear_tool_uses_20250919",
                            "compact_20260112",
                        ]
                    },
                )
            )
        )
    ),
    "diagnostics": described(OBJECT, "Answered that the reason is unavailable."),
    "mcp_servers": {"type": ["array", "null"], "maxItems": 0},
    "speed": described(word("standard", "fast"), _NOT_OURS),
    "inference_geo": described(_LABEL, _NOT_OURS),
    "user_profile_id": described(_LABEL, _NOT_OURS),
    "workspace_id": described(_LABEL, _NOT_OURS),
    "billing_policy": described(OBJECT, _NOT_OURS),
    "fallbacks": described({"type": ["array", "string", "null"]}, _NOT_OURS),
    "fallback_credit_token": described({"type": ["object", "string", "null"]}, _NOT_OURS),
    "compaction": _NO_SUMMARIES,
    "container": _NO_CODE,
    "skills": _NO_CODE,
}
