"""Found tools as the result of a search: their definitions for the model, their names for the API. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_node.core.generation.request import Tool
from smg_node.core.generation.tool_serving import RunError, RunResult
from smg_node.mcp.failures import INVALID_PARAMS, Failure, FailureKind, prompt_text, timed_out
from smg_node.mcp.search.regex_search import SearchRefusal
from smg_node.mcp.search.searched_tool import SearchedTool

_NONE: Final = (
    "No tool fits. Search again with other words: what it does, to what, of which service."
)


def search_result(
    action: Mapping[str, Any],
    found: Sequence[SearchedTool] | SearchRefusal,
    definitions: Callable[[list[Tool]], str],
) -> RunResult:
    """Return what came of a search; `definitions` tells a model of tools in the midst of a conversation.

    It is the same text as where the search is part of a history, so that the next prompt begins with this one.
    """
    if isinstance(found, SearchRefusal):
        failure = _failure(found)
        error = RunError(failure.row.type, failure.code, failure.message)
        return RunResult(prompt_text(failure), error, action=action)
    if not found:
        return RunResult(_NONE, action=action)
    return RunResult(
        definitions([offered(one) for one in found]),
        action=action,
        found=tuple(msgspec.structs.replace(one.tool, name=one.called) for one in found),
        found_at=tuple(one.server for one in found),
    )


def offered(searched: SearchedTool) -> Tool:
    """Return a tool as the function that a model may call once it was found."""
    tool = searched.tool
    return Tool(searched.called, tool.description or None, tool.schema or None, deferred=True)


def _failure(refusal: SearchRefusal) -> Failure:
    if refusal.code == "execution_time_exceeded":
        return timed_out(refusal.message)
    return Failure(FailureKind.PROTOCOL, INVALID_PARAMS, refusal.message, sent=False)
