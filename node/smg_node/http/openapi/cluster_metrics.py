"""Cluster metrics schemas for `/openapi.json`, with an example."""

from collections.abc import Mapping
from typing import Any, Final

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
_NUMBERS: Final[Mapping[str, Any]] = {"type": "array", "items": {"type": "number"}}
_FLAG: Final[Mapping[str, Any]] = {"type": "boolean"}


def _whole(properties: Mapping[str, Any], *, all_of: bool = True) -> dict[str, Any]:
    required = {"required": list(properties)} if all_of else {}
    return {"type": "object", "properties": dict(properties), **required}


_METRIC: Final = _whole(
    {
        "kind": {"enum": ["counter", "gauge", "histogram"]},
        "labels": _TEXTS,
        "buckets": _NUMBERS,
        "meaning": _TEXT,
    }
)
_ROWS: Final = {"type": "array", "items": _whole({"labels": _TEXTS, "values": _NUMBERS})}
_WHO: Final[Mapping[str, Any]] = {
    "name": _TEXT,
    "state": _TEXT,
    "me": _FLAG,
    "http": _TEXT,
    "admin": _TEXT,
    "version": _TEXT,
    "silent": _TEXT,
}
_COUNTS: Final[Mapping[str, Any]] = {
    "at_s": {"type": "number"},
    "ready": _FLAG,
    "draining": _FLAG,
    "reasons": _TEXTS,
    "degraded": _TEXTS,
    "rows": {"type": "object", "additionalProperties": _ROWS},
    "cut": {"type": "integer", "minimum": 0},
}
_NODE: Final = {
    "type": "object",
    "properties": {**_WHO, **_COUNTS},
    "required": list(_WHO),
}

NUMBERS_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Numbers": _whole(
        {
            "node": _TEXT,
            "metrics": {"type": "object", "additionalProperties": _METRIC},
            "nodes": {"type": "array", "items": _NODE},
        }
    )
}
NUMBERS_EXAMPLES: Final[Mapping[str, Any]] = {
    "Numbers": {
        "node": "a",
        "metrics": {
            "smg_node_completion_tokens_total": {
                "kind": "counter",
                "labels": ["model"],
                "buckets": [],
                "meaning": "Generated tokens.",
            }
        },
        "nodes": [
            {
                "name": "a",
                "state": "alive",
                "me": True,
                "http": "10.0.0.7:30000",
                "admin": "",
                "version": "1.0.0",
                "silent": "",
                "at_s": 86_400.25,
                "ready": True,
                "draining": False,
                "reasons": [],
                "degraded": [],
                "rows": {
                    "smg_node_completion_tokens_total": [
                        {"labels": ["llama-3.1-8b"], "values": [240_800]}
                    ]
                },
                "cut": 0,
            },
            {
                "name": "b",
                "state": "dead",
                "me": False,
                "http": "10.0.0.8:30000",
                "admin": "",
                "version": "1.0.0",
                "silent": "it is dead",
            },
        ],
    }
}
