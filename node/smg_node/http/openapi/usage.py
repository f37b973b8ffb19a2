"""Usage schema for `/openapi.json`, with an example."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.http.ports.usage import ASPECTS

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_TIME: Final[Mapping[str, Any]] = {"type": ["string", "null"]}
_COUNT: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 0}
_COUNTS: Final[Mapping[str, Any]] = dict.fromkeys(
    (
        "requests",
        "refused",
        "prompt_tokens",
        "cached_tokens",
        "completion_tokens",
        "cost_micro",
        "cache_write_tokens",
        "calls",
        "unpriced_calls",
        "estimated_calls",
        "tool_runs",
        "failed_tool_runs",
        "tool_ms",
        "tool_bytes",
    ),
    _COUNT,
)
_NAMES: Final[Mapping[str, Any]] = {
    "hour": _TIME,
    "day": _TIME,
    "tenant": _TEXT,
    "key": _TEXT,
    "model": _TEXT,
    "provider": _TEXT,
    "server": _TEXT,
    "tool": _TEXT,
}

USAGE_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Usage": {
        "type": "object",
        "properties": {
            "node": _TEXT,
            "from": _TEXT,
            "to": _TEXT,
            "by": {"type": "array", "items": {"enum": list(ASPECTS)}},
            "rows": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {**_NAMES, **_COUNTS},
                    "required": list(_COUNTS),
                },
            },
            "total": {"type": "object", "properties": _COUNTS, "required": list(_COUNTS)},
            "exact": {"type": "boolean"},
            "cut": _COUNT,
            "silent": {"type": "object", "additionalProperties": _TEXT},
        },
        "required": ["node", "from", "to", "by", "rows", "total", "exact", "cut", "silent"],
    }
}

_USED: Final = {
    "requests": 1_204,
    "refused": 7,
    "prompt_tokens": 903_117,
    "cached_tokens": 512_000,
    "completion_tokens": 240_800,
    "cost_micro": 2_611_458,
    "cache_write_tokens": 8_192,
    "calls": 1_210,
    "unpriced_calls": 0,
    "estimated_calls": 3,
    "tool_runs": 310,
    "failed_tool_runs": 4,
    "tool_ms": 148_200,
    "tool_bytes": 1_904_331,
}

USAGE_EXAMPLES: Final[Mapping[str, Any]] = {
    "Usage": {
        "node": "a",
        "from": "2026-11-21T04:00Z",
        "to": "2026-11-22T04:00Z",
        "by": ["tenant", "model"],
        "rows": [{"tenant": "acme", "model": "llama-3.1-8b", **_USED}],
        "total": _USED,
        "exact": True,
        "cut": 0,
        "silent": {},
    }
}
