"""Provider schemas for `/openapi.json`, with an example of each."""

from collections.abc import Mapping
from typing import Any, Final

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_COUNT: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 0}
_KNOWN: Final[Mapping[str, Any]] = {"type": ["integer", "null"]}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
_ANY: Final[Mapping[str, Any]] = {"type": "object"}
_STRINGS: Final[Mapping[str, Any]] = {"type": "object", "additionalProperties": _TEXT}
_NUMBER: Final[Mapping[str, Any]] = {"type": "number", "exclusiveMinimum": 0}


def _all(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


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
_WAY: Final = _all({"api": _TEXT, "way": {"enum": ["native", "translated"]}})
_REFUSAL: Final = _all({"message": _TEXT, "where": _TEXT, "code": _TEXT})
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
                        {"type": "string", "description": "PROVIDER/MODEL"},
                        {
                            "type": "object",
                            "properties": {"to": _TEXT, "weight": _NUMBER, "on": _TEXTS},
                            "required": ["to"],
                            "additionalProperties": False,
                        },
                    ]
                },
            }
        },
        "required": ["targets"],
        "additionalProperties": False,
    },
    "ProviderRoute": _all({"name": _TEXT, "spec": _ANY, **_WRITTEN, "targets": _list(_TARGET)}),
    "ProviderRouteList": _all({"node": _TEXT, "routes": _list(_reference("ProviderRoute"))}),
    "ProviderRouteRemoved": _all(
        {"status": _TEXT, "name": _TEXT, "now": _or_null(_reference("ProviderRoute"))}
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
    ]
}
_ROUTE: Final = {"name": "claude", "spec": _ROUTE_SPEC, **_BY, "targets": [_SHOWN_TARGET]}

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
