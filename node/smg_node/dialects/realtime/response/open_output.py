"""Open output: an item that an answer is saying, from its first event to its last. Pure.

    response.output_item.added  conversation.item.added  [content_part.added]  delta*  done  [content_part.done]
    response.output_item.done  conversation.item.done

Out of band the two of the conversation are left out. A delta is head + number + middle + text: all but the number and the text
are made when the item starts.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.generation.opaque import Opaque
from smg_node.dialects.openai.frames import json_line, json_text
from smg_node.dialects.realtime.conversation import Conversation
from smg_node.dialects.realtime.event_script import EVENT_HEAD, EventScript
from smg_node.dialects.realtime.items import Item, shown_item
from smg_node.dialects.responses.events.open_state import phase_in
from smg_node.dialects.responses.items.item_document import ItemDoc, item_from
from smg_node.dialects.responses.items.item_types import CALL_OUTPUTS

_PART: Final = {"content_index": 0}


class OpenOutput(ABC):
    """Common part of both kinds. `conversation` is None out of band; `before` are the thoughts that led to it."""

    kind = ""
    delta_type = ""

    def __init__(
        self,
        script: EventScript,
        conversation: Conversation | None,
        *,
        response_id: str,
        item_id: str,
        output_index: int,
        before: tuple[ItemDoc, ...],
    ) -> None:
        self._script = script
        self._conversation = conversation
        self._response_id = response_id
        self.item_id = item_id
        self._index = output_index
        self._before = before
        self.opaque: tuple[Opaque, ...] = ()
        self.texts: list[str] = []
        self._middle = b""

    def start(self) -> list[bytes]:
        """Return the frames before the first delta; the item is in the conversation from now on."""
        shown = self._shown("", "in_progress", bare=True)
        said = [self._say("response.output_item.added", output_index=self._index, item=shown)]
        if self._conversation is not None:
            item = Item(self.item_id, shown, self._document("", "in_progress"))
            previous = self._conversation.add(item, after=None, writer=self._response_id)
            fields = {"previous_item_id": previous, "item": shown}
            said.append(self._script.say("conversation.item.added", fields))
        tail = b'%b",%b,"delta":' % (self._script.tail, json_line(self._place())[1:-1])
        self._head = b'{"type":%b%b' % (json_line(self.delta_type), EVENT_HEAD)
        self._middle = tail
        return said

    def delta(self, text: str) -> bytes:
        """Return the frame of more text, which is not empty."""
        self.texts.append(text)
        script = self._script
        number = script.next
        script.next = number + 1
        return self._head % number + self._middle + json_text(text) + b"}"

    def finish(self, status: str, after: tuple[ItemDoc, ...] = ()) -> tuple[list[bytes], Item]:
        """Return the frames that end it, and the finished item, which is in the conversation from now on."""
        text = "".join(self.texts)
        shown = self._shown(text, status)
        doc = self._document(text, status)
        is_cut = status == "incomplete" and doc.type in CALL_OUTPUTS
        item = Item(self.item_id, shown, doc, self._before, after, is_cut)
        said = self._closing(text)
        said.append(self._say("response.output_item.done", output_index=self._index, item=shown))
        if self._conversation is not None:
            self._conversation.finish(item)
            previous = self._conversation.previous(self.item_id)
            fields = {"previous_item_id": previous, "item": shown}
            said.append(self._script.say("conversation.item.done", fields))
        return said, item

    def so_far(self) -> dict[str, Any]:
        """Return the public object as it is at this moment."""
        return self._shown("".join(self.texts), "in_progress")

    def _say(self, kind: str, **fields: Any) -> bytes:
        return self._script.say(kind, {"response_id": self._response_id, **fields})

    def _place(self) -> dict[str, Any]:
        return {
            "response_id": self._response_id,
            "item_id": self.item_id,
            "output_index": self._index,
        }

    @abstractmethod
    def _shown(self, text: str, status: str, *, bare: bool = False) -> dict[str, Any]:
        """Return the public object with this text; a `bare` one has no content yet."""

    @abstractmethod
    def _document(self, text: str, status: str) -> ItemDoc:
        """Return the same as an item of Responses."""

    @abstractmethod
    def _closing(self, text: str) -> list[bytes]:
        """Return the frames between the last delta and the end of the item."""


class OpenMessage(OpenOutput):
    """Message of the assistant, with one part of text."""

    kind = "message"
    delta_type = "response.output_text.delta"

    def start(self) -> list[bytes]:
        """Return the frames before the first delta."""
        said = super().start()
        part = {"type": "text", "text": ""}
        fields = {**self._place(), "part": part}
        return [*said, self._script.say("response.content_part.added", fields)]

    def _place(self) -> dict[str, Any]:
        return {**super()._place(), **_PART}

    def _shown(self, text: str, status: str, *, bare: bool = False) -> dict[str, Any]:
        content = [] if bare else [{"type": "output_text", "text": text}]
        return shown_item(self.item_id, self.kind, status, role="assistant", content=content)

    def _document(self, text: str, status: str) -> ItemDoc:
        phase = phase_in(self.opaque) if self.opaque else ""
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return item_from(
            {
                "id": self.item_id,
                "type": self.kind,
                "status": status,
                "role": "assistant",
                "content": [part],
                **({"phase": phase} if phase else {}),
            }
        )

    def _closing(self, text: str) -> list[bytes]:
        place, say = self._place(), self._script.say
        return [
            say("response.output_text.done", {**place, "text": text}),
            say("response.content_part.done", {**place, "part": {"type": "text", "text": text}}),
        ]


class OpenCall(OpenOutput):
    """Function call. One without arguments has an empty object, unless it was cut there."""

    kind = "function_call"
    delta_type = "response.function_call_arguments.delta"

    def __init__(
        self,
        script: EventScript,
        conversation: Conversation | None,
        *,
        call_id: str,
        name: str,
        **place: Any,
    ) -> None:
        super().__init__(script, conversation, **place)
        self._call: Mapping[str, str] = {"call_id": call_id, "name": name}

    def finish(self, status: str, after: tuple[ItemDoc, ...] = ()) -> tuple[list[bytes], Item]:
        """Return the frames that end it, at least one of them a delta, and the finished item."""
        if self.texts:
            return super().finish(status, after)
        only = self.delta("{}" if status == "completed" else "")
        said, item = super().finish(status, after)
        return [only, *said], item

    def _place(self) -> dict[str, Any]:
        return {**super()._place(), "call_id": self._call["call_id"]}

    def _shown(self, text: str, status: str, *, bare: bool = False) -> dict[str, Any]:
        return shown_item(self.item_id, self.kind, status, **self._call, arguments=text)

    def _document(self, text: str, status: str) -> ItemDoc:
        values = {"id": self.item_id, "type": self.kind, "status": status, **self._call}
        return item_from({**values, "arguments": text})

    def _closing(self, text: str) -> list[bytes]:
        fields = {**self._place(), "name": self._call["name"], "arguments": text}
        return [self._script.say("response.function_call_arguments.done", fields)]
