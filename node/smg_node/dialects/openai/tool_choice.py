"""Tool choice: which tools must, may or must not be called, and whether in parallel.

A word (`none`, `auto`, `required`), one tool by its name, or the tools among which the model may choose. The
names are looked up when everything was read: a body's keys have no order.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from smg_node.core.generation.request import ToolChoice, ToolMode
from smg_node.core.json_cursor import Cursor, kind_of, quoted
from smg_node.dialects.openai.request_draft import Draft

_WORDS: Final[dict[str, ToolMode]] = {"none": "none", "auto": "auto", "required": "required"}
_NAME: Final = ("name",)
_MODES: Final = ("auto", "required")
_NO_CUSTOM: Final = "tools of type 'custom' are not supported here"


def take_tool_choice(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tool_choice` in the form of Chat Completions: the choice is in an object of its kind."""
    if isinstance(cursor.values[key], str):
        _take_word(draft, cursor, key, ("none", "auto", "required"))
        return
    choice = _object(cursor, key)
    kind = None if choice is None else choice.text("type", required=True)
    if choice is None or kind is None:
        return
    choice.only(("type", kind))
    if kind == "function":
        function = choice.object("function", required=True)
        if function is not None:
            function.only(_NAME)
            _choose(draft, key, "named", name=function.text("name", required=True))
    elif kind == "allowed_tools":
        allowed = choice.object("allowed_tools", required=True)
        if allowed is not None:
            _take_allowed(draft, allowed, key, flat=False)
    elif kind == "custom":
        choice.unsupported("type", _NO_CUSTOM)
    else:
        _strange_kind(choice, kind)


def take_flat_choice(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tool_choice` in the form of Responses: the choice stands beside its kind."""
    if isinstance(cursor.values[key], str):
        _take_word(draft, cursor, key, ("none", "auto", "required"))
        return
    choice = _object(cursor, key)
    kind = None if choice is None else choice.text("type", required=True)
    if choice is None or kind is None:
        return
    if kind in ("function", "custom"):
        choice.only(("type", "name"))
        _choose(draft, key, "named", name=choice.text("name", required=True))
    elif kind == "allowed_tools":
        _take_allowed(draft, choice, key, flat=True)
    else:
        _strange_kind(choice, kind)


def take_function_call(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the legacy `function_call`: `none`, `auto`, or the name of a function."""
    if isinstance(cursor.values[key], str):
        _take_word(draft, cursor, key, ("none", "auto"))
        return
    choice = _object(cursor, key)
    if choice is not None:
        choice.only(_NAME)
        _choose(draft, key, "named", name=choice.text("name", required=True))


def take_parallel(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `parallel_tool_calls`; false allows one call at most."""
    if cursor.flag(key) is False:
        draft.prompt["choice"] = replace(_chosen(draft), parallel=False)


def settle_choice(draft: Draft, cursor: Cursor, *, auto_needs_tools: bool = True) -> None:
    """Check a choice against the tools that were declared; `none` needs none, and `auto` only the list of
    them, which may be empty.
    """
    choice = _chosen(draft)
    if draft.view.get("legacy_call"):
        # One call at most: the answer has a place for no more.
        draft.prompt["choice"] = choice = replace(choice, parallel=False)
    key = choice.where
    if not cursor.has(key) or choice.mode == "none" or cursor.problems:
        return
    names = {tool.name for tool in draft.prompt.get("tools", ())}
    if not names:
        needed = "functions" if key == "function_call" else "tools"
        free = choice.mode == "auto" and choice.allowed is None
        if not free or (auto_needs_tools and not cursor.has(needed)):
            cursor.problem(key, f"is only allowed when {needed} are given")
        return
    wanted = (choice.name,) if choice.mode == "named" else choice.allowed or ()
    for name in wanted:
        if name not in names:
            cursor.problem(key, f"there is no tool called {quoted(name)}")


def _chosen(draft: Draft) -> ToolChoice:
    found = draft.prompt.get("choice")
    return found if isinstance(found, ToolChoice) else ToolChoice()


def _choose(
    draft: Draft,
    key: str,
    mode: ToolMode,
    *,
    name: str | None = "",
    allowed: tuple[str, ...] | None = None,
) -> None:
    draft.prompt["choice"] = replace(
        _chosen(draft), mode=mode, name=name or "", allowed=allowed, where=key
    )


def _take_word(draft: Draft, cursor: Cursor, key: str, words: tuple[str, ...]) -> None:
    word = cursor.values[key]
    if word in words:
        _choose(draft, key, _WORDS[word])
    else:
        known = ", ".join(repr(each) for each in words)
        cursor.problem(key, f"must be one of {known} or an object; got {quoted(word)}")


def _object(cursor: Cursor, key: str) -> Cursor | None:
    choice = cursor.values[key]
    if type(choice) is dict:
        return cursor.object(key)
    cursor.problem(key, f"must be a string or an object, not {kind_of(choice)}", "invalid_type")
    return None


def _take_allowed(draft: Draft, allowed: Cursor, key: str, *, flat: bool) -> None:
    allowed.only(("type", "mode", "tools") if flat else ("mode", "tools"))
    mode = allowed.word("mode", _MODES, required=True)
    tools = list(allowed.objects("tools", required=True, at_least=1))
    names = tuple(dict.fromkeys(_names(tools, flat=flat)))
    if mode is not None:
        _choose(draft, key, _WORDS[mode], allowed=names)


def _names(tools: list[Cursor], *, flat: bool) -> Iterator[str]:
    for tool in tools:
        kind = tool.text("type", required=True)
        if kind == "function" or (kind == "custom" and flat):
            tool.only(("type", "name" if flat else "function"))
            place = tool if flat else tool.object("function", required=True)
            if place is not None and not flat:
                place.only(_NAME)
            name = None if place is None else place.text("name", required=True)
            if name is not None:
                yield name
        elif kind == "custom":
            tool.unsupported("type", _NO_CUSTOM)
        elif kind is not None:
            _strange_kind(tool, kind)


def _strange_kind(choice: Cursor, kind: str) -> None:
    choice.unsupported("type", f"nothing of the type {quoted(kind)} can be chosen")
