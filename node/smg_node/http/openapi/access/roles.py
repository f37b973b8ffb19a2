"""Roles in `/openapi.json`: schemas of roles and of their definition, with an example of each."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.access.permissions import PERMISSIONS

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
_PERMISSIONS: Final[Mapping[str, Any]] = {
    "type": "array",
    "items": {"enum": list(PERMISSIONS)},
}


def _whole(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


ROLE_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Role": _whole(
        {
            "name": _TEXT,
            "permissions": _PERMISSIONS,
            "source": {"enum": ["built-in", "node", "cluster"]},
            "version": _TEXT,
        }
    ),
    "RoleList": _whole(
        {
            "node": _TEXT,
            "roles": {"type": "array", "items": {"$ref": "#/components/schemas/Role"}},
            "unreadable": {"type": "object", "additionalProperties": _TEXT},
        }
    ),
    "RoleRequest": {
        **_whole({"permissions": {**_PERMISSIONS, "minItems": 1}}),
        "additionalProperties": False,
    },
    "RoleRemoved": _whole(
        {
            "status": {"const": "removed"},
            "name": _TEXT,
            "now": {"anyOf": [{"$ref": "#/components/schemas/Role"}, {"type": "null"}]},
            "used_by": _whole({"keys": _TEXTS, "issuers": _TEXTS, "certificates": _TEXTS}),
        }
    ),
}
_FLEET: Final = {
    "name": "fleet",
    "permissions": ["look", "workers"],
    "source": "cluster",
    "version": "115964116992",
}
ROLE_EXAMPLES: Final[Mapping[str, Any]] = {
    "Role": _FLEET,
    "RoleList": {"node": "a", "roles": [_FLEET], "unreadable": {}},
    "RoleRequest": {"permissions": ["look", "workers"]},
    "RoleRemoved": {
        "status": "removed",
        "name": "fleet",
        "now": None,
        "used_by": {"keys": [], "issuers": [], "certificates": []},
    },
}
