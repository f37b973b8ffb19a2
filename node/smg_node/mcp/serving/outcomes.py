"""Outcomes of calls as clients of the node's own MCP server get them: results, errors of tools, JSON-RPC errors. Pure.

What a server itself refused (its JSON-RPC error) stays such an error. What went wrong on the way (a status, a time, a
connection, a rule of this node) is a result that says that it failed, because a model can read that.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from smg_node.mcp.failures import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    NOT_RUN,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Failure,
    FailureKind,
    prompt_text,
)
from smg_node.mcp.serving.incoming import Incoming
from smg_node.mcp.serving.replies import Refusal, Result
from smg_node.mcp.tools.tool_result import CallResult, InputRequired

_BETWEEN_US: Final = (HEADER_MISMATCH, UNSUPPORTED_VERSION, METHOD_NOT_FOUND)
"""Codes that are about the conversation of this node with the server, not about the client's."""
_OF_ANSWERS: Final = (PARSE_ERROR, NOT_RUN)
_decode: Final = msgspec.json.Decoder().decode


def reply_of(request: Incoming, outcome: CallResult | Failure) -> Result | Refusal:
    """Return the answer to a call that is over."""
    if isinstance(outcome, CallResult):
        return complete(request, call_result(outcome, modern=request.revision.modern))
    if outcome.kind is not FailureKind.PROTOCOL or outcome.code in _OF_ANSWERS:
        return failed(request, prompt_text(outcome))
    if outcome.code in _BETWEEN_US:
        return request.refusal(INTERNAL_ERROR, f"the server refused the call: {outcome.message}")
    return request.refusal(outcome.code, outcome.message, _about(outcome))


def complete(request: Incoming, value: Mapping[str, Any]) -> Result:
    """Return a result that is whole, in the form of its era."""
    return Result(
        request.id, {"resultType": "complete", **value} if request.revision.modern else value
    )


def failed(request: Incoming, text: str) -> Result:
    """Return the result of a call that failed, as a text for the model."""
    return complete(request, {"content": [{"type": "text", "text": text}], "isError": True})


def input_required(request: Incoming, asked: InputRequired) -> Result:
    """Return the result that asks the client for more; `asked.state` is sealed already."""
    value: dict[str, Any] = {"resultType": "input_required"}
    if asked.requests:
        value["inputRequests"] = asked.requests
    if asked.state is not None:
        value["requestState"] = asked.state
    return Result(request.id, value)


def call_result(result: CallResult, *, modern: bool) -> dict[str, Any]:
    """Return a tool's result as the protocol has it; before the modern era what is structured is an object."""
    value: dict[str, Any] = {"content": list(result.content)}
    if result.structured and (modern or result.structured.lstrip().startswith(b"{")):
        value["structuredContent"] = Raw(result.structured)
    if result.is_error:
        value["isError"] = True
    return value


def _about(failure: Failure) -> Mapping[str, Any] | None:
    """Return the data of a server's error, None where it has none that is an object."""
    try:
        about = _decode(failure.error_data) if failure.error_data else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return about if isinstance(about, dict) else None
