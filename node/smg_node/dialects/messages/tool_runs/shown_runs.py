"""Shown runs: a call of a tool on this node's side, its result, and a server's listing, as blocks of Messages. Pure.

The shape of a tool decides: Anthropic's server tools have blocks of their own, and whatever has none is shown as a tool
of an MCP server. What a search told the model travels sealed in its first result, as Anthropic's own is encrypted, and
opens when the client sends it back.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from smg_node.core.generation.events import Listed
from smg_node.core.generation.tool_owner import ToolOwner, ToolShape
from smg_node.core.generation.tool_serving import RunError, RunResult, ToolServing
from smg_node.dialects.messages.tool_runs.block_names import (
    LISTING,
    MCP_RESULT,
    MCP_USE,
    SERVER_USE,
)

Seal = Callable[[str], str]
"""Seals a text for the tenant."""
_NAMES: Final[Mapping[ToolShape, str]] = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "code_interpreter": "code_execution",
    "tool_search": "tool_search_tool_bm25",
}
_RESULTS: Final[Mapping[ToolShape, str]] = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "code_interpreter": "code_execution",
    "tool_search": "tool_search",
}
_REGEX: Final = "tool_search_tool_regex"
_MCP_PREFIX: Final = "mcptoolu_"
_SERVER_PREFIX: Final = "srvtoolu_"
_OWN_ERROR: Final = "mcp_tool_execution_error"
_BAD_ARGUMENTS: Final = -32602
_TIMEOUT: Final = 504
_BUSY: Final = 429
_USES: Final = "max_uses"
_FETCH_CODES: Final = ("url_not_allowed", "url_too_long")
"""Words that the error of a fetch begins with, which only fetches know."""


def names_of(serving: ToolServing) -> Mapping[ToolShape, str]:
    """Return the names of server tools by their shapes, as the request spells them."""
    spelled = [one.spelled for one in serving.builtins if one.kind == "tool_search"]
    if spelled and spelled[0].startswith(_REGEX):
        return {**_NAMES, "tool_search": _REGEX}
    return _NAMES


def id_prefix(owner: ToolOwner) -> str:
    """Return how the ids of calls begin whose tool this is."""
    return _SERVER_PREFIX if owner.shape in _NAMES else _MCP_PREFIX


def use_block(owner: ToolOwner, call_id: str, names: Mapping[ToolShape, str]) -> dict[str, Any]:
    """Return the block of a call, without its input."""
    name = names.get(owner.shape)
    if name is not None:
        return {"type": SERVER_USE, "id": call_id, "name": name}
    return {"type": MCP_USE, "id": call_id, "name": owner.tool, "server_name": owner.server}


def listing_block(listed: Listed) -> dict[str, Any]:
    """Return the block of a server's tools."""
    tools = [
        {"name": tool.name, "description": tool.description or None, "input_schema": tool.schema}
        for tool in listed.tools
    ]
    return {"type": LISTING, "mcp_server_name": listed.server, "tools": tools}


def result_block(owner: ToolOwner, call_id: str, result: RunResult, seal: Seal) -> dict[str, Any]:
    """Return the block of what came of a call."""
    kind = _RESULTS.get(owner.shape)
    error = result.error or (RunError(_OWN_ERROR) if result.cut else None)
    if kind is None:
        text = [{"type": "text", "text": result.text}] if result.text else []
        block = {"type": MCP_RESULT, "tool_use_id": call_id}
        return {**block, "is_error": error is not None, "content": text}
    content = _CONTENTS[kind](result, error, seal)
    return {"type": f"{kind}_tool_result", "tool_use_id": call_id, "content": content}


def _search(result: RunResult, error: RunError | None, seal: Seal) -> Any:
    if error is not None:
        return {"type": "web_search_tool_result_error", "error_code": _code(error)}
    rows = [
        {
            "type": "web_search_result",
            "url": source.url,
            "title": source.title,
            "encrypted_content": "",
            "page_age": source.age or None,
        }
        for source in result.sources
    ]
    if result.text and not rows:
        # Nothing is known of what was found, but the model was told of it.
        rows.append({"type": "web_search_result", "url": "", "title": "", "page_age": None})
    if rows:
        rows[0]["encrypted_content"] = seal(result.text)
    return rows


def _fetch(result: RunResult, error: RunError | None, _seal: Seal) -> Any:
    if error is not None:
        code = _code(error)
        if error.type == _OWN_ERROR or error.code == _TIMEOUT:
            code = "url_not_accessible"
        return {"type": "web_fetch_tool_result_error", "error_code": code}
    source = result.sources[0] if result.sources else None
    url = (source.url if source else "") or str(result.action.get("url", ""))
    document = {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": result.text},
        "title": (source.title if source else "") or None,
    }
    return {"type": "web_fetch_result", "url": url, "content": document, "retrieved_at": None}


def _code_run(result: RunResult, error: RunError | None, _seal: Seal) -> Any:
    if error is not None and (error.type != _OWN_ERROR or result.cut):
        code = "execution_time_exceeded" if error.code == _TIMEOUT else _code(error)
        code = "unavailable" if code == "max_uses_exceeded" else code
        return {"type": "code_execution_tool_result_error", "error_code": code}
    return {
        "type": "code_execution_result",
        "stdout": result.text if error is None else "",
        "stderr": "" if error is None else result.text,
        "return_code": int(error is not None),
        "content": [],
    }


def _tool_search(result: RunResult, error: RunError | None, _seal: Seal) -> Any:
    if error is not None:
        code = "execution_time_exceeded" if error.code == _TIMEOUT else _code(error)
        return {
            "type": "tool_search_tool_result_error",
            "error_code": "unavailable" if code == "max_uses_exceeded" else code,
            "error_message": error.message or None,
        }
    found = [{"type": "tool_reference", "tool_name": tool.name} for tool in result.found]
    return {"type": "tool_search_tool_search_result", "tool_references": found}


_CONTENTS: Final[Mapping[str, Callable[[RunResult, RunError | None, Seal], Any]]] = {
    "web_search": _search,
    "web_fetch": _fetch,
    "code_execution": _code_run,
    "tool_search": _tool_search,
}


def _code(error: RunError) -> str:
    """Return the word for an error, one that all server tools know but for the last."""
    if error.code == _BUSY:
        return "too_many_requests"
    if error.code == _BAD_ARGUMENTS:
        return "invalid_tool_input"
    word = error.message.partition(":")[0]
    if word in _FETCH_CODES:
        return word
    return "max_uses_exceeded" if _USES in error.message else "unavailable"
