"""Listener: incremental reader of a model's answer by Bedrock's Converse API: frames in, events out. Pure.

Text and thoughts begin with their first delta, without an event of their own; calls begin with one. A thought may have
no text: then it is its signature, or what is not shown. Whatever Bedrock adds, padding for one, is passed over; so are
tools that Bedrock runs by itself and pictures, which no dialect here has a word for. An answer is whole at
`messageStop`; what it cost comes behind that.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Begin, End, Event, Fail, Finish, Usage
from smg_node.core.generation.opaque import REDACTED, SIGNATURE, Opaque
from smg_node.dialects.answer_blocks import AnswerBlocks
from smg_node.dialects.converse.aws_frames import Frame, FrameReader
from smg_node.dialects.converse.frame_errors import error_in, exception_named
from smg_node.dialects.converse.redacted_thoughts import read_redacted
from smg_node.dialects.converse.vendor_answer import (
    BEDROCK,
    SCHEMA_TOOL,
    broken,
    object_of,
    part_of,
    reason_of,
    stop_string,
    text_of,
    usage_of,
)

_HOSTED: Final = "server_tool_use"
_EMPTY: Final = "{}"
_encode: Final = msgspec.json.Encoder().encode


class ConverseListener:
    """Reads one answer; see `AnswerListener`. `issuer` is whose model it is."""

    def __init__(
        self,
        begin: Begin,
        *,
        prompt_tokens: int,
        taken: Collection[str] = (),
        issuer: str = BEDROCK,
    ) -> None:
        self._begin = begin
        self._prompt_tokens = prompt_tokens
        self._issuer = issuer
        self._frames = FrameReader()
        self._blocks = AnswerBlocks(taken)
        self._begun = False
        self._finish: Finish | None = None
        self._usage: Usage | None = None
        self._over = False
        self._at: int | None = None
        """The block that the last event was about."""
        self._signature: list[str] = []
        self._redacted: list[str] = []
        """Opaque state of that block, in pieces."""
        self._bare: set[int | None] = set()
        """Calls that have no arguments yet."""
        self._passed_over: set[int | None] = set()
        """Blocks of tools that Bedrock runs."""
        self._answers: set[int | None] = set()
        """Calls whose arguments are the answer."""
        self._calls = False

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
        """Whether the answer is whole, even if its usage or the end of the stream is still missing."""
        return self._finish is not None

    def feed(self, piece: bytes, out: list[Event]) -> None:
        """Take the next bytes of a stream; UPSTREAM_FAILED, `WorkerError`."""
        for frame in self._frames.feed(piece):
            if not self._over:
                self._hear(frame, out)

    def feed_whole(self, body: bytes, out: list[Event]) -> None:
        """Take the whole body of an answer that is not streamed; errors as `feed`."""
        told = object_of(body)
        if "output" not in told:
            if told.get("message"):
                raise exception_named(text_of(told.get("__type")), body)
            raise broken("the vendor's answer has no message")
        content = part_of(part_of(told, "output"), "message").get("content")
        for at, block in enumerate(_objects(content)):
            self._whole_block(at, block, out)
        self._stop(told, out)
        self._usage = usage_of(told)
        self._over = True

    def end(self, out: list[Event]) -> None:
        """End the answer; errors as `feed`, and UPSTREAM_FAILED if the answer is not whole."""
        finish = self._finish
        if finish is None:
            self._frames.finish()
            raise broken("the vendor ended its answer without a reason")
        self._start(out)
        self._blocks.close(out)
        used = self._usage or Usage(self._prompt_tokens, self._blocks.deltas, 0)
        out += [finish, used, End()]

    def fail(self, error: SmgError, out: list[Event]) -> None:
        """Close open blocks: nothing more comes."""
        self._blocks.abandon(out)
        out.append(Fail(error))

    # ── One frame ────────────────────────────────────────────────────────────

    def _hear(self, frame: Frame, out: list[Event]) -> None:
        error = error_in(frame)
        if error is not None:
            raise error
        match frame.headers.get(":event-type"):
            case "contentBlockDelta":
                told = object_of(frame.payload)
                self._turn_to(_number(told.get("contentBlockIndex")), out)
                self._delta(part_of(told, "delta"), out)
            case "contentBlockStart":
                told = object_of(frame.payload)
                self._turn_to(_number(told.get("contentBlockIndex")), out)
                self._block(part_of(told, "start"), out)
            case "contentBlockStop":
                told = object_of(frame.payload)
                self._turn_to(_number(told.get("contentBlockIndex")), out)
                self._block_over(out)
            case "messageStop":
                self._stop(object_of(frame.payload), out)
            case "metadata":
                self._usage = usage_of(object_of(frame.payload)) or self._usage
                self._over = self._finish is not None
            case _:
                pass  # The beginning of the message, and whatever Bedrock will add.

    def _turn_to(self, at: int | None, out: list[Event]) -> None:
        """Take in which block the next event is about."""
        if at != self._at:
            self._seal(out)
            self._blocks.end(out)
            self._at = at

    def _delta(self, delta: Mapping[str, Any], out: list[Event]) -> None:
        if self._at in self._passed_over:
            return
        if text := text_of(delta.get("text")):
            self._say("text", text, out)
        elif call := part_of(delta, "toolUse"):
            self._argue(_arguments(call.get("input")), out)
        elif thought := part_of(delta, "reasoningContent"):
            if words := text_of(thought.get("text")):
                self._say("reasoning", words, out)
            self._signature.append(text_of(thought.get("signature")))
            self._redacted.append(text_of(thought.get("redactedContent")))

    def _block(self, start: Mapping[str, Any], out: list[Event]) -> None:
        call = part_of(start, "toolUse")
        if not call or call.get("type") == _HOSTED:
            if start:
                self._passed_over.add(self._at)
        elif call.get("name") == SCHEMA_TOOL:
            self._answers.add(self._at)
        else:
            self._start(out)
            self._calls = True
            self._bare.add(self._at)
            name, call_id = text_of(call.get("name")), text_of(call.get("toolUseId"))
            self._blocks.call(self._at, call_id, name, "", out)

    def _argue(self, arguments: str, out: list[Event]) -> None:
        """Append to the arguments of the call at hand."""
        if self._at in self._answers:
            self._say("text", arguments, out)
        elif arguments:
            self._start(out)
            self._calls = True
            self._bare.discard(self._at)
            self._blocks.call(self._at, "", "", arguments, out)

    def _block_over(self, out: list[Event]) -> None:
        self._seal(out)
        if self._at in self._bare:
            self._fill(self._at, out)
        self._blocks.end(out)

    def _stop(self, told: Mapping[str, Any], out: list[Event]) -> None:
        reason = reason_of(told, calls=self._calls)
        self._seal(out)
        self._fill_all(out)
        self._finish = self._finish or Finish(0, reason, stop_string(told))

    # ── A whole block ────────────────────────────────────────────────────────

    def _whole_block(self, at: int, block: Mapping[str, Any], out: list[Event]) -> None:
        self._turn_to(at, out)
        if text := text_of(block.get("text")):
            self._say("text", text, out)
        elif call := part_of(block, "toolUse"):
            self._block({"toolUse": call}, out)
            if at not in self._passed_over:
                self._argue(_arguments(call.get("input")), out)
        elif cited := part_of(block, "citationsContent"):
            for part in _objects(cited.get("content")):
                self._say("text", text_of(part.get("text")), out)
        elif thought := part_of(block, "reasoningContent"):
            shown = part_of(thought, "reasoningText")
            self._say("reasoning", text_of(shown.get("text")), out)
            self._signature.append(text_of(shown.get("signature")))
            self._redacted.append(text_of(thought.get("redactedContent")))
        self._block_over(out)

    # ── Blocks ───────────────────────────────────────────────────────────────

    def _start(self, out: list[Event]) -> None:
        if not self._begun:
            self._begun = True
            out.append(self._begin)

    def _say(self, kind: Any, text: str, out: list[Event]) -> None:
        if text:
            self._start(out)
            if self._bare:
                self._fill_all(out)
            self._blocks.say(kind, text, out)

    def _seal(self, out: list[Event]) -> None:
        """Put the opaque state of the block at hand on it."""
        if not (self._signature or self._redacted):
            return
        signature = "".join(self._signature)
        redacted = read_redacted(self._redacted, self._issuer)
        self._signature, self._redacted = [], []
        for kind, data in ((SIGNATURE, signature), (REDACTED, redacted)):
            if data:
                self._start(out)
                self._fill_all(out)
                self._blocks.attach("reasoning", Opaque(self._issuer, kind, data), out)

    def _fill(self, at: int | None, out: list[Event]) -> None:
        """Give a call without arguments those that it has: none."""
        self._bare.discard(at)
        self._blocks.call(at, "", "", _EMPTY, out)

    def _fill_all(self, out: list[Event]) -> None:
        for at in sorted(self._bare, key=lambda each: -1 if each is None else each):
            self._fill(at, out)


# ── Values, whatever they are ────────────────────────────────────────────────


def _objects(value: object) -> Sequence[Mapping[str, Any]]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise broken("the vendor's answer has something else where a list of objects belongs")
    return value


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _arguments(value: object) -> str:
    """Return arguments as text; a whole answer has them as an object."""
    return _encode(value).decode() if isinstance(value, dict) else text_of(value)
