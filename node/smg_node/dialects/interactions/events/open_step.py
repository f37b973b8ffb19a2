"""Open step: a step of an interaction while it is streamed, from its first event to its last.

For a plain delta, which is nearly every one, an event is head + number + middle + text + tail; all but the
number and the text are made when the step starts.
"""

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final

from smg_node.core.generation.events import Delta
from smg_node.core.generation.opaque import Opaque
from smg_node.dialects.messages.argument_gate import ArgumentGate
from smg_node.dialects.openai.frames import json_line
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.items.item_document import ItemDoc, item_from
from smg_node.dialects.responses.items.item_state import LAST, signature_with

DELTA: Final = "step.delta"
START: Final = "step.start"
STOP: Final = "step.stop"

Sign = Callable[[str], str]
"""Makes the signature of a thought."""


class Numbers:
    """Numbers events, from 0, without gaps. `next` is the number of the next event."""

    __slots__ = ("next",)

    def __init__(self, following: int = 0) -> None:
        self.next = following

    def say(self, kind: str, fields: Mapping[str, Any]) -> NumberedEvent:
        """Return the next event, of this type and with these fields."""
        number = self.next
        self.next = number + 1
        data = json_line({"event_type": kind, "event_id": str(number), **fields})
        return NumberedEvent(number, kind, data)

    def start(self, index: int, step: Mapping[str, Any]) -> NumberedEvent:
        """Return the event that starts a step."""
        return self.say(START, {"index": index, "step": step})

    def delta(self, index: int, delta: Mapping[str, Any]) -> NumberedEvent:
        """Return a delta of a step."""
        return self.say(DELTA, {"index": index, "delta": delta})

    def stop(self, index: int) -> NumberedEvent:
        """Return the event that stops a step."""
        return self.say(STOP, {"index": index})


class OpenStep(ABC):
    """Common part of all kinds. `head` is None where a delta is not sent as it comes. `opaque` is what its vendor wants
    back with it, known when the block has ended.
    """

    __slots__ = ("head", "index", "item_id", "middle", "numbers", "opaque", "tail", "texts")

    def __init__(self, numbers: Numbers, item_id: str, index: int) -> None:
        self.numbers = numbers
        self.index = index
        self.item_id = item_id
        self.texts: list[str] = []
        self.opaque: tuple[Opaque, ...] = ()
        self.head: bytes | None = None
        self.middle = self.tail = b""

    def start(self) -> NumberedEvent:
        """Return the event that starts it."""
        return self.numbers.start(self.index, self._bare())

    def late_delta(self, event: Delta) -> NumberedEvent | None:
        """Take a delta that is not sent as it comes; return the event to be sent now, if there is one."""
        self.texts.append(event.text)
        return None

    def finish(self, status: str) -> tuple[list[NumberedEvent], ItemDoc]:
        """Return the events that end it, and the finished item."""
        text = "".join(self.texts)
        told = [self.numbers.delta(self.index, delta) for delta in self._closing(text)]
        return [*told, self.numbers.stop(self.index)], self._item(text, status)

    def so_far(self) -> ItemDoc:
        """Return the item as it is at this moment."""
        return self._item("".join(self.texts), "in_progress")

    def _prepare(self, before: bytes, after: bytes) -> None:
        """Let texts be sent as they come, inside a delta of these bytes."""
        self.head = b'{"event_type":"step.delta","event_id":"'
        self.middle = b'","index":%d,"delta":%b' % (self.index, before)
        self.tail = after

    @abstractmethod
    def _bare(self) -> Mapping[str, Any]:
        """Return the step before anything of it is said."""

    @abstractmethod
    def _closing(self, text: str) -> list[Mapping[str, Any]]:
        """Return the deltas that are known only when it ends."""

    @abstractmethod
    def _item(self, text: str, status: str) -> ItemDoc:
        """Return the item with this text."""


