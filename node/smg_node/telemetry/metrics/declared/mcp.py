"""MCP metrics: calls of tools that run on this side, lists of tools, and connections with their servers."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

MCP_CALLS = Metric(
    "smg_node_mcp_calls_total",
    "counter",
    "Calls of tools by how they ended: `ok`, `tool_error` (the tool says so), `protocol`, `http`, `auth`, `timeout`,"
    " `lost`, `refused`, `limited`, `cancelled`. Servers that clients give, and what is beyond 1,000 tools, are `other`.",
    ("server", "tool", "outcome"),
)
MCP_CALL_SECONDS = Metric(
    "smg_node_mcp_call_seconds",
    "histogram",
    "Time of a call, with the wait for a free one of the server's `concurrency`.",
    ("server",),
    buckets=(0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)
MCP_RESULT_BYTES = Metric(
    "smg_node_mcp_result_bytes",
    "histogram",
    "Size of what a tool answered.",
    ("server",),
    buckets=(256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 16_777_216),
)
MCP_LISTS = Metric(
    "smg_node_mcp_lists_total",
    "counter",
    "Times that requests wanted a server's list of tools, by whether there was one; most are answered from memory.",
    ("server", "outcome"),
)
MCP_SESSIONS = Metric(
    "smg_node_mcp_sessions",
    "gauge",
    "Connections with servers of tools that are kept: one per server, credential and tenant.",
    pulled=True,
)
MCP_APPROVALS_WAITING = Metric(
    "smg_node_mcp_approvals_waiting",
    "gauge",
    "Runs of tools that wait for an operator's word now.",
    pulled=True,
)
MCP_APPROVALS = Metric(
    "smg_node_mcp_approvals_total",
    "counter",
    "Runs that needed an operator's word, by what came of it: `approved`, `denied`, `timeout`, `drained`, `refused` (too"
    " many waited), `cancelled` (the client left).",
    ("answer",),
)
MCP_TOOL_SEARCHES = Metric(
    "smg_node_mcp_tool_searches_total",
    "counter",
    "Searches of models among tools that a prompt leaves out, by the way that is set (`bm25`, `embeddings`, `hybrid`), and"
    " whether that was the way: `ok`, else they were found by their words, because the embedding model was `away`, took too"
    " `long`, or there were too `many` tools.",
    ("search", "outcome"),
)
TOOL_PASSES = Metric(
    "smg_node_tool_passes_total",
    "counter",
    "Passes of models that may call tools of this side: each a generation by engines or vendors. The requests they are"
    " passes of are counted once, among all generations.",
    ("model",),
)
MCP_METRICS: Final = (
    TOOL_PASSES,
    MCP_CALLS,
    MCP_CALL_SECONDS,
    MCP_RESULT_BYTES,
    MCP_LISTS,
    MCP_SESSIONS,
    MCP_APPROVALS_WAITING,
    MCP_APPROVALS,
    MCP_TOOL_SEARCHES,
)
"""All of them."""
