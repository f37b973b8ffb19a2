"""Open item: an output item while it is streamed, from its first event to its last.

For a plain delta, which is nearly every one, an event is head + number + middle + text + tail; all but the number and
the text are made when the item starts.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from smg_node.core.generation.events import Delta
from smg_node.core.generation.opaque import Opaque
from smg_node.dialects.opaque_envelope import pack
from smg_node.dialects.openai.frames import json_line
from smg_node.dialects.openai.functions import custom_input
from smg_node.dialects.openai.logprobs import content_rows
from smg_node.dialects.responses.events.numbered_events import NumberedEvent, Script
from smg_node.dialects.responses.events.open_state import phase_in
from smg_node.dialects.responses.items.item_document import ItemDoc, item_from

Seal: TypeAlias = Callable[[str], str]
"""Makes of a thought what only this cluster can open."""


class OpenItem(ABC):
    """Common part of all kinds. `head` is None where an event must be put together for each delta.

    `opaque` is what its vendor wants back with it, known when it ends.
    """

    __slots__ = (
        "_index", "_script", "annotations", "delta_type", "head", "item_id", "middle", "opaque", "tail", "texts",
    )  # fmt: skip
    holds_state = False
    """Whether the item has a place for any opaque state."""
    carries_state = True
    """Whether state for which it has no place may follow in an item of its own."""

    def __init__(self, script: Script, item_id: str, output_index: int) -> None:
        self._script = script
        self._index = output_index
        self.item_id = item_id
        self.texts: list[str] = []
        self.opaque: tuple[Opaque, ...] = ()
        self.annotations: tuple[Mapping[str, Any], ...] = ()
        self.delta_type = ""
        self.head: bytes | None = None
        self.middle = self.tail = b""

    def start(self) -> list[NumberedEvent]:
        """Return the events that come before the first delta."""
        item = msgspec.Raw(self._document("", "in_progress", bare=True).document)
        return [
            self._script.say(
                "response.output_item.added", {"output_index": self._index, "item": item}
            )
        ]

    def slow_delta(self, event: Delta, out: list[NumberedEvent]) -> None:
        """Take a delta for which nothing is prepared."""
        if event.text:
            self.texts.append(event.text)

    def finish(self, status: str) -> tuple[list[NumberedEvent], ItemDoc]:
        """Return the events that end it, and the finished item."""
        text = "".join(self.texts)
        doc = self._document(text, status)
        fields = {"output_index": self._index, "item": msgspec.Raw(doc.document)}
        done = self._script.say
        return [*self._closing(text, status), done("response.output_item.done", fields)], doc

    def so_far(self) -> ItemDoc:
        """Return the item as it is at this moment."""
        return self._document("".join(self.texts), "in_progress")

    @property
    def output_index(self) -> int:
        """Its place among all items of the response."""
        return self._index

    @abstractmethod
    def _closing(self, text: str, status: str) -> list[NumberedEvent]:
        """Return the events between the last delta and the end of the item."""

    @abstractmethod
    def _document(self, text: str, status: str, *, bare: bool = False) -> ItemDoc:
        """Return the item with this text; a `bare` one has no content yet."""

    def _place(self) -> dict[str, Any]:
        return {"item_id": self.item_id, "output_index": self._index}

    def _prepare(self, delta_type: str, place: Mapping[str, Any], after: bytes = b"}") -> None:
        self.delta_type = delta_type
        self.head = b'{"type":%b,"sequence_number":' % json_line(delta_type)
        self.middle = b"," + json_line(place)[1:-1] + b',"delta":'
        self.tail = after


class OpenMessage(OpenItem):
    """Message of the assistant, with one part of text. Log probabilities are shown if requested."""

    __slots__ = ("_rows", "_shows_rows")

    def __init__(
        self, script: Script, item_id: str, output_index: int, *, logprobs: bool = False
    ) -> None:
        super().__init__(script, item_id, output_index)
        self._rows: list[dict[str, Any]] = []
        self._shows_rows = logprobs
        if not logprobs:
            self._prepare(
                "response.output_text.delta", self._part_place(), after=b',"logprobs":[]}'
            )

    def start(self) -> list[NumberedEvent]:
        """Return the events that come before the first delta."""
        fields = {**self._part_place(), "part": _text_part("", [])}
        part = ("response.content_part.added", fields)
        return [*super().start(), self._script.say(*part)]

    def slow_delta(self, event: Delta, out: list[NumberedEvent]) -> None:
        """Take a delta with log probabilities; text that is held back may still have some."""
        if not event.text and not event.logprobs:
            return
        super().slow_delta(event, out)
        rows = content_rows(event.logprobs, as_ids=False)
        self._rows += rows
        fields = {**self._part_place(), "delta": event.text, "logprobs": rows}
        out.append(self._script.say("response.output_text.delta", fields))

    def _part_place(self) -> dict[str, Any]:
        return {**self._place(), "content_index": 0}

    def _closing(self, text: str, status: str) -> list[NumberedEvent]:
        place, say = self._part_place(), self._script.say
        part = _text_part(text, self._rows, self.annotations)
        annotated = (
            {**place, "annotation_index": number, "annotation": annotation}
            for number, annotation in enumerate(self.annotations)
        )
        return [
            *(say("response.output_text.annotation.added", fields) for fields in annotated),
            say("response.output_text.done", {**place, "text": text, "logprobs": self._rows}),
            say("response.content_part.done", {**place, "part": part}),
        ]

    def _document(self, text: str, status: str, *, bare: bool = False) -> ItemDoc:
        phase = phase_in(self.opaque) if self.opaque else ""
        return item_from(
            {
                "id": self.item_id,
                "type": "message",
                "status": status,
                "role": "assistant",
                "content": [] if bare else [_text_part(text, self._rows, self.annotations)],
                **({"phase": phase} if phase else {}),
            }
        )


class OpenRefusal(OpenItem):
    """Message of the assistant, with one part in which the model declines to answer."""

    __slots__ = ()

    def __init__(self, script: Script, item_id: str, output_index: int) -> None:
        super().__init__(script, item_id, output_index)
        self._prepare("response.refusal.delta", self._part_place())

    def start(self) -> list[NumberedEvent]:
        """Return the events that come before the first delta."""
        fields = {**self._part_place(), "part": _refusal_part("")}
        return [*super().start(), self._script.say("response.content_part.added", fields)]

    def _part_place(self) -> dict[str, Any]:
        return {**self._place(), "content_index": 0}

    def _closing(self, text: str, status: str) -> list[NumberedEvent]:
        place, say = self._part_place(), self._script.say
        return [
            say("response.refusal.done", {**place, "refusal": text}),
            say("response.content_part.done", {**place, "part": _refusal_part(text)}),
        ]

    def _document(self, text: str, status: str, *, bare: bool = False) -> ItemDoc:
        return item_from(
            {
                "id": self.item_id,
                "type": "message",
                "status": status,
                "role": "assistant",
                "content": [] if bare else [_refusal_part(text)],
            }
        )


class OpenThought(OpenItem):
    """Reasoning item. `event` is the middle of its deltas' type, `seal` makes its encrypted
    content.
    """

    __slots__ = ("_event", "_seal")
    holds_state = True

    def __init__(
        self,
        script: Script,
        item_id: str,
        output_index: int,
        *,
        event: str = "reasoning_text",
        seal: Seal | None = None,
    ) -> None:
        super().__init__(script, item_id, output_index)
        self._event = f"response.{event}"
        self._seal = seal
        self._prepare(f"{self._event}.delta", self._part_place())

    def start(self) -> list[NumberedEvent]:
        """Return the events that come before the first delta."""
        fields = {**self._part_place(), "part": _thought_part("")}
        return [*super().start(), self._script.say("response.content_part.added", fields)]

    def _part_place(self) -> dict[str, Any]:
        return {**self._place(), "content_index": 0}

    def _closing(self, text: str, status: str) -> list[NumberedEvent]:
        place, say = self._part_place(), self._script.say
        return [
            say(f"{self._event}.done", {**place, "text": text}),
            say("response.content_part.done", {**place, "part": _thought_part(text)}),
        ]

    def _document(self, text: str, status: str, *, bare: bool = False) -> ItemDoc:
        values: dict[str, Any] = {
            "id": self.item_id,
            "type": "reasoning",
            "summary": [],
            "content": [] if bare else [_thought_part(text)],
            "status": status,
        }
        if status != "in_progress":
            sealed = self._sealed(text)
            if sealed:
                values["encrypted_content"] = sealed
        return item_from(values)

    def _sealed(self, text: str) -> str:
        """Return what this item is to come back with: the vendor's state, or the thought that nobody but us can read."""
        if self.opaque:
            packed = pack(self.opaque, "" if self._seal is None else text)
            if packed:
                return packed
        return "" if self._seal is None else self._seal(text)


