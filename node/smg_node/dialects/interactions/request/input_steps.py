"""Input steps: reads the `input` of an interaction as items of the house's own types.

Each step is one item. Steps of tools that no prompt can show are kept as they came, and named in the
answer's headers. A thought that came without its text is complete again where its signature carries
it; one of neither is left out of the prompt.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from smg_node.core.json_cursor import Cursor, kind_of, quoted
from smg_node.dialects.interactions.request.step_contents import (
    CONTENT_TYPES,
    read_content,
    read_contents,
    text_part,
)
from smg_node.dialects.openai.part_limits import PartCounter
from smg_node.dialects.responses.items.item_document import ITEM_BYTES_MAX, ItemDoc, item_from

OPAQUE: Final = "google:"
"""What the type of a kept step's item begins with; the step itself is under `step`."""
_CALL_ID_MAX: Final = 256
_NAME_MAX: Final = 128
_KEPT: Final = frozenset(
    f"{name}_{end}"
    for name in (
        "code_execution", "file_search", "google_search", "google_maps", "url_context",
        "retrieval", "processing", "tool_search", "mcp_server_tool",
    )
    for end in ("call", "result")
)  # fmt: skip
_encode: Final = msgspec.json.Encoder().encode

Opened = Callable[[str], str | None]
"""Returns the thought that a signature carries; None if it carries none."""
_Read = Callable[[Cursor, PartCounter], Mapping[str, Any]]


def read_input(
    cursor: Cursor, key: str, counter: PartCounter, opened: Opened
) -> tuple[ItemDoc, ...]:
    """Return the items of `input`: a text, a content, contents, or steps; what is wrong is noted."""
    value = cursor.values[key]
    if type(value) is str:
        return (_user_item([text_part(value, said=False)]),) if value else ()
    if type(value) is dict:
        only = Cursor(value, cursor.problems, cursor, key)
        found = _one_of(only, counter, opened)
        return () if found is None else (found,)
    if type(value) is not list:
        why = f"must be a string, a content, or an array of contents or steps, not {kind_of(value)}"
        cursor.problem(key, why, "invalid_type")
        return ()
    if value and all(type(one) is dict and one.get("type") in CONTENT_TYPES for one in value):
        parts = read_contents(cursor, key, counter)
        return (_user_item(parts),)
    steps = list(cursor.objects(key, at_most=counter.options.messages_max))
    items = [read_step(step, counter, opened) for step in steps]
    return tuple(item for item in items if item is not None)


def _one_of(only: Cursor, counter: PartCounter, opened: Opened) -> ItemDoc | None:
    if only.values.get("type") in CONTENT_TYPES:
        return _user_item([read_content(only, counter)])
    return read_step(only, counter, opened)


def read_step(step: Cursor, counter: PartCounter, opened: Opened) -> ItemDoc | None:
    """Return the item of one step; None if something is wrong with it, which is noted."""
    if not step.has("type") and step.has("role"):
        step.problem("role", "turns of a role are not steps: give them a type, as 'user_input'")
        return None
    kind = step.text("type", required=True)
    if kind is None:
        return None
    before = len(step.problems)
    values: Mapping[str, Any] = {}
    if kind == "thought":
        values = _thought(step, opened)
    elif kind in _KEPT:
        values = {"type": f"{OPAQUE}{kind}", "step": step.values}
    elif (read := _STEPS.get(kind)) is not None:
        values = read(step, counter)
    else:
        why = f"steps of type {quoted(kind)} are not supported"
        step.problem("type", why, "unsupported_step_type")
    if len(step.problems) > before:
        return None
    item = item_from(values)
    if len(item.document) > ITEM_BYTES_MAX:
        step.problem("", f"a step may have at most {ITEM_BYTES_MAX} bytes")
        return None
    return item


def _user_input(step: Cursor, counter: PartCounter) -> Mapping[str, Any]:
    step.only(("type", "content"))
    parts = read_contents(step, "content", counter)
    if not parts and not step.problems:
        step.problem("content", "must not be empty", "missing_required_parameter")
    return _user_values(parts)


def _model_output(step: Cursor, counter: PartCounter) -> Mapping[str, Any]:
    step.only(("type", "content", "error"))
    content = read_contents(step, "content", counter, said=True)
    error = {"error": step.values["error"]} if step.has("error") else {}
    return {
        "type": "message", "role": "assistant", "content": content, "status": "completed", **error,
    }  # fmt: skip


def _thought(step: Cursor, opened: Opened) -> dict[str, Any]:
    step.only(("type", "signature", "summary"))
    signature = step.text("signature")
    texts = [
        content.text("text", required=True) or ""
        for content in step.objects("summary")
        if content.word("type", ("text",), required=True) is not None
    ]
    thought = "".join(texts) or (opened(signature) if signature else None) or ""
    values: dict[str, Any] = {"type": "reasoning", "summary": []}
    if thought:
        values["content"] = [{"type": "reasoning_text", "text": thought}]
    if signature is not None:
        values["signature"] = signature
    if not texts:
        values["hidden"] = True
    return values


def _function_call(step: Cursor, _counter: PartCounter) -> Mapping[str, Any]:
    step.only(("type", "id", "name", "arguments", "signature"))
    call_id = step.text("id", required=True, characters_min=1, characters_max=_CALL_ID_MAX)
    name = step.text("name", required=True, characters_min=1, characters_max=_NAME_MAX)
    arguments = step.object("arguments", required=True)
    text = "" if arguments is None else _encode(arguments.values).decode()
    return {
        "type": "function_call", "call_id": call_id, "name": name, "arguments": text,
        "status": "completed",
    }  # fmt: skip


def _function_result(step: Cursor, counter: PartCounter) -> Mapping[str, Any]:
    step.only(("type", "call_id", "name", "result", "is_error", "signature"))
    call_id = step.text("call_id", required=True, characters_min=1, characters_max=_CALL_ID_MAX)
    name = step.text("name", characters_max=_NAME_MAX)
    is_error = step.flag("is_error")
    values: dict[str, Any] = {
        "type": "function_call_output", "call_id": call_id, "status": "completed",
    }  # fmt: skip
    if name is not None:
        values["name"] = name
    if is_error is not None:
        values["is_error"] = is_error
    return {**values, **_result(step, counter)}


def _result(step: Cursor, counter: PartCounter) -> Mapping[str, Any]:
    """Return the output: text and contents as they are, an object as its JSON text."""
    result = step.raw("result", required=True)
    if type(result) is list:
        return {"output": read_contents(step, "result", counter)}
    if type(result) is dict:
        return {"output": _encode(result).decode(), "form": "object"}
    if result is not None and type(result) is not str:
        why = f"must be an object, a string or an array of contents, not {kind_of(result)}"
        step.problem("result", why, "invalid_type")
    return {"output": result}


def _user_values(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": parts, "status": "completed"}


def _user_item(parts: list[dict[str, Any]]) -> ItemDoc:
    return item_from(_user_values(parts))


_STEPS: Final[Mapping[str, _Read]] = {
    "user_input": _user_input,
    "model_output": _model_output,
    "function_call": _function_call,
    "function_result": _function_result,
}
