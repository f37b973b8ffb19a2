"""Tool choice of a Responses body: a word, one tool, a namespace, or the tools that may be called.

A tool stands beside its type: `{"type": "function", "name": "lookup", "namespace": "crm"}`. One of a namespace may
be named without it where no other tool has that name. Read when all tools are known: a body's keys have no order.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.openai.hosted_tools import is_hosted, refuse_choice
from smg_node.dialects.openai.request_draft import Draft
from smg_node.dialects.openai.tool_choice import (
    ALLOWED_MODES,
    WORDS,
    choice_object,
    choose,
    chosen,
    strange_kind,
    take_word,
)
from smg_node.dialects.responses.items.flat_names import NamespacedName

if TYPE_CHECKING:
    # Loaded with the first request that names tools of this node.
    from smg_node.core.generation.tool_serving import ChosenTool, ToolServing

KEY: Final = "tool_choice"
_WORDS: Final = ("none", "auto", "required")


def settle_tool_choice(draft: Draft, cursor: Cursor) -> None:
    """Read `tool_choice`, if the tools could be read; what is wrong with it is noted."""
    if not cursor.has(KEY):
        return
    if isinstance(cursor.values[KEY], str):
        take_word(draft, cursor, KEY, _WORDS)
        _settle_word(draft, cursor)
        return
    choice = choice_object(cursor, KEY)
    kind = None if choice is None else choice.text("type", required=True)
    if choice is None or kind is None:
        return
    if kind == "allowed_tools":
        choice.only(("type", "mode", "tools"))
        _take_allowed(draft, choice)
    elif kind in ("function", "custom", "namespace"):
        names = _names(draft, choice, kind)
        _leave(draft, [], insists=False)
        if kind == "namespace" and names:
            choose(draft, KEY, "required", allowed=tuple(names))
        elif names:
            choose(draft, KEY, "named", name=names[0])
    elif (ours := list(_ours(draft, choice, kind))) or choice.problems:
        choose(draft, KEY, "required", allowed=())
        _leave(draft, ours, insists=True)
    else:
        _strange_kind(draft, choice, kind)


def _ours(draft: Draft, entry: Cursor, kind: str) -> "Iterator[ChosenTool]":
    """Yield the tool that this node runs and that an entry names, if there is one; what is wrong with it is noted."""
    serving = _serving(draft)
    if serving is None:
        return
    from smg_node.dialects.openai.served.chosen_tools import chosen_tool, names_ours

    found = chosen_tool(serving, entry, kind) if names_ours(serving, kind) else None
    if found is not None:
        yield found


def _serving(draft: Draft) -> "ToolServing | None":
    found: ToolServing | None = draft.request.get("serving")
    return found


def _leave(draft: Draft, chosen: "Sequence[ChosenTool]", *, insists: bool) -> None:
    """Leave only these of the tools that this node runs."""
    serving = _serving(draft)
    if serving is not None:
        from smg_node.dialects.openai.served.chosen_tools import with_choice

        draft.request["serving"] = with_choice(serving, chosen, insists=insists)


def _settle_word(draft: Draft, cursor: Cursor) -> None:
    if chosen(draft).mode != "required" or cursor.problems:
        return
    functions, serving = bool(draft.prompt.get("tools")), _serving(draft)
    if serving is not None:
        from smg_node.dialects.openai.served.chosen_tools import with_some_call

        draft.request["serving"] = with_some_call(serving, functions=functions)
        return
    if functions:
        return
    if draft.left_out:
        refuse_choice(cursor, KEY, draft.left_out[0])
    else:
        cursor.problem(KEY, "is only allowed when tools are given")


def _take_allowed(draft: Draft, allowed: Cursor) -> None:
    mode = allowed.word("mode", ALLOWED_MODES, required=True)
    tools = list(allowed.objects("tools", required=True, at_least=1))
    ours: list[ChosenTool] = []
    names = tuple(dict.fromkeys(_all_names(draft, tools, ours)))
    if mode is None or allowed.problems:
        return
    _leave(draft, ours, insists=mode == "required" and not names)
    if names or ours:
        choose(draft, KEY, WORDS[mode], allowed=names)
    elif mode == "auto":
        # Nothing of what may be called is here.
        choose(draft, KEY, "none")
    else:
        refuse_choice(tools[0], "type", tools[0].values["type"])


def _all_names(draft: Draft, tools: Sequence[Cursor], ours: "list[ChosenTool]") -> Iterator[str]:
    """Yield the names of the client's own tools among these; those that this node runs go to `ours`."""
    for tool in tools:
        kind = tool.text("type", required=True)
        before = len(tool.problems)
        if kind in ("function", "custom", "namespace"):
            yield from _names(draft, tool, kind)
        elif kind is not None and (found := list(_ours(draft, tool, kind))):
            ours += found
        elif len(tool.problems) > before:
            continue
        elif kind is not None and (is_hosted(kind) or kind in draft.left_out):
            draft.ignore(f"{tool.path()}.{kind}")
        elif kind is not None:
            strange_kind(tool, kind)


def _names(draft: Draft, choice: Cursor, kind: str) -> list[str]:
    """Return the names by which the model knows what is chosen; none if there is no such tool, which is noted."""
    choice.only(("type", "name") if kind == "namespace" else ("type", "name", "namespace"))
    name = choice.text("name", required=True)
    namespace = None if kind == "namespace" else choice.text("namespace", characters_min=1)
    if name is None or choice.problems:
        return []
    spaced: dict[str, NamespacedName] = draft.request.get("namespaced", {})
    if kind == "namespace":
        found = [flat for flat, tool in spaced.items() if tool.namespace == name]
    elif namespace is not None:
        wanted = NamespacedName(namespace, name)
        found = [flat for flat, tool in spaced.items() if tool == wanted]
    elif any(tool.name == name for tool in draft.prompt.get("tools", ())):
        found = [name]
    else:
        found = [flat for flat, tool in spaced.items() if tool.name == name]
        if len(found) > 1:
            _note(
                choice, f"several namespaces have a tool called {quoted(name)}: add its namespace"
            )
            return []
    if not found and not draft.prompt.get("tools") and not draft.left_out:
        _note(choice, "is only allowed when tools are given")
    elif not found:
        what = "namespace" if kind == "namespace" else "tool"
        inside = "" if namespace is None else f" in the namespace {quoted(namespace)}"
        _note(choice, f"there is no {what} called {quoted(name)}{inside}")
    return found


def _note(choice: Cursor, why: str) -> None:
    choice.problems.add(KEY, why)


def _strange_kind(draft: Draft, choice: Cursor, kind: str) -> None:
    if kind in draft.left_out:
        refuse_choice(choice, "type", kind)
    else:
        strange_kind(choice, kind)
