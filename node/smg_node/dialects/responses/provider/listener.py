"""Listener: incremental reader of a vendor's response, streamed or whole: bytes in, events out. Pure.

Events are known by the `type` in their data: some vendors name them too late, some not at all. What their deltas left out
is taken from the end of a part, of an item, or of the response. A message, a thought and a call are a block each; items
that only the vendor understands tell nothing here. An answer is whole when the response is completed or incomplete.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import (
    Begin,
    End,
    Event,
    Fail,
    Finish,
    FinishReason,
    TokenLogprob,
    Usage,
)
from smg_node.core.generation.opaque import ENCRYPTED, Opaque
from smg_node.dialects.answer_blocks import AnswerBlocks
from smg_node.dialects.openai.functions import custom_arguments
from smg_node.dialects.openai.provider.answer_values import (
    arguments_of,
    broken,
    logprob_rows,
    number_of,
    object_at,
    object_of,
    objects,
    string_at,
    text_of,
)
from smg_node.dialects.responses.items.item_state import PHASE
from smg_node.dialects.responses.provider.answer_facts import (
    TERMINAL,
    error_in,
    finish_of,
    usage_of,
)
from smg_node.dialects.responses.provider.open_items import Channel, OpenItem
from smg_node.dialects.sse_reader import EventLines

_DONE: Final = b"[DONE]"
_BETWEEN: Final = "\n\n"
"""What stands between the parts of a summary."""
_MODELS: Final = {"grok": "xai"}
"""Issuers by how their models' names begin; all others are OpenAI's."""
_OPENAI: Final = "openai"


class ResponsesListener:
    """Reads one answer; see `AnswerListener`. `issuer` is that of its opaque state, "" where the model's name tells."""

    def __init__(
        self, begin: Begin, *, prompt_tokens: int, taken: Collection[str] = (), issuer: str = ""
    ) -> None:
        """Take an estimate of the prompt's tokens, used if the vendor gives no usage."""
        self._begin = begin
        self._prompt_tokens = prompt_tokens
        self._issuer = issuer
        self._lines = EventLines()
        self._blocks = AnswerBlocks(taken, f"call_{begin.id}_")
        self._items: dict[int, OpenItem] = {}
        self._begun = False
        self._called = False
        self._refused = False
        self._finish: FinishReason | None = None
        self._usage: Usage | None = None

    @property
    def spent(self) -> Usage | None:
        """See `AnswerListener`."""
        return self._usage

    @property
    def deltas(self) -> int:
        """See `AnswerListener`."""
        return self._blocks.deltas

    @property
    def finished(self) -> bool:
        """Whether the answer is whole, even if the end of the stream is still missing."""
        return self._finish is not None

    def feed(self, piece: bytes, out: list[Event]) -> None:
        """Take the next bytes of a stream. UPSTREAM_FAILED for bytes that are no answer; `WorkerError`."""
        for event in self._lines.feed(piece):
            self._hear(event, out)

    def feed_whole(self, body: bytes, out: list[Event]) -> None:
        """Take the whole body of an answer that is not streamed; errors as `feed`."""
        response = object_of(body)
        failed = response.get("status") == "failed"
        error = error_in({"response": response}, "response.failed") if failed else None
        error = error or error_in(response, "")
        if error is not None:
            raise error
        if not isinstance(response.get("output"), list):
            raise broken("the vendor's answer has no output")
        self._end_response(response, out)

    def end(self, out: list[Event]) -> None:
        """End the answer; errors as `feed`, and UPSTREAM_FAILED if the answer is not whole."""
        for event in self._lines.finish():
            self._hear(event, out)
        reason = self._finish
        if reason is None:
            raise broken("the vendor's answer broke off before its end")
        self._start(out)
        self._blocks.close(out)
        if reason == "stop" and (self._called or self._refused):
            reason = "tool_calls" if self._called else "refusal"
        used = self._usage or Usage(self._prompt_tokens, self._blocks.deltas, 0)
        out += [Finish(0, reason), used, End()]

    def fail(self, error: SmgError, out: list[Event]) -> None:
        """Close open blocks: nothing more comes."""
        self._blocks.abandon(out)
        out.append(Fail(error))

    # ── Event by event ───────────────────────────────────────────────────────

    def _hear(self, data: bytes, out: list[Event]) -> None:
        if self._finish is not None or data.strip() == _DONE:
            return
        event = object_of(data)
        kind = string_at(event, "type")
        error = error_in(event, kind)
        if error is not None:
            raise error
        hear = _HEARD.get(kind)
        if hear is not None:
            hear(self, event, out)
        elif kind in TERMINAL:
            response = event.get("response")
            if not isinstance(response, dict):
                raise broken("the last event of the vendor's answer has no response")
            self._end_response(response, out)
        elif kind == "response.created":
            self._know(object_at(event, "response"))

    def _know(self, response: Mapping[str, Any]) -> None:
        """Learn whose the opaque state of this response is."""
        if not self._issuer:
            model = string_at(response, "model")
            found = (issuer for name, issuer in _MODELS.items() if model.startswith(name))
            self._issuer = next(found, _OPENAI) if model else ""

    def _end_response(self, response: Mapping[str, Any], out: list[Event]) -> None:
        finish = finish_of(response)
        self._know(response)
        for place, item in enumerate(objects(response.get("output"))):
            # Some vendors tell all of it at the end only.
            if place not in self._items:
                self._end_item({"output_index": place, "item": item}, out)
        self._usage = usage_of(response)
        self._finish = finish

    # ── Item by item ─────────────────────────────────────────────────────────

    def _item(self, event: Mapping[str, Any], kind: str, out: list[Event]) -> OpenItem:
        """Return the item that an event is about, which may be its first."""
        place = number_of(event.get("output_index"))
        if place is None:
            raise broken("an event of the vendor's answer does not say which item it is about")
        item = self._items.get(place)
        if item is None:
            item = self._items[place] = OpenItem(place, kind)
            self._blocks.end(out)
        return item

    def _add(self, event: Mapping[str, Any], out: list[Event]) -> None:
        told = object_at(event, "item")
        item = self._item(event, string_at(told, "type"), out)
        if item.kind == "function_call":
            self._call(item, told, "", out)

    def _end_item(self, event: Mapping[str, Any], out: list[Event]) -> None:
        told = object_at(event, "item")
        item = self._item(event, string_at(told, "type"), out)
        if item.over:
            return
        item.over = True
        match item.kind:
            case "message":
                self._end_message(item, told, out)
            case "reasoning":
                self._end_thought(item, told, out)
            case "function_call":
                said = item.has_said("arguments")
                self._call(item, told, "" if said else arguments_of(told.get("arguments")), out)
            case "custom_tool_call":
                self._call(item, told, custom_arguments(text_of(told.get("input"))), out)
            case _:
                pass

    def _end_message(self, item: OpenItem, told: Mapping[str, Any], out: list[Event]) -> None:
        for number, part in enumerate(objects(told.get("content"))):
            if part.get("type") == "refusal":
                self._say(item, "refusal", number, text_of(part.get("refusal")), out)
            else:
                rows = logprob_rows(part.get("logprobs"))
                self._say(item, "text", number, text_of(part.get("text")), out, rows)
        phase = string_at(told, PHASE)
        if phase and item.has_said("text"):
            self._blocks.attach("text", Opaque(self._issuer or _OPENAI, PHASE, phase), out)

    def _end_thought(self, item: OpenItem, told: Mapping[str, Any], out: list[Event]) -> None:
        channels: tuple[Channel, ...] = ("content", "summary")
        for channel in channels:
            for number, part in enumerate(objects(told.get(channel))):
                self._say(item, channel, number, text_of(part.get("text")), out)
        data = string_at(told, "encrypted_content")
        if data:
            self._start(out)
            name = string_at(told, "id")
            opaque = Opaque(self._issuer or _OPENAI, ENCRYPTED, data, name)
            self._blocks.attach("reasoning", opaque, out)

    def _call(
        self, item: OpenItem, told: Mapping[str, Any], arguments: str, out: list[Event]
    ) -> None:
        call_id, name = text_of(told.get("call_id")), text_of(told.get("name"))
        self._start(out)
        self._called = True
        if arguments:
            item.parts.add(("arguments", 0))
        self._blocks.call(item.place, call_id, name, arguments, out)

    # ── Text by text ─────────────────────────────────────────────────────────

    def _delta(
        self, channel: Channel, number: str, event: Mapping[str, Any], out: list[Event]
    ) -> None:
        item = self._item(event, _KINDS[channel], out)
        rows = logprob_rows(event.get("logprobs")) if event.get("logprobs") else ()
        text = text_of(event.get("delta"))
        self._tell(item, channel, number_of(event.get(number)) or 0, text, out, rows)

    def _arguments(self, event: Mapping[str, Any], out: list[Event]) -> None:
        item = self._item(event, "function_call", out)
        text = arguments_of(event.get("delta"))
        if text:
            self._call(item, {}, text, out)

    def _say(
        self,
        item: OpenItem,
        channel: Channel,
        number: int,
        text: str,
        out: list[Event],
        rows: tuple[TokenLogprob, ...] = (),
    ) -> None:
        """Say the whole of a part that has said nothing."""
        if (channel, number) not in item.parts:
            self._tell(item, channel, number, text, out, rows)

    def _tell(
        self,
        item: OpenItem,
        channel: Channel,
        number: int,
        text: str,
        out: list[Event],
        rows: tuple[TokenLogprob, ...],
    ) -> None:
        if not text and not rows:
            return
        kind: Literal["text", "reasoning", "refusal"]
        if channel == "text" or channel == "refusal":
            kind = channel
            self._refused = self._refused or channel == "refusal"
        else:
            kind = "reasoning"
            item.thought = item.thought or channel
            if item.thought != channel:
                return
            if channel == "summary" and item.parts and (channel, number) not in item.parts:
                text = _BETWEEN + text
        if text:
            self._start(out)
            item.parts.add((channel, number))
        self._blocks.say(kind, text, out, rows)

    def _start(self, out: list[Event]) -> None:
        if not self._begun:
            self._begun = True
            out.append(self._begin)


_KINDS: Final[Mapping[Channel, str]] = {
    "text": "message",
    "refusal": "message",
    "summary": "reasoning",
    "content": "reasoning",
}
_Heard = Callable[[ResponsesListener, Mapping[str, Any], list[Event]], None]


def _deltas(channel: Channel, number: str) -> _Heard:
    def hear(listener: ResponsesListener, event: Mapping[str, Any], out: list[Event]) -> None:
        listener._delta(channel, number, event, out)

    return hear


_HEARD: Final[Mapping[str, _Heard]] = {
    "response.output_item.added": ResponsesListener._add,
    "response.output_item.done": ResponsesListener._end_item,
    "response.output_text.delta": _deltas("text", "content_index"),
    "response.refusal.delta": _deltas("refusal", "content_index"),
    "response.reasoning_summary_text.delta": _deltas("summary", "summary_index"),
    "response.reasoning_text.delta": _deltas("content", "content_index"),
    "response.reasoning.delta": _deltas("content", "content_index"),
    "response.function_call_arguments.delta": ResponsesListener._arguments,
}
