"""Worker schemas for `/openapi.json`: bodies and answers of `/workers`, and sources of workers with an example."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.config.worker_url import ROLES

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_TEXT_OR_NULL: Final[Mapping[str, Any]] = {"type": ["string", "null"]}
_NUMBER: Final[Mapping[str, Any]] = {"type": "integer"}
_AMOUNT: Final[Mapping[str, Any]] = {"type": "number"}
_FLAG: Final[Mapping[str, Any]] = {"type": "boolean"}
_ANY: Final[Mapping[str, Any]] = {"type": "object"}
_ROLE: Final[Mapping[str, Any]] = {"enum": list(ROLES)}
_PORT_OR_NULL: Final[Mapping[str, Any]] = {"type": ["integer", "null"]}


def _object(required: str = "", /, **properties: Mapping[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = required.split()
    return schema


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_URL: Final = {"type": "string", "minLength": 1, "maxLength": 2048}
_MAYBE_ROLE: Final = {"enum": [*ROLES, None]}
_NAME: Final = {"type": ["string", "null"], "minLength": 1, "maxLength": 256}
_NAME_OR_NOTHING: Final = {"type": ["string", "null"], "maxLength": 256}
_WORKER_SPEC: Final[Mapping[str, Mapping[str, Any]]] = {
    "model": _NAME_OR_NOTHING,
    "model_id": _NAME_OR_NOTHING,
    "role": _MAYBE_ROLE,
    "worker_type": _MAYBE_ROLE,
    "contract": _NAME,
    "runtime_type": _NAME,
    "labels": {
        "type": ["object", "null"],
        "propertyNames": {"minLength": 1, "maxLength": 256},
        "additionalProperties": {"type": "string", "maxLength": 256},
        "maxProperties": 64,
    },
    "priority": {"type": ["integer", "null"], "minimum": 0, "maximum": 1_000_000},
    "cost": {"type": ["number", "null"], "minimum": 0, "maximum": 1_000_000},
    "api_key": {"type": ["string", "null"], "maxLength": 4096, "pattern": "^[ -~]*$"},
    "bootstrap_port": {"type": ["integer", "null"], "minimum": 1, "maximum": 65_535},
}
WORKER_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "WorkerRequest": _object("url", url=_URL, **_WORKER_SPEC),
    "WorkerPatch": {
        **_object(status={"enum": ["draining", "ready", None]}, **_WORKER_SPEC),
        "minProperties": 1,
        "additionalProperties": False,
    },
    "Worker": _object(
        "id url status",
        id=_TEXT,
        url=_TEXT,
        model=_TEXT,
        contract=_TEXT,
        role=_ROLE,
        status={"enum": ["pending", "ready", "not_ready", "failed", "draining"]},
        reason=_TEXT,
        inflight=_NUMBER,
        labels=_ANY,
        details=_ANY,
        priority=_NUMBER,
        cost=_AMOUNT,
        has_key=_FLAG,
        sources=_list(_TEXT),
        owner=_TEXT,
        seen_by=_list(_TEXT),
        breaker=_object(
            "state why samples failures opened pressure",
            state=_TEXT,
            why=_TEXT,
            samples=_NUMBER,
            failures=_NUMBER,
            opened=_NUMBER,
            pressure=_NUMBER,
            again_ms={"type": ["integer", "null"]},
        ),
        busy=_ANY,
        ranks=_NUMBER,
        pairing=_TEXT,
        bootstrap_port=_PORT_OR_NULL,
        model_id=_TEXT_OR_NULL,
        worker_type=_ROLE,
        connection_mode={"enum": ["grpc", "http"]},
        runtime_type=_TEXT,
        is_healthy=_FLAG,
        load=_NUMBER,
    ),
    "WorkerList": _object(
        "workers total stats", workers=_list(_reference("Worker")), total=_NUMBER, stats=_ANY
    ),
    "ClusterWorker": _object(
        "id url sources registered_by probers sights status",
        id=_TEXT,
        url=_TEXT,
        model=_TEXT,
        role=_ROLE,
        contract=_TEXT,
        priority=_NUMBER,
        cost=_AMOUNT,
        labels=_ANY,
        has_key=_FLAG,
        draining=_FLAG,
        sources=_list(_TEXT),
        registered_by=_TEXT,
        version=_TEXT,
        status=_TEXT,
        reason=_TEXT,
        probers=_list(_TEXT),
        sights={
            "type": "object",
            "additionalProperties": _object("up age_ms", up=_FLAG, reason=_TEXT, age_ms=_NUMBER),
        },
        requests_mine=_NUMBER,
        tokens_mine=_NUMBER,
        requests_others=_NUMBER,
        tokens_others=_NUMBER,
        load_age_ms={"type": ["integer", "null"]},
    ),
    "ClusterWorkerList": _object(
        "workers total", workers=_list(_reference("ClusterWorker")), total=_NUMBER
    ),
}

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
        "defined": {"enum": ["cluster", "node", ""]},
        "definition": {"anyOf": [_reference("WorkerSource"), {"type": "null"}]},
        "overridden": {"type": "boolean"},
    }
)
DISCOVERY_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Discovery": _whole(
        {
            "node": _TEXT,
            "sources": {"type": "array", "items": _SOURCE},
            "unreadable": {"type": "object", "additionalProperties": _TEXT},
        }
    ),
    # The fields of discovery.kubernetes or discovery.dns, whose checks are beyond a schema.
    "WorkerSourceRequest": {
        "type": "object",
        "properties": {
            **dict.fromkeys(
                (
                    "selector", "service", "namespace", "role_from", "model_from",
                    "connector_annotation", "engine_id_annotation", "name", "spec",
                ),
                _TEXT,
            ),
            "port": {"type": ["string", "integer"]},
            "servers": {"type": "array", "items": _TEXT, "maxItems": 8},
            "keep": {"type": "boolean"},
            "scheme": {"enum": ["any", "grpc", "grpcs", "http", "https"]},
            "role": {"enum": ["regular", "prefill", "decode", "encode"]},
        },
        "additionalProperties": False,
    },
    "WorkerSource": _whole(
        {
            "kind": {"enum": ["kubernetes", "dns"]},
            "name": _TEXT,
            "version": _TEXT,
            "spec": {"type": "object"},
        }
    ),
    "WorkerSourceRemoved": _whole(
        {
            "status": {"const": "removed"},
            "kind": {"enum": ["kubernetes", "dns"]},
            "name": _TEXT,
            "own": {"type": "boolean"},
        }
    ),
}  # fmt: skip
_CHAT: Final[Mapping[str, Any]] = {
    "kind": "kubernetes",
    "name": "chat",
    "version": "117000000000000001",
    "spec": {"selector": "app=vllm", "port": "50051", "scheme": "grpc"},
}
DISCOVERY_EXAMPLES: Final[Mapping[str, Any]] = {
    "WorkerSourceRequest": _CHAT["spec"],
    "WorkerSource": _CHAT,
    "WorkerSourceRemoved": {
        "status": "removed",
        "kind": "kubernetes",
        "name": "chat",
        "own": False,
    },
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
                "defined": "cluster",
                "definition": _CHAT,
                "overridden": False,
            }
        ],
        "unreadable": {},
    },
}
