"""Keys in `/openapi.json`: schemas of API keys, of issuers of tokens and of denials, with an example of each."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.access.restrictions import APIS, ENTRIES_MAX, MODEL_CHARACTERS_MAX
from smg_node.core.access.permissions import BUILT_IN
from smg_node.core.request_context import PRIORITIES
from smg_node.http.ports.access import FOR_MAX_S, SUBJECT_MAX
from smg_node.http.ports.keys import EXPIRES_IN_MAX_S, IMPORT_MAX

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_COUNT: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 0}
_SWITCH: Final[Mapping[str, Any]] = {"type": "boolean"}
_MOMENT: Final[Mapping[str, Any]] = {"type": ["integer", "null"]}
_ROLE: Final[Mapping[str, Any]] = {
    "type": "string",
    "description": f"{', '.join(BUILT_IN)}, or a role of auth.roles.",
}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
_TENANT: Final[Mapping[str, Any]] = {
    "type": ["string", "null"],
    "pattern": "^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$",
}
_SAID_ROLE: Final[Mapping[str, Any]] = {
    **_ROLE,
    "type": ["string", "null"],
    "pattern": "^[a-z][a-z0-9_.-]{0,31}$",
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
    "models": _TEXTS,
    "networks": _TEXTS,
    "routes": _TEXTS,
    "max_priority": {"enum": ["", *PRIORITIES]},
    "foreign": {"type": "boolean"},
}


def _some(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": ["array", "null"], "maxItems": ENTRIES_MAX, "items": dict(item)}


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _whole(properties: Mapping[str, Any]) -> dict[str, Any]:
    return _object(properties, *properties)


def _list(of: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "array", "items": of}


_ISSUER: Final[Mapping[str, Any]] = {
    "name": _TEXT,
    "issuer": _TEXT,
    "state": {"enum": ["fresh", "stale", "never"]},
    "keys": _list(_whole({"kid": _TEXT, "algorithms": _list(_TEXT)})),
    "skipped": _list(_whole({"kid": _TEXT, "kind": _TEXT, "reason": _TEXT})),
    "fetched_ms": _MOMENT,
    "fetched_by": _TEXT,
    "good_until_ms": _MOMENT,
    "refreshed_by": _TEXT,
    "requests": _COUNT,
    "failures": _COUNT,
    "last_error": _TEXT,
    "last_error_ms": _MOMENT,
    "introspection": _SWITCH,
    "introspection_error": _TEXT,
    "source": {"enum": ["node", "cluster"]},
    "version": _TEXT,
    "spec": {"type": "object"},
}
_DENIAL: Final[Mapping[str, Any]] = {
    "issuer": _TEXT,
    "subject": _TEXT,
    "before_ms": _MOMENT,
    "until_ms": {"type": "integer"},
    "made_ms": {"type": "integer"},
    "active": _SWITCH,
}
KEY_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "KeyRequest": {
        "type": "object",
        "properties": {
            "tenant": _TENANT,
            "role": _SAID_ROLE,
            "name": _NAME,
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
    "NewKey": _object(
        {**_KEY, "key": _TEXT, "closes": {"type": "boolean"}, "unknown_on": _TEXTS}, *_KEY, "key"
    ),
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
                        "role": _SAID_ROLE,
                        "name": _NAME,
                        "expires_ms": {
                            "type": ["integer", "null"],
                            "minimum": 1,
                            "maximum": (1 << 53) - 1,
                        },
                        "models": _some(
                            {"type": "string", "minLength": 1, "maxLength": MODEL_CHARACTERS_MAX}
                        ),
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
            "unknown_on": _TEXTS,
        },
        *("created", "unchanged", "refused", "closes", "dry_run"),
    ),
    "RevokedKey": _object({**_KEY, "opens": {"type": "boolean"}}, *_KEY, "opens"),
}
_ISSUER_TEXTS: Final = (
    "roles", "tenant", "tenant_fixed", "tenant_prefix", "keys_url", "authority", "token_file",
)  # fmt: skip
ACCESS_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "TokenIssuer": _whole(_ISSUER),
    "TokenIssuerList": _whole(
        {
            "node": _TEXT,
            "issuers": _list({"$ref": "#/components/schemas/TokenIssuer"}),
            "unreadable": {"type": "object", "additionalProperties": _TEXT},
        }
    ),
    # The fields of auth.issuers, whose checks are beyond a schema.
    "TokenIssuerRequest": {
        "type": "object",
        "properties": {
            "issuer": {"type": "string", "minLength": 1, "maxLength": 512},
            "audiences": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 32},
            "role_map": {"type": "object", "additionalProperties": _TEXT},
            **dict.fromkeys(_ISSUER_TEXTS, _TEXT),
            **{name: {"type": "array", "items": _TEXT} for name in ("algorithms", "token_types")},
            "leeway_s": {"type": "number", "minimum": 0, "maximum": 300},
            "keys_max_age_s": {"type": "number", "minimum": 300, "maximum": 2_592_000},
            "introspection": {
                "type": "object",
                "properties": dict.fromkeys(("url", "client_id", "client_secret_file"), _TEXT),
                "additionalProperties": False,
            },
        },
        "required": ["issuer", "audiences", "role_map"],
        "additionalProperties": False,
    },
    "TokenIssuerRemoved": _whole(
        {
            "status": {"const": "removed"},
            "name": _TEXT,
            "now": {"anyOf": [{"$ref": "#/components/schemas/TokenIssuer"}, {"type": "null"}]},
        }
    ),
    "DenialRequest": {
        "type": "object",
        "properties": {
            "issuer": {"type": "string", "minLength": 1, "maxLength": 63},
            "subject": {"type": "string", "minLength": 1, "maxLength": SUBJECT_MAX},
            "before_ms": {"type": ["integer", "null"], "minimum": 1, "maximum": (1 << 53) - 1},
            "for_s": {"type": "integer", "minimum": 1, "maximum": FOR_MAX_S},
        },
        "required": ["issuer", "subject", "for_s"],
        "additionalProperties": False,
    },
    "Denial": _whole(_DENIAL),
    "DenialList": _whole(
        {"node": _TEXT, "denials": _list({"$ref": "#/components/schemas/Denial"})}
    ),
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
    "foreign": False,
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
_DENIED: Final = {
    "issuer": "corp",
    "subject": "alice",
    "before_ms": None,
    "until_ms": _MS + 86_400_000,
    "made_ms": _MS,
    "active": True,
}
_CORP: Final = {
    "name": "corp",
    "issuer": "https://sso.example/realms/prod",
    "state": "fresh",
    "keys": [{"kid": "2025-07", "algorithms": ["RS256"]}],
    "skipped": [{"kid": "enc-1", "kind": "RSA RSA-OAEP", "reason": "not_for_signatures"}],
    "fetched_ms": _MS,
    "fetched_by": "a",
    "good_until_ms": _MS + 86_400_000,
    "refreshed_by": "a",
    "requests": 12,
    "failures": 0,
    "last_error": "",
    "last_error_ms": None,
    "introspection": False,
    "introspection_error": "",
    "source": "cluster",
    "version": "115964116992",
    "spec": {
        "issuer": "https://sso.example/realms/prod",
        "audiences": ["smg"],
        "role_map": {"*": "user"},
        "tenant": "/azp",
    },
}
ACCESS_EXAMPLES: Final[Mapping[str, Any]] = {
    "TokenIssuer": _CORP,
    "TokenIssuerList": {"node": "a", "issuers": [_CORP], "unreadable": {}},
    "TokenIssuerRequest": _CORP["spec"],
    "TokenIssuerRemoved": {"status": "removed", "name": "corp", "now": None},
    "DenialRequest": {"issuer": "corp", "subject": "alice", "for_s": 86_400},
    "Denial": _DENIED,
    "DenialList": {"node": "a", "denials": [_DENIED]},
}
