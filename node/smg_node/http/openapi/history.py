"""History schemas for `/openapi.json`: responses and conversations, with some examples."""

from collections.abc import Mapping
from typing import Any, Final

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_MAYBE: Final[Mapping[str, Any]] = {"type": ["string", "null"]}
_NUMBER: Final[Mapping[str, Any]] = {"type": "integer"}
_FLAG: Final[Mapping[str, Any]] = {"type": "boolean"}
_ANY: Final[Mapping[str, Any]] = {"type": "object"}
_ITEM: Final[Mapping[str, Any]] = {"$ref": "#/components/schemas/Item"}
_ITEMS: Final[Mapping[str, Any]] = {"type": "array", "items": _ITEM}


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


_METADATA: Final[Mapping[str, Any]] = {"type": ["object", "null"], "additionalProperties": _TEXT}
_ASKED: Final[Mapping[str, Any]] = {
    "model": _TEXT,
    "input": {"anyOf": [_TEXT, _ITEMS]},
    "instructions": _MAYBE,
    "previous_response_id": _MAYBE,
    "conversation": {"anyOf": [_MAYBE, _object({"id": _TEXT}, "id")]},
    "truncation": {"enum": ["disabled", "auto", None]},
}

HISTORY_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Item": _object({"id": _TEXT, "type": _TEXT, "status": _TEXT}, "type"),
    "HistoryRequest": _object(_ASKED, "model"),
    "ResponseRequest": _object(
        {**_ASKED, "store": _FLAG, "stream": _FLAG, "metadata": _METADATA}, "model"
    ),
    "Response": _object(
        {
            "id": _TEXT,
            "object": {"const": "response"},
            "created_at": _NUMBER,
            "status": {
                "enum": [
                    "queued",
                    "in_progress",
                    "completed",
                    "incomplete",
                    "failed",
                    "cancelled",
                ]
            },
            "model": _TEXT,
            "output": _ITEMS,
            "usage": {"type": ["object", "null"]},
        },
        *("id", "object", "created_at", "status", "model", "output"),
    ),
    "Compaction": _object(
        {
            "id": _TEXT,
            "object": {"const": "response.compaction"},
            "created_at": _NUMBER,
            "output": _ITEMS,
            "usage": _ANY,
        },
        *("id", "object", "created_at", "output", "usage"),
    ),
    "InputTokens": _object(
        {"object": {"const": "response.input_tokens"}, "input_tokens": _NUMBER},
        *("object", "input_tokens"),
    ),
    "Deleted": _object({"id": _TEXT, "object": _TEXT, "deleted": _FLAG}, "id", "object", "deleted"),
    "ItemList": _object(
        {
            "object": {"const": "list"},
            "data": _ITEMS,
            "first_id": _MAYBE,
            "last_id": _MAYBE,
            "has_more": _FLAG,
        },
        *("object", "data", "first_id", "last_id", "has_more"),
    ),
    "Conversation": _object(
        {
            "id": _TEXT,
            "object": {"const": "conversation"},
            "created_at": _NUMBER,
            "metadata": _ANY,
        },
        *("id", "object", "created_at", "metadata"),
    ),
    "NewConversation": _object({"items": _ITEMS, "metadata": _METADATA}),
    "ConversationChange": _object({"metadata": _METADATA}, "metadata"),
    "NewItems": _object({"items": {**_ITEMS, "minItems": 1, "maxItems": 20}}, "items"),
}

_QUESTION: Final = {"type": "message", "role": "user", "content": "And in French?"}

HISTORY_EXAMPLES: Final[Mapping[str, Any]] = {
    "ResponseRequest": {
        "model": "llama-3.1-8b",
        "input": [_QUESTION],
        "conversation": "conv_0198c0ffee005eed5eed5eed0123456789abcdef01234567",
        "truncation": "auto",
    },
    "NewConversation": {"metadata": {"topic": "greetings"}},
    "NewItems": {"items": [_QUESTION]},
    "ConversationChange": {"metadata": {"topic": "farewells"}},
}
