"""Chosen tools: a choice among the tools of a Messages body, some of which only their servers know by name."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from smg_node.core.generation.request import ToolChoice
from smg_node.core.generation.tool_serving import (
    AskedBuiltin,
    ChosenTool,
    ServedChoice,
    ToolServing,
)


def with_choice(
    serving: ToolServing,
    choice: ToolChoice,
    builtins: dict[str, AskedBuiltin],
    *,
    in_force: Sequence[str],
    removed: bool,
) -> tuple[ToolServing, ToolChoice] | None:
    """Return what is asked for and the choice of a call; None for the choice of a tool that nobody has.

    `builtins` are by name, `in_force` the client's own tools that may be called, and some of them were `removed`.
    """
    if choice.mode == "required":
        if not (in_force or serving.servers) and len(serving.builtins) == 1:
            return _with(serving, (), insisted=True), choice
        if not removed:
            return serving, choice
        ours = [
            *(ChosenTool(one.label) for one in serving.servers),
            *(ChosenTool(builtin=one.kind) for one in serving.builtins),
        ]
        return _with(serving, ours), replace(choice, allowed=tuple(in_force))
    name = choice.name
    if name in in_force:
        # Writers for vendors leave out whatever is not allowed.
        return _with(serving, ()), replace(choice, allowed=(name,))
    some = replace(choice, mode="required", name="", allowed=())
    if name in builtins:
        kind = builtins[name].kind
        others = tuple(one for one in serving.builtins if one.kind != kind)
        insisted = msgspec.structs.replace(builtins[name], insisted=True)
        serving = msgspec.structs.replace(serving, builtins=(*others, insisted))
        return _with(serving, (ChosenTool(builtin=kind),)), some
    if not serving.servers:
        return None
    return _with(serving, [ChosenTool(one.label, name) for one in serving.servers]), some


def _with(
    serving: ToolServing, chosen: Sequence[ChosenTool], *, insisted: bool = False
) -> ToolServing:
    if insisted:
        builtins = tuple(msgspec.structs.replace(one, insisted=True) for one in serving.builtins)
        return msgspec.structs.replace(serving, builtins=builtins)
    return msgspec.structs.replace(serving, choice=ServedChoice(tuple(chosen)))
