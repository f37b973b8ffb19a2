"""Input items: reads the `input` of a response and the items added to a conversation."""

from typing import Any, Final

from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.openai.part_limits import PartCounter
from smg_node.dialects.responses.items.item_document import ITEM_BYTES_MAX, ItemDoc, item_from
from smg_node.dialects.responses.items.item_types import (
    ITEM_REFERENCE,
    ItemKind,
    json_type,
    kind_named,
)
from smg_node.dialects.responses.request.content_parts import call_output, message_content, thought
from smg_storage.ids import is_id

_ROLES: Final = ("user", "system", "developer", "assistant")
STATUSES: Final = ("in_progress", "completed", "incomplete")
PHASES: Final = ("commentary", "final_answer")
# Statuses of types that are not rendered may be others: they are the word of some other server.
_CHECKED: Final = frozenset(
    {
        "message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
        "custom_tool_call_output",
    }
)  # fmt: skip
SECRETS: Final = frozenset({"authorization", "headers"})
"""What a server of tools is told of its client, and nobody else."""
LENGTHS: Final = {"call_id": 64, "name": 128}


def user_message(text: str) -> ItemDoc:
    """Return the item for a string as `input`."""
    content = [{"type": "input_text", "text": text}]
    return item_from({"type": "message", "role": "user", "content": content, "status": "completed"})


def read_items(
    cursor: Cursor, key: str, shelf: PartCounter, *, at_least: int = 0, at_most: int | None = None
) -> tuple[ItemDoc, ...]:
    """Return the items of the array at `key`; everything wrong with them is noted."""
    most = shelf.options.messages_max if at_most is None else at_most
    rows = cursor.objects(key, required=at_least > 0, at_least=at_least, at_most=most)
    items = [read_item(row, shelf) for row in rows]
    return tuple(item for item in items if item is not None)


def read_item(item: Cursor, shelf: PartCounter) -> ItemDoc | None:
    """Return one item, written out; None if its type is not known. What is wrong with it is noted."""
    name = _type_of(item)
    if name is None:
        return None
    kind = kind_named(name)
    if kind is None:
        why = f"items of type {quoted(name)} are not supported"
        item.problem("type", why, "unsupported_item_type")
        return None
    before = len(item.problems)
    _check(item, name, kind)
    values = {**item.values, "type": name, **_written_out(item, name, shelf)}
    if kind.has_status and values.get("status") is None:
        values["status"] = "completed"
    if len(item.problems) > before:
        return None
    doc = item_from(values)
    if len(doc.document) > ITEM_BYTES_MAX:
        item.problem("", f"an item may have at most {ITEM_BYTES_MAX} bytes")
        return None
    return doc


def _type_of(item: Cursor) -> str | None:
    """Return the type, which messages and references may leave out."""
    if item.has("type"):
        return item.text("type", characters_min=1)
    if item.has("role"):
        return "message"
    if item.has("id") and len(item.values) <= 2:
        return ITEM_REFERENCE
    return item.text("type", required=True)


def _check(item: Cursor, name: str, kind: ItemKind) -> None:
    if "id" not in kind.required:
        item.text("id")
    for key, wanted in kind.required.items():
        if wanted is str:
            low = 1 if key in LENGTHS else 0
            item.text(key, required=True, characters_min=low, characters_max=LENGTHS.get(key))
            continue
        value = item.raw(key, required=True)
        if value is not None and type(value) is not wanted:
            item.problem(key, f"must be {json_type(wanted)}", "invalid_type")
    if name in _CHECKED:
        item.word("status", STATUSES)
    else:
        item.text("status")
    if name == ITEM_REFERENCE:
        _check_reference(item)


def _check_reference(item: Cursor) -> None:
    spelled = item.values.get("id")
    if type(spelled) is str and not is_id(spelled):
        item.problem("id", f"there is no item {quoted(spelled)}", "item_not_found")


def _written_out(item: Cursor, name: str, shelf: PartCounter) -> dict[str, Any]:
    """Return the values of this item that are checked deeper, or spelled in short."""
    match name:
        case "message":
            role = item.word("role", _ROLES, required=True)
            item.word("phase", PHASES)
            return {} if role is None else {"content": message_content(item, role, shelf)}
        case "function_call" | "custom_tool_call":
            item.text("namespace", characters_max=LENGTHS["name"])
            return {}
        case "function_call_output" | "custom_tool_call_output":
            return {"output": call_output(item, shelf)}
        case "reasoning":
            item.text("encrypted_content")
            written: dict[str, Any] = {"summary": thought(item, "summary", "summary_text")}
            if item.has("content"):
                written["content"] = thought(item, "content", "reasoning_text")
            return written
        case "local_shell_call_output":
            # The id of this output is that of its call, until it gets one of its own.
            return {} if item.has("call_id") else {"call_id": item.values.get("id")}
        case "additional_tools":
            return _without_secrets(item.values.get("tools"))
        case _:
            return {}


def _without_secrets(tools: Any) -> dict[str, Any]:
    """Return the tools without what servers are told of the client, which is neither stored nor shown."""
    if type(tools) is not list or not any(_has_secrets(tool) for tool in tools):
        return {}
    kept = [
        {key: tool[key] for key in tool if key not in SECRETS} if _has_secrets(tool) else tool
        for tool in tools
    ]
    return {"tools": kept}


def _has_secrets(tool: Any) -> bool:
    return type(tool) is dict and tool.get("type") == "mcp" and not SECRETS.isdisjoint(tool)
