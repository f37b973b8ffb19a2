"""Schemas for `/openapi.json`: bodies as their readers take them, and the outer form of answers."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.http.openapi.access.keys import ACCESS_SCHEMAS, KEY_SCHEMAS
from smg_node.http.openapi.access.roles import ROLE_SCHEMAS
from smg_node.http.openapi.cluster_metrics import NUMBERS_SCHEMAS
from smg_node.http.openapi.drain import DRAIN_SCHEMAS
from smg_node.http.openapi.explain import EXPLAIN_SCHEMAS
from smg_node.http.openapi.history import HISTORY_SCHEMAS
from smg_node.http.openapi.limits import LIMIT_SCHEMAS
from smg_node.http.openapi.providers import PROVIDER_SCHEMAS
from smg_node.http.openapi.requests.bodies import BODY_SCHEMAS
from smg_node.http.openapi.requests.gemini import GEMINI_SCHEMAS
from smg_node.http.openapi.tool_servers import TOOL_SERVER_SCHEMAS
from smg_node.http.openapi.usage import USAGE_SCHEMAS
from smg_node.http.openapi.workers import DISCOVERY_SCHEMAS, WORKER_SCHEMAS

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_NUMBER: Final[Mapping[str, Any]] = {"type": "integer"}
_FLAG: Final[Mapping[str, Any]] = {"type": "boolean"}
_MODEL: Final[Mapping[str, Any]] = {"type": "string", "minLength": 1, "maxLength": 256}
_ANY: Final[Mapping[str, Any]] = {"type": "object"}
_IDS: Final[Mapping[str, Any]] = {"type": "array", "items": {"type": "integer", "minimum": 0}}


def _object(required: str = "", /, **properties: Mapping[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = required.split()
    return schema


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has no other keys."""
    return {**schema, "additionalProperties": False}


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _either(*schemas: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [dict(schema) for schema in schemas]}


_WHATEVER: Final[Mapping[str, Any]] = {}
_USAGE: Final = _object(prompt_tokens=_NUMBER, completion_tokens=_NUMBER, total_tokens=_NUMBER)

_SHARED: Final[Mapping[str, Mapping[str, Any]]] = {
    "ConfigState": _object("hash effective", hash=_TEXT, effective=_TEXT),
    "ConfigCard": _object(
        "hash effective_hash same members",
        hash=_TEXT,
        effective_hash=_TEXT,
        same=_FLAG,
        members={"type": "object", "additionalProperties": _reference("ConfigState")},
    ),
    "Namespace": _object(
        "name digest entries bytes documents epoch",
        name=_TEXT,
        digest=_TEXT,
        entries=_NUMBER,
        bytes=_NUMBER,
        documents=_NUMBER,
        epoch=_NUMBER,
    ),
    "State": _object(
        "node held digest namespaces members",
        node=_TEXT,
        held=_FLAG,
        digest=_TEXT,
        namespaces=_list(_reference("Namespace")),
        members=_ANY,
    ),
    "NamespaceState": _object(
        "node held namespace members",
        node=_TEXT,
        held=_FLAG,
        namespace=_reference("Namespace"),
        members=_ANY,
    ),
    "Setting": _object(
        "key is_set version effective source",
        key=_TEXT,
        is_set=_FLAG,
        value=_WHATEVER,
        version=_TEXT,
        owner=_TEXT,
        time_ms=_NUMBER,
        own=_WHATEVER,
        effective=_WHATEVER,
        source={"enum": ["cluster", "node", "default", ""]},
        ignored=_TEXT,
        conflicts=_list(_object("value version owner time_ms", value=_WHATEVER, version=_TEXT)),
        about=_ANY,
    ),
    "SettingList": _object(
        "node hash effective_hash same members settings",
        node=_TEXT,
        hash=_TEXT,
        effective_hash=_TEXT,
        same=_FLAG,
        members=_ANY,
        settings=_list(_reference("Setting")),
    ),
    "SettingRequest": _closed(_object("value", value={"not": {"type": "null"}})),
    "SettingDifferences": _object(
        "node with differences",
        **{"node": _TEXT, "with": _TEXT},
        differences=_list(
            _object(
                "key left left_source right right_source",
                key=_TEXT,
                left=_WHATEVER,
                left_source=_TEXT,
                right=_WHATEVER,
                right_source=_TEXT,
            )
        ),
    ),
    "SettingHistory": _object(
        "changes",
        changes=_list(
            _object(
                "id time_ms node who address action key before after whole",
                id=_TEXT,
                time_ms=_NUMBER,
                node=_TEXT,
                who=_TEXT,
                address=_TEXT,
                action=_TEXT,
                key=_TEXT,
                before=_WHATEVER,
                after=_WHATEVER,
                whole=_FLAG,
            )
        ),
    ),
    "SettingValues": _closed(
        _object("settings", settings={"type": "object", "minProperties": 1, "maxProperties": 1024})
    ),
    "Validation": _object(
        "valid problems",
        valid=_FLAG,
        problems=_list(_object("key message where", key=_TEXT, message=_TEXT, where=_TEXT)),
    ),
    "RollbackRequest": _closed(_object(change=_TEXT, to=_TEXT, force=_FLAG)),
    "Restored": _object("restored", restored=_list(_reference("Setting"))),
    "AuditRow": _object(
        "id time_ms node who address action subject before after request_id",
        id=_TEXT,
        time_ms=_NUMBER,
        node=_TEXT,
        who=_TEXT,
        address=_TEXT,
        action=_TEXT,
        subject=_TEXT,
        before=_WHATEVER,
        after=_WHATEVER,
        request_id=_TEXT,
    ),
    "AuditList": _object("rows", rows=_list(_reference("AuditRow"))),
    "Session": _object(
        "id worker why node age_ms expires_ms",
        id=_TEXT,
        worker=_TEXT,
        why=_TEXT,
        node=_TEXT,
        age_ms=_NUMBER,
        expires_ms=_NUMBER,
    ),
    "SessionEnded": _object("status session", status=_TEXT, session=_reference("Session")),
}

SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    **_SHARED,
    **DRAIN_SCHEMAS,
    **EXPLAIN_SCHEMAS,
    **HISTORY_SCHEMAS,
    **KEY_SCHEMAS,
    **ACCESS_SCHEMAS,
    **ROLE_SCHEMAS,
    **LIMIT_SCHEMAS,
    **PROVIDER_SCHEMAS,
    **TOOL_SERVER_SCHEMAS,
    **USAGE_SCHEMAS,
    **NUMBERS_SCHEMAS,
    **WORKER_SCHEMAS,
    **DISCOVERY_SCHEMAS,
    **BODY_SCHEMAS,
    **GEMINI_SCHEMAS,
    "Error": _object(
        "error",
        error=_object(
            "message type param code",
            message=_TEXT,
            type=_TEXT,
            param={"type": ["string", "null"]},
            code=_TEXT,
        ),
    ),
    "ChatCompletion": _object(
        "id object created model choices",
        id=_TEXT,
        object={"const": "chat.completion"},
        created=_NUMBER,
        model=_TEXT,
        choices=_list(_ANY),
        usage=_USAGE,
    ),
    "MessagesAnswer": _object(
        "id type role model content stop_reason stop_sequence usage",
        id=_TEXT,
        type={"const": "message"},
        role={"const": "assistant"},
        model=_TEXT,
        content=_list(_object("type", type={"enum": ["text", "thinking", "tool_use"]})),
        stop_reason={
            "enum": [
                "end_turn",
                "max_tokens",
                "stop_sequence",
                "tool_use",
                "refusal",
                "model_context_window_exceeded",
            ]
        },
        stop_sequence={"type": ["string", "null"]},
        usage=_object(
            "input_tokens output_tokens",
            input_tokens=_NUMBER,
            cache_creation_input_tokens=_NUMBER,
            cache_read_input_tokens=_NUMBER,
            output_tokens=_NUMBER,
        ),
    ),
    "Completion": _object(
        "id object created model choices",
        id=_TEXT,
        object={"const": "text_completion"},
        created=_NUMBER,
        model=_TEXT,
        choices=_list(_ANY),
        usage=_USAGE,
    ),
    "CountedTokens": _object(
        "input_tokens",
        input_tokens=_NUMBER,
        context_management=_object("original_input_tokens", original_input_tokens=_NUMBER),
    ),
    "Embeddings": _object("object data", object={"const": "list"}, data=_list(_ANY)),
    "RerankRequest": _object(
        "model query documents", model=_MODEL, query=_TEXT, documents=_list(_ANY), top_n=_NUMBER
    ),
    "Reranked": _ANY,
    "ClassifyRequest": _object("model", model=_MODEL, input=_either(_TEXT, _list(_TEXT))),
    "Classified": _ANY,
    "Tokenized": _object(
        "tokens count char_count",
        tokens=_either(_IDS, _list(_IDS)),
        count=_either(_NUMBER, _list(_NUMBER)),
        char_count=_either(_NUMBER, _list(_NUMBER)),
    ),
    "Detokenized": _object("text", text=_either(_TEXT, _list(_TEXT))),
    "ParsedCalls": _object(
        "remaining_text tool_calls success",
        remaining_text=_TEXT,
        tool_calls=_list(_ANY),
        reasoning_text=_TEXT,
        success={"const": True},
    ),
    "ParsedReasoning": _object(
        "normal_text reasoning_text success",
        normal_text=_TEXT,
        reasoning_text=_TEXT,
        success={"const": True},
    ),
    "Model": _object(
        "id object created owned_by",
        id=_TEXT,
        object={"const": "model"},
        created=_NUMBER,
        owned_by=_TEXT,
        x_smg=_ANY,
    ),
    "ModelList": _object("object data", object={"const": "list"}, data=_list(_reference("Model"))),
    "ModelCard": _object("model_path", model_path=_TEXT, is_generation=_FLAG),
    "ServerCard": _object("node version settings", node=_TEXT, version=_TEXT, settings=_ANY),
    "Accepted": _object(
        "status worker_id url location",
        status={"const": "accepted"},
        worker_id=_TEXT,
        url=_TEXT,
        location=_TEXT,
        message=_TEXT,
    ),
    "Removed": _object("status worker_id", status=_TEXT, worker_id=_TEXT),
    "Loads": _object("loads", loads=_list(_ANY)),
    "Cluster": _object(
        "label node security joined members",
        label=_TEXT,
        node=_TEXT,
        address=_TEXT,
        boot=_NUMBER,
        incarnation=_NUMBER,
        security={"enum": ["encrypted", "insecure", "alone"]},
        joined=_FLAG,
        isolated=_FLAG,
        drained=_FLAG,
        leaving=_FLAG,
        members=_ANY,
        degraded=_list(_TEXT),
        wire_version=_NUMBER,
        digest=_TEXT,
        seeds=_list(_ANY),
        keys=_list(_TEXT),
        config=_reference("ConfigCard"),
    ),
    "Member": _object(
        "name state address boot incarnation since_ms",
        name=_TEXT,
        state={"enum": ["alive", "suspect", "dead", "left"]},
        address=_TEXT,
        boot=_NUMBER,
        incarnation=_NUMBER,
        rtt_ms={"type": ["number", "null"]},
        health={"type": ["integer", "null"]},
        lag_ms={"type": ["integer", "null"]},
        since_ms=_NUMBER,
        meta=_ANY,
        me=_FLAG,
        announced=_FLAG,
        accuser=_TEXT,
        config_hash=_TEXT,
        effective_hash=_TEXT,
    ),
    "MemberList": _object("node members", node=_TEXT, members=_list(_reference("Member"))),
    "Forgotten": _object("name members", name=_TEXT, members=_ANY),
    "JoinRequest": _closed(
        _object(
            "peers",
            peers={
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": 300},
                "minItems": 1,
                "maxItems": 256,
            },
        )
    ),
    "Joining": _object("status peers", status=_TEXT, peers=_list(_TEXT)),
    "Leaving": _object("status node", status=_TEXT, node=_TEXT),
    "EventList": _object("node boot events", node=_TEXT, boot=_NUMBER, events=_list(_ANY)),
    "Keyring": _object("primary keys members", primary=_TEXT, keys=_list(_ANY), members=_ANY),
    "KeyringRequest": _closed(
        _object(
            "operation key",
            operation={"enum": ["install", "use", "remove"]},
            key={"type": "string", "minLength": 1, "maxLength": 128},
            force={"type": ["boolean", "null"]},
        )
    ),
    "Version": _object("name version commit", name=_TEXT, version=_TEXT, commit=_TEXT, wire={}),
    "ProtectedResource": _object(
        "resource authorization_servers bearer_methods_supported",
        resource=_TEXT,
        authorization_servers=_list(_TEXT),
        bearer_methods_supported=_list(_TEXT),
    ),
    "Document": _object("openapi info paths", openapi=_TEXT, info=_ANY, paths=_ANY),
    "Probe": _object(
        "status", status=_TEXT, healthy_workers=_NUMBER, total_workers=_NUMBER, reasons=_list(_TEXT)
    ),
    "Generated": _object("healthy models", healthy=_FLAG, models=_ANY),
}
