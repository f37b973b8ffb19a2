"""History schemas for `/openapi.json`: responses and conversations, with some examples."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.dialects.responses.request.conversations import ITEMS_MAX
from smg_node.http.openapi.requests.responses import INPUT_ITEM, metadata_schema

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_MAYBE: Final[Mapping[str, Any]] = {"type": ["string", "null"]}
_NUMBER: Final[Mapping[str, Any]] = {"type": "integer"}
_FLAG: Final[Mapping[str, Any]] = {"type": "boolean"}
_ANY: Final[Mapping[str, Any]] = {"type": "object"}
_ITEM: Final[Mapping[str, Any]] = {"$ref": "#/components/schemas/Item"}
_ITEMS: Final[Mapping[str, Any]] = {"type": "array", "items": _ITEM}


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


_METADATA: Final = metadata_schema()
_GIVEN: Final[Mapping[str, Any]] = {"$ref": "#/components/schemas/InputItem"}

HISTORY_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Item": _object({"id": _TEXT, "type": _TEXT, "status": _TEXT}, "type"),
    "InputItem": INPUT_ITEM,
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
    "NewConversation": _object(
        {
            "items": {"type": ["array", "null"], "items": _GIVEN, "maxItems": ITEMS_MAX},
            "metadata": _METADATA,
        }
    ),
    "ConversationChange": _object({"metadata": _METADATA}, "metadata"),
    "NewItems": _object(
        {"items": {"type": "array", "items": _GIVEN, "minItems": 1, "maxItems": ITEMS_MAX}}, "items"
    ),
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
