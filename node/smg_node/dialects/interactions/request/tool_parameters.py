"""Tool parameters of an interaction: functions, and which of them must, may or must not be called."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from smg_node.core.generation.request import ToolMode
from smg_node.core.json_cursor import Cursor, kind_of, quoted
from smg_node.dialects.openai.functions import read_functions
from smg_node.dialects.openai.request_draft import Draft
from smg_node.dialects.openai.tool_choice import choose

_MODES: Final[dict[str, ToolMode]] = {
    "auto": "auto",
    "any": "required",
    "none": "none",
    "validated": "auto",
}
_KEY: Final = "generation_config.tool_choice"


def take_tools(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tools`: functions; a tool that only the vendor serves is refused."""
    functions: list[Cursor] = []
    for tool in cursor.objects(key, at_most=draft.options.tools_max):
        kind = tool.text("type", required=True)
        if kind == "function":
            functions.append(tool)
        elif kind is not None:
            why = f"tools of type {quoted(kind)} are not served here; only functions are"
            tool.problem("type", why, "unsupported_tool")
    for function in functions:
        for name in ("defer_loading", "short_description"):
            if function.values.get(name):
                draft.ignore(function.path(name))
    known = [_without_hints(function) for function in functions]
    draft.prompt["tools"] = read_functions(draft, cursor, key, known)
    draft.view[key] = [function.values for function in functions]


def _without_hints(function: Cursor) -> Cursor:
    hints = ("defer_loading", "short_description")
    values = {name: value for name, value in function.values.items() if name not in hints}
    return _At(values, function)


class _At(Cursor):
    """Cursor on a part of an object, at that object's place."""

    __slots__ = ("_origin",)

    def __init__(self, values: dict[str, Any], origin: Cursor) -> None:
        super().__init__(values, origin.problems)
        self._origin = origin

    def path(self, key: str = "", index: int | None = None) -> str:
        """Return the JSON path in the whole body."""
        return self._origin.path(key, index)


def take_tool_choice(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tool_choice`: a word, or the functions that may be called; settled when all are known."""
    value = cursor.values[key]
    if type(value) is str:
        mode = cursor.word(key, tuple(_MODES))
        _choose(draft, mode, None)
        return
    if type(value) is not dict:
        why = f"must be a string or an object, not {kind_of(value)}"
        cursor.problem(key, why, "invalid_type")
        return
    choice = Cursor(value, cursor.problems, cursor, key)
    choice.only(("allowed_tools",))
    allowed = choice.object("allowed_tools", required=True)
    if allowed is None:
        return
    allowed.only(("mode", "tools"))
    mode = allowed.word("mode", tuple(_MODES)) or "auto"
    names = allowed.elements("tools", str, "a string", allowed.array("tools") or [])
    _choose(draft, mode, tuple(dict.fromkeys(names or ())) or None)


def _choose(draft: Draft, mode: str | None, allowed: tuple[str, ...] | None) -> None:
    if mode is None:
        return
    choose(draft, _KEY, _MODES[mode], allowed=allowed)
    draft.request["validated"] = mode == "validated"


def settle_tool_choice(draft: Draft, cursor: Cursor) -> None:
    """Check the choice against the declared functions; `validated` holds their arguments to their schemas."""
    validated = draft.request.pop("validated", None)
    if validated is None or cursor.problems:
        return
    choice = draft.prompt["choice"]
    names = [tool.name for tool in draft.prompt.get("tools", ())]
    _check_names(cursor, choice.mode, choice.allowed or (), names)
    if validated:
        draft.prompt["tools"] = tuple(
            replace(tool, strict=True) for tool in draft.prompt.get("tools", ())
        )


def _check_names(
    cursor: Cursor, mode: ToolMode, allowed: Sequence[str], names: Sequence[str]
) -> None:
    if mode == "required" and not names:
        cursor.problems.add(_KEY, "is only allowed when tools are given")
    for name in allowed:
        if name not in names:
            cursor.problems.add(_KEY, f"there is no tool called {quoted(name)}")
