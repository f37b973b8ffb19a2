"""Provider schemas for `/openapi.json`, with an example of each."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_COUNT: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 0}
_KNOWN: Final[Mapping[str, Any]] = {"type": ["integer", "null"]}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
_ANY: Final[Mapping[str, Any]] = {"type": "object"}
_STRINGS: Final[Mapping[str, Any]] = {"type": "object", "additionalProperties": _TEXT}
_NUMBER: Final[Mapping[str, Any]] = {"type": "number", "exclusiveMinimum": 0}
_SHARE: Final[Mapping[str, Any]] = {"type": "number", "minimum": 0, "maximum": 1}


def _all(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def _with(required: Sequence[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _list(of: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(of)}


def _or_null(of: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [dict(of), {"type": "null"}]}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_WRITTEN: Final = {
    "source": {"enum": ["cluster", "node"]},
    "version": _TEXT,
    "owner": _TEXT,
    "time_ms": _COUNT,
}
_STATES: Final = ["ready", "off", "pending", "not_ready", "failed", "draining"]
_TARGET: Final = _all(
    {
        "worker": _TEXT,
        "model": _TEXT,
        "to": _TEXT,
        "weight": _NUMBER,
        "on": _TEXTS,
        "state": {"enum": _STATES},
        "reason": _TEXT,
        "code": _TEXT,
        "off_ms": _KNOWN,
        "only": {"type": "array", "items": {"enum": ["split", "shadow"]}},
    }
)
_KEY: Final = _all({"reference": _TEXT, "resting_ms": _COUNT, "why": _TEXT})
_LIMIT: Final = _all(
    {
        "key": _TEXT,
        "what": _TEXT,
        "limit": _COUNT,
        "left": {"type": "integer"},
        "full_ms": _COUNT,
        "told_ms": _COUNT,
        "wanted": _NUMBER,
    }
)
_WAY: Final = _all({"api": _TEXT, "way": {"enum": ["native", "translated", "generated"]}})
_REFUSAL: Final = _all({"message": _TEXT, "where": _TEXT, "code": _TEXT})
_FIGURES: Final = _all(
    {
        **dict.fromkeys(("prompt_tokens", "cached_tokens", "completion_tokens", "took_ms"), _COUNT),
        "first_ms": _KNOWN,
        "cost_pico": _KNOWN,
        "finish": _TEXT,
        "calls": _COUNT,
        "characters": _COUNT,
        "text": _TEXT,
    }
)
_SECRET: Final[Mapping[str, Any]] = {
    "type": "string",
    "description": "file:/PATH, env:NAME, or the value itself.",
}
_NAMES: Final = [
    "base",
    "region",
    "location",
    "project",
    "organization",
    "workspace",
    "resource",
    "api_version",
    "anthropic_version",
    "key_header",
    "proxy",
]

_RATES: Final = ("prompt", "cached", "written", "written_long", "answer", "per_call")
_AMOUNT: Final[Mapping[str, Any]] = {"type": "number", "minimum": 0, "maximum": 1_000_000}

PROVIDER_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "ProviderRequest": {
        "type": "object",
        "description": "A provider as in a file of --providers; without `keys` those that are there stay.",
        "properties": {
            "kind": _TEXT,
            **dict.fromkeys(_NAMES, _TEXT),
            "state": {"enum": ["ours", "vendor"]},
            "headers": _TEXTS,
            "quirks": _TEXTS,
            "keys": {"anyOf": [_list(_SECRET), _SECRET, {"type": "null"}]},
            "credentials": {"anyOf": [_ANY, _TEXT, {"type": "null"}]},
            "labels": _STRINGS,
            "models": _list({"anyOf": [_TEXT, _ANY]}),
            "client_keys": {"type": "boolean"},
            "cache_scope": {"enum": ["account", "key"]},
            "cache_key_added": {"type": "boolean"},
            "timeouts": {"type": "object", "additionalProperties": _NUMBER},
        },
        "required": ["kind"],
        "additionalProperties": False,
    },
    "Provider": _all(
        {
            "name": _TEXT,
            "kind": _TEXT,
            "spec": _ANY,
            "keys": _list(_KEY),
            "limits": _list(_LIMIT),
            "secrets": _STRINGS,
            **_WRITTEN,
            "trouble": _TEXT,
            "targets": _list(_TARGET),
        }
    ),
    "ProviderList": _all(
        {"node": _TEXT, "providers": _list(_reference("Provider")), "unreadable": _STRINGS}
    ),
    "ProviderRemoved": _all(
        {"status": _TEXT, "name": _TEXT, "now": _or_null(_reference("Provider"))}
    ),
    "ProviderRouteRequest": {
        "type": "object",
        "properties": {
            "targets": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "anyOf": [
                        {"type": "string", "description": "PROVIDER/MODEL, or engines/MODEL"},
                        {
                            "type": "object",
                            "properties": {"to": _TEXT, "weight": _NUMBER, "on": _TEXTS},
                            "required": ["to"],
                            "additionalProperties": False,
                        },
                    ]
                },
            },
            "choose": {"enum": ["weighted", "cheapest", "fastest", "affinity"]},
            "split": _with(
                ("to", "share"),
                to=_TEXT,
                share=_SHARE,
                key={"enum": ["tenant", "key", "user", "conversation"]},
                until={"type": "string", "description": "A day or a moment: 2026-12-31."},
                name=_TEXT,
            ),
            "shadow": _with(
                ("to", "share", "budget"),
                to=_TEXT,
                share=_SHARE,
                budget={"type": "string", "pattern": "^[0-9]+/day$"},
                keep_text={"type": "boolean"},
            ),
        },
        "required": ["targets"],
        "additionalProperties": False,
    },
    "ProviderRoute": _all({"name": _TEXT, "spec": _ANY, **_WRITTEN, "targets": _list(_TARGET)}),
    "ProviderRouteList": _all({"node": _TEXT, "routes": _list(_reference("ProviderRoute"))}),
    "ProviderRouteRemoved": _all(
        {"status": _TEXT, "name": _TEXT, "now": _or_null(_reference("ProviderRoute"))}
    ),
    "PriceRequest": {
        "type": "object",
        "description": "What a call costs, in the currency: tokens by the million, `per_call`, `server_tools` each time;"
        " `steps` by the length of prompts, `tiers` by name, `from` a day; or several `periods` of that.",
        "properties": {
            **dict.fromkeys(_RATES, _AMOUNT),
            "server_tools": {"type": "object", "additionalProperties": _AMOUNT},
            "steps": _list(_ANY),
            "tiers": {"type": "object", "additionalProperties": _ANY},
            "from": {"type": "string", "format": "date"},
            "periods": _list(_ANY),
        },
        "additionalProperties": False,
    },
    "Price": _all({"name": _TEXT, "price": _ANY, **_WRITTEN}),
    "PriceList": _all({"node": _TEXT, "prices": _list(_reference("Price"))}),
    "PriceRemoved": _all({"status": _TEXT, "name": _TEXT, "now": _or_null(_reference("Price"))}),
    "RouteShadows": _all(
        {
            "node": _TEXT,
            "name": _TEXT,
            "outcomes": {"type": "object", "additionalProperties": _COUNT},
            "calls_equal": _COUNT,
            "calls_different": _COUNT,
            "records": _list(
                _all(
                    {
                        "at_ms": _COUNT,
                        "request_id": _TEXT,
                        "worker": _TEXT,
                        "target": _TEXT,
                        "answer": _FIGURES,
                        "copy": _or_null(_FIGURES),
                        "error": _TEXT,
                        "calls_equal": {"type": ["boolean", "null"]},
                        "length_ratio": {"type": ["number", "null"]},
                    }
                )
            ),
        }
    ),
    "ProviderQuestion": {
        "type": "object",
        "properties": {
            "model": {"type": "string", "minLength": 1, "maxLength": 256},
            "api": {"enum": ["chat", "messages", "responses", "generate_content", None]},
            "body": {"anyOf": [_ANY, {"type": "null"}]},
        },
        "required": ["model"],
        "additionalProperties": False,
    },
    "ProviderExplained": _all(
        {
            "node": _TEXT,
            "model": _TEXT,
            "api": _TEXT,
            "targets": _list(
                _all(
                    {
                        "target": _TARGET,
                        "apis": {"type": "object", "additionalProperties": _WAY},
                        "ignored": _TEXTS,
                        "refused": _or_null(_REFUSAL),
                    }
                )
            ),
        }
    ),
}

_SHOWN_TARGET: Final = {
    "worker": "w-7f3a91c0d2e4",
    "model": "claude",
    "to": "anthropic-a/claude-sonnet-5",
    "weight": 3.0,
    "on": [],
    "state": "ready",
    "reason": "",
    "code": "",
    "off_ms": None,
    "only": [],
}
_BY: Final = {
    "source": "cluster",
    "version": "115964116992000",
    "owner": "a",
    "time_ms": 1_754_000_000_000,
}
_PROVIDER: Final = {
    "name": "anthropic-a",
    "kind": "anthropic",
    "spec": {"kind": "anthropic", "labels": {"zone": "us"}},
    "keys": [{"reference": "file:/run/secrets/a1", "resting_ms": 0, "why": ""}],
    "limits": [
        {
            "key": "file:/run/secrets/a1",
            "what": "requests",
            "limit": 4_000,
            "left": 3_720,
            "full_ms": 4_200,
            "told_ms": 130,
            "wanted": 12.5,
        }
    ],
    "secrets": {},
    **_BY,
    "trouble": "",
    "targets": [_SHOWN_TARGET],
}
_ROUTE_SPEC: Final = {
    "targets": [
        {"to": "anthropic-a/claude-sonnet-5", "weight": 3.0},
        {"to": "bedrock-eu/eu.anthropic.claude-sonnet-5", "on": ["rate", "full"]},
    ],
    "choose": "fastest",
}
_SHOWN_FIGURES: Final = {
    "prompt_tokens": 812,
    "cached_tokens": 0,
    "completion_tokens": 96,
    "took_ms": 2140,
    "first_ms": 480,
    "cost_pico": 3_876_000_000,
    "finish": "stop",
    "calls": 0,
    "characters": 402,
    "text": "",
}
_ROUTE: Final = {"name": "claude", "spec": _ROUTE_SPEC, **_BY, "targets": [_SHOWN_TARGET]}

_PRICE: Final = {
    "prompt": 3,
    "cached": 0.3,
    "written": 3.75,
    "answer": 15,
    "steps": [{"above": 200_000, "prompt": 6, "answer": 22.5}],
    "tiers": {"flex": {"prompt": 1.5, "answer": 7.5}},
}
_SHOWN_PRICE: Final = {"name": "anthropic-a/claude-sonnet-5", "price": _PRICE, **_BY}

PROVIDER_EXAMPLES: Final[Mapping[str, Any]] = {
    "ProviderRequest": {
        "kind": "anthropic",
        "keys": ["file:/run/secrets/a1"],
        "labels": {"zone": "us"},
    },
    "Provider": _PROVIDER,
    "ProviderList": {"node": "a", "providers": [_PROVIDER], "unreadable": {}},
    "ProviderRemoved": {"status": "removed", "name": "anthropic-a", "now": None},
    "ProviderRouteRequest": _ROUTE_SPEC,
    "ProviderRoute": _ROUTE,
    "ProviderRouteList": {"node": "a", "routes": [_ROUTE]},
    "ProviderRouteRemoved": {"status": "removed", "name": "claude", "now": None},
    "PriceRequest": _PRICE,
    "Price": _SHOWN_PRICE,
    "PriceList": {"node": "a", "prices": [_SHOWN_PRICE]},
    "PriceRemoved": {"status": "removed", "name": "anthropic-a/claude-sonnet-5", "now": None},
    "RouteShadows": {
        "node": "a",
        "name": "claude",
        "outcomes": {"answered": 19, "over_budget": 4},
        "calls_equal": 6,
        "calls_different": 1,
        "records": [
            {
                "at_ms": 1_754_000_000_000,
                "request_id": "req_019863000000a1b2000000000000c3d4",
                "worker": "w-7f3a91c0d2e4",
                "target": "w-19ab40e7c655",
                "answer": _SHOWN_FIGURES,
                "copy": {**_SHOWN_FIGURES, "characters": 371},
                "error": "",
                "calls_equal": None,
                "length_ratio": 0.92,
            }
        ],
    },
    "ProviderQuestion": {
        "model": "claude",
        "body": {"messages": [{"role": "user", "content": "Hello"}], "seed": 7},
    },
    "ProviderExplained": {
        "node": "a",
        "model": "claude",
        "api": "chat",
        "targets": [
            {
                "target": _SHOWN_TARGET,
                "apis": {
                    "chat": {"api": "messages", "way": "translated"},
                    "messages": {"api": "messages", "way": "native"},
                },
                "ignored": ["seed"],
                "refused": None,
            }
        ],
    },
}
