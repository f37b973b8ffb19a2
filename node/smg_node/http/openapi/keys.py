"""Keys in `/openapi.json`: schemas of API keys, with an example of each."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.access.restrictions import APIS, ENTRIES_MAX, MODEL_CHARACTERS_MAX
from smg_node.core.access.permissions import BUILT_IN
from smg_node.core.request_context import PRIORITIES
from smg_node.http.ports.keys import EXPIRES_IN_MAX_S

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_MOMENT: Final[Mapping[str, Any]] = {"type": ["integer", "null"]}
_ROLE: Final[Mapping[str, Any]] = {
    "type": "string",
    "description": f"{', '.join(BUILT_IN)}, or a role of auth.roles.",
}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
_KEY: Final[Mapping[str, Any]] = {
    "id": _TEXT,
    "tenant": _TEXT,
    "role": _ROLE,
    "name": _TEXT,
    "fingerprint": _TEXT,
    "state": {"enum": ["active", "expired", "revoked"]},
    "source": {"enum": ["cluster", "file"]},
    "created_ms": _MOMENT,
    "expires_ms": _MOMENT,
    "revoked_ms": _MOMENT,
    "models": _TEXTS,
    "networks": _TEXTS,
    "routes": _TEXTS,
    "max_priority": {"enum": ["", *PRIORITIES]},
}


def _some(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": ["array", "null"], "maxItems": ENTRIES_MAX, "items": dict(item)}


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


KEY_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "KeyRequest": {
        "type": "object",
        "properties": {
            "tenant": {"type": ["string", "null"], "pattern": "^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$"},
            "role": {**_ROLE, "type": ["string", "null"], "pattern": "^[a-z][a-z0-9_.-]{0,31}$"},
            "name": {"type": ["string", "null"], "maxLength": 64, "pattern": "^[ -~]*$"},
            "expires_in_s": {
                "type": ["integer", "null"],
                "minimum": 1,
                "maximum": EXPIRES_IN_MAX_S,
            },
            "models": _some(
                {
                    "type": "string",
                    "maxLength": MODEL_CHARACTERS_MAX,
                    "pattern": "^[!-~]+$",
                    "description": "`*` stands for any characters.",
                }
            ),
            "networks": _some(
                {
                    "type": "string",
                    "maxLength": 64,
                    "description": "An address, or a network such as 10.0.0.0/8 or 2001:db8::/32.",
                }
            ),
            "routes": _some({"enum": list(APIS)}),
            "max_priority": {"enum": [*PRIORITIES, None]},
        },
        "additionalProperties": False,
        # A key of a user belongs to a tenant.
        "anyOf": [
            {"required": ["tenant"], "properties": {"tenant": _TEXT}},
            {"required": ["role"], "properties": {"role": {"enum": ["operator", "admin"]}}},
        ],
    },
    "ApiKey": _object(_KEY, *_KEY),
    "KeyList": _object(
        {
            "closed": {"type": "boolean"},
            "keys": {"type": "array", "items": {"$ref": "#/components/schemas/ApiKey"}},
        },
        "closed",
        "keys",
    ),
    "NewKey": _object(
        {**_KEY, "key": _TEXT, "closes": {"type": "boolean"}, "unknown_on": _TEXTS}, *_KEY, "key"
    ),
    "RevokedKey": _object({**_KEY, "opens": {"type": "boolean"}}, *_KEY, "opens"),
}
_MS: Final = 1_754_000_000_000
_ONE: Final = {
    "id": "k3x9q0a7m2bd",
    "tenant": "acme",
    "role": "user",
    "name": "checkout service",
    "fingerprint": "9c2f10ab77d3",
    "state": "active",
    "source": "cluster",
    "created_ms": _MS,
    "expires_ms": _MS + 2_592_000_000,
    "revoked_ms": None,
    "models": ["llama-*"],
    "networks": ["10.0.0.0/8"],
    "routes": ["chat", "responses"],
    "max_priority": "default",
}
KEY_EXAMPLES: Final[Mapping[str, Any]] = {
    "KeyRequest": {
        "tenant": "acme",
        "role": "user",
        "name": "checkout service",
        "expires_in_s": 2_592_000,
        "models": ["llama-*"],
        "networks": ["10.0.0.0/8"],
        "routes": ["chat", "responses"],
        "max_priority": "default",
    },
    "KeyList": {"closed": True, "keys": [_ONE]},
    "NewKey": {**_ONE, "key": "smg-k3x9q0a7m2bd-SECRET", "closes": False},
    "RevokedKey": {
        **_ONE,
        "fingerprint": "",
        "state": "revoked",
        "revoked_ms": _MS + 86_400_000,
        "opens": False,
    },
}
