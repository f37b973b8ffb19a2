"""Catalog of one request: the tools of servers that its model is offered, by the names it knows them by. Pure.

What is withheld (a tool that the request did not want, or that an operator hides) is known by name all the same, so
that a model that calls it is told why it is not run.
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Final, get_args

import msgspec

from smg_node.core.generation.request import Tool as FunctionTool
from smg_node.core.generation.request import ToolCall, Turn, TurnBlock
from smg_node.core.generation.tool_owner import ToolOwner, ToolShape
from smg_node.core.generation.tool_serving import (
    AskedBuiltin,
    AskedServer,
    ChosenTool,
    ListedTool,
)
from smg_node.mcp.catalog.arguments import shown_schema
from smg_node.mcp.catalog.hints import Hints, fits, hints_of
from smg_node.mcp.catalog.model_names import Named, model_names
from smg_node.mcp.catalog.pins import is_changed
from smg_node.mcp.server_spec import ServerSpec, ToolRule
from smg_node.mcp.tools.tool import Tool

_SHAPES: Final[Mapping[str, ToolShape]] = {shape: shape for shape in get_args(ToolShape)}


class ServerListing(msgspec.Struct, frozen=True):
    """The tools of one server that a request names; `pinned`: the list is the client's own, and says nothing of itself."""

    asked: AskedServer
    spec: ServerSpec
    tools: tuple[ListedTool, ...] = ()
    pinned: bool = False


class BuiltinListing(msgspec.Struct, frozen=True):
    """A built-in tool that a server's tool does the work of; `function` is what the model is offered for it."""

    asked: AskedBuiltin
    label: str
    spec: ServerSpec
    tool: str
    function: FunctionTool


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool that may be called, under `function.name`. `listed` is how its server lists it.

    `asked` is what the request says of the server, None for a built-in tool, which has `builtin`.
    """

    owner: ToolOwner
    function: FunctionTool
    spec: ServerSpec
    listed: ListedTool
    hints: Hints
    asked: AskedServer | None = None
    builtin: AskedBuiltin | None = None

    @property
    def rule(self) -> ToolRule:
        """What an operator says of it."""
        return self.spec.rule(self.owner.tool)

    @property
    def changed(self) -> bool:
        """Whether it is not as the operator pinned it; of a built-in tool the request's model is told nothing of it."""
        one = self.listed
        return self.builtin is None and is_changed(
            self.spec, one.name, one.description, one.schema, one.annotations
        )


class Withheld(msgspec.Struct, frozen=True, gc=False):
    """A tool that is not offered, and the rule by which it is not."""

    owner: ToolOwner
    rule: str


