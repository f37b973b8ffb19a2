"""System prompts and system messages: their texts, and the changes of tools that they tell.

A client's line about billing, which differs between its sessions, is left out of the prompt: it stands in
front, so that no two sessions would have the same beginning.
"""

from collections.abc import Mapping
from typing import Final, get_args

from smg_node.core.generation.request import Effort, Tool
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.messages.cache_control import check_cache_control
from smg_node.dialects.messages.request.blocks import (
    TEXTS,
    Piece,
    content_of,
    pieces_at,
    plain_text,
    read_block,
    strange,
)
from smg_node.dialects.messages.request.messages_draft import MessagesDraft
from smg_node.dialects.messages.request.tools import read_tool
from smg_node.dialects.openai.functions import note_twice

BILLING: Final = "x-anthropic-billing-header:"
_NEXT_USER: Final = "next_user_message"
_NAME_MAX: Final = 128
_EFFORTS: Final[Mapping[str, Effort]] = {
    effort: effort for effort in get_args(Effort) if effort not in ("none", "minimal")
}
EFFORTS: Final = tuple(_EFFORTS)
_MCP_REFERENCES: Final = ("mcp_tool_reference", "mcp_toolset_reference")


def read_system(draft: MessagesDraft, cursor: Cursor, key: str) -> str | None:
    """Return the text of the `system` parameter; None without any."""
    pieces = pieces_at(draft, cursor, key, TEXTS)
    if draft.options.drop_billing_block:
        pieces = [each for each in pieces if not (type(each) is str and each.startswith(BILLING))]
    text = content_of(pieces)
    assert type(text) is str, "a system prompt is text"
    return text or None


def read_system_message(
    draft: MessagesDraft, message: Cursor, systems: list[str], *, passed: bool
) -> None:
    """Add the text of a system message to `systems`.

    `passed`: a user said something later, which ends a message that is meant for one turn only.
    """
    message.only(("role", "content", "clear_at", "output_config"))
    ends = message.word("clear_at", (_NEXT_USER, "never"))
    config = message.object("output_config")
    if config is not None:
        config.only(("effort",))
        effort = read_effort(config)
        if effort is not None:
            draft.effort = effort, config.path("effort")
    if config is None:
        message.raw("content", required=True)
    content = message.values.get("content")
    pieces: list[Piece] = []
    if type(content) is not list:
        pieces = pieces_at(draft, message, "content", TEXTS)
    else:
        for at, block in enumerate(content):
            pieces += _system_block(draft, message, at, block)
    if ends == _NEXT_USER and passed:
        return
    text = content_of(pieces)
    assert type(text) is str, "a system message is text"
    if text:
        systems.append(text)


def read_effort(config: Cursor) -> Effort | None:
    """Return the effort in an output configuration."""
    word = config.word("effort", EFFORTS)
    return None if word is None else _EFFORTS[word]


def _system_block(draft: MessagesDraft, message: Cursor, at: int, block: object) -> list[Piece]:
    text = plain_text(block)
    if text is not None:
        return [text]
    inside = message.element("content", at, block)
    if inside is None:
        return []
    kind = inside.values.get("type")
    if kind == "tool_addition":
        return _addition(draft, inside)
    if kind == "tool_removal":
        return _removal(draft, inside)
    return read_block(draft, inside, TEXTS)


def _addition(draft: MessagesDraft, block: Cursor) -> list[Piece]:
    place = _changed(block)
    if place is None:
        return []
    if _names_served(draft, place):
        return draft.asked_tools().take_change(place, removed=False)
    if place.values.get("type") != "tool_definition":
        tool = _referred(draft, place)
    else:
        place.only(("type", "definition"))
        definition = place.object("definition", required=True)
        tool = None if definition is None else read_tool(definition, deferred=True)
        if definition is not None and tool is not None:
            if tool.name in draft.tools and tool.name not in draft.removed:
                note_twice(definition, tool.name)
            draft.tools[tool.name] = tool
    if tool is None:
        return []
    draft.removed.pop(tool.name, None)
    return [tool]


def _removal(draft: MessagesDraft, block: Cursor) -> list[Piece]:
    place = _changed(block)
    if place is not None and _names_served(draft, place):
        return draft.asked_tools().take_change(place, removed=True)
    tool = None if place is None else _referred(draft, place)
    if tool is None:
        return []
    draft.removed[tool.name] = True
    return [f"no longer available: {tool.name}"]


def _names_served(draft: MessagesDraft, place: Cursor) -> bool:
    """Whether a change is one of tools that this node runs."""
    return place.values.get("type") in _MCP_REFERENCES and bool(draft.options.tool_servers)


def _changed(block: Cursor) -> Cursor | None:
    block.only(("type", "tool", "cache_control"))
    check_cache_control(block)
    return block.object("tool", required=True)


def _referred(draft: MessagesDraft, place: Cursor) -> Tool | None:
    """Return the tool that a reference names; one that is not known is noted."""
    kind = place.text("type", required=True)
    if kind is None:
        return None
    if kind in _MCP_REFERENCES:
        place.problem("type", "tools of MCP servers are not served here", "unsupported_tool")
        return None
    if kind != "tool_reference":
        strange(place, kind, ("tool_reference", "tool_definition"))
        return None
    place.only(("type", "name"))
    name = place.text("name", required=True, characters_min=1, characters_max=_NAME_MAX)
    tool = None if name is None else draft.tools.get(name)
    if name is not None and tool is None:
        why = f"there is no tool called {quoted(name)}"
        place.problem("name", why, "tool_reference_unresolved")
    return tool
