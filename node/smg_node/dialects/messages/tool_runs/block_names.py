"""Block names: what Messages calls the runs of tools on this node's side, in answers and in what clients return."""

from collections.abc import Mapping
from typing import Final

from smg_node.core.generation.tool_owner import ToolShape

MCP_USE: Final = "mcp_tool_use"
MCP_RESULT: Final = "mcp_tool_result"
SERVER_USE: Final = "server_tool_use"
LISTING: Final = "mcp_tool_listing"
SHAPES: Final[Mapping[str, ToolShape]] = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "code_execution": "code_interpreter",
    "bash_code_execution": "code_interpreter",
    "text_editor_code_execution": "code_interpreter",
    "tool_search_tool_regex": "tool_search",
    "tool_search_tool_bm25": "tool_search",
    "advisor": "mcp",
}
"""The shape of a server tool, by its name; the official client knows no other names."""
RESULTS: Final = (
    MCP_RESULT,
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
)
"""Types of the results."""
RUN_BLOCKS: Final = (MCP_USE, SERVER_USE, *RESULTS, LISTING)
"""Types of all these blocks."""
SEALED_RESULTS: Final = "web_search_result"
"""What results of searches are sealed for, so that they open in a conversation with any model."""
