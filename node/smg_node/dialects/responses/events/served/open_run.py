"""Open run: an output item of a call that this node runs, from the call's first letter to what came of it.

    start { delta } said running over        said: the arguments are whole; over: the run is
    start { delta } cut                      the answer ended before that

It outlives its block: later items begin while it runs. An item that has to show its arguments from its first event on
is held back until they are whole, and one that was cut before that is never shown.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import msgspec

from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import RunResult
from smg_node.dialects.openai.frames import json_text
from smg_node.dialects.responses.events.numbered_events import NumberedEvent, Script
from smg_node.dialects.responses.events.open_item import OpenItem
from smg_node.dialects.responses.items.item_document import ItemDoc, item_from

NO_RESULT = RunResult("")


class OpenRun(OpenItem):
    """Common part of all kinds. `holds_back`: nothing is shown before the arguments are whole."""

    __slots__ = ("_arguments", "owner", "shown", "whole")
    kind = ""
    """The type of its item; it is the middle of the types of its events, too."""
    holds_back = False
    carries_state = False

    def __init__(self, script: Script, item_id: str, output_index: int, owner: ToolOwner) -> None:
        super().__init__(script, item_id, output_index)
        self.owner = owner
        self.shown = not self.holds_back
        """Whether its item has been added."""
        self.whole = False
        """Whether its arguments are whole."""
        self._arguments = ""

    def move(self, output_index: int) -> None:
        """Give it another place, before anything of it is shown."""
        assert not self.shown, "what was shown stays at its place"
        self._index = output_index

    @property
    def arguments(self) -> str:
        """The arguments, as far as they are known."""
        return self._arguments if self.whole else "".join(self.texts)

    def start(self) -> list[NumberedEvent]:
        """Return the events of a call that begins."""
        return [] if self.holds_back else self._added()

    def said(self) -> list[NumberedEvent]:
        """Return the events of a call whose arguments are whole."""
        text = "".join(self.texts)
        missing = not text
        if missing:
            text = "{}"
            self.texts.append(text)
        self.whole = True
        self._arguments = text
        told = [] if self.shown else self._added()
        self.shown = True
        if missing and self.head is not None:
            told.append(self._delta(text))
        return [*told, *self._said()]

    def running(self) -> list[NumberedEvent]:
        """Return the events of a run that starts."""
        return []

    def over(self, result: RunResult) -> tuple[list[NumberedEvent], ItemDoc]:
        """Return the events of a run that is over, and the finished item."""
        failed = result.error is not None
        status = "incomplete" if result.cut else "failed" if failed else "completed"
        word = "" if result.cut else status
        return self._done(self._ending(word), status, result)

    def cut(self) -> tuple[list[NumberedEvent], ItemDoc]:
        """Return the events of a call that ends without a run, or of a run that is cut off, and the item; it must be shown."""
        assert self.shown, "what was held back is not shown"
        told = [] if self.whole else self._broken_off()
        return self._done(told, "incomplete", NO_RESULT)

    def finish(self, status: str) -> tuple[list[NumberedEvent], ItemDoc]:
        """Return what `cut` does: a call is not over with its block."""
        return self.cut()

    def so_far(self) -> ItemDoc:
        """Return the item as it is at this moment."""
        return item_from(self._values("in_progress", NO_RESULT))

    def after(self, result: RunResult) -> Mapping[str, Any] | None:
        """Return what an item of its own says of a result, its id aside; None for nothing."""
        return None

    # ── Of each kind ─────────────────────────────────────────────────────────

    @abstractmethod
    def _values(self, status: str, result: RunResult) -> dict[str, Any]:
        """Return what the item says with this status and result, its id and type first."""

    def _said(self) -> list[NumberedEvent]:
        return []

    def _broken_off(self) -> list[NumberedEvent]:
        """Return the events of arguments that are not whole and never will be."""
        return []

    def _ending(self, word: str) -> list[NumberedEvent]:
        """Return the events before the item's last; `word` is completed, failed, or "" for a run that was cut."""
        return [self._step(word)] if word == "completed" else []

    # ── Common ───────────────────────────────────────────────────────────────

    def _added(self) -> list[NumberedEvent]:
        item = item_from(self._values("in_progress", NO_RESULT))
        fields = {"output_index": self._index, "item": msgspec.Raw(item.document)}
        return [self._script.say("response.output_item.added", fields), *self._begun()]

    def _begun(self) -> list[NumberedEvent]:
        """Return the events that follow the item's first."""
        return [self._step("in_progress")]

    def _step(self, word: str) -> NumberedEvent:
        return self._script.say(f"response.{self.kind}.{word}", self._place())

    def _delta(self, text: str) -> NumberedEvent:
        sequence = self._script.next
        self._script.next = sequence + 1
        assert self.head is not None, "its deltas are prepared"
        data = self.head + b"%d" % sequence + self.middle + json_text(text) + self.tail
        return NumberedEvent(sequence, self.delta_type, data)

    def _done(
        self, told: list[NumberedEvent], status: str, result: RunResult
    ) -> tuple[list[NumberedEvent], ItemDoc]:
        doc = item_from(self._values(status, result))
        fields = {"output_index": self._index, "item": msgspec.Raw(doc.document)}
        return [*told, self._script.say("response.output_item.done", fields)], doc

    def _closing(self, text: str, status: str) -> list[NumberedEvent]:
        return []

    def _document(self, text: str, status: str, *, bare: bool = False) -> ItemDoc:
        return item_from(self._values(status, NO_RESULT))
