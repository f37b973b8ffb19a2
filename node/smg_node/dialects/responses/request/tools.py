"""Tools of a Responses body, in this API's flat shape: functions, custom tools, namespaces of both.

They are declared in `tools`, and in items of type `additional_tools`, of the input or of the history:
coding clients do so, to leave the beginning of a prompt as it is. A tool of a namespace is shown to the model under a flat name (`items.flat_names`), a custom tool as a function
of one string. Hosted tools are left out. The answer repeats all of them as they came, without secrets.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import Tool
from smg_node.core.json_cursor import Cursor, Problems
from smg_node.dialects.openai.functions import check_schemas, custom_tool, note_twice, read_function
from smg_node.dialects.openai.hosted_tools import leave_out
from smg_node.dialects.openai.request_draft import Draft, Take
from smg_node.dialects.openai.tool_choice import take_parallel
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.items.flat_names import NamespacedName, flat_names
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.items.item_types import ADDITIONAL_TOOLS
from smg_node.dialects.responses.request.input_items import SECRETS
from smg_node.dialects.responses.request.response_request import ResponseRequest

if TYPE_CHECKING:
    # Loaded with the first request that names tools of this node.
    from smg_node.core.generation.tool_serving import ToolServing
    from smg_node.dialects.openai.served.asked_tools import AskedTools

_SERVED: Final = "'function', 'custom' and 'namespace' are"
_NAMESPACE_CHARACTERS_MAX: Final = 128
_ASKED: Final = "asked_tools"
"""What a draft calls tools that this node runs, and that are not known by names yet."""
_DECLARED: Final = "declared_tools"
"""What a draft calls tools that have no name yet by which the model knows them."""
_DEFERS: Final = ("defer_loading",)
# Keys that one of the two public schemas demands of a function.
_UNSAID: Final = {"description": None, "parameters": None, "strict": None}


class _Declared(NamedTuple):
    """One function or custom tool, by its own name."""

    tool: Tool
    namespace: str
    custom: bool


def take_tools(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tools`: functions, custom tools whose argument is any text, namespaces of both, and what this node runs."""
    shown: list[dict[str, Any]] = []
    if draft.options.tool_servers:
        draft.request[_ASKED] = None
    draft.request[_DECLARED] = list(_declared(draft, cursor, key, shown))
    draft.view["tools"] = shown


def settle_tools(draft: Draft, cursor: Cursor) -> None:
    """Name all tools, those that items of the input declare too; of two with one name the later one counts."""
    asked: AskedTools | None = draft.request.pop(_ASKED, None)
    if asked is not None:
        draft.request["serving"] = asked.serving()
    declared: list[_Declared] = draft.request.pop(_DECLARED, [])
    declared += _additional(draft, cursor)
    if any(each.tool.deferred for each in declared):
        declared = _findable(draft, declared)
    if not declared:
        return
    key = "tools" if cursor.has("tools") else "input"
    unlike = {NamespacedName(each.namespace, each.tool.name): each for each in declared}
    limit = draft.options.tools_max
    if len(unlike) > limit:
        cursor.problem(key, f"namespaces included, there may be at most {limit} tools")
        return
    named = [name for name in unlike if name.namespace]
    namespaced = flat_names(named, [name.name for name in unlike if not name.namespace])
    flat = {tool: name for name, tool in namespaced.items()}
    tools = [
        (replace(each.tool, name=flat.get(name, name.name)), each.custom)
        for name, each in unlike.items()
    ]
    draft.prompt["tools"] = tuple(tool for tool, _ in tools)
    draft.request["custom_tools"] = tuple(tool.name for tool, custom in tools if custom)
    draft.request["namespaced"] = namespaced
    check_schemas(draft, cursor, key, (tool for tool, custom in tools if not custom))


def _findable(draft: Draft, declared: list[_Declared]) -> list[_Declared]:
    """Return the tools; those that are deferred stay so only where the model can search for them."""
    if _searches(draft.request.get("serving")):
        return declared
    for each in declared:
        if each.tool.deferred:
            draft.ignore(f"{each.tool.where.removesuffix('.parameters')}.defer_loading")
    return [each._replace(tool=replace(each.tool, deferred=False)) for each in declared]


def _searches(serving: "ToolServing | None") -> bool:
    """Whether the model can search for tools."""
    return serving is not None and any(asked.kind == "tool_search" for asked in serving.builtins)


def _additional(draft: Draft, cursor: Cursor) -> Iterator[_Declared]:
    """Yield the tools that items of the input declare."""
    if not any(item.type == ADDITIONAL_TOOLS for item in draft.request.get("items", ())):
        return
    for index, value in enumerate(cursor.values["input"]):
        if type(value) is dict and value.get("type") == ADDITIONAL_TOOLS:
            item = cursor.element("input", index, value)
            if item is not None:
                yield from _declared(draft, item, "tools", [])


def history_tools(ask: ResponseRequest, items: Iterable[ItemDoc]) -> ResponseRequest:
    """Return a request with the tools that these items of its history declare, after its own.

    Its own tools keep their names and definitions; what no longer can be read declares nothing. Deferred ones stay so
    where the model can search for them.
    """
    found: dict[NamespacedName, _Declared] = {}
    draft = Draft(ReaderOptions(tool_servers=_searches(ask.serving)))
    for item in items:
        cursor = Cursor(dict(item.values()), Problems())
        with suppress(SmgError):
            for each in _declared(draft, cursor, "tools", []):
                found[NamespacedName(each.namespace, each.tool.name)] = each
    own = {ask.namespaced.get(tool.name) or NamespacedName("", tool.name) for tool in ask.tools}
    new = {name: each for name, each in found.items() if name not in own}
    if not new:
        return ask
    taken = [tool.name for tool in ask.tools] + [name.name for name in new if not name.namespace]
    namespaced = flat_names([name for name in new if name.namespace], taken)
    flat = {tool: name for name, tool in namespaced.items()}
    tools = [(flat.get(name, name.name), each) for name, each in new.items()]
    customs = [name for name, each in tools if each.custom]
    return replace(
        ask,
        tools=(*ask.tools, *(replace(each.tool, name=name) for name, each in tools)),
        custom_tools=(*ask.custom_tools, *customs),
        namespaced={**ask.namespaced, **namespaced},
    )


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
            shown.append({name: tool.values[name] for name in tool.values if name not in SECRETS})
            if _ASKED not in draft.request or not _asked(draft).take(tool, kind):
                leave_out(draft, tool, kind, _SERVED)


def _asked(draft: Draft) -> "AskedTools":
    """Return the collection of tools that this node runs."""
    from smg_node.dialects.openai.served.asked_tools import AskedTools

    found: AskedTools = draft.request[_ASKED] or AskedTools()
    draft.request[_ASKED] = found
    return found


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
    served = draft.options.tool_servers
    found = read_function(tool, also=_DEFERS if served else ())
    if found is not None and kind == "custom":
        found = custom_tool(draft, tool, found, inside=False)
    if found is None:
        return
    if served and tool.flag("defer_loading"):
        found = replace(found, deferred=True)
    name = NamespacedName(namespace, found.name)
    if name in seen:
        note_twice(tool, found.name)
        return
    seen.add(name)
    yield _Declared(found, namespace, kind == "custom")


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