class OpenOutput(OpenStep):
    """Text of the model."""

    __slots__ = ()

    def __init__(self, numbers: Numbers, item_id: str, index: int) -> None:
        super().__init__(numbers, item_id, index)
        self._prepare(b'{"type":"text","text":', b"}}")

    def _bare(self) -> Mapping[str, Any]:
        return {"type": "model_output", "content": []}

    def _closing(self, text: str) -> list[Mapping[str, Any]]:
        return []

    def _item(self, text: str, status: str) -> ItemDoc:
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return item_from(
            {
                "id": self.item_id,
                "type": "message",
                "status": status,
                "role": "assistant",
                "content": [part],
            }
        )


class OpenThought(OpenStep):
    """Thought of the model: with its text, or with a signature only that carries it."""

    __slots__ = ("_shown", "_sign", "_signature")

    def __init__(
        self, numbers: Numbers, item_id: str, index: int, *, sign: Sign, shown: bool
    ) -> None:
        super().__init__(numbers, item_id, index)
        self._sign = sign
        self._shown = shown
        self._signature = ""
        if shown:
            self._prepare(b'{"type":"thought_summary","content":{"type":"text","text":', b"}}}")

    def _bare(self) -> Mapping[str, Any]:
        return {"type": "thought"}

    def _closing(self, text: str) -> list[Mapping[str, Any]]:
        self._signature = self._signed(text)
        told = {"type": "thought_signature", "signature": self._signature}
        return [told] if self._signature else []

    def _signed(self, text: str) -> str:
        if not self.opaque:
            return base64.b64encode(self._sign(text).encode()).decode()
        hidden = text != "" and not self._shown
        return signature_with(self.opaque, self._sign(text) if hidden else "")

    def _item(self, text: str, status: str) -> ItemDoc:
        values: dict[str, Any] = {
            "id": self.item_id,
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": text}],
            "status": status,
        }
        if self._signature:
            values["signature"] = self._signature
        if not self._shown:
            values["hidden"] = True
        return item_from(values)


class OpenStateStep(OpenThought):
    """Thought that is none: it carries the opaque state of the step before it, which has no place for it."""

    __slots__ = ()

    @staticmethod
    def holds(opaque: tuple[Opaque, ...]) -> bool:
        """Whether this state is not too large for it."""
        return signature_with(opaque, place=LAST) != ""

    def _signed(self, text: str) -> str:
        return signature_with(self.opaque, place=LAST)


class OpenCall(OpenStep):
    """Call of one of the client's functions. Of its arguments a member is told when it is complete; `texts`
    are what was told.
    """

    __slots__ = ("_call_id", "_gate", "_name")

    def __init__(
        self, numbers: Numbers, item_id: str, index: int, *, call_id: str, name: str
    ) -> None:
        super().__init__(numbers, item_id, index)
        self._call_id = call_id
        self._name = name
        self._gate = ArgumentGate()

    def late_delta(self, event: Delta) -> NumberedEvent | None:
        """Take more of what is printed; return the event with what is complete of it now."""
        ready = self._gate.feed(event.text)
        if not ready:
            return None
        self.texts.append(ready)
        return self.numbers.delta(self.index, _arguments_delta(ready))

    def _bare(self) -> Mapping[str, Any]:
        return {"type": "function_call", "id": self._call_id, "name": self._name, "arguments": {}}

    def _closing(self, text: str) -> list[Mapping[str, Any]]:
        rest = self._gate.finish() or ("" if text else "{}")
        if not rest:
            return []
        self.texts.append(rest)
        return [_arguments_delta(rest)]

    def _item(self, text: str, status: str) -> ItemDoc:
        # What is told of an open one has no end yet.
        arguments = "{}" if status == "in_progress" else "".join(self.texts)
        return item_from(
            {
                "id": self.item_id,
                "type": "function_call",
                "status": status,
                "arguments": arguments,
                "call_id": self._call_id,
                "name": self._name,
            }
        )


def _arguments_delta(text: str) -> Mapping[str, Any]:
    return {"type": "arguments_delta", "arguments": text}
