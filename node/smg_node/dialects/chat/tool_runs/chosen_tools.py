"""Chosen tools: the `tool_choice` of a chat body that asks for tools on this node's side.

It has the forms of any chat body, and those of Responses for what this node runs: `{type: mcp, server_label, name}` and
`{type: web_search}`, alone or among the `allowed_tools`.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from smg_node.core.generation.tool_serving import ChosenTool, ToolServing
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.openai.request_draft import Draft
from smg_node.dialects.openai.served.chosen_tools import (
    chosen_tool,
    names_ours,
    with_choice,
    with_some_call,
)
from smg_node.dialects.openai.tool_choice import (
    ALLOWED_MODES,
    WORDS,
    choice_object,
    choose,
    chosen,
    strange_kind,
    take_word,
)

KEY: Final = "tool_choice"
_KINDS: Final = ("function", "custom")


def settle_choice(draft: Draft, cursor: Cursor, serving: ToolServing) -> ToolServing:
    """Settle the choice, and return what is asked for as far as the choice leaves it."""
    value = cursor.values.get(KEY)
    if value is None:
        return serving
    functions = [tool.name for tool in draft.prompt.get("tools", ())]
    if isinstance(value, str):
        take_word(draft, cursor, KEY, ("none", "auto", "required"))
        if chosen(draft).mode != "required":
            return serving
        return with_some_call(serving, functions=bool(functions))
    choice = choice_object(cursor, KEY)
    kind = None if choice is None else choice.text("type", required=True)
    if choice is None or kind is None:
        return serving
    if kind == "allowed_tools":
        choice.only(("type", kind))
        allowed = choice.object(kind, required=True)
        return serving if allowed is None else _allowed(draft, allowed, serving, functions)
    ours: list[ChosenTool] = []
    names = list(_names(choice, kind, serving, functions, ours))
    if names:
        # Writers for vendors leave out whatever is not allowed.
        choose(draft, KEY, "named", name=names[0], allowed=(names[0],))
    elif ours:
        choose(draft, KEY, "required", allowed=())
    return with_choice(serving, ours, insists=bool(ours))


def _allowed(
    draft: Draft, allowed: Cursor, serving: ToolServing, functions: Sequence[str]
) -> ToolServing:
    allowed.only(("mode", "tools"))
    mode = allowed.word("mode", ALLOWED_MODES, required=True)
    ours: list[ChosenTool] = []
    names: list[str] = []
    for tool in allowed.objects("tools", required=True, at_least=1):
        kind = tool.text("type", required=True)
        if kind is not None:
            names += _names(tool, kind, serving, functions, ours)
    if mode is not None:
        choose(draft, KEY, WORDS[mode], allowed=tuple(dict.fromkeys(names)))
    return with_choice(serving, ours, insists=mode == "required" and not names)


def _names(
    entry: Cursor,
    kind: str,
    serving: ToolServing,
    functions: Sequence[str],
    ours: list[ChosenTool],
) -> Iterator[str]:
    """Yield the name of the client's own tool that an entry names; one that this node runs goes to `ours`."""
    if kind in _KINDS:
        entry.only(("type", kind))
        place = entry.object(kind, required=True)
        name = None if place is None else place.text("name", required=True)
        if place is None or name is None:
            return
        place.only(("name",))
        if name in functions:
            yield name
        else:
            place.problem("name", f"there is no tool called {quoted(name)}")
    elif names_ours(serving, kind):
        found = chosen_tool(serving, entry, kind)
        if found is not None:
            ours.append(found)
    else:
        strange_kind(entry, kind)
