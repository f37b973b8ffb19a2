"""Orphan ending: closing events of a response whose node died, from its object and its log. Pure.

Wherever the log ends, in a text, a part, an item or between them, the open ones are closed as the
presenter would have closed them, with the numbers going on: then only the terminal event is
missing, and the stream is whole. Closing a log that was closed before adds nothing, so another node
may repeat it after a crash. Of a tool that was running, nobody knows what it did: its call has failed,
and says that it was not repeated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from smg_node.dialects.openai.frames import json_line
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent, Script
from smg_node.dialects.responses.events.presenter import THOUGHT_EVENTS, ReasoningEvents
from smg_node.dialects.responses.items.item_document import ItemDoc, item_from, item_of, list_of
from smg_node.dialects.responses.items.item_types import SERVED


@dataclass(frozen=True, slots=True)
class OrphanEnding:
    """The closing events, all of the output, and the number of the terminal event."""

    events: Sequence[NumberedEvent]
    output: tuple[ItemDoc, ...]
    next: int


class _Place(msgspec.Struct, kw_only=True):
    output_index: int
    content_index: int | None = None
    summary_index: int | None = None


class _Added(msgspec.Struct):
    item: dict[str, Any]
    output_index: int


class _Done(_Place):
    item: msgspec.Raw


class _Part(_Place):
    part: dict[str, Any] = {}


class _Delta(_Place):
    delta: str
    logprobs: list[Any] | None = None


class _Annotation(_Place):
    annotation: Any


_added: Final = msgspec.json.Decoder(_Added).decode
_place: Final = msgspec.json.Decoder(_Place).decode
_done: Final = msgspec.json.Decoder(_Done).decode
_part: Final = msgspec.json.Decoder(_Part).decode
_delta: Final = msgspec.json.Decoder(_Delta).decode
_annotation: Final = msgspec.json.Decoder(_Annotation).decode
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

_PART_ADDED: Final = ("response.content_part.added", "response.reasoning_summary_part.added")
_PART_DONE: Final = ("response.content_part.done", "response.reasoning_summary_part.done")
# What events of a text are called, by what the text stands in; of thoughts there are two ways.
_WORDS: Final = {
    "output_text": "output_text",
    "refusal": "refusal",
    "summary_text": "reasoning_summary_text",
}
# Items whose text stands in them as such: its events, and the key.
_BARE: Final = {
    "function_call": ("function_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
    "mcp_call": ("mcp_call_arguments", "arguments"),
    "code_interpreter_call": ("code_interpreter_call_code", "code"),
}
_LAST_STEPS: Final = (".completed", ".failed")
"""How the types end of the events that say what became of a run."""


class _Text:
    """A text in progress: `word` is the middle of its events' types, `key` its field."""

    def __init__(self, word: str, key: str, holder: dict[str, Any]) -> None:
        self.word = word
        self.key = key
        self.holder = holder
        self.pieces: list[str] = []
        self.rows: list[Any] = []
        self.told = False

    @property
    def whole(self) -> str:
        """All of the text so far."""
        return "".join(self.pieces)

    def settle(self) -> None:
        """Put the text into its place in the item."""
        self.holder[self.key] = self.whole
        if self.rows:
            self.holder["logprobs"] = self.rows


class _Item:
    """An item in progress."""

    def __init__(self, values: dict[str, Any], index: int) -> None:
        self.values = values
        self.index = index
        self.place = {"item_id": str(values.get("id", "")), "output_index": index}
        self.part: dict[str, Any] | None = None
        self.part_place: dict[str, int] = {}
        bare = _BARE.get(values.get("type", ""))
        self.text = _Text(*bare, values) if bare is not None else None
        self.stepped = False
        """Whether it was said already what became of a run."""

    @property
    def served(self) -> bool:
        """Whether it is one that goes on beside later items."""
        return self.values.get("type") in SERVED

    @property
    def parts(self) -> list[Any]:
        """List to which the open part belongs."""
        key = "summary" if "summary_index" in self.part_place else "content"
        found: list[Any] = self.values.setdefault(key, [])
        return found


