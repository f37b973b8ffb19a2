"""Tools of the MCP server on purpose: each answers from its arguments alone, so that any two ways to it can be compared."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from smg_chaos.mcp.pages import page

Progress = Callable[[int, int], Awaitable[None]]
Run = Callable[[Mapping[str, Any], Progress], Awaitable[dict[str, Any]]]


class RpcError(Exception):
    """A JSON-RPC error that a request is answered with, at an HTTP status."""

    def __init__(self, code: int, message: str, *, status: int = 200, about: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.about = about


class ServerTool(NamedTuple):
    """One tool: what a list says of it, and what runs. `asks` wants input first, `runs_as_task` answers with a task."""

    name: str
    description: str
    properties: Mapping[str, Any]
    run: Run
    read_only: bool = True
    asks: bool = False
    runs_as_task: bool = False

    @property
    def listed(self) -> dict[str, Any]:
        """The row of it in a list."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": {"type": "object", "properties": dict(self.properties)},
            "annotations": {"readOnlyHint": self.read_only},
        }


def text(value: str, *, is_error: bool = False) -> dict[str, Any]:
    """Return a result of one text."""
    content = [{"type": "text", "text": value}]
    return {"content": content, "isError": True} if is_error else {"content": content}


async def _echo(arguments: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    return text(str(arguments.get("text", "")))


async def _add(arguments: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    total = arguments.get("a", 0) + arguments.get("b", 0)
    return {**text(str(total)), "structuredContent": {"sum": total}}


async def _slow(arguments: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    steps = max(1, int(arguments.get("steps", 1)))
    for step in range(steps):
        await asyncio.sleep(float(arguments.get("seconds", 1.0)) / steps)
        await progress(step + 1, steps)
    return text(f"{steps} steps")


async def _big(arguments: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    size = int(arguments.get("bytes", 1000))
    if "number" in arguments:
        return text(page(int(arguments["number"]), size))
    return text("x" * size)


async def _fail(arguments: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    return text("the tool says that it failed", is_error=True)


async def _media(arguments: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    pixels = base64.b64encode(b"\x89PNG" + bytes(2996)).decode()
    return {
        "content": [
            {"type": "text", "text": "two lines\nof text"},
            {"type": "image", "data": pixels, "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///notes", "name": "notes"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
        ]
    }


_TEXT: Final = {"text": {"type": "string"}}
_TOOLS: Final = (
    ServerTool("echo", "Returns its text.", _TEXT, _echo),
    ServerTool("add", "Adds.", {"a": {"type": "number"}, "b": {"type": "number"}}, _add),
    ServerTool("write", "Returns its text; not read-only.", _TEXT, _echo, read_only=False),
    ServerTool(
        "slow",
        "Takes so many seconds, with progress.",
        {"seconds": {"type": "number"}, "steps": {"type": "integer"}},
        _slow,
    ),
    ServerTool(
        "big",
        "Returns so many bytes; with a number, those of a page of words.",
        {"bytes": {"type": "integer"}, "number": {"type": "integer"}},
        _big,
    ),
    ServerTool("fail", "Fails.", {}, _fail),
    ServerTool("media", "Returns content of several kinds.", {}, _media),
    ServerTool(
        "routed",
        "Has an argument that a header repeats.",
        {"region": {"type": "string", "x-mcp-header": "Region"}},
        _echo,
    ),
    ServerTool("asks", "Wants a person to say yes (modern).", _TEXT, _echo, asks=True),
    ServerTool("task", "Answers with a task (modern).", _TEXT, _echo, runs_as_task=True),
)
TOOLS: Final[Mapping[str, ServerTool]] = MappingProxyType({tool.name: tool for tool in _TOOLS})
