"""Adopted rows: SMG's conversations, items and responses as rows of ours, with our documents.

An item is kept there without its id, type, role and status; of a message that leaves its content, of anything else all
of it. What a response was asked is a list of items already; one without an id gets one that follows from where it is,
so that the same row is always the same item.
"""

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

Row = dict[str, Any]

_FINAL: Final = ("completed", "incomplete", "failed", "cancelled")
_PREFIXES: Final[Mapping[str, str]] = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "reasoning": "rs",
}
_TYPE_CHARS: Final = 64
_WORD_CHARS: Final = 16
_ID_CHARS: Final = 64
_OUTPUT: Final = 1


def metadata_text(said: str | None) -> str:
    """Return the metadata of a conversation: an object, whatever was there."""
    return said if said is not None and isinstance(_read(said), dict) else "{}"


def item_row(row: Mapping[str, Any]) -> Row:
    """Return the row of an item, all but `refs`."""
    document = _written(_item(row))
    return {
        "id": row["id"],
        "response_id": row["response_id"] or None,
        "item_type": row["item_type"][:_TYPE_CHARS],
        "role": _word(row["role"]),
        "status": _word(row["status"]),
        "doc": document,
        "document_bytes": len(document.encode()),
        "created_at": row["created_at"],
    }


def _item(row: Mapping[str, Any]) -> Row:
    head = {"id": row["id"], "type": row["item_type"]}
    if row["role"]:
        head["role"] = row["role"]
    content = _read(row["content"])
    if isinstance(content, dict):
        head |= {key: content[key] for key in content if key not in ("id", "type")}
    else:
        head["content"] = [] if content is None else content
    if row["status"]:
        head["status"] = row["status"]
    return head


def response_rows(row: Mapping[str, Any]) -> tuple[Row, list[Row]]:
    """Return the row of a response, and where the items are that are in it."""
    answer = _answer(row)
    asked = [_asked(item, row["id"], place) for place, item in enumerate(_listed(row["input"]))]
    said, answered = _kept(row["input"], asked), _kept(row["raw_response"], answer)
    ended = row["created_at"]
    response = {
        "id": row["id"],
        "conversation_id": row["conversation_id"] or None,
        "previous_response_id": row["previous_response_id"] or None,
        "depth": 0,
        "status": answer["status"],
        "background": 0,
        "model": row["model"] or _text(answer.get("model")) or None,
        "created_at": row["created_at"],
        "completed_at": ended,
        "input": said,
        "raw_response": answered,
        "document_bytes": len(said.encode()) + len(answered.encode()),
        "safety_identifier": row["safety_identifier"] or None,
        "lease_token": 0,
        "cancel_requested": 0,
        "version": 0,
    }
    output = answer["output"]
    sides = ((0, asked), (_OUTPUT, output))
    return response, [
        {"item_id": item["id"], "response_id": row["id"], "side": side, "idx": index}
        for side, items in sides
        for index, item in enumerate(items)
        if isinstance(item, dict) and 0 < len(_text(item.get("id"))) <= _ID_CHARS
    ]


def _answer(row: Mapping[str, Any]) -> Row:
    """The response as it is shown. Nobody is at it any more, so what had not ended has failed."""
    found = _read(row["raw_response"])
    answer: Row = found if isinstance(found, dict) else {"id": row["id"], "object": "response"}
    status = answer.get("status", "completed")
    output = answer.get("output")
    changed = {
        "status": status if status in _FINAL else "failed",
        "output": output if isinstance(output, list) else [],
    }
    return {**answer, **changed}


def _listed(said: str | None) -> list[Row]:
    found = _read(said)
    if isinstance(found, str):
        found = [{"type": "message", "role": "user", "content": _text_part(found)}]
    items = found if isinstance(found, list) else []
    return [item for item in items if isinstance(item, dict)]


def _text_part(text: str) -> list[Row]:
    return [{"type": "input_text", "text": text}]


def _asked(item: Row, response: str, place: int) -> Row:
    kind = _text(item.get("type")) or "message"
    known = _text(item.get("id"))
    made = blake2b(f"{response}/{place}".encode(), digest_size=24).hexdigest()
    named = known or f"{_PREFIXES.get(kind, 'item')}_{made}"
    head = {"id": named, "type": kind}
    if tuple(item)[:2] == ("id", "type") and known and item["type"] == kind:
        return item
    return {**head, **{key: item[key] for key in item if key not in head}}


def _kept(said: str | None, meant: Any) -> str:
    """The text as it was where it means just this, so that numbers and spaces stay as they are."""
    return said if said is not None and _read(said) == meant else _written(meant)


def _read(said: str | None) -> Any:
    return None if said is None else json.loads(said)


def _written(value: Any) -> str:
    # ASCII: a half of a surrogate pair can be escaped, and cannot be written.
    return json.dumps(value, separators=(",", ":"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _word(value: str | None) -> str | None:
    return value[:_WORD_CHARS] if value else None
