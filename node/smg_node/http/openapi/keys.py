"""Keys in `/openapi.json`: schemas of API keys, with an example of each."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.http.ports.keys import EXPIRES_IN_MAX_S, IMPORT_MAX

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_MOMENT: Final[Mapping[str, Any]] = {"type": ["integer", "null"]}
_ROLE: Final[Mapping[str, Any]] = {"enum": ["user", "operator", "admin"]}
_TENANT: Final[Mapping[str, Any]] = {
    "type": ["string", "null"],
    "pattern": "^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$",
}
_NAME: Final[Mapping[str, Any]] = {
    "type": ["string", "null"],
    "maxLength": 64,
    "pattern": "^[ -~]*$",
}
_OWNED: Final = [
    {"required": ["tenant"], "properties": {"tenant": _TEXT}},
    {"required": ["role"], "properties": {"role": {"enum": ["operator", "admin"]}}},
]
"""A key of a user belongs to a tenant."""
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
    "foreign": {"type": "boolean"},
}


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


KEY_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "KeyRequest": {
        "type": "object",
        "properties": {
            "tenant": _TENANT,
            "role": {"enum": ["user", "operator", "admin", None]},
            "name": _NAME,
            "expires_in_s": {
                "type": ["integer", "null"],
                "minimum": 1,
                "maximum": EXPIRES_IN_MAX_S,
            },
        },
        "additionalProperties": False,
        "anyOf": _OWNED,
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
    "NewKey": _object({**_KEY, "key": _TEXT, "closes": {"type": "boolean"}}, *_KEY, "key"),
    "KeyImportRequest": {
        "type": "object",
        "properties": {
            "keys": {
                "type": "array",
                "minItems": 1,
                "maxItems": IMPORT_MAX,
                "items": {
                    "type": "object",
                    "properties": {
                        "sha256": {"type": "string", "pattern": "^[0-9A-Fa-f]{64}$"},
                        "tenant": _TENANT,
                        "role": {"enum": ["user", "operator", "admin", None]},
                        "name": _NAME,
                        "expires_ms": {
                            "type": ["integer", "null"],
                            "minimum": 1,
                            "maximum": (1 << 53) - 1,
                        },
                    },
                    "required": ["sha256"],
                    "additionalProperties": False,
                    "anyOf": _OWNED,
                },
            },
            "dry_run": {"type": ["boolean", "null"]},
        },
        "required": ["keys"],
        "additionalProperties": False,
    },
    "KeyImport": _object(
        {
            "created": {"type": "array", "items": {"$ref": "#/components/schemas/ApiKey"}},
            "unchanged": {"type": "integer"},
            "refused": {
                "type": "array",
                "items": _object(
                    {
                        "index": {"type": "integer"},
                        "id": _TEXT,
                        "code": {"enum": ["key_differs", "key_revoked", "key_expired"]},
                        "message": _TEXT,
                    },
                    *("index", "id", "code", "message"),
                ),
            },
            "closes": {"type": "boolean"},
            "dry_run": {"type": "boolean"},
        },
        *("created", "unchanged", "refused", "closes", "dry_run"),
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
    "foreign": False,
}
KEY_EXAMPLES: Final[Mapping[str, Any]] = {
    "KeyRequest": {
        "tenant": "acme",
        "role": "user",
        "name": "checkout service",
        "expires_in_s": 2_592_000,
    },
    "KeyList": {"closed": True, "keys": [_ONE]},
    "NewKey": {**_ONE, "key": "smg-k3x9q0a7m2bd-SECRET", "closes": False},
    "KeyImportRequest": {
        "keys": [
            {
                "sha256": "6ca13d52ca70c883e0f0bb101e425a89e8624de51db2d2392593af6a84118090",
                "tenant": "acme",
                "role": "user",
                "name": "checkout service",
                "expires_ms": _MS + 2_592_000_000,
            }
        ],
        "dry_run": False,
    },
    "KeyImport": {
        "created": [{**_ONE, "id": "f3x9q0a7m2bdk4zt", "foreign": True}],
        "unchanged": 0,
        "refused": [],
        "closes": False,
        "dry_run": False,
    },
    "RevokedKey": {
        **_ONE,
        "fingerprint": "",
        "state": "revoked",
        "revoked_ms": _MS + 86_400_000,
        "opens": False,
    },
}
