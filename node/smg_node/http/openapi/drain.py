"""Drain status schema for `/openapi.json`, with an example."""

from collections.abc import Mapping
from typing import Any, Final

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_COUNT: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 0}
_SECONDS: Final[Mapping[str, Any]] = {"type": "number", "minimum": 0}
_FLAG: Final[Mapping[str, Any]] = {"type": "boolean"}


def _whole(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


_PROBER: Final = _whole({"address": _TEXT, "agent": _TEXT, "ago_s": _SECONDS, "told_ready": _FLAG})

DRAIN_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "MemberDrain": _whole(
        {
            "name": _TEXT,
            "boot": _COUNT,
            "stage": {
                "enum": [
                    *("serving", "settling", "draining", "drained", "leaving"),
                    *("dead", "left"),
                ]
            },
            "open": _COUNT,
            "requests": _COUNT,
            "streams": _COUNT,
            "background": _COUNT,
            "settle_left_s": _SECONDS,
            "cut_left_s": {"type": ["number", "null"], "minimum": 0},
            "patience_s": _SECONDS,
            "duties": _whole({"limits": _COUNT, "workers": _COUNT, "spooled": _FLAG}),
            "probers": {"type": "array", "items": _PROBER},
            "silent_processes": {"type": "array", "items": _TEXT},
        }
    )
}

DRAIN_EXAMPLES: Final[Mapping[str, Any]] = {
    "MemberDrain": {
        "name": "b",
        "boot": 7,
        "stage": "draining",
        "open": 13,
        "requests": 1,
        "streams": 12,
        "background": 0,
        "settle_left_s": 0,
        "cut_left_s": None,
        "patience_s": 185,
        "duties": {"limits": 2, "workers": 8, "spooled": False},
        "probers": [
            {"address": "10.0.0.9", "agent": "kube-probe/1.31", "ago_s": 0.6, "told_ready": False}
        ],
        "silent_processes": [],
    }
}
