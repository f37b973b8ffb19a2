"""Past calls: items of a context in which a tool of ours was run, as the call and the result that a model is shown.

An item whose result is not in it, such as a search whose sources were not included, shows nothing: what the model made
of it stands in its answer.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from smg_node.core.generation.request import Tool, ToolCall
from smg_node.core.generation.served_call_ids import prompt_id
from smg_node.core.generation.tool_owner import ToolOwner, ToolShape
from smg_node.dialects.responses.items.item_types import APPROVAL_REQUEST

NOT_RUN: Final = -32001
"""Code of the error of a call that was not run: a rule, a limit or a person said no."""
CUT: Final = "cut off before it was over: it may have run, and was not repeated"
NONE_FOUND: Final = "No tool fits."
REFUSED: Final = "not run: the user did not approve it"

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class PastCall(NamedTuple):
    """A call and its result. `references` name the tools whose definitions are all that it tells."""

    call: ToolCall
    result: str
    references: tuple[str, ...] = ()


def past_call(kind: str, values: Mapping[str, Any]) -> PastCall | None:
    """Return the call that an item of this type shows; None where it shows none."""
    return _KINDS[kind](values)


def refused_call(request: Mapping[str, Any], response: Mapping[str, Any]) -> PastCall:
    """Return the call that a person did not approve."""
    reason = _text(response, "reason")
    return PastCall(_mcp_call(request), f"{REFUSED}: {reason}" if reason else REFUSED)


def asked_search(call: Mapping[str, Any]) -> ToolCall:
    """Return the search for tools that an item asks for; its output is another item."""
    asked = call.get("arguments")
    arguments = asked if type(asked) is str else _json({} if asked is None else asked)
    return _builtin(call, "tool_search", arguments)


def search_result(call: ToolCall, output: Mapping[str, Any]) -> PastCall:
    """Return a search for tools with what its output, an item of its own, shows.

    The result is told as where the search was made, so that the prompt of then is how this one begins.
    """
    from smg_node.dialects.messages.request.tools import functions_text

    tools = tools_found(output)
    told = functions_text(tools) if tools else NONE_FOUND
    names = tuple(tool.name for tool in tools)
    return PastCall(call, told, names)


def tools_found(output: Mapping[str, Any]) -> list[Tool]:
    """Return the tools in the output of a search, those in namespaces too."""
    found = []
    for row in _rows(output, "tools"):
        inside = _rows(row, "tools") if row.get("type") == "namespace" else [row]
        found += [_tool(one) for one in inside if _text(one, "name")]
    return found


def _tool(row: Mapping[str, Any]) -> Tool:
    schema = row.get("parameters")
    return Tool(
        _text(row, "name"),
        _text(row, "description") or None,
        schema if type(schema) is dict and schema else None,
        deferred=True,
    )


def is_object(arguments: str) -> bool:
    """Whether a call's arguments are a whole object."""
    try:
        return type(_decode(arguments)) is dict
    except (msgspec.DecodeError, RecursionError):
        return False


def _mcp(values: Mapping[str, Any]) -> PastCall | None:
    call = _mcp_call(values)
    output, error = values.get("output"), values.get("error")
    if type(output) is str:
        return PastCall(call, output)
    if error is not None:
        return PastCall(call, failure_text(error))
    if values.get("status") in (None, "completed"):
        return PastCall(call, "")
    return PastCall(call, CUT) if is_object(call.arguments) else None


def _mcp_call(values: Mapping[str, Any]) -> ToolCall:
    name, approval = _text(values, "name"), _text(values, "approval_request_id")
    owner = ToolOwner(_text(values, "server_label"), name, approval=approval)
    if values.get("type") == APPROVAL_REQUEST:
        approval = _text(values, "id")
    # A call that was asked about has this id where it is run, or refused, so that the prompt goes on as it was.
    call_id = f"call_{approval}" if approval else prompt_id(_text(values, "id"))
    return ToolCall(call_id, name, _text(values, "arguments"), owner)


def failure_text(error: Any) -> str:
    """Return what a model is told of the error of a call."""
    if type(error) is not dict:
        return f"tool failed: {error if type(error) is str else _json(error)}"
    if error.get("type") == "mcp_tool_execution_error":
        content = error.get("content")
        texts = [_text(block, "text") for block in _rows(error, "content")]
        said = content if type(content) is str else "\n".join(text for text in texts if text)
        return said or "tool failed"
    message = _text(error, "message") or _json(error)
    if error.get("code") == NOT_RUN:
        return f"not run: {message}"
    return f"tool failed: {message}"


def _web(values: Mapping[str, Any]) -> PastCall | None:
    action = values.get("action")
    if type(action) is not dict:
        return None
    found = _rows(values, "results") or _rows(action, "sources")
    if not found:
        return None
    keys = ("query", "queries", "url", "pattern")
    asked = {key: action[key] for key in keys if action.get(key) is not None}
    if "query" in asked:
        asked.pop("queries", None)
    return PastCall(_builtin(values, "web_search", _json(asked)), numbered(found, "title", "url"))


def _file(values: Mapping[str, Any]) -> PastCall | None:
    found = _rows(values, "results")
    if not found:
        return None
    arguments = _json({"queries": values.get("queries")})
    return PastCall(_builtin(values, "file_search", arguments), numbered(found, "filename"))


def numbered(found: Sequence[Mapping[str, Any]], *keys: str) -> str:
    """Return what a search has found: numbered, each with these of its texts, and with its own below."""
    told = []
    for number, row in enumerate(found, 1):
        head = " ".join(text for key in keys if (text := _text(row, key)))
        told.append(f"[{number}] {head}\n{_text(row, 'text')}".strip())
    return "\n".join(told)


def _code(values: Mapping[str, Any]) -> PastCall | None:
    outputs = _rows(values, "outputs")
    if not outputs:
        return None
    told = [_text(one, "logs") if one.get("type") == "logs" else "[image]" for one in outputs]
    arguments = _json({"code": _text(values, "code")})
    return PastCall(_builtin(values, "code_interpreter", arguments), "\n".join(told))


def _builtin(values: Mapping[str, Any], shape: ToolShape, arguments: str) -> ToolCall:
    owner = ToolOwner("", shape, shape=shape)
    return ToolCall(prompt_id(_text(values, "id")), shape, arguments, owner)


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return value if type(value) is str else ""


def _rows(values: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    rows = values.get(key)
    return [row for row in rows if type(row) is dict] if type(rows) is list else []


def _json(value: Any) -> str:
    return _encode(value).decode()


_KINDS: Final[Mapping[str, Callable[[Mapping[str, Any]], PastCall | None]]] = {
    "mcp_call": _mcp,
    "web_search_call": _web,
    "file_search_call": _file,
    "code_interpreter_call": _code,
}
