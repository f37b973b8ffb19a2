"""Tool search forms: a search for tools and what it found, as items of Responses and as blocks of Messages. Pure."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from smg_node.core.generation.tool_serving import ListedTool, RunError, RunResult

ItemStatus: TypeAlias = Literal["in_progress", "completed", "incomplete"]
_ERROR_CODES: Final[Mapping[int, str]] = {
    -32602: "invalid_tool_input",
    429: "too_many_requests",
    504: "execution_time_exceeded",
}


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


def search_result_block(tool_use_id: str, result: RunResult) -> dict[str, Any]:
    """Return the block of Messages that tells what a search found, or why it could not be made."""
    if result.error is not None:
        content = _error(result.error)
    else:
        references = [{"type": "tool_reference", "tool_name": tool.name} for tool in result.found]
        content = {"type": "tool_search_tool_search_result", "tool_references": references}
    return {"type": "tool_search_tool_result", "tool_use_id": tool_use_id, "content": content}


def _error(error: RunError) -> dict[str, Any]:
    return {
        "type": "tool_search_tool_result_error",
        "error_code": _ERROR_CODES.get(error.code, "unavailable"),
        "error_message": error.message or None,
    }
