"""Discovery schema for `/openapi.json`, with an example."""

from collections.abc import Mapping
from typing import Any, Final

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_COUNT: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 0}
_COUNT_OR_NULL: Final[Mapping[str, Any]] = {"type": ["integer", "null"], "minimum": 0}


def _whole(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


_MEMBER: Final = _whole(
    {
        "node": _TEXT,
        "standing": {"enum": ["waiting", "starting", "ok", "recovering", "failing", "aside"]},
        "since_ms": _COUNT,
        "writing": {"type": "boolean"},
        "sightings": _COUNT,
        "age_ms": _COUNT_OR_NULL,
        "waiting": _COUNT,
        "refused": _COUNT,
        "trouble": _TEXT,
        "held": _TEXT,
        "unusable": _TEXT,
    }
)
_SOURCE: Final = _whole(
    {
        "kind": {"enum": ["kubernetes", "dns", "file"]},
        "name": _TEXT,
        "writer": _TEXT,
        "standby": _TEXT,
        "registered": _COUNT,
        "removed": _COUNT,
        "trouble": _TEXT,
        "members": {"type": "array", "items": _MEMBER},
    }
)
DISCOVERY_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Discovery": _whole({"node": _TEXT, "sources": {"type": "array", "items": _SOURCE}})
}
DISCOVERY_EXAMPLES: Final[Mapping[str, Any]] = {
    "Discovery": {
        "node": "a",
        "sources": [
            {
                "kind": "kubernetes",
                "name": "chat",
                "writer": "b",
                "standby": "a",
                "registered": 12,
                "removed": 1,
                "trouble": "",
                "members": [
                    {
                        "node": "b",
                        "standing": "ok",
                        "since_ms": 86_400_000,
                        "writing": True,
                        "sightings": 13,
                        "age_ms": 12_400,
                        "waiting": 0,
                        "refused": 1,
                        "trouble": "",
                        "held": "10.0.0.9:50051: an operator removed it; `workers add` brings it back",
                        "unusable": "",
                    }
                ],
            }
        ],
    }
}