class Catalog(msgspec.Struct, frozen=True):
    """All of it: what is offered and what is withheld, by names for the model."""

    offered: Mapping[str, OfferedTool]
    withheld: Mapping[str, Withheld]

    def functions(self) -> tuple[FunctionTool, ...]:
        """Return the tools as the model is offered them, by name: their order decides what is cached of a prompt."""
        return tuple(self.offered[name].function for name in sorted(self.offered))

    def listed(self, label: str) -> tuple[ListedTool, ...]:
        """Return the tools of a server that are offered, by its own names, as it lists them."""
        listed = (
            tool.listed
            for tool in self.offered.values()
            if tool.asked is not None and tool.owner.server == label
        )
        return tuple(sorted(listed, key=lambda tool: tool.name))

    def deferred(self) -> tuple[OfferedTool, ...]:
        """Return the tools that are found by search only."""
        return tuple(tool for tool in self.offered.values() if tool.function.deferred)

    def name_of(self, owner: ToolOwner) -> str | None:
        """Return the name by which the model knows a server's tool now; None where it does not.

        Where the owner names no server, as in histories of built-in tools, it is the tool that is shown as one of that.
        """
        for name in sorted(self.offered):
            mine = self.offered[name].owner
            if not owner.server:
                if owner.shape != "mcp" and mine.shape == owner.shape:
                    return name
            elif (mine.server, mine.tool) == (owner.server, owner.tool):
                return name
        return None

    def chosen(self, chosen: ChosenTool) -> list[str]:
        """Return the names of the tools that an entry of a tool choice means."""
        return [
            name
            for name, tool in self.offered.items()
            if (
                tool.builtin is not None and tool.builtin.kind == chosen.builtin
                if chosen.builtin is not None
                else tool.asked is not None
                and tool.owner.server == chosen.server
                and chosen.tool in ("", tool.owner.tool)
            )
        ]

    def renamed(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Return a history in which calls of servers' tools have the names that the model knows them by now."""
        return tuple(self._renamed(turn) if turn.calls else turn for turn in turns)

    def _renamed(self, turn: Turn) -> Turn:
        names: dict[str, str] = {}
        calls: list[ToolCall] = []
        for call in turn.calls:
            name = None if call.owner is None else self.name_of(call.owner)
            if name is None or name == call.name:
                calls.append(call)
                continue
            names[call.call_id] = name
            calls.append(msgspec.structs.replace(call, name=name))
        if not names:
            return turn
        blocks = tuple(_renamed_block(block, names) for block in turn.blocks)
        return msgspec.structs.replace(turn, calls=tuple(calls), blocks=blocks)


def build_catalog(
    servers: Sequence[ServerListing],
    builtins: Sequence[BuiltinListing],
    taken: Collection[str],
    *,
    searched: bool,
) -> Catalog:
    """Return the catalog of a request whose client has functions of the names `taken`.

    Tools are deferred only where they are `searched`: what nothing finds is no use.
    """
    offered: dict[str, OfferedTool] = {}
    by_kind = [Named(one.label, one.function.name) for one in builtins]
    names = model_names(by_kind, taken)
    for one, named in zip(builtins, by_kind, strict=True):
        offered[names[named]] = _builtin(one, names[named])
    wanted: dict[Named, OfferedTool] = {}
    refused: dict[Named, Withheld] = {}
    for server in servers:
        for listed in server.tools:
            tool = _tool(server, listed, searched=searched)
            named = Named(server.asked.label, listed.name, tool.rule.alias)
            rule = _withheld_by(server.asked, tool)
            if rule:
                refused[named] = Withheld(tool.owner, rule)
            else:
                wanted.setdefault(named, tool)
    names = model_names(list(wanted), {*taken, *offered})
    for named in sorted(wanted, key=names.__getitem__):
        name, tool = names[named], wanted[named]
        offered[name] = msgspec.structs.replace(tool, function=_named(tool.function, name))
    return Catalog(offered, _by_name(refused, {*taken, *offered}))


def listed_tool(tool: Tool) -> ListedTool:
    """Return a tool of a server's list as requests and clients know it."""
    return ListedTool(tool.name, tool.description, tool.input_schema, tool.annotations)


def _tool(server: ServerListing, listed: ListedTool, *, searched: bool) -> OfferedTool:
    asked, spec = server.asked, server.spec
    rule = spec.rule(listed.name)
    hints = hints_of(spec, listed.name, {} if server.pinned else listed.annotations)
    later = listed.name in asked.deferred_tools or rule.defer
    if asked.deferred:
        later = rule.defer or listed.name not in asked.loaded_tools
    function = FunctionTool(
        listed.name,
        listed.description or None,
        shown_schema(listed.schema, rule) or None,
        where=asked.where,
        deferred=later and searched,
    )
    shape = _shape(rule.shape)
    owner = ToolOwner(asked.label, listed.name, shape, hidden=spec.internal)
    return OfferedTool(owner, function, spec, listed, hints, asked)


def _builtin(one: BuiltinListing, name: str) -> OfferedTool:
    asked, spec = one.asked, one.spec
    function = _named(one.function, name)
    owner = ToolOwner(one.label, one.tool, asked.kind, hidden=spec.internal)
    listed = ListedTool(one.tool, function.description or "", function.parameters or {})
    hints = hints_of(spec, one.tool, {})
    return OfferedTool(owner, function, spec, listed, hints, builtin=asked)


def _named(function: FunctionTool, name: str) -> FunctionTool:
    return dataclasses.replace(function, name=name)


def _shape(spelled: str) -> ToolShape:
    """Return the shape that an operator names, with or without the ending that items have."""
    return _SHAPES.get(spelled.removesuffix("_call"), "mcp")


def _withheld_by(asked: AskedServer, tool: OfferedTool) -> str:
    """Return the rule by which a tool is not offered, "" where it is."""
    if tool.rule.hidden:
        return "the operator does not offer this tool"
    wanted = asked.tools is None or fits(asked.tools, tool.owner.tool, tool.hints)
    if not wanted or tool.owner.tool in asked.excluded:
        return "the request does not allow this tool"
    return ""


def _by_name(refused: Mapping[Named, Withheld], used: Collection[str]) -> Mapping[str, Withheld]:
    """Return what is withheld by every name that a model may call it by, and that means nothing else."""
    named: dict[str, Withheld] = {}
    for tool, withheld in refused.items():
        for name in (tool.alias, tool.tool, f"{tool.label}__{tool.tool}"):
            if name and name not in used:
                named.setdefault(name, withheld)
    return named


def _renamed_block(block: TurnBlock, names: Mapping[str, str]) -> TurnBlock:
    name = names.get(block.call_id) if block.kind == "call" else None
    return block if name is None else msgspec.structs.replace(block, name=name)
