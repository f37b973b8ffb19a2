"""Served context: what a context says of tools that this node runs: listings in force, tools found, calls approved.

A listing of the context counts instead of asking its server; one that was forged can only narrow what may run, for
every call is decided by rules of ours. An approval counts as long as nothing of the model's follows it, and no call was
made of it; what is run are the arguments of the request that was shown, whatever the answer to it says.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from smg_node.core.cooperative_steps import Steps
from smg_node.core.errors import SmgError, invalid
from smg_node.core.generation.tool_serving import (
    ApprovedCall,
    AskedServer,
    ListedTool,
    ToolServing,
)
from smg_node.core.json_cursor import quoted
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.items.item_groups import last_model_item
from smg_node.dialects.responses.items.item_types import APPROVAL_REQUEST, APPROVAL_RESPONSE
from smg_node.dialects.responses.request.served.past_calls import tools_found

_LISTING: Final = "mcp_list_tools"
_FOUND: Final = "tool_search_output"
_TOLD: Final = frozenset({_LISTING, _FOUND, "mcp_call", APPROVAL_REQUEST, APPROVAL_RESPONSE})
_TOOLS_MAX: Final = 512
_FOUND_MAX: Final = 512
_REASON_CHARACTERS_MAX: Final = 1_024


def serving_in_steps(
    serving: ToolServing, items: Sequence[ItemDoc], *, new_from: int
) -> Steps[ToolServing]:
    """Return what is asked of tools of ours with what the items say of them; those from `new_from` on are the request's own.

    INVALID_REQUEST `approval_not_found` for an answer to an approval that the context does not have,
    `approval_server_missing` where the request does not name its server, and `approval_needs_store` where nothing is
    stored and the request for approval is not in the input.
    """
    context = _Context(stored=serving.stored)
    said = last_model_item(items)
    for place, item in enumerate(items):
        if item.type in _TOLD:
            where = f"input[{place - new_from}]" if place >= new_from else ""
            context.add(item, where, is_open=place > said)
            yield item.weight
    servers = tuple(
        replace(server, pinned=context.listings.get(server.label)) for server in serving.servers
    )
    answered = tuple(context.answered(servers))
    return replace(serving, servers=servers, answered=answered, found=tuple(context.found))


class _Context:
    def __init__(self, *, stored: bool) -> None:
        self._stored = stored
        self.listings: dict[str, tuple[ListedTool, ...]] = {}
        self.found: dict[str, bool] = {}
        self._requests: dict[str, dict[str, Any]] = {}
        self._answers: dict[str, tuple[dict[str, Any], str]] = {}
        self._over: set[str] = set()

    def add(self, item: ItemDoc, where: str, *, is_open: bool) -> None:
        """Take the next item; `where` is its path if it is the request's own."""
        values = item.values()
        if item.type == _LISTING:
            if not values.get("error"):
                self.listings[str(values.get("server_label"))] = listed(values)
        elif item.type == _FOUND:
            for tool in tools_found(values):
                if len(self.found) < _FOUND_MAX:
                    self.found[tool.name] = True
        elif item.type == APPROVAL_REQUEST:
            if where or self._stored:
                self._requests[item.id] = values
        elif item.type == "mcp_call":
            approval = values.get("approval_request_id")
            if type(approval) is str:
                self._over.add(approval)
        elif item.type == APPROVAL_RESPONSE:
            self._answer(values, where, is_open=is_open)

    def _answer(self, values: dict[str, Any], where: str, *, is_open: bool) -> None:
        asked = str(values.get("approval_request_id"))
        if asked not in self._requests:
            if where:
                raise self._unknown(asked, f"{where}.approval_request_id")
            return
        if not is_open:
            self._over.add(asked)
        # Of several answers the first one counts.
        self._answers.setdefault(asked, (values, where))

    def _unknown(self, asked: str, where: str) -> SmgError:
        why = f"there is no request for approval {quoted(asked)}"
        if self._stored:
            return invalid(why, where, "approval_not_found")
        why = f"{why} in the input, where it has to be if the response is not stored"
        return invalid(why, where, "approval_needs_store")

    def answered(self, servers: Sequence[AskedServer]) -> Sequence[ApprovedCall]:
        """Return the calls that were answered, and have not been run or refused yet."""
        labels = {server.label for server in servers}
        found = []
        for asked, (values, where) in self._answers.items():
            if asked in self._over:
                continue
            request = self._requests[asked]
            label = str(request.get("server_label"))
            if label not in labels and where:
                why = f"this is about a tool of the server {quoted(label)}, which is not among the tools"
                raise invalid(why, f"{where}.approval_request_id", "approval_server_missing")
            if label not in labels:
                # An answer that an earlier response did not get to, for a server that is not wanted any more.
                continue
            reason = values.get("reason")
            found.append(
                ApprovedCall(
                    asked,
                    label,
                    str(request.get("name")),
                    str(request.get("arguments")),
                    values.get("approve") is True,
                    reason[:_REASON_CHARACTERS_MAX] if type(reason) is str else "",
                )
            )
        return found


def listed(values: Mapping[str, Any]) -> tuple[ListedTool, ...]:
    """Return the tools of an item that lists them; those without a name are none."""
    return tuple(
        ListedTool(
            tool["name"],
            said if type(said := tool.get("description")) is str else "",
            _object(tool.get("input_schema")),
            _object(tool.get("annotations")),
        )
        for tool in _rows(values, "tools")[:_TOOLS_MAX]
        if type(tool.get("name")) is str
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if type(value) is dict else {}


def _rows(values: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    rows = values.get(key)
    return [row for row in rows if type(row) is dict] if type(rows) is list else []