class LogReplay:
    """Replays a log, from its first event on, in any portions."""

    def __init__(self, *, reasoning_events: ReasoningEvents = "sdk") -> None:
        """Take the form of reasoning events, used where the log does not show it yet."""
        self.next = 0
        """The number of the event that comes next."""
        self.started = False
        """Whether it has begun to run, and does not only wait."""
        self._done: dict[int, ItemDoc] = {}
        self._open: dict[int, _Item] = {}
        self._thoughts = THOUGHT_EVENTS[reasoning_events]

    @property
    def done(self) -> tuple[ItemDoc, ...]:
        """The finished items."""
        return tuple(self._done[place] for place in sorted(self._done))

    def feed(self, events: Sequence[NumberedEvent]) -> None:
        """Replay the next events; ValueError for one that cannot come there."""
        for event in events:
            if event.sequence != self.next:
                raise ValueError(f"event {event.sequence} stands where {self.next} should be")
            self.next += 1
            try:
                self._take(event.type, event.data)
            except msgspec.DecodeError as error:
                raise ValueError(f"event {event.sequence} makes no sense") from error

    def close(self, response: bytes, _ended: FinalStatus | None = None) -> OrphanEnding:
        """Return the closing events; `response` is the object as it was before any output.

        How it ended is told by the terminal event alone.
        """
        script = Script()
        script.next = self.next
        told = [] if self.next else _begun(script, response)
        for item in list(self._open.values()):
            told += self._closed(script, item)
        self.next = script.next
        return OrphanEnding(told, self.done, script.next)

    # ── What was said ────────────────────────────────────────────────────────

    def _take(self, kind: str, data: bytes) -> None:
        if kind.endswith(".delta"):
            self._take_delta(kind, data)
        elif kind == "response.output_item.added":
            self._take_item(_added(data))
        elif kind == "response.output_item.done":
            done = _done(data)
            self._done[done.output_index] = item_of(bytes(done.item))
            self._open.pop(done.output_index, None)
        elif kind in _PART_ADDED:
            self._take_part(_part(data))
        elif kind in _PART_DONE:
            ended = _part(data)
            item = self._inside(kind, ended.output_index)
            item.parts.append(ended.part)
            item.part, item.text = None, None
        elif kind == "response.output_text.annotation.added":
            said = _annotation(data)
            part = self._inside(kind, said.output_index).part
            if part is not None:
                part.setdefault("annotations", []).append(said.annotation)
        elif kind == "response.in_progress":
            self.started = True
        elif self._open and kind.endswith((".done", *_LAST_STEPS)):
            self._take_end(kind, _place(data).output_index)

    def _take_item(self, added: _Added) -> None:
        beside = all(item.served for item in self._open.values())
        beside = beside or added.item.get("type") == "tool_search_output"
        if not beside or added.output_index != len(self._done) + len(self._open):
            raise ValueError(f"item {added.output_index} begins where another one is")
        self._open[added.output_index] = _Item(added.item, added.output_index)

    def _take_end(self, kind: str, index: int) -> None:
        """Take the end of a text, or what became of a run."""
        item = self._open.get(index)
        if item is None:
            return
        if kind.endswith(_LAST_STEPS):
            item.stepped = True
        elif item.text is not None:
            item.text.told = True
            self._learn(item.text, kind.removesuffix(".done"))

    def _take_delta(self, kind: str, data: bytes) -> None:
        said = _delta(data)
        text = self._inside(kind, said.output_index).text
        if text is None:
            return
        self._learn(text, kind.removesuffix(".delta"))
        text.pieces.append(said.delta)
        text.rows.extend(said.logprobs or ())

    def _learn(self, text: _Text, kind: str) -> None:
        """Learn the type names of a text's events from the log."""
        text.word = kind.removeprefix("response.")
        if text.holder.get("type") == "reasoning_text":
            self._thoughts = text.word

    def _take_part(self, added: _Part) -> None:
        item, part = self._inside("a part", added.output_index), added.part
        place = {"content_index": added.content_index, "summary_index": added.summary_index}
        item.part = part
        item.part_place = {name: at for name, at in place.items() if at is not None}
        kind = str(part.get("type", ""))
        word = _WORDS.get(kind, self._thoughts)
        item.text = _Text(word, "refusal" if kind == "refusal" else "text", part)

    def _inside(self, kind: str, index: int) -> _Item:
        item = self._open.get(index)
        if item is None:
            raise ValueError(f"{kind} is said of no item")
        return item

    # ── What is left to say ──────────────────────────────────────────────────

    def _closed(self, script: Script, item: _Item) -> Iterator[NumberedEvent]:
        """Yield the events that end an open item, which is finished then."""
        place = {**item.place, **item.part_place} if item.part is not None else item.place
        cut = item.text is not None and not item.text.told
        if item.text is not None:
            yield from _text_ended(script, place, item.text, bare=item.part is None)
        if item.part is not None:
            what = "reasoning_summary" if "summary_index" in place else "content"
            yield script.say(f"response.{what}_part.done", {**place, "part": item.part})
            item.parts.append(item.part)
        if "status" in item.values:
            item.values["status"] = "incomplete"
        if item.served and not cut:
            yield from _run_ended(script, item)
        doc = item_from(item.values)
        fields = {
            "output_index": item.index,
            "item": msgspec.Raw(doc.document),
        }
        yield script.say("response.output_item.done", fields)
        self._done[item.index] = doc
        del self._open[item.index]


