"""Tool server schemas for `/openapi.json`, with those of runs that wait for an operator, and an example of each."""

from collections.abc import Mapping
from typing import Any, Final, get_args

from smg_node.core.generation.tool_owner import ToolShape

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_COUNT: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 0}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
_ANY: Final[Mapping[str, Any]] = {"type": "object"}
_FLAG: Final[Mapping[str, Any]] = {"type": "boolean"}
_STRINGS: Final[Mapping[str, Any]] = {"type": "object", "additionalProperties": _TEXT}
_VERDICT: Final[Mapping[str, Any]] = {"enum": ["allow", "ask", "deny"]}
_SECRET: Final[Mapping[str, Any]] = {
    "type": "string",
    "description": "file:/PATH, env:NAME, or the value itself.",
}


def _all(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def _all_of(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return _all(properties)


def _closed(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _list(of: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(of)}


def _or_null(of: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [dict(of), {"type": "null"}]}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_AUTH: Final = _closed(
    {
        "kind": {"enum": ["none", "bearer", "headers", "client", "client_credentials"]},
        "token": _SECRET,
        "headers": {"type": "object", "additionalProperties": _SECRET},
        "token_url": _TEXT,
        "client_id": _TEXT,
        "client_secret": _SECRET,
        "scope": _TEXT,
        "resource": _TEXT,
        "in_body": _FLAG,
    },
    "kind",
)
_BUILTINS: Final = (
    "web_search",
    "web_fetch",
    "file_search",
    "code_interpreter",
    "image_generation",
)
_RULE: Final = _closed(
    {
        "alias": _TEXT,
        "shape": {"enum": list(get_args(ToolShape))},
        "arguments": _closed({"rename": _STRINGS, "defaults": _ANY, "fixed": _ANY}),
        "approval": _VERDICT,
        "timeout_s": {"type": "number", "minimum": 0},
        "output_bytes_max": _COUNT,
        "price_per_call": {"anyOf": [_TEXT, {"type": "number", "minimum": 0}]},
        "read_only": _FLAG,
        "idempotent": _FLAG,
        "defer": _FLAG,
        "hidden": _FLAG,
    }
)
_FIELDS: Final[Mapping[str, Any]] = {
    "url": _TEXT,
    "transport": {"enum": ["auto", "http", "sse"]},
    "protocol": {"type": "string", "description": "auto, or a revision such as 2025-11-25."},
    "concurrency": {"type": "integer", "minimum": 1, "maximum": 10_000},
    "auth": {"anyOf": [{"enum": ["none", "client"]}, _AUTH]},
    "forward_headers": _TEXTS,
    "tenants": _TEXTS,
    "keys": _TEXTS,
    "trust": {"enum": ["trusted", "standard", "untrusted", "sandboxed"]},
    "session": {"enum": ["shared", "thread", "call"]},
    "replay": {"enum": ["never", "hinted", "always"]},
    "idempotency": {
        "type": "string",
        "description": "How a run's key is told: meta, none, header:NAME or argument:NAME.",
    },
    "tools": {"type": "object", "additionalProperties": _RULE},
    "rules": _list(_closed({"tools": _TEXT, "verdict": _VERDICT}, "tools", "verdict")),
    "builtin": _closed(dict.fromkeys(_BUILTINS, _TEXT)),
    "description": _TEXT,
    "required": _FLAG,
    "internal": _FLAG,
}
_TOOL: Final = _all(
    {"name": _TEXT, "description": _TEXT, "input_schema": _ANY, "annotations": _ANY}
)

_APPROVALS: Final[Mapping[str, Mapping[str, Any]]] = {
    "WaitingRun": _all_of(
        id=_TEXT,
        node=_TEXT,
        tenant=_TEXT,
        key_id=_TEXT,
        server=_TEXT,
        tool=_TEXT,
        arguments={**_TEXT, "description": "JSON text; only its beginning where it is `cut`."},
        cut=_FLAG,
        model=_TEXT,
        request_id=_TEXT,
        since_ms=_COUNT,
        until_ms=_COUNT,
    ),
    "ApprovalList": _all_of(
        node=_TEXT,
        approvals={"type": "array", "items": {"$ref": "#/components/schemas/WaitingRun"}},
        left_out=_COUNT,
        members={
            "type": "object",
            "additionalProperties": _TEXT,
            "description": "Members that could not be asked, and why.",
        },
    ),
    "ApprovalShown": _all_of(node=_TEXT, approval={"$ref": "#/components/schemas/WaitingRun"}),
    "ApprovalAnswer": {
        "type": "object",
        "properties": {
            "approve": _FLAG,
            "reason": {**_TEXT, "maxLength": 500, "description": "The model is told it, if no."},
        },
        "required": ["approve"],
        "additionalProperties": False,
    },
    "ApprovalAnswered": _all_of(
        status=_TEXT, id=_TEXT, approve=_FLAG, node=_TEXT, server=_TEXT, tool=_TEXT
    ),
}


_RPC_ID: Final[Mapping[str, Any]] = {"type": ["string", "integer"]}
_VERSION: Final[Mapping[str, Any]] = {"const": "2.0"}
_ERROR: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
    "required": ["code", "message"],
}
_REPLY: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "jsonrpc": _VERSION,
        "id": {"type": ["string", "integer", "null"]},
        "result": _ANY,
        "error": _ERROR,
    },
    "required": ["jsonrpc", "id"],
}

