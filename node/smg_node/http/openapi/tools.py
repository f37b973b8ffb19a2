"""Schemas of tool routes: messages of the Model Context Protocol by their outer form."""

from collections.abc import Mapping
from typing import Any, Final

_ID: Final[Mapping[str, Any]] = {"type": ["string", "integer"]}
_VERSION: Final[Mapping[str, Any]] = {"const": "2.0"}
_ANY: Final[Mapping[str, Any]] = {"type": "object"}
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

TOOL_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "McpMessage": {
        "type": "object",
        "properties": {
            "jsonrpc": _VERSION,
            "id": _ID,
            "method": {"type": "string"},
            "params": _ANY,
        },
        "required": ["jsonrpc", "method"],
    },
    "McpReply": {"anyOf": [_REPLY, {"type": "array", "items": _REPLY}]},
}
