"""Tool choice: which tools must, may or must not be called, and whether in parallel.

A word (`none`, `auto`, `required`), one tool by its name, or the tools among which the model may choose. The
names are looked up when everything was read: a body's keys have no order.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from smg_node.core.generation.request import ToolChoice, ToolMode
from smg_node.core.json_cursor import Cursor, kind_of, quoted
from smg_node.dialects.openai.hosted_tools import is_hosted, refuse_choice
from smg_node.dialects.openai.request_draft import Draft

WORDS: Final[dict[str, ToolMode]] = {"none": "none", "auto": "auto", "required": "required"}
ALLOWED_MODES: Final = ("auto", "required")
_NAME: Final = ("name",)
_KINDS: Final = ("function", "custom")


def take_tool_choice(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tool_choice` in the form of Chat Completions: the choice is in an object of its kind."""
    if isinstance(cursor.values[key], str):
        take_word(draft, cursor, key, ("none", "auto", "required"))
        return
    choice = choice_object(cursor, key)
    kind = None if choice is None else choice.text("type", required=True)
    if choice is None or kind is None:
        return
    choice.only(("type", kind))
    if kind in _KINDS:
        tool = choice.object(kind, required=True)
        if tool is not None:
            tool.only(_NAME)
            choose(draft, key, "named", name=tool.text("name", required=True))
    elif kind == "allowed_tools":
        allowed = choice.object("allowed_tools", required=True)
        if allowed is not None:
            _take_allowed(draft, allowed, key)
    else:
        strange_kind(choice, kind)


def take_function_call(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the legacy `function_call`: `none`, `auto`, or the name of a function."""
    if isinstance(cursor.values[key], str):
        take_word(draft, cursor, key, ("none", "auto"))
        return
    choice = choice_object(cursor, key)
    if choice is not None:
        choice.only(_NAME)
        choose(draft, key, "named", name=choice.text("name", required=True))


def take_parallel(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `parallel_tool_calls`; false allows one call at most."""
    if cursor.flag(key) is False:
        draft.prompt["choice"] = replace(chosen(draft), parallel=False)


def settle_choice(draft: Draft, cursor: Cursor) -> None:
    """Check a choice against the tools that were declared; `none` needs none, and `auto` only the list of
    them, which may be empty.
    """
    choice = chosen(draft)
    if draft.view.get("legacy_call"):
        # One call at most: the answer has a place for no more.
        draft.prompt["choice"] = choice = replace(choice, parallel=False)
    key = choice.where
    if not cursor.has(key) or choice.mode == "none" or cursor.problems:
        return
    names = {tool.name for tool in draft.prompt.get("tools", ())}
    if not names:
        _settle_without_tools(draft, cursor, choice)
        return
    wanted = (choice.name,) if choice.mode == "named" else choice.allowed or ()
    for name in wanted:
        if name not in names:
            cursor.problem(key, f"there is no tool called {quoted(name)}")


def _settle_without_tools(draft: Draft, cursor: Cursor, choice: ToolChoice) -> None:
    """Check a choice where no tool is left that the model is shown."""
    key = choice.where
    if not draft.left_out:
        needed = "functions" if key == "function_call" else "tools"
        if choice.mode == "auto" and choice.allowed is None and cursor.has(needed):
            return
        cursor.problem(key, f"is only allowed when {needed} are given")
    elif choice.mode == "required":
        refuse_choice(cursor, key, draft.left_out[0])
    elif choice.mode == "named":
        cursor.problem(key, f"there is no tool called {quoted(choice.name)}")


def chosen(draft: Draft) -> ToolChoice:
    """Return the choice so far."""
    found = draft.prompt.get("choice")
    return found if isinstance(found, ToolChoice) else ToolChoice()


def choose(
    draft: Draft,
    key: str,
    mode: ToolMode,
    *,
    name: str | None = "",
    allowed: tuple[str, ...] | None = None,
) -> None:
    """Make this the choice; whether calls may be parallel stays as it is."""
    draft.prompt["choice"] = replace(
        chosen(draft), mode=mode, name=name or "", allowed=allowed, where=key
    )


def take_word(draft: Draft, cursor: Cursor, key: str, words: tuple[str, ...]) -> None:
    """Take one of these words; any other is noted."""
    word = cursor.values[key]
    if word in words:
        choose(draft, key, WORDS[word])
    else:
        known = ", ".join(repr(each) for each in words)
        cursor.problem(key, f"must be one of {known} or an object; got {quoted(word)}")


def choice_object(cursor: Cursor, key: str) -> Cursor | None:
    """Return the object at `key`; None for anything else, which is noted."""
    choice = cursor.values[key]
    if type(choice) is dict:
        return cursor.object(key)
    cursor.problem(key, f"must be a string or an object, not {kind_of(choice)}", "invalid_type")
    return None


def _take_allowed(draft: Draft, allowed: Cursor, key: str) -> None:
    allowed.only(("mode", "tools"))
    mode = allowed.word("mode", ALLOWED_MODES, required=True)
    tools = list(allowed.objects("tools", required=True, at_least=1))
    names = tuple(dict.fromkeys(_names(draft, tools)))
    if mode is None:
        return
    if names:
        choose(draft, key, WORDS[mode], allowed=names)
    elif mode == "auto":
        # Nothing of what may be called is here.
        choose(draft, key, "none")
    elif tools and not allowed.problems:
        refuse_choice(tools[0], "type", tools[0].values["type"])


def _names(draft: Draft, tools: list[Cursor]) -> Iterator[str]:
    for tool in tools:
        kind = tool.text("type", required=True)
        if kind in _KINDS:
            tool.only(("type", kind))
            place = tool.object(kind, required=True)
            if place is not None:
                place.only(_NAME)
            name = None if place is None else place.text("name", required=True)
            if name is not None:
                yield name
        elif kind is not None and is_hosted(kind):
            draft.ignore(f"{tool.path()}.{kind}")
        elif kind is not None:
            strange_kind(tool, kind)


def strange_kind(choice: Cursor, kind: str) -> None:
    """Note that a tool of this type cannot be chosen."""
    if is_hosted(kind):
        refuse_choice(choice, "type", kind)
    else:
        choice.unsupported("type", f"nothing of the type {quoted(kind)} can be chosen")
