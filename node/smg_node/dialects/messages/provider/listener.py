"""Listener: incremental reader of a vendor's Messages answer, streamed or whole: bytes in, events out. Pure.

A thought's signature is put on its block when the block is over; a thought that is not shown, and one that is only
signed, are blocks without text. Blocks that only the vendor understands (its own tools and their results, summaries)
and citations tell nothing here. Texts that follow each other are one, because the vendor cuts them where a citation
begins. An answer is whole when its stop was said, and why.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Begin, End, Event, Fail, Finish, Usage
from smg_node.core.generation.opaque import REDACTED, SIGNATURE, Opaque
from smg_node.dialects.answer_blocks import AnswerBlocks
from smg_node.dialects.messages.provider.vendor_answer import (
    UsageCounts,
    broken,
    finish_reason,
    object_of,
    reason_of,
)
from smg_node.dialects.sse_reader import EventLines

ISSUER: Final = "anthropic"
_DONE: Final = b"[DONE]"
_Kind: TypeAlias = Literal["text", "thinking", "redacted_thinking", "tool_use", "foreign"]
_KINDS: Final[Mapping[str, _Kind]] = {
    "text": "text",
    "thinking": "thinking",
    "redacted_thinking": "redacted_thinking",
    "tool_use": "tool_use",
}
_DELTAS: Final[Mapping[str, tuple[_Kind, str]]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""By type: the kind of block that it belongs to, and where its text is."""
_encode: Final = msgspec.json.Encoder().encode


@dataclass(slots=True)
class _Block:
    """The block that is open."""

    index: int
    kind: _Kind
    signature: str = ""
    given: object = None
    """The input that a call began with, which counts if nothing more comes."""
    printed: bool = False
    """Whether anything of the input was printed."""


