"""MCP texts: what a look at a server of tools found, as words and as JSON."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from smg_node.admin.views.output import draw_facts, draw_table
from smg_node.mcp.failures import Failure, plain_text, responses_error, responses_tool_error
from smg_node.mcp.session.opening import Opened
from smg_node.mcp.tools.content import text_of, unescaped
from smg_node.mcp.tools.tool import Tool, ToolList
from smg_node.mcp.tools.tool_result import CallResult

_SHOWN_BYTES_MAX: Final = 1 << 20
_COLUMNS: Final = ("tool", "arguments", "hints", "description")
_DESCRIPTION_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Probe:
    """One look at a server; `failure` is why it was not opened, or not listed."""

    opened: Opened | None = None
    tools: ToolList | None = None
    failure: Failure | None = None
    tool: str = ""
    called: CallResult | Failure | None = None


def draw_probe(probe: Probe) -> str:
    """Return all that was found, for people."""
    return "\n\n".join(filter(None, _paragraphs(probe)))


def _paragraphs(probe: Probe) -> Iterator[str]:
    if probe.opened is not None:
        yield draw_facts(_facts(probe.opened))
    if probe.tools is not None:
        rows = map(_row, probe.tools.tools.values())
        yield draw_table(_COLUMNS, rows, empty="It offers no tools.")
        left = [f"left out: {one.name}: {one.why}" for one in probe.tools.left_out]
        yield "\n".join(left)
    if isinstance(probe.called, CallResult):
        text = text_of(probe.called, bytes_max=_SHOWN_BYTES_MAX)
        # A server's words must not steer the terminal.
        yield plain_text(text, len(text)) or "(nothing)"


def _facts(opened: Opened) -> Iterator[tuple[str, object]]:
    session = opened.session
    yield "server", f"{session.facts.name} {session.facts.version}".strip()
    yield "protocol", f"{session.revision.name} ({session.revision.era.value})"
    yield "transport", opened.verdict.transport.value
    kept = "kept by the server" if session.session_id else "none"
    yield "session", kept
    yield "capabilities", ", ".join(sorted(session.facts.capabilities))


def _row(tool: Tool) -> tuple[str, str, str, str]:
    described = tool.description.split("\n")[0]
    if len(described) > _DESCRIPTION_MAX:
        described = described[: _DESCRIPTION_MAX - 1] + "…"
    return tool.name, " ".join(_arguments(tool)), " ".join(_hints(tool)), described


def _arguments(tool: Tool) -> Iterator[str]:
    properties = tool.input_schema.get("properties")
    required = tool.input_schema.get("required")
    needed = required if isinstance(required, list) else []
    for name in properties if isinstance(properties, dict) else ():
        yield f"{name}" if name in needed else f"[{name}]"


def _hints(tool: Tool) -> Iterator[str]:
    for hint, word in (
        ("readOnlyHint", "read-only"),
        ("idempotentHint", "idempotent"),
        ("destructiveHint", "destructive"),
    ):
        if tool.annotations.get(hint) is True:
            yield word


def failed_words(probe: Probe) -> str | None:
    """Return in one line what failed, None if nothing did."""
    failure = probe.failure or probe.called
    if isinstance(failure, Failure):
        error = responses_error(failure)
        what = f"{probe.tool}: " if probe.called is failure else ""
        return f"{what}{failure.message} ({error['type']} {error['code']})"
    if isinstance(probe.called, CallResult) and probe.called.is_error:
        return f"{probe.tool}: the tool says that it failed (mcp_tool_execution_error)"
    return None


def plain_probe(probe: Probe) -> dict[str, Any]:
    """Return all that was found, as plain values."""
    plain: dict[str, Any] = {"error": _error(probe.failure)}
    if probe.opened is not None:
        session = probe.opened.session
        plain |= {
            "server": {"name": session.facts.name, "version": session.facts.version},
            "era": session.revision.era.value,
            "protocol": session.revision.name,
            "transport": probe.opened.verdict.transport.value,
            "session": bool(session.session_id),
            "capabilities": session.facts.capabilities,
            "instructions": session.facts.instructions,
        }
    if probe.tools is not None:
        plain["tools"] = [_plain_tool(tool) for tool in probe.tools.tools.values()]
        plain["left_out"] = [one._asdict() for one in probe.tools.left_out]
    if probe.called is not None:
        plain["call"] = _plain_call(probe.tool, probe.called)
    return plain


def _plain_tool(tool: Tool) -> Mapping[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "annotations": tool.annotations,
    }


def _plain_call(tool: str, called: CallResult | Failure) -> Mapping[str, Any]:
    if isinstance(called, Failure):
        return {"tool": tool, "output": None, "error": _error(called)}
    error = responses_tool_error(called.content) if called.is_error else None
    text = unescaped(called.structured.decode("utf-8", "replace"))
    structured = json.loads(text) if text else None
    return {"tool": tool, "output": called.content, "structured": structured, "error": error}


def _error(failure: Failure | None) -> Mapping[str, Any] | None:
    return responses_error(failure) if failure is not None else None
