"""Served output: the items of a response whose tools this node runs, several of them open at once.

The items of an answer stand in `slots`, in the order in which they were added: an open one until it is done.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from smg_node.core.generation.events import (
    BlockStart,
    Delta,
    Listed,
    RunEnd,
    RunNote,
    RunStart,
)
from smg_node.core.generation.served_call_ids import tail_of
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.dialects.responses.events.numbered_events import NumberedEvent, Script
from smg_node.dialects.responses.events.open_item import OpenItem
from smg_node.dialects.responses.events.served.open_builtins import (
    OpenBuiltin,
    OpenCode,
    OpenFileSearch,
    OpenImage,
    OpenToolSearch,
    OpenWebSearch,
)
from smg_node.dialects.responses.events.served.open_mcp_items import (
    OpenApproval,
    OpenMcpCall,
    listing_events,
)
from smg_node.dialects.responses.events.served.open_run import OpenRun
from smg_node.dialects.responses.items.item_document import ItemDoc, item_from
from smg_node.dialects.responses.items.item_types import KINDS
from smg_node.dialects.responses.request.response_request import ResponseRequest

Slots: TypeAlias = list["ItemDoc | OpenItem"]
ServedEvent: TypeAlias = Listed | RunStart | RunNote | RunEnd

_BUILTINS: Final[dict[str, type[OpenBuiltin]]] = {
    "web_search": OpenWebSearch,
    "file_search": OpenFileSearch,
    "image_generation": OpenImage,
    "tool_search": OpenToolSearch,
    "web_fetch": OpenWebSearch,
}


class HiddenCall(OpenItem):
    """A call that an operator wants nobody to see."""

    __slots__ = ()
    carries_state = False

    def slow_delta(self, event: Delta, out: list[NumberedEvent]) -> None:
        """Show nothing."""

    def _closing(self, text: str, status: str) -> list[NumberedEvent]:
        raise AssertionError("what is hidden has no events")

    def _document(self, text: str, status: str, *, bare: bool = False) -> ItemDoc:
        raise AssertionError("what is hidden has no item")


NewItemId: TypeAlias = Callable[[str, str], str]
"""Makes the id of an item of a type, which may end with the tail of its call's id."""


class ServedOutput:
    """Items of tools of ours in one response.

    It does not keep who makes ids, so that the items of an answer are gone with it, without a look of the collector.
    """

    def __init__(self, ask: ResponseRequest, script: Script, slots: Slots) -> None:
        self._ask = ask
        self._script = script
        self._slots = slots
        self._open: dict[int, OpenRun] = {}

    def opened(self, event: BlockStart, out: list[NumberedEvent], new_id: NewItemId) -> OpenItem:
        """Return the item of a call that begins."""
        owner = event.owner
        assert owner is not None, "it is a call of ours"
        if owner.hidden:
            return HiddenCall(self._script, "", -1)
        item = self._made(owner, tail_of(event.call_id), new_id)
        if item.shown:
            self._slots.append(item)
        out.extend(item.start())
        return item

    def _made(self, owner: ToolOwner, tail: str, new_id: NewItemId) -> OpenRun:
        index, script = len(self._slots), self._script
        if owner.asks:
            return OpenApproval(script, new_id("mcp_approval_request", tail), index, owner)
        if owner.shape == "mcp":
            return OpenMcpCall(script, new_id("mcp_call", tail), index, owner)
        if owner.shape == "code_interpreter":
            return OpenCode(
                script,
                new_id("code_interpreter_call", tail),
                index,
                owner,
                include=self._ask.include,
                container=self._container(),
            )
        kind = _BUILTINS[owner.shape]
        item_id = new_id(kind.kind, tail)
        return kind(script, item_id, index, owner, include=self._ask.include)

    def _container(self) -> str:
        """Return the id of the container that the request names for code, `auto` where it names none."""
        builtins = () if self._ask.serving is None else self._ask.serving.builtins
        named = [
            asked.settings.get("container")
            for asked in builtins
            if asked.kind == "code_interpreter"
        ]
        return next((name for name in named if type(name) is str), "auto")

    def said(self, item: OpenItem, block: int, out: list[NumberedEvent], *, whole: bool) -> None:
        """Take the end of a call's block; one that is not `whole` was cut there."""
        if not isinstance(item, OpenRun):
            return
        if not whole:
            if item.shown:
                self._end(item.cut(), item, out)
            return
        if not item.shown:
            item.move(len(self._slots))
            self._slots.append(item)
        out.extend(item.said())
        if item.owner.asks:
            self._end(item.cut(), item, out)
        else:
            self._open[block] = item

    def take(self, event: ServedEvent, out: list[NumberedEvent], new_id: NewItemId) -> None:
        """Take what servers list, and what becomes of runs; those of hidden calls are not shown."""
        if isinstance(event, Listed):
            item_id, index = new_id("mcp_list_tools", ""), len(self._slots)
            told, doc = listing_events(self._script, item_id, index, event)
            out.extend(told)
            self._slots.append(doc)
            return
        item = self._open.get(event.block)
        if item is None or isinstance(event, RunNote):
            return
        if isinstance(event, RunStart):
            out.extend(item.running())
            return
        del self._open[event.block]
        self._end(item.over(event.result), item, out)
        self._add(item, event, out)

    def cut(self, out: list[NumberedEvent]) -> None:
        """End all that is open: the answer ends here."""
        for item in self._open.values():
            self._end(item.cut(), item, out)
        self._open.clear()

    def _end(
        self,
        ending: tuple[list[NumberedEvent], ItemDoc],
        item: OpenRun,
        out: list[NumberedEvent],
    ) -> None:
        told, doc = ending
        out.extend(told)
        self._slots[item.output_index] = doc

    def _add(self, item: OpenRun, event: RunEnd, out: list[NumberedEvent]) -> None:
        """Add the item that stands for the result of another, if there is one."""
        values = item.after(event.result)
        if values is None:
            return
        # With the digits of the call it belongs to: of several searches at once each has its own output.
        digits = item.item_id.partition("_")[2]
        doc = item_from({**values, "id": f"{KINDS[values['type']].prefix}_{digits}"})
        fields = {"output_index": len(self._slots), "item": msgspec.Raw(doc.document)}
        words = ("added", "done")
        out.extend(self._script.say(f"response.output_item.{word}", fields) for word in words)
        self._slots.append(doc)