def closing(
    response: bytes, events: Sequence[NumberedEvent], *, reasoning_events: ReasoningEvents = "sdk"
) -> OrphanEnding:
    """Return the closing events after these, which are all that were logged; ValueError if they are
    inconsistent.

    `response` is the object as it was before any output.
    """
    fold = LogReplay(reasoning_events=reasoning_events)
    fold.feed(events)
    return fold.close(response)


def ended_object(response: bytes, output: Sequence[ItemDoc], ended: FinalStatus) -> bytes:
    """Return the object with its output and its end; ValueError if it is none. Its usage is
    unknown.
    """
    reason = None if ended.reason is None else {"reason": ended.reason}
    fields = {
        "status": ended.status,
        "completed_at": ended.completed_s if ended.status == "completed" else None,
        "error": ended.error_shown(),
        "incomplete_details": reason,
        "output": msgspec.Raw(list_of(output)),
    }
    return json_line({**_object(response), **fields})


def with_output(response: bytes, output: Sequence[ItemDoc]) -> bytes:
    """Return the object with these items as its output; ValueError if it is none."""
    return json_line({**_object(response), "output": msgspec.Raw(list_of(output))})


def _text_ended(
    script: Script, place: dict[str, Any], text: _Text, *, bare: bool
) -> Iterator[NumberedEvent]:
    text.settle()
    if text.told:
        return
    fields: dict[str, Any] = {**place, text.key: text.whole}
    if bare and not text.pieces:
        # A call has a delta at least, be it an empty one.
        yield script.say(f"response.{text.word}.delta", {**place, "delta": ""})
    if text.word == "output_text":
        fields["logprobs"] = text.rows
    yield script.say(f"response.{text.word}.done", fields)


def _run_ended(script: Script, item: _Item) -> Iterator[NumberedEvent]:
    """Yield the event of a run whose node died, unless it was said already what became of it."""
    from smg_node.dialects.responses.events.served.served_events import interrupted

    word = interrupted(item.values)
    if word and not item.stepped:
        yield script.say(f"response.{item.values['type']}.{word}", item.place)


def _begun(script: Script, response: bytes) -> list[NumberedEvent]:
    waiting = bytes(_object(response).get("status", b"")) == b'"queued"'
    shown = {"response": msgspec.Raw(response)}
    second = "response.queued" if waiting else "response.in_progress"
    return [script.say("response.created", shown), script.say(second, shown)]


def _object(response: bytes) -> dict[str, msgspec.Raw]:
    try:
        return _fields(response)
    except msgspec.DecodeError as error:
        raise ValueError("this is no response") from error
