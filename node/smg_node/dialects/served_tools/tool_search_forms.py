"""Tool search forms: a search for tools and what it found, as items of Responses. Pure."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from smg_node.core.generation.tool_serving import ListedTool, RunResult

ItemStatus: TypeAlias = Literal["in_progress", "completed", "incomplete"]


def search_call_item(
    item_id: str, arguments: Mapping[str, Any], status: ItemStatus = "completed"
) -> dict[str, Any]:
    """Return the item of a search in Responses: one that this side runs has no id for its output to name."""
    return {
        "id": item_id,
        "type": "tool_search_call",
        "execution": "server",
        "call_id": None,
        "status": status,
        "arguments": dict(arguments),
    }


def search_output_item(
    item_id: str,
    result: RunResult,
    descriptions: Mapping[str, str],
    status: ItemStatus = "completed",
) -> dict[str, Any]:
    """Return the item of what a search found: the client's functions, and a namespace for each server.

    `descriptions` are those of servers, by label; a namespace must have one.
    """
    return {
        "id": item_id,
        "type": "tool_search_output",
        "execution": "server",
        "call_id": None,
        "status": status,
        "tools": _openai_tools(result, descriptions),
    }


def _openai_tools(result: RunResult, descriptions: Mapping[str, str]) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = []
    spaces: dict[str, list[dict[str, Any]]] = {}
    for place, tool in enumerate(result.found):
        server = result.found_at[place] if place < len(result.found_at) else ""
        if not server:
            tools.append(_function(tool))
        elif server in spaces:
            spaces[server].append(_function(tool))
        else:
            spaces[server] = [_function(tool)]
            description = descriptions.get(server) or f"Tools of {server}"
            tools.append(
                {
                    "type": "namespace",
                    "name": server,
                    "description": description,
                    "tools": spaces[server],
                }
            )
    return tools


def _function(tool: ListedTool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.schema),
        "strict": False,
        "defer_loading": True,
    }