class MessagesListener:
    """Reads one answer; see `AnswerListener`."""

    def __init__(self, begin: Begin, *, prompt_tokens: int, taken: Collection[str] = ()) -> None:
        """Take an estimate of the prompt's tokens, used if the vendor gives no usage."""
        self._begin = begin
        self._prompt_tokens = prompt_tokens
        self._lines = EventLines()
        self._blocks = AnswerBlocks(taken)
        self._counts = UsageCounts()
        self._block: _Block | None = None
        self._begun = False
        self._called = False
        self._stopped = False
        self._reason = ""
        self._matched: str | None = None

    @property
    def spent(self) -> Usage | None:
        """See `AnswerListener`."""
        return self._counts.usage()

    @property
    def deltas(self) -> int:
        """See `AnswerListener`."""
        return self._blocks.deltas

    @property
    def finished(self) -> bool:
        """Whether the answer is whole, even if the end of the stream is still missing."""
        return self._stopped and bool(self._reason)

    def feed(self, piece: bytes, out: list[Event]) -> None:
        """Take the next bytes of a stream. UPSTREAM_FAILED for bytes that are no answer; `WorkerError`."""
        for event in self._lines.feed(piece):
            self._hear(event, out)

    def feed_whole(self, body: bytes, out: list[Event]) -> None:
        """Take the whole body of an answer that is not streamed; errors as `feed`."""
        message = object_of(body)
        for index, block in enumerate(_objects(message.get("content"))):
            self._start_block(index, block, out)
            self._stop_block(out)
        self._take_reason(message)
        self._counts.take(message.get("usage"))
        self._stopped = True

    def end(self, out: list[Event]) -> None:
        """End the answer; errors as `feed`, and UPSTREAM_FAILED if the answer is not whole."""
        for event in self._lines.finish():
            self._hear(event, out)
        if not self._stopped:
            raise broken("the vendor's answer broke off before its end")
        if not self._reason:
            raise broken("the vendor ended its answer without a reason")
        self._start(out)
        self._blocks.close(out)
        answered = self._blocks.deltas
        used = self._counts.usage(self._prompt_tokens, answered)
        reason = finish_reason(self._reason, called=self._called)
        out += [
            Finish(0, reason, self._matched),
            used or Usage(self._prompt_tokens, answered, 0),
            End(),
        ]

    def fail(self, error: SmgError, out: list[Event]) -> None:
        """Close open blocks: nothing more comes."""
        self._blocks.abandon(out)
        out.append(Fail(error))

    # ── Event by event ───────────────────────────────────────────────────────

    def _hear(self, data: bytes, out: list[Event]) -> None:
        if self._stopped or data.strip() == _DONE:
            return
        event = object_of(data)
        kind = event.get("type")
        if kind == "content_block_delta":
            self._take_delta(event, out)
        elif kind == "content_block_start":
            self._start_block(_index(event), _object(event, "content_block"), out)
        elif kind == "content_block_stop":
            self._stop_block(out)
        elif kind == "message_start":
            message = _object(event, "message")
            self._take_reason(message)
            self._counts.take(message.get("usage"), at_start=True)
        elif kind == "message_delta":
            self._take_reason(_object(event, "delta"))
            self._counts.take(event.get("usage"))
        elif kind == "message_stop":
            self._stop_block(out)
            self._stopped = True

    def _take_reason(self, said: Mapping[str, Any]) -> None:
        self._reason = reason_of(said) or self._reason
        matched = said.get("stop_sequence")
        if isinstance(matched, str) and self._reason == "stop_sequence":
            self._matched = matched

    def _take_delta(self, event: Mapping[str, Any], out: list[Event]) -> None:
        delta, block = _object(event, "delta"), self._block
        if block is None or block.index != _index(event):
            raise broken("the vendor went on with a block that is not open")
        kind = delta.get("type")
        known = _DELTAS.get(kind) if isinstance(kind, str) else None
        if known is None or block.kind == "foreign":
            return
        belongs, name = known
        if block.kind != belongs:
            raise broken("the vendor went on with a block as if it were of another kind")
        text = _text(delta.get(name))
        if name == "text":
            self._say("text", text, out)
        elif name == "thinking":
            self._say("reasoning", text, out)
        elif name == "partial_json":
            self._print(block, text, out)
        else:
            block.signature = text or block.signature

    # ── Block by block ───────────────────────────────────────────────────────

    def _start_block(self, index: int, content: Mapping[str, Any], out: list[Event]) -> None:
        self._stop_block(out)
        kind = content.get("type")
        block = _Block(index, _KINDS.get(kind, "foreign") if isinstance(kind, str) else "foreign")
        self._block = block
        if block.kind != "text":
            self._blocks.end(out)
        if block.kind == "text":
            self._say("text", _text(content.get("text")), out)
        elif block.kind == "thinking":
            self._say("reasoning", _text(content.get("thinking")), out)
            block.signature = _text(content.get("signature"))
        elif block.kind == "redacted_thinking":
            self._attach(REDACTED, _text(content.get("data")), out)
        elif block.kind == "tool_use":
            self._call(block, content, out)

    def _stop_block(self, out: list[Event]) -> None:
        block, self._block = self._block, None
        if block is None or block.kind == "text":
            return
        if block.kind == "thinking":
            self._attach(SIGNATURE, block.signature, out)
        elif block.kind == "tool_use":
            if not block.printed:
                self._print(block, _arguments(block.given), out)
            self._blocks.close(out)
        self._blocks.end(out)

    def _call(self, block: _Block, content: Mapping[str, Any], out: list[Event]) -> None:
        name = _text(content.get("name"))
        if not name:
            raise broken("the vendor called a function without its name")
        self._start(out)
        self._called = True
        block.given = content.get("input")
        self._blocks.call(block.index, _text(content.get("id")), name, "", out)

    def _print(self, block: _Block, text: str, out: list[Event]) -> None:
        block.printed = block.printed or bool(text.strip())
        self._blocks.call(block.index, "", "", text, out)

    def _say(self, kind: Literal["text", "reasoning"], text: str, out: list[Event]) -> None:
        if text:
            self._start(out)
            self._blocks.say(kind, text, out)

    def _attach(self, kind: str, data: str, out: list[Event]) -> None:
        if data:
            self._start(out)
            self._blocks.attach("reasoning", Opaque(ISSUER, kind, data), out)

    def _start(self, out: list[Event]) -> None:
        if not self._begun:
            self._begun = True
            out.append(self._begin)


# ── Values, whatever they are ────────────────────────────────────────────────


def _object(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = event.get(name)
    if not isinstance(value, dict):
        raise broken(f"an event of the vendor's answer has no {name}")
    return value


def _objects(value: object) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise broken("the vendor's answer has no list of blocks")
    return value


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    if not isinstance(index, int) or isinstance(index, bool):
        raise broken("a block of the vendor's answer has no number")
    return index


def _text(value: object) -> str:
    """Return text; "" for null."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise broken("the vendor's answer has something else where text belongs")
    return value


def _arguments(value: object) -> str:
    """Return arguments as text, whether they came as an object or as its text."""
    if value is None:
        return "{}"
    return _encode(value).decode() if isinstance(value, dict) else _text(value)