_MESSAGES: Final[Mapping[str, Mapping[str, Any]]] = {
    "McpMessage": {
        "type": "object",
        "properties": {
            "jsonrpc": _VERSION,
            "id": _RPC_ID,
            "method": {"type": "string"},
            "params": _ANY,
        },
        "required": ["jsonrpc", "method"],
    },
    "McpReply": {"anyOf": [_REPLY, {"type": "array", "items": _REPLY}]},
}

TOOL_SERVER_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    **_MESSAGES,
    **_APPROVALS,
    "ToolServerRequest": {
        **_closed(_FIELDS, "url"),
        "description": "A server as in a file of --mcp; secrets that are left out stay while the origin of its URL does.",
    },
    "NamedToolServerRequest": _closed({"name": _TEXT, **_FIELDS}, "name", "url"),
    "ToolServer": _all(
        {
            "name": _TEXT,
            "spec": _ANY,
            "secrets": _STRINGS,
            "source": {"enum": ["cluster", "node"]},
            "version": _TEXT,
            "owner": _TEXT,
            "time_ms": _COUNT,
            "trouble": _TEXT,
        }
    ),
    "ToolServerList": _all(
        {"node": _TEXT, "servers": _list(_reference("ToolServer")), "unreadable": _STRINGS}
    ),
    "ToolServerRemoved": _all(
        {"status": _TEXT, "name": _TEXT, "now": _or_null(_reference("ToolServer"))}
    ),
    "ServerTools": _all(
        {
            "node": _TEXT,
            "server": _TEXT,
            "tools": _list(_TOOL),
            "left_out": _list(_all({"name": _TEXT, "why": _TEXT})),
        }
    ),
    "ToolCallRequest": _closed({"tool": _TEXT, "arguments": _ANY, "authorization": _TEXT}, "tool"),
    "ToolCallOutcome": _all(
        {
            "node": _TEXT,
            "server": _TEXT,
            "tool": _TEXT,
            "content": _list(_ANY),
            "structured": {},
            "error": _or_null(_ANY),
            "duration_ms": _COUNT,
        }
    ),
}

_SPEC: Final = {
    "url": "https://docs.example.com/mcp",
    "auth": {"kind": "bearer"},
    "tools": {"search": {"approval": "allow", "price_per_call": "0.005"}},
}
_SERVER: Final = {
    "name": "docs",
    "spec": _SPEC,
    "secrets": {"token": "file:/run/secrets/docs"},
    "source": "cluster",
    "version": "115964116992000",
    "owner": "a",
    "time_ms": 1_754_000_000_000,
    "trouble": "",
}
_REQUEST: Final = {**_SPEC, "auth": {"kind": "bearer", "token": "file:/run/secrets/docs"}}

_RUN_ID: Final = "mcpa_0198f2a4c51e00071f6d2b9c04e83a5d"
_RUN: Final = {
    "id": _RUN_ID,
    "node": "b",
    "tenant": "acme",
    "key_id": "k-7f3a",
    "server": "crm",
    "tool": "delete_contact",
    "arguments": '{"id": 4711}',
    "cut": False,
    "model": "qwen3",
    "request_id": "req_0198f2a4c51d0006",
    "since_ms": 1_754_000_000_000,
    "until_ms": 1_754_000_300_000,
}

_APPROVAL_EXAMPLES: Final[Mapping[str, Any]] = {
    "WaitingRun": _RUN,
    "ApprovalList": {"node": "a", "approvals": [_RUN], "left_out": 0, "members": {}},
    "ApprovalShown": {"node": "a", "approval": _RUN},
    "ApprovalAnswer": {"approve": False, "reason": "only with the owner's consent"},
    "ApprovalAnswered": {
        "status": "answered",
        "id": _RUN_ID,
        "approve": False,
        "node": "b",
        "server": "crm",
        "tool": "delete_contact",
    },
}

TOOL_SERVER_EXAMPLES: Final[Mapping[str, Any]] = {
    **_APPROVAL_EXAMPLES,
    "ToolServerRequest": _REQUEST,
    "NamedToolServerRequest": {"name": "docs", **_REQUEST},
    "ToolServer": _SERVER,
    "ToolServerList": {"node": "a", "servers": [_SERVER], "unreadable": {}},
    "ToolServerRemoved": {"status": "removed", "name": "docs", "now": None},
    "ServerTools": {
        "node": "a",
        "server": "docs",
        "tools": [
            {
                "name": "search",
                "description": "Searches the documents.",
                "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}},
                "annotations": {"readOnlyHint": True},
            }
        ],
        "left_out": [{"name": "dump", "why": "its schema has more than 16384 bytes"}],
    },
    "ToolCallRequest": {"tool": "search", "arguments": {"query": "limits"}},
    "ToolCallOutcome": {
        "node": "a",
        "server": "docs",
        "tool": "search",
        "content": [{"type": "text", "text": "3 documents"}],
        "structured": None,
        "error": None,
        "duration_ms": 41,
    },
}
