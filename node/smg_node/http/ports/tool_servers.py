"""Tool servers port: servers of tools (MCP), their definitions, what they offer, and calls by operators.

Secrets go in and never come out: a view has their references, or "(set)" for a value. Versions are text, as those of
settings.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec


class ToolServerView(msgspec.Struct, frozen=True):
    """One server. `source` is who defines it: the cluster, or this node's own file. `trouble` is why it cannot be used."""

    name: str
    spec: Mapping[str, Any]
    secrets: Mapping[str, str]
    source: str
    version: str
    owner: str
    time_ms: int
    trouble: str


class ToolServerChange(msgspec.Struct, frozen=True):
    """Result of a write: what the cluster said before, and what counts now; None where there is nothing."""

    before: ToolServerView | None
    now: ToolServerView | None


class ServerToolView(msgspec.Struct, frozen=True):
    """One tool as its server lists it. `pin` is what tells it from a later one; `changed`: it is none of the pinned ones."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    annotations: Mapping[str, Any]
    pin: str = ""
    changed: bool = False


class LeftOutTool(msgspec.Struct, frozen=True):
    """A tool that is listed and not offered, and why."""

    name: str
    why: str


class ToolListing(msgspec.Struct, frozen=True):
    """The tools of a server, as it lists them now."""

    tools: Sequence[ServerToolView]
    left_out: Sequence[LeftOutTool]


class ToolOutcome(msgspec.Struct, frozen=True):
    """What came of a call. `error` is as the Responses API has it, None where the tool answered that all went well.

    `structured` is what the tool answered as JSON beside its content, None for nothing.
    """

    content: Sequence[Mapping[str, Any]]
    structured: Any
    error: Mapping[str, Any] | None
    duration_ms: int


class ToolServerService(Protocol):
    """The servers of tools of the whole cluster."""

    def servers(self) -> Sequence[ToolServerView]:
        """Return what counts here, sorted by name."""
        ...

    def server(self, name: str) -> ToolServerView:
        """Return one; NOT_FOUND `mcp_server_not_found` otherwise."""
        ...

    def unreadable(self) -> Mapping[str, str]:
        """Return why definitions of the cluster are not followed here, by their keys."""
        ...

    def put(self, name: str, body: Mapping[str, Any], *, version: int | None) -> ToolServerChange:
        """Define it on all nodes, by plain values as in a file; secrets that the body leaves out stay.

        INVALID_REQUEST `invalid_mcp_server` with the path of what is wrong; `StaleValueError` where another version is
        there. None overwrites any version, 0 expects nothing.
        """
        ...

    def remove(self, name: str, *, version: int | None) -> ToolServerChange:
        """Take the cluster's definition away."""
        ...

    async def tools(self, name: str, request_id: str) -> ToolListing:
        """Ask a server for its tools, now; UPSTREAM_FAILED `mcp_server_failed` where it does not list them."""
        ...

    async def call(
        self, name: str, tool: str, arguments: bytes, authorization: str, request_id: str
    ) -> ToolOutcome:
        """Call a tool as an operator, whoever may see it; a call that failed is an outcome."""
        ...
