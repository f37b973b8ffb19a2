"""Log replay: an interaction's finished and open steps, out of the events in its log. Pure.

Serves an interaction that another node makes, and the end of one whose node died: wherever its log
ends, the open step is stopped as the presenter would have stopped it, with the numbers going on.
Closing a log that was closed before adds nothing, so another node may repeat it after a crash.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from smg_node.dialects.interactions.events.call_arguments import object_text, text_missing
from smg_node.dialects.interactions.events.interaction_object import errors_shown
from smg_node.dialects.interactions.events.open_step import DELTA, START, STOP, Numbers
from smg_node.dialects.openai.frames import json_line
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.events.orphan_ending import OrphanEnding
from smg_node.dialects.responses.items.item_document import ItemDoc, item_from, list_of

_CREATED: Final = ("id", "object", "status", "model", "created")
_TEXTS: Final = {"text": "text", "arguments_delta": "arguments", "thought_signature": "signature"}


class _Event(msgspec.Struct):
    index: int = -1
    step: dict[str, Any] = {}
    delta: dict[str, Any] = {}
    interaction: dict[str, Any] = {}
    status: str = ""


_event: Final = msgspec.json.Decoder(_Event).decode
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _Step:
    """A step in progress."""

    def __init__(self, step: dict[str, Any]) -> None:
        self.step = step
        self.pieces: list[str] = []
        self.signature = ""

    def take(self, delta: dict[str, Any]) -> None:
        """Take one of its deltas."""
        kind = delta.get("type")
        if kind == "thought_summary":
            delta = delta.get("content") or {}
        text = str(delta.get(_TEXTS.get(str(delta.get("type")), ""), ""))
        if kind == "thought_signature":
            self.signature = text
        else:
            self.pieces.append(text)

    def item(self, status: str) -> ItemDoc:
        """Return it as an item; it has no id, since steps show none."""
        text = "".join(self.pieces)
        kind = self.step.get("type")
        values: dict[str, Any] = {"status": status}
        if kind == "thought":
            content = [{"type": "reasoning_text", "text": text}]
            values |= {"type": "reasoning", "summary": [], "content": content}
            if self.signature:
                values["signature"] = self.signature
            if not text:
                values["hidden"] = True
        elif kind == "function_call":
            named = {"call_id": self.step.get("id"), "name": self.step.get("name")}
            # What was told of an open one has no end yet.
            arguments = "{}" if status == "in_progress" else object_text(text)
            values |= {"type": "function_call", "arguments": arguments, **named}
        else:
            part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
            values |= {"type": "message", "role": "assistant", "content": [part]}
        return item_from(values)


class InteractionReplay:
    """Replays a log, from its first event on, in any portions."""

    def __init__(self) -> None:
        self.next = 0
        """The number of the event that comes next."""
        self.started = False
        """Whether it has begun to run, and does not only wait."""
        self._done: list[ItemDoc] = []
        self._open: _Step | None = None
        self._failed = False

    def feed(self, events: Sequence[NumberedEvent]) -> None:
        """Replay the next events; ValueError for one that cannot come there."""
        for event in events:
            if event.sequence != self.next:
                raise ValueError(f"event {event.sequence} stands where {self.next} should be")
            self.next += 1
            try:
                self._take(event.type, _event(event.data))
            except msgspec.DecodeError as error:
                raise ValueError(f"event {event.sequence} makes no sense") from error

    def _take(self, kind: str, said: _Event) -> None:
        if kind == DELTA:
            self._inside(kind).take(said.delta)
        elif kind == START:
            if self._open is not None or said.index != len(self._done):
                raise ValueError(f"step {said.index} begins where another one is")
            self._open = _Step(said.step)
        elif kind == STOP:
            self._done.append(self._inside(kind).item("completed"))
            self._open = None
        elif kind == "error":
            self._failed = True
        else:
            status = said.interaction.get("status", said.status)
            self.started = self.started or status == "in_progress"

    def _inside(self, kind: str) -> _Step:
        if self._open is None:
            raise ValueError(f"{kind} is said of no step")
        return self._open

    # ── As it is, and as it ends ─────────────────────────────────────────────

    def items(self) -> tuple[ItemDoc, ...]:
        """Return all steps so far, the open one too."""
        left = [] if self._open is None else [self._open.item("in_progress")]
        return (*self._done, *left)

    def close(self, kept: bytes, ended: FinalStatus) -> OrphanEnding:
        """Return the closing events; `kept` is the document as it was before any output."""
        numbers = Numbers(self.next)
        told = [] if self.next else [_created(numbers, kept)]
        if self._open is not None:
            index = len(self._done)
            missing = ""
            if self._open.step.get("type") == "function_call":
                missing = text_missing("".join(self._open.pieces))
            if missing:
                self._open.pieces.append(missing)
                rest = {"type": "arguments_delta", "arguments": missing}
                told.append(numbers.delta(index, rest))
            told.append(numbers.stop(index))
            self._done.append(self._open.item("incomplete"))
            self._open = None
        if not self._failed:
            told += [numbers.say("error", {"error": one}) for one in errors_shown(ended.error)]
        self.next = numbers.next
        return OrphanEnding(told, tuple(self._done), numbers.next)


class PartialInteraction:
    """Document of an interaction in progress on another node, with the steps that are in its log."""

    def __init__(self, kept: bytes) -> None:
        """Take the document as it is stored while it is made; ValueError if it is none."""
        try:
            self._fields = _fields(kept)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"not the document of an interaction: {error}") from error
        self._replay = InteractionReplay()

    def hear(self, told: Sequence[NumberedEvent]) -> None:
        """Apply the next events, in order; ValueError for one that cannot come there."""
        self._replay.feed(told)

    def body(self) -> bytes:
        """Return the document as it is now."""
        now: dict[str, Any] = {"output": msgspec.Raw(list_of(self._replay.items()))}
        if self._replay.started:
            now["status"] = "in_progress"
        return json_line({**self._fields, **now})


def _created(numbers: Numbers, kept: bytes) -> NumberedEvent:
    try:
        fields = _fields(kept)
    except msgspec.DecodeError as error:
        raise ValueError("this is no interaction") from error
    shown = {name: fields[name] for name in _CREATED if name in fields}
    return numbers.say("interaction.created", {"interaction": shown})
