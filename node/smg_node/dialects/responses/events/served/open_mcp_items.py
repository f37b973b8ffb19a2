"""Open MCP items: calls of servers' tools, calls that a person is asked about, and what servers list."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from smg_node.core.generation.events import Listed
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import ListedTool, RunError, RunResult
from smg_node.dialects.responses.events.numbered_events import NumberedEvent, Script
from smg_node.dialects.responses.events.served.open_run import OpenRun
from smg_node.dialects.responses.items.item_document import ItemDoc, item_from


class OpenMcpCall(OpenRun):
    """Call of a server's tool."""

    __slots__ = ()
    kind = "mcp_call"
    carries_state = True

    def __init__(self, script: Script, item_id: str, output_index: int, owner: ToolOwner) -> None:
        super().__init__(script, item_id, output_index, owner)
        self._prepare("response.mcp_call_arguments.delta", self._place())

    def _said(self) -> list[NumberedEvent]:
        fields = {**self._place(), "arguments": self.arguments}
        return [self._script.say("response.mcp_call_arguments.done", fields)]

    def _broken_off(self) -> list[NumberedEvent]:
        told = [] if self.texts else [self._delta("")]
        return [*told, *self._said()]

    def _ending(self, word: str) -> list[NumberedEvent]:
        return [self._step(word)] if word else []

    def _values(self, status: str, result: RunResult) -> dict[str, Any]:
        return {
            "id": self.item_id,
            "type": self.kind,
            "status": status,
            "server_label": self.owner.server,
            "name": self.owner.tool,
            "arguments": self.arguments,
            "output": result.text if status == "completed" else None,
            "error": None if result.error is None else error_shown(result.error),
            "approval_request_id": self.owner.approval or None,
        }


def error_shown(error: RunError) -> dict[str, Any]:
    """Return `error` of an item."""
    if error.type == "mcp_tool_execution_error":
        return {"type": error.type, "content": error.content}
    return {"type": error.type, "code": error.code, "message": error.message}


class OpenApproval(OpenRun):
    """Request that a person allow a call: shown when its arguments are whole, and over then."""

    __slots__ = ()
    kind = "mcp_approval_request"
    holds_back = True

    def _begun(self) -> list[NumberedEvent]:
        return []

    def _values(self, status: str, result: RunResult) -> dict[str, Any]:
        return {
            "id": self.item_id,
            "type": self.kind,
            "server_label": self.owner.server,
            "name": self.owner.tool,
            "arguments": self.arguments,
        }


def listing_events(
    script: Script, item_id: str, index: int, listed: Listed
) -> tuple[list[NumberedEvent], ItemDoc]:
    """Return the events and the item of what a server lists, or of why it does not."""
    place = {"item_id": item_id, "output_index": index}
    bare = {"id": item_id, "type": "mcp_list_tools", "server_label": listed.server, "tools": []}
    doc = item_from({**bare, "tools": tools_shown(listed.tools), "error": listed.error or None})
    word = "failed" if listed.error else "completed"
    told = [
        script.say("response.output_item.added", {"output_index": index, "item": bare}),
        script.say("response.mcp_list_tools.in_progress", place),
        script.say(f"response.mcp_list_tools.{word}", place),
        script.say(
            "response.output_item.done",
            {"output_index": index, "item": msgspec.Raw(doc.document)},
        ),
    ]
    return told, doc


def tools_shown(tools: Sequence[ListedTool]) -> list[Mapping[str, Any]]:
    """Return `tools` of an item."""
    return [
        {
            "name": tool.name,
            "input_schema": tool.schema,
            "description": tool.description or None,
            "annotations": tool.annotations or None,
        }
        for tool in tools
    ]
