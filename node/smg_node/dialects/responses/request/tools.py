"""Tools of a Responses body, in this API's flat shape: functions, custom tools, namespaces of both.

A tool of a namespace is shown to the model under a flat name (`items.flat_names`), a custom tool as a function
of one string. Hosted tools are left out. The answer repeats all of them as they came, without secrets.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from smg_node.core.generation.request import Tool
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.openai.functions import check_schemas, note_twice, read_function
from smg_node.dialects.openai.hosted_tools import leave_out
from smg_node.dialects.openai.request_draft import Draft, Take
from smg_node.dialects.openai.tool_choice import take_parallel
from smg_node.dialects.responses.items.flat_names import NamespacedName, flat_names

# A model that knows functions is shown a tool of free text as a function of one string.
CUSTOM_PARAMETERS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
_SERVED: Final = "'function', 'custom' and 'namespace' are"
_FORMATS: Final = ("text", "grammar")
_SYNTAXES: Final = ("lark", "regex")
_NAMESPACE_CHARACTERS_MAX: Final = 128
_SECRETS: Final = frozenset({"authorization", "headers"})
"""What a server of tools is told of its client, and nobody else."""
# Keys that one of the two public schemas demands of a function.
_UNSAID: Final = {"description": None, "parameters": None, "strict": None}


class _Declared(NamedTuple):
    """One function or custom tool, by its own name."""

    tool: Tool
    namespace: str
    custom: bool


def take_tools(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tools`: functions, custom tools whose argument is any text, and namespaces of both."""
    shown: list[dict[str, Any]] = []
    declared = list(_declared(draft, cursor, key, shown))
    limit = draft.options.tools_max
    if len(declared) > limit:
        cursor.problem(key, f"namespaces included, there may be at most {limit} tools")
        return
    named = [NamespacedName(each.namespace, each.tool.name) for each in declared if each.namespace]
    plain = [each.tool.name for each in declared if not each.namespace]
    namespaced = flat_names(named, plain)
    flat = {tool: name for name, tool in namespaced.items()}
    tools = []
    for tool, namespace, custom in declared:
        name = flat[NamespacedName(namespace, tool.name)] if namespace else tool.name
        tools.append((replace(tool, name=name), custom))
    draft.prompt["tools"] = tuple(tool for tool, _ in tools)
    draft.request["custom_tools"] = tuple(tool.name for tool, custom in tools if custom)
    draft.request["namespaced"] = namespaced
    draft.view["tools"] = shown
    check_schemas(draft, cursor, key, (tool for tool, custom in tools if not custom))


def _declared(
    draft: Draft, cursor: Cursor, key: str, shown: list[dict[str, Any]]
) -> Iterator[_Declared]:
    """Yield the tools that the model is shown, each once; what the answer shows goes to `shown`."""
    seen: set[NamespacedName] = set()
    for tool in cursor.objects(key, at_most=draft.options.tools_max):
        kind = tool.text("type", required=True)
        if kind == "namespace":
            shown.append(tool.values)
            yield from _of_namespace(draft, tool, seen)
        elif kind in ("function", "custom"):
            shown.append({**_UNSAID, **tool.values} if kind == "function" else tool.values)
            yield from _one(draft, tool, kind, "", seen)
        elif kind is not None:
            shown.append({name: tool.values[name] for name in tool.values if name not in _SECRETS})
            leave_out(draft, tool, kind, _SERVED)


def _of_namespace(draft: Draft, space: Cursor, seen: set[NamespacedName]) -> Iterator[_Declared]:
    name = space.text(
        "name", required=True, characters_min=1, characters_max=_NAMESPACE_CHARACTERS_MAX
    )
    about = space.text("description")
    for tool in space.objects("tools", required=True, at_most=draft.options.tools_max):
        kind = tool.text("type", required=True)
        if kind in ("function", "custom") and name is not None:
            for declared in _one(draft, tool, kind, name, seen):
                yield declared._replace(tool=_introduced(declared.tool, name, about))
                about = None
        elif kind is not None and kind not in ("function", "custom"):
            leave_out(draft, tool, kind, "in a namespace, 'function' and 'custom' are")


def _introduced(tool: Tool, namespace: str, about: str | None) -> Tool:
    """Return the first tool of a namespace, with what the namespace is about before its own words."""
    if not about:
        return tool
    own = f"\n\n{tool.description}" if tool.description else ""
    return replace(tool, description=f"{namespace}: {about}{own}")


def _one(
    draft: Draft, tool: Cursor, kind: str, namespace: str, seen: set[NamespacedName]
) -> Iterator[_Declared]:
    """Yield this tool, unless it cannot be read or there is one of its name: both are noted."""
    found = read_function(tool)
    if found is not None and kind == "custom":
        about = _with_grammar(draft, tool, found.description)
        found = Tool(found.name, about, CUSTOM_PARAMETERS)
    if found is None:
        return
    name = NamespacedName(namespace, found.name)
    if name in seen:
        note_twice(tool, found.name)
        return
    seen.add(name)
    yield _Declared(found, namespace, kind == "custom")


def _with_grammar(draft: Draft, tool: Cursor, about: str | None) -> str | None:
    """Return the description of a custom tool, and in it the grammar of its input.

    Nothing holds the model to that grammar, which the answer says.
    """
    form = tool.object("format")
    if form is None or form.word("type", _FORMATS, required=True) != "grammar":
        return about
    syntax = form.word("syntax", _SYNTAXES, required=True)
    definition = form.text("definition", required=True, characters_min=1)
    if syntax is None or definition is None:
        return about
    limit = draft.options.grammar_max_bytes
    if len(definition.encode()) > limit:
        form.problem("definition", f"must have at most {limit} bytes")
    draft.ignore(form.path())
    told = f"The input must match this grammar ({syntax}):\n{definition}"
    return f"{about}\n\n{told}" if about else told


def take_parallel_calls(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `parallel_tool_calls`, which the answer repeats."""
    take_parallel(draft, cursor, key)
    draft.view["parallel_tool_calls"] = cursor.values[key]


def take_calls_max(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `max_tool_calls`: a limit for tools that run here; the client's own are not counted."""
    draft.view["max_tool_calls"] = cursor.integer(key, low=1)


def take_choice(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tool_choice`, which the answer repeats; it is read when all tools are known."""
    draft.view["tool_choice"] = cursor.values[key]


TOOLS: Final[dict[str, Take]] = {
    "tools": take_tools,
    "tool_choice": take_choice,
    "parallel_tool_calls": take_parallel_calls,
    "max_tool_calls": take_calls_max,
}