class _NamedCall(OpenItem):
    """Call of a tool, by its name and namespace."""

    __slots__ = ("_call_id", "_name")

    def __init__(
        self,
        script: Script,
        item_id: str,
        output_index: int,
        *,
        call_id: str,
        name: str,
        namespace: str = "",
    ) -> None:
        super().__init__(script, item_id, output_index)
        self._call_id = call_id
        self._name = _spelled(name, namespace)
        self._begin()

    def _begin(self) -> None:
        """Prepare what each delta has in common, if there are several."""


class OpenCall(_NamedCall):
    """Function call. One without arguments has an empty object, unless it was cut there."""

    __slots__ = ()

    def _begin(self) -> None:
        self._prepare("response.function_call_arguments.delta", self._place())

    def finish(self, status: str) -> tuple[list[NumberedEvent], ItemDoc]:
        """Return the events that end it, at least one of them a delta, and the finished item."""
        if self.texts:
            return super().finish(status)
        text = "{}" if status == "completed" else ""
        self.texts.append(text)
        fields = {**self._place(), "delta": text}
        only = self._script.say(self.delta_type, fields)
        told, doc = super().finish(status)
        return [only, *told], doc

    def _closing(self, text: str, status: str) -> list[NumberedEvent]:
        fields = {**self._place(), "arguments": text}
        return [self._script.say("response.function_call_arguments.done", fields)]

    def _document(self, text: str, status: str, *, bare: bool = False) -> ItemDoc:
        return item_from(
            {
                "id": self.item_id,
                "type": "function_call",
                "status": status,
                "arguments": text,
                "call_id": self._call_id,
                **self._name,
            }
        )


class OpenCustomCall(_NamedCall):
    """Call of a custom tool: the model is shown a function of one string, the client that string.

    The string is inside JSON, and known only at its end: so it is sent in one delta.
    """

    __slots__ = ()

    def _closing(self, text: str, status: str) -> list[NumberedEvent]:
        place, say, whole = self._place(), self._script.say, custom_input(text)
        return [
            say("response.custom_tool_call_input.delta", {**place, "delta": whole}),
            say("response.custom_tool_call_input.done", {**place, "input": whole}),
        ]

    def _document(self, text: str, status: str, *, bare: bool = False) -> ItemDoc:
        return item_from(
            {
                "id": self.item_id,
                "type": "custom_tool_call",
                "status": status,
                "call_id": self._call_id,
                "input": custom_input(text),
                **self._name,
            }
        )


def _spelled(name: str, namespace: str) -> Mapping[str, str]:
    """Return what a call says of its tool."""
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def _text_part(
    text: str, rows: list[dict[str, Any]], annotations: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": rows}


def _thought_part(text: str) -> dict[str, Any]:
    return {"type": "reasoning_text", "text": text}


def _refusal_part(text: str) -> dict[str, Any]:
    return {"type": "refusal", "refusal": text}
