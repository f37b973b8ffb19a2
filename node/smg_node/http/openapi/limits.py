"""Limit schemas for `/openapi.json`, with an example of each."""

from collections.abc import Mapping
from typing import Any, Final

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_COUNT: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 0}
_KNOWN: Final[Mapping[str, Any]] = {"type": ["integer", "null"]}
_FLAG: Final[Mapping[str, Any]] = {"type": "boolean"}
_PART: Final[Mapping[str, Any]] = {"type": "number", "minimum": 0, "maximum": 1}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
_ANY: Final[Mapping[str, Any]] = {"type": "object"}
_UNIT: Final[Mapping[str, Any]] = {
    "enum": ["requests", "tokens", "input_tokens", "output_tokens", "cost"]
}
_WISH: Final[Mapping[str, Any]] = {
    "concurrency": _KNOWN,
    "mode": {"enum": ["strict", "balanced", "available"]},
    "standing": _PART,
    "reserve": {"enum": ["worst_case", "estimate"]},
    "on_exhausted": {"enum": ["debt", "finish"]},
    "cached_weight": _PART,
    "volatile": _FLAG,
    "note": _TEXT,
}


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _list(of: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(of)}


def _all(properties: Mapping[str, Any]) -> dict[str, Any]:
    return _object(properties, *properties)


_AMOUNT: Final = _all({"unit": _UNIT, "amount": _COUNT, "window": _TEXT, "window_ms": _COUNT})
_WRITTEN: Final = {"version": _TEXT, "owner": _TEXT, "time_ms": _COUNT}
_RIVAL: Final = _all({**_WRITTEN, "amounts": _list(_AMOUNT), "concurrency": _KNOWN})
_ADDED: Final = dict.fromkeys(("spent", "left", "standing", "borrowed", "debt"), _COUNT)
_NODE_USE: Final = _all({"window": _COUNT, "state": _TEXT, **_ADDED, "given": _KNOWN})
_UNAVAILABLE: Final = _all(
    {
        "amount": _COUNT,
        "reason": {
            "enum": ["dead", "silent", "restarted", "owner_lost", "withheld", "no_owner"],
        },
        "node": _TEXT,
        "text": _TEXT,
    }
)
_USE: Final = {
    "key": _TEXT,
    "name": _TEXT,
    "unit": {"enum": [*_UNIT["enum"], "concurrent"]},
    "window_ms": _COUNT,
    "window": _COUNT,
    "ends_ms": _COUNT,
    "amount": _COUNT,
    **_ADDED,
    "given": _COUNT,
    "minted": _KNOWN,
    "pool": _KNOWN,
    "owner": _TEXT,
    "term": _COUNT,
    "state": {"enum": ["exact", "standing", "borrowed", "alone"]},
    "not_adopted": _TEXTS,
    "nodes": {"type": "object", "additionalProperties": _NODE_USE},
    "remaining": _COUNT,
    "over": _COUNT,
    "unavailable": _list(_UNAVAILABLE),
}
_USED: Final[Mapping[str, Any]] = {
    "uses": _list(_all(_USE)),
    "exact": _FLAG,
    "inexact_reasons": _TEXTS,
    "cut": _COUNT,
    "silent": {"type": "object", "additionalProperties": _TEXT},
}
_LIMIT: Final[Mapping[str, Any]] = {"$ref": "#/components/schemas/Limit"}

LIMIT_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "LimitRequest": {
        "type": "object",
        "properties": {
            "amounts": {
                "type": ["array", "null"],
                "items": {
                    **_all({"unit": _UNIT, "amount": _COUNT, "window": _TEXT}),
                    "additionalProperties": False,
                },
            },
            **{key: {"anyOf": [schema, {"type": "null"}]} for key, schema in _WISH.items()},
        },
        "additionalProperties": False,
    },
    "Limit": _all(
        {
            "scope": _TEXT,
            "rule": _TEXT,
            **_WRITTEN,
            "amounts": _list(_AMOUNT),
            **_WISH,
            "conflicts": _list(_RIVAL),
            "standing_from_ms": _COUNT,
        }
    ),
    "LimitList": _object(
        {"node": _TEXT, "limits": _list(_LIMIT), "unreadable": _TEXTS, **_USED},
        "node",
        "limits",
        "unreadable",
    ),
    "LimitUse": _object(
        {
            "node": _TEXT,
            "limit": _LIMIT,
            **_USED,
            "rows": {"type": "object", "additionalProperties": _list(_ANY)},
        },
        "node",
        "limit",
        "uses",
        "exact",
        "inexact_reasons",
        "cut",
        "silent",
    ),
    "LimitUnset": _object(
        {"status": _TEXT, "limit": _LIMIT, "now": {"anyOf": [_LIMIT, {"type": "null"}]}},
        "status",
        "limit",
    ),
}

_VERSION: Final = "115964116992000"
_MS: Final = 1_754_000_000_000
_SHOWN: Final = {
    "scope": "tenant=acme",
    "rule": "tenant=acme",
    "version": _VERSION,
    "owner": "a",
    "time_ms": _MS,
    "amounts": [{"unit": "requests", "amount": 600, "window": "minute", "window_ms": 60_000}],
    "concurrency": 8,
    "mode": "strict",
    "standing": 0.5,
    "reserve": "estimate",
    "on_exhausted": "debt",
    "cached_weight": 1.0,
    "volatile": False,
    "note": "as agreed in May",
    "conflicts": [],
    "standing_from_ms": 0,
}
_AT_A: Final = {
    "window": 29_233_333,
    "state": "exact",
    "spent": 210,
    "left": 12,
    "standing": 60,
    "borrowed": 0,
    "debt": 0,
    "given": 162,
}
_ONE_USE: Final = {
    "key": "tenant=acme#requests/60000",
    "name": "tenant=acme#requests/minute",
    "unit": "requests",
    "window_ms": 60_000,
    "window": 29_233_333,
    "ends_ms": 1_754_000_040_000,
    "amount": 600,
    "spent": 210,
    "left": 12,
    "standing": 60,
    "borrowed": 0,
    "debt": 0,
    "given": 162,
    "minted": 300,
    "pool": 138,
    "owner": "a",
    "term": 7,
    "state": "exact",
    "not_adopted": [],
    "nodes": {"a": _AT_A},
    "remaining": 330,
    "over": 0,
    "unavailable": [
        {
            "amount": 60,
            "reason": "dead",
            "node": "c",
            "text": "with node c, which is dead or cut off, spent there or not",
        }
    ],
}

LIMIT_EXAMPLES: Final[Mapping[str, Any]] = {
    "LimitRequest": {
        "amounts": [
            {"unit": "requests", "amount": 600, "window": "minute"},
            {"unit": "tokens", "amount": 100_000, "window": "minute"},
        ],
        "concurrency": 8,
        "mode": "strict",
    },
    "Limit": _SHOWN,
    "LimitList": {"node": "a", "limits": [_SHOWN], "unreadable": []},
    "LimitUse": {
        "node": "a",
        "limit": _SHOWN,
        "uses": [_ONE_USE],
        "exact": False,
        "inexact_reasons": ["node c is dead or cut off: what it spent is not counted"],
        "cut": 0,
        "silent": {},
    },
    "LimitUnset": {"status": "unset", "limit": _SHOWN, "now": None},
}
