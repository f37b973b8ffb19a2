"""Conversation of the MCP server on purpose: requests of both eras to results, whatever carries them.

What differs by transport (sessions in headers, faults, streams) is done by the servers around it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from smg_chaos.mcp.book import Book
from smg_chaos.mcp.tools import TOOLS, Progress, RpcError, ServerTool, text

MODERN: Final = "2026-07-28"
HANDSHAKE: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ERAS: Final = ("both", "modern", "handshake")
_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
_SERVER: Final = MappingProxyType({"name": "smg-chaos", "version": "1"})
_POLLS: Final = 2
"""So often is a task at work before it is over."""


def version_of(message: Mapping[str, Any]) -> str | None:
    """Return the revision that a message says itself, None where it says none: it is of the handshake era."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    said = meta.get(_VERSION) if isinstance(meta, dict) else None
    return said if isinstance(said, str) else None


def tool_of(message: Mapping[str, Any]) -> str:
    """Return the tool that a message names, "" for none."""
    params = message.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    return name if isinstance(name, str) else ""


class Conversation:
    """One server's answers. `ttl_ms` is how long its list is said to be good."""

    def __init__(self, era: str, book: Book, *, ttl_ms: int = 60_000, page: int = 100) -> None:
        assert era in ERAS, era
        self.era = era
        self._book = book
        self._ttl_ms = ttl_ms
        self._page = page
        self._tasks: dict[str, tuple[ServerTool, Mapping[str, Any], int]] = {}

    async def answer(self, message: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Return the result of a request; RpcError for what is refused."""
        version = version_of(message)
        method = message.get("method")
        params = message.get("params") or {}
        if version is not None and self.era == "handshake":
            raise RpcError(-32601, "Method not found", status=400)
        if version is not None and version != MODERN:
            raise _unsupported(version)
        if version is None and self.era == "modern":
            raise _unsupported(str(params.get("protocolVersion", "")))
        modern = version is not None
        match method:
            case "initialize" if not modern:
                return self._initialize(params)
            case "server/discover" if modern:
                return self._discover()
            case "ping" if not modern:
                return {}
            case "tools/list":
                return self._list(params, modern=modern)
            case "tools/call":
                return await self._call(params, progress, modern=modern)
            case "tasks/get" | "tasks/cancel" if modern:
                return await self._task(
                    str(params.get("taskId")), progress, method == "tasks/cancel"
                )
            case _:
                raise RpcError(-32601, "Method not found", status=404 if modern else 200)

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        offered = params.get("protocolVersion")
        return {
            "protocolVersion": offered if offered in HANDSHAKE else HANDSHAKE[-1],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": dict(_SERVER),
        }

    def _discover(self) -> dict[str, Any]:
        versions = [MODERN] if self.era == "modern" else [*HANDSHAKE, MODERN]
        return {
            "resultType": "complete",
            "supportedVersions": versions,
            "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
            "ttlMs": self._ttl_ms,
            "cacheScope": "public",
            "_meta": {"io.modelcontextprotocol/serverInfo": dict(_SERVER)},
        }

    def _list(self, params: Mapping[str, Any], *, modern: bool) -> dict[str, Any]:
        start = int(params.get("cursor") or 0)
        tools = [tool.listed for tool in TOOLS.values()]
        page: dict[str, Any] = {"tools": tools[start : start + self._page]}
        if start + self._page < len(tools):
            page["nextCursor"] = str(start + self._page)
        if modern:
            page |= {"resultType": "complete", "ttlMs": self._ttl_ms, "cacheScope": "public"}
        return page

    async def _call(
        self, params: Mapping[str, Any], progress: Progress, *, modern: bool
    ) -> dict[str, Any]:
        tool = TOOLS.get(str(params.get("name")))
        if tool is None:
            return text(f"Unknown tool: {params.get('name')}", is_error=True)
        arguments = params.get("arguments") or {}
        if modern and tool.asks and "inputResponses" not in params:
            form = {"type": "object", "properties": {}}
            question = {"message": "Shall I?", "requestedSchema": form}
            asked = {"method": "elicitation/create", "params": question}
            return {
                "resultType": "input_required",
                "inputRequests": {"sure": asked},
                "requestState": "state of the server",
            }
        if tool.asks and modern:
            return self._answered(tool, params)
        extensions = (params.get("_meta") or {}).get(_CAPABILITIES, {}).get("extensions", {})
        if modern and tool.runs_as_task and "io.modelcontextprotocol/tasks" in extensions:
            task = f"task-{len(self._tasks) + 1}"
            self._tasks[task] = (tool, arguments, 0)
            return {"resultType": "task", "taskId": task, "status": "working", "ttlMs": 60_000}
        return await self._run(tool, arguments, progress, modern=modern)

    async def _run(
        self, tool: ServerTool, arguments: Mapping[str, Any], progress: Progress, *, modern: bool
    ) -> dict[str, Any]:
        self._book.begin(arguments)
        result = await tool.run(arguments, progress)
        self._book.runs[tool.name] += 1
        return {"resultType": "complete", **result} if modern else result

    def _answered(self, tool: ServerTool, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a tool that asked back."""
        if params.get("requestState") != "state of the server":
            raise RpcError(-32602, "the state is another", status=400)
        answers = params["inputResponses"]
        said = answers.get("sure", {}).get("action") if isinstance(answers, dict) else None
        if said == "accept":
            self._book.runs[tool.name] += 1
        return {"resultType": "complete", **text(f"the person said {said}")}

    async def _task(self, task: str, progress: Progress, cancelled: bool) -> dict[str, Any]:
        if task not in self._tasks:
            raise RpcError(-32602, "no such task", status=400)
        tool, arguments, polls = self._tasks[task]
        if cancelled:
            self._book.cancelled += 1
            del self._tasks[task]
            return {"resultType": "complete"}
        self._tasks[task] = (tool, arguments, polls + 1)
        whole = {"resultType": "complete", "taskId": task, "ttlMs": 60_000, "pollIntervalMs": 1000}
        if polls + 1 < _POLLS:
            return {**whole, "status": "working"}
        result = await self._run(tool, arguments, progress, modern=False)
        return {**whole, "status": "completed", "result": result}


def _unsupported(requested: str) -> RpcError:
    about = {"supported": [MODERN], "requested": requested}
    return RpcError(-32022, "Unsupported protocol version", status=400, about=about)
