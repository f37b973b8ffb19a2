"""Hints of what a tool does: whether it only reads, may be repeated, and stays in a closed world. Pure.

A hint is its server's own word. It counts where an operator trusts the server, or has said the same of the tool; of
all other tools the worst is taken for granted: they write, a repetition does harm, and the world is open.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from smg_node.core.generation.tool_serving import ToolFilter
from smg_node.mcp.server_spec import ServerSpec


class Hints(NamedTuple):
    """What is believed of a tool."""

    read_only: bool = False
    idempotent: bool = False
    closed_world: bool = False


def hints_of(spec: ServerSpec, tool: str, annotations: Mapping[str, Any]) -> Hints:
    """Return what is believed of a server's tool; `annotations` are the server's own, empty for those of others."""
    trusted = spec.trust == "trusted"
    rule = spec.rule(tool)
    read_only, idempotent = rule.read_only, rule.idempotent
    if read_only is None:
        read_only = trusted and annotations.get("readOnlyHint") is True
    if idempotent is None:
        idempotent = trusted and annotations.get("idempotentHint") is True
    # Nobody but the server says anything of the world: believed where an operator has looked at the tool.
    looked_at = trusted or rule.read_only is True
    return Hints(read_only, idempotent, looked_at and annotations.get("openWorldHint") is False)


def fits(wanted: ToolFilter, tool: str, hints: Hints) -> bool:
    """Whether a tool is one of these, by name and by what is believed of it."""
    if wanted.names is not None and tool not in wanted.names:
        return False
    return wanted.read_only is None or wanted.read_only is hints.read_only
