"""History schemas for `/openapi.json`: responses and conversations, with some examples."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.dialects.responses.request.conversations import ITEMS_MAX
from smg_node.http.openapi.requests.responses import INPUT_ITEM, metadata_schema

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_MAYBE: Final[Mapping[str, Any]] = {"type": ["string", "null"]}
_NUMBER: Final[Mapping[str, Any]] = {"type": "integer"}
_FLAG: Final[Mapping[str, Any]] = {"type": "boolean"}
_SWITCH: Final[Mapping[str, Any]] = {"type": ["boolean", "null"]}
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
    "InteractionRequest": {
        **_object(
            {
                "model": {"type": "string", "minLength": 1, "maxLength": 256},
                "input": {"type": ["string", "object", "array"]},
                "previous_interaction_id": _MAYBE,
                "system_instruction": _MAYBE,
                "tools": {"type": ["array", "null"], "items": _ANY},
                "generation_config": {"type": ["object", "null"]},
                "response_format": {"type": ["object", "array", "null"]},
                "stream": _SWITCH,
                "store": _SWITCH,
                "background": _SWITCH,
                "labels": {"type": ["object", "null"], "maxProperties": 64},
                "service_tier": {"enum": ["flex", "standard", "priority", "deferred", None]},
                "continuation_token": _MAYBE,
            }
        ),
        "anyOf": [{"required": ["model", "input"]}, {"required": ["continuation_token"]}],
    },
    "Step": _object({"type": _TEXT}, "type"),
    "Interaction": _object(
        {
            "id": _TEXT,
            "object": {"const": "interaction"},
            "status": {
                "enum": [
                    "queued",
                    "in_progress",
                    "requires_action",
                    "completed",
                    "incomplete",
                    "failed",
                    "cancelled",
                ]
            },
            "model": _TEXT,
            "created": _TEXT,
            "updated": _TEXT,
            "steps": {"type": "array", "items": {"$ref": "#/components/schemas/Step"}},
            "input": {"type": "array", "items": {"$ref": "#/components/schemas/Step"}},
            "usage": _ANY,
            "errors": {"type": "array", "items": _ANY},
        },
        *("id", "object", "status", "model", "created", "updated", "steps"),
    ),
    "InteractionDeleted": _object({}),
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
    "InteractionRequest": {
        "model": "llama-3.1-8b",
        "input": "And in French?",
        "previous_interaction_id": "int_0198c0ffee005eed5eed5eed0123456789abcdef01234567",
        "stream": True,
    },
    "NewConversation": {"metadata": {"topic": "greetings"}},
    "NewItems": {"items": [_QUESTION]},
    "ConversationChange": {"metadata": {"topic": "farewells"}},
}
