"""Tools of a Messages body: functions, Anthropic's client tools, and the choice among them."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from smg_node.core.generation.request import Tool, ToolChoice, ToolMode
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.messages.cache_control import check_cache_control
from smg_node.dialects.messages.request.client_tools import (
    CLIENT_TOOLS,
    SEEING_TOOLS,
    SERVER_TOOLS,
)
from smg_node.dialects.messages.request.messages_draft import MessagesDraft
from smg_node.dialects.openai.functions import check_schemas, note_twice

if TYPE_CHECKING:
    # Loaded with the first request that names tools of this node.
    from smg_node.core.generation.tool_serving import ToolServing

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}\Z")
_COMMON: Final = ("type", "name", "cache_control", "defer_loading", "strict", "input_examples")
_CUSTOM_KEYS: Final = frozenset(
    {*_COMMON, "description", "input_schema", "eager_input_streaming", "allowed_callers"}
)
_CLIENT_KEYS: Final = frozenset({*_COMMON, "max_characters", "allowed_callers"})
_RARE: Final = (_CUSTOM_KEYS | _CLIENT_KEYS) - {"type", "name", "description", "input_schema"}
_EXAMPLES_MAX: Final = 64
_DIRECT: Final = "direct"
_EAGER_BETA: Final = "fine-grained-tool-streaming-2025-05-14"
_MODES: Final[Mapping[str, ToolMode]] = {
    "auto": "auto",
    "any": "required",
    "tool": "named",
    "none": "none",
}
_encode: Final = msgspec.json.Encoder().encode


def take_tools(draft: MessagesDraft, cursor: Cursor, key: str) -> None:
    """Take `tools`; an empty list declares none."""
    said: dict[str, bool | None] = {}
    for declared in cursor.objects(key, at_most=draft.options.tools_max):
        if _take_served(draft, declared):
            continue
        tool = read_tool(declared)
        if tool is None:
            continue
        if tool.name in draft.tools or (draft.asked and tool.name in draft.asked.builtins):
            note_twice(declared, tool.name)
        draft.tools[tool.name] = tool
        said[tool.name] = declared.flag("eager_input_streaming")
    check_schemas(draft, cursor, key, draft.tools.values())
    if _EAGER_BETA in draft.betas and False not in said.values():
        draft.view["eager_all"] = True
        return
    default = _EAGER_BETA in draft.betas
    eager = frozenset(name for name, wish in said.items() if (default if wish is None else wish))
    if eager:
        draft.view["eager_tools"] = eager


def _take_served(draft: MessagesDraft, declared: Cursor) -> bool:
    """Take a tool that this node runs, or its server; false for any other."""
    kind = declared.values.get("type")
    if type(kind) is not str or not kind.startswith(SERVER_TOOLS):
        return False
    if not draft.options.tool_servers:
        return False
    tools_max = draft.options.tools_max
    return draft.asked_tools().take_tool(declared, kind, taken=draft.tools, tools_max=tools_max)


def read_tool(declared: Cursor, *, deferred: bool = False) -> Tool | None:
    """Return the tool that is declared; None for anything else, which is noted.

    `deferred`: its definition stands in the history, not among the tools.
    """
    kind = declared.text("type")
    if kind is not None and kind != "custom":
        return _client_tool(declared, kind, deferred=deferred)
    declared.only(_CUSTOM_KEYS)
    name = _name(declared)
    description = declared.text("description")
    schema = declared.object("input_schema", required=True)
    strict, later, examples = _common(declared)
    if name is None or schema is None:
        return None
    parameters = schema.values
    schema.word("type", ("object",))
    if "type" not in parameters:
        parameters = {"type": "object", **parameters}
    if examples:
        description = f"{description}\n\n{examples}" if description else examples
    return Tool(name, description, parameters, strict, schema.path(), deferred=deferred or later)


def _name(declared: Cursor) -> str | None:
    name = declared.text("name", required=True)
    if name is not None and not _NAME.match(name):
        declared.problem("name", "must be 1 to 128 letters, digits, underscores and hyphens")
        return None
    return name


def _common(declared: Cursor) -> tuple[bool, bool, str]:
    """Return whether a tool is strict, whether it is loaded later, and its examples in words."""
    if _RARE.isdisjoint(declared.values):
        return False, False, ""
    check_cache_control(declared)
    callers = declared.array("allowed_callers")
    names = callers and declared.elements("allowed_callers", str, "a string", callers)
    if names and _DIRECT not in names:
        declared.unsupported(
            "allowed_callers", "must have 'direct': nothing here but the model calls tools"
        )
    declared.flag("eager_input_streaming")
    declared.integer("max_characters", low=1)
    return (
        declared.flag("strict") or False,
        declared.flag("defer_loading") or False,
        _examples(declared),
    )


def _examples(declared: Cursor) -> str:
    rows = declared.objects("input_examples", at_most=_EXAMPLES_MAX)
    shown = [_encode(row.values).decode() for row in rows]
    return "\n".join(("Examples of its input:", *shown)) if shown else ""


def _client_tool(declared: Cursor, kind: str, *, deferred: bool) -> Tool | None:
    known = CLIENT_TOOLS.get(kind)
    if known is None:
        declared.problem("type", _refusal(kind), "unsupported_tool")
        return None
    declared.only(_CLIENT_KEYS)
    name = declared.word("name", (known.name,), required=True)
    strict, later, examples = _common(declared)
    if name is None:
        return None
    description = f"{known.description}\n\n{examples}" if examples else known.description
    where = declared.path()
    return Tool(name, description, known.parameters, strict, where, deferred=deferred or later)


def _refusal(kind: str) -> str:
    if kind.startswith(SEEING_TOOLS):
        return (
            f"tools of type {quoted(kind)} need a model that is shown pictures; there is none here"
        )
    if kind.startswith(SERVER_TOOLS):
        return f"tools of type {quoted(kind)} are not executed here; declare a custom tool"
    known = ", ".join(repr(name) for name in ("custom", *CLIENT_TOOLS))
    return f"must be one of {known}; got {quoted(kind)}"


# ── What the model is told of them in its history ────────────────────────────


def functions_text(tools: list[Tool]) -> str:
    """Return the definitions of tools as a model is shown them in the middle of a conversation."""
    lines = [f"<function>{_encode(_definition(tool)).decode()}</function>" for tool in tools]
    return "\n".join(("<functions>", *lines, "</functions>"))


def _definition(tool: Tool) -> dict[str, Any]:
    return {
        "description": tool.description or "",
        "name": tool.name,
        "parameters": tool.parameters,
    }


# ── The choice among them ────────────────────────────────────────────────────


def take_choice(draft: MessagesDraft, cursor: Cursor, key: str) -> None:
    """Take `tool_choice`; names are looked up when all tools are known."""
    choice = cursor.object(key)
    if choice is None:
        return
    kind = choice.word("type", tuple(_MODES), required=True)
    if kind is None:
        return
    keys = ("type",) if kind == "none" else ("type", "disable_parallel_tool_use")
    choice.only((*keys, "name") if kind == "tool" else keys)
    alone = choice.flag("disable_parallel_tool_use") or False
    name = choice.text("name", required=True) if kind == "tool" else ""
    if name is not None:
        draft.prompt["choice"] = ToolChoice(_MODES[kind], name, parallel=not alone, where=key)


def settle_tools(draft: MessagesDraft, cursor: Cursor) -> None:
    """Check the choice against the tools in force at the end of the history."""
    draft.prompt["tools"] = tuple(draft.tools.values())
    choice, asked = draft.prompt.get("choice"), draft.asked
    serving = None if asked is None else asked.serving()
    if asked is not None and serving is not None:
        draft.request["serving"] = serving
        draft.view["listed"] = asked.listed(serving)
    if choice is None or choice.mode in ("auto", "none") or cursor.problems:
        return
    in_force = tuple(name for name in draft.tools if name not in draft.removed)
    if serving is not None:
        _settle_served(draft, cursor, serving, choice, in_force)
        return
    if not draft.tools:
        cursor.problem("tool_choice", "is only allowed when tools are given")
        return
    if choice.mode == "named" and choice.name not in in_force:
        cursor.problem("tool_choice", f"there is no tool called {quoted(choice.name)}")
    elif draft.removed and choice.mode == "required":
        if not in_force:
            cursor.problem("tool_choice", "all tools were removed by the messages")
        draft.prompt["choice"] = ToolChoice(
            "required", allowed=in_force, parallel=choice.parallel, where=choice.where
        )


def _settle_served(
    draft: MessagesDraft,
    cursor: Cursor,
    serving: "ToolServing",
    choice: ToolChoice,
    in_force: tuple[str, ...],
) -> None:
    """Settle a choice among tools of which this node runs some."""
    from smg_node.dialects.messages.tool_runs.chosen_tools import with_choice

    assert draft.asked is not None, "what is served was asked for"
    chosen = with_choice(
        serving, choice, draft.asked.builtins, in_force=in_force, removed=bool(draft.removed)
    )
    if chosen is None:
        cursor.problem("tool_choice", f"there is no tool called {quoted(choice.name)}")
    else:
        draft.request["serving"], draft.prompt["choice"] = chosen
