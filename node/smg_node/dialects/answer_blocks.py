"""Answer blocks: text, reasoning, refusals and tool calls of a vendor's or worker's answer, put in sequence. Pure.

A worker numbers its tool calls and may interleave them. Here a block is over before the next one
starts, so a call waits, with the arguments received so far, until the one before it is over: that
is when its arguments are whole, or when other output comes. Calls that come in order, as from
nearly every worker, do not wait.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    BlockEnd,
    BlockKind,
    BlockStart,
    Delta,
    Event,
    TokenLogprob,
)
from smg_node.core.generation.opaque import Opaque

CALL_ID_MAX: Final = 64
"""A longer name of a call could not be sent back."""
_decode: Final = msgspec.json.Decoder().decode


@dataclass(slots=True, eq=False)
class _Call:
    index: int | None
    call_id: str
    name: str = ""
    waiting: list[str] = field(default_factory=list)
    opaque: list[Opaque] = field(default_factory=list)
    state: Literal["waits", "open", "over"] = "waits"


class AnswerBlocks:
    """Blocks of choice 0. `taken` are ids of earlier tool calls: a call with one of them gets
    another, which begins with `made`, or none if that is "".
    """

    def __init__(self, taken: Collection[str] = (), made: str = "") -> None:
        self._taken = set(taken)
        self._made = made
        self._next = 0
        self._kind: BlockKind | None = None
        self._texts: list[str] = []
        self._opaque: list[Opaque] = []
        self._name = ""
        self._call_id = ""
        self._calls: list[_Call] = []
        self._queue: list[_Call] = []
        self.deltas = 0
        """How many there were."""

    def say(
        self,
        kind: Literal["text", "reasoning", "refusal"],
        text: str,
        out: list[Event],
        logprobs: tuple[TokenLogprob, ...] = (),
    ) -> None:
        """Append text, reasoning or a refusal; log probabilities without text belong to the open block."""
        if not text:
            if logprobs and self._kind in ("text", "reasoning"):
                out.append(Delta(0, self._next - 1, "", 0, logprobs))
            return
        if self._kind != kind:
            self.close(out)
            self._start(kind, out)
        self._delta(text, out, logprobs)

    def attach(self, kind: Literal["text", "reasoning"], opaque: Opaque, out: list[Event]) -> None:
        """Put opaque state on the open block of that kind; on a new one, which may stay without text, if it is another."""
        if self._kind != kind:
            self.close(out)
            self._start(kind, out)
        self._opaque.append(opaque)

    def end(self, out: list[Event]) -> None:
        """End the open text or reasoning: what comes next is another block, of the same kind too."""
        if self._kind not in (None, "call"):
            self._end(out)

    def call(
        self,
        index: int | None,
        call_id: str,
        name: str,
        arguments: str,
        out: list[Event],
        opaque: tuple[Opaque, ...] = (),
    ) -> None:
        """Append to a call. "" is a field not sent this time; UPSTREAM_FAILED if the call was over
        already.
        """
        call = self._found(index, call_id, name)
        call.name = call.name or name
        call.call_id = call.call_id or call_id
        if call.state == "over":
            if arguments.strip():
                raise _broken("the worker went on with a call that was over")
            return
        if opaque:
            call.opaque += opaque
        if call.state == "open":
            if arguments:
                self._delta(arguments, out)
        elif arguments:
            call.waiting.append(arguments)
        self._advance(out)

    def close(self, out: list[Event]) -> None:
        """End the open block, and emit waiting calls; UPSTREAM_FAILED for a call without a name."""
        self._end(out)
        while self._queue:
            if not self._queue[0].name:
                raise _broken("the worker called a function without its name")
            self._start_call(out)
            self._end(out)

    def abandon(self, out: list[Event]) -> None:
        """End the open block, because nothing more comes."""
        self._end(out)
        self._queue = []

    # ── Step by step ─────────────────────────────────────────────────────────

    def _found(self, index: int | None, call_id: str, name: str) -> _Call:
        """Return the call that a delta belongs to; some workers number none, and some give all of
        them one number.
        """
        for call in reversed(self._calls):
            other = bool(call_id and call.call_id and call_id != call.call_id)
            if index is not None:
                if call.index == index and not (other and name):
                    return call
            elif (not call_id or not other) and not (name and call.name and not call_id):
                return call
        call = _Call(index, "")
        self._calls.append(call)
        self._queue.append(call)
        return call

    def _advance(self, out: list[Event]) -> None:
        """Open those calls that need not wait any longer."""
        while self._queue and self._queue[0].name:
            if self._kind == "call" and not _whole(self._texts):
                return
            self._end(out)
            self._start_call(out)

    def _start_call(self, out: list[Event]) -> None:
        call = self._queue.pop(0)
        self._name = call.name
        usable = 0 < len(call.call_id) <= CALL_ID_MAX and call.call_id not in self._taken
        self._call_id = call.call_id if usable else self._made_id()
        self._taken.add(self._call_id)
        self._start("call", out, tuple(call.opaque))
        call.state = "open"
        self._opaque = call.opaque
        if call.waiting:
            self._delta("".join(call.waiting), out)
            call.waiting = []

    def _made_id(self) -> str:
        """Return an id for a call that has none of its own."""
        if not self._made:
            return ""
        number = self._next
        while f"{self._made}{number}" in self._taken:
            number += 1
        return f"{self._made}{number}"

    def _start(self, kind: BlockKind, out: list[Event], opaque: tuple[Opaque, ...] = ()) -> None:
        if kind != "call":
            self._name = self._call_id = ""
        out.append(BlockStart(0, self._next, kind, self._name, self._call_id, opaque))
        self._kind = kind
        self._next += 1

    def _delta(self, text: str, out: list[Event], logprobs: tuple[TokenLogprob, ...] = ()) -> None:
        self.deltas += 1
        self._texts.append(text)
        out.append(Delta(0, self._next - 1, text, 1, logprobs))

    def _end(self, out: list[Event]) -> None:
        kind = self._kind
        if kind is None:
            return
        text = "".join(self._texts)
        opaque = tuple(self._opaque)
        out.append(BlockEnd(0, self._next - 1, kind, text, self._name, self._call_id, opaque))
        for call in self._calls:
            if call.state == "open":
                call.state = "over"
        self._kind = None
        self._texts, self._opaque = [], []


def _whole(texts: list[str]) -> bool:
    """Whether arguments are a whole JSON object. Checked only where the next call waits for that."""
    if not texts or not texts[-1].rstrip().endswith("}"):
        return False
    try:
        return isinstance(_decode("".join(texts)), dict)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False


def _broken(message: str) -> SmgError:
    return SmgError(ErrorKind.UPSTREAM_FAILED, message)
