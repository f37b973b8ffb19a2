"""MCP metrics: counts of calls and lists of servers that operators defined, bounded in number; all others are `other`."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from smg_node.mcp.failures import Failure
from smg_node.mcp.tools.tool_result import CallResult
from smg_node.telemetry.metrics.declared import mcp as declared
from smg_node.telemetry.metrics.meters import OTHER, Meters

OK: Final = "ok"
CANCELLED: Final = "cancelled"
SERIES_MAX: Final = 1_000
"""Of calls: servers, tools and outcomes with a count of their own."""
SERVERS_MAX: Final = 100
"""Servers with counts and times of their own."""


class McpMetrics:
    """Counts of one process."""

    def __init__(self, meters: Meters, sessions: Callable[[], int]) -> None:
        self._cells = meters.cells
        self._servers: set[str] = set()
        self._series: set[tuple[str, str, str]] = set()
        self._listed: dict[str, Collection[str]] = {}
        meters.watch(declared.MCP_SESSIONS, lambda: {(): sessions()})

    def called(self, server: str, tool: str, outcome: CallResult | Failure, seconds: float) -> None:
        """Count a call; `server` is "" for one that a client gave."""
        self._count(server, tool, outcome_of(outcome), seconds)
        if isinstance(outcome, CallResult):
            named = self._server(server)
            self._cells.spread(declared.MCP_RESULT_BYTES, named).observe(result_bytes(outcome))

    def cut(self, server: str, tool: str, seconds: float) -> None:
        """Count a call that its caller gave up."""
        self._count(server, tool, CANCELLED, seconds)

    def listed(self, server: str, outcome: Collection[str] | Failure) -> None:
        """Count a list that was asked for, of these tools."""
        word = outcome.outcome if isinstance(outcome, Failure) else OK
        self._cells.tally(declared.MCP_LISTS, self._server(server), word).value += 1
        if server and not isinstance(outcome, Failure):
            self._listed[server] = outcome

    def forget(self, servers: Collection[str]) -> None:
        """Drop what is known of the tools of servers that nobody defines any more; their counts stay."""
        for server in servers:
            self._listed.pop(server, None)

    def _count(self, server: str, tool: str, word: str, seconds: float) -> None:
        named = self._server(server)
        self._cells.tally(declared.MCP_CALLS, *self._labels(named, tool, word)).value += 1
        self._cells.spread(declared.MCP_CALL_SECONDS, named).observe(seconds)

    def _server(self, server: str) -> str:
        if server in self._servers:
            return server
        if not server or len(self._servers) >= SERVERS_MAX:
            return OTHER
        self._servers.add(server)
        return server

    def _labels(self, server: str, tool: str, word: str) -> tuple[str, str, str]:
        """Return the labels of a call: a model cannot invent a tool's."""
        if tool not in self._listed.get(server, ()):
            tool = OTHER
        labels = (server, tool, word)
        if labels in self._series:
            return labels
        if len(self._series) >= SERIES_MAX:
            return OTHER, OTHER, word
        self._series.add(labels)
        return labels


def outcome_of(outcome: CallResult | Failure) -> str:
    """Return the word in metrics for what came of a call."""
    if isinstance(outcome, Failure):
        return outcome.outcome
    return "tool_error" if outcome.is_error else OK


def result_bytes(result: CallResult) -> int:
    """Return about how large a result is: the texts in it, and what is structured."""
    return len(result.structured) + sum(_text_bytes(block) for block in result.content)


def _text_bytes(block: Mapping[str, Any]) -> int:
    return sum(len(value) for value in block.values() if isinstance(value, str))
