"""Open blocks of a streamed message: each writes its own frames, from the first that shows anything.

A block takes its index only when it is shown, so that blank text takes none. Where a block's end depends
on what follows (are blanks at its end left out, is a call cut off?), it is settled then, which is
nearly always in the same batch.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from smg_node.core.generation.events import BlockEnd, Delta
from smg_node.dialects.messages.argument_gate import ArgumentGate
from smg_node.dialects.messages.carried_state import carried_signature, redaction
from smg_node.dialects.messages.message_object import BLANKS, Signer
from smg_node.dialects.openai.frames import json_text

TAIL: Final = b"}}\n\n"
_START: Final = (
    b"event: content_block_start\n"
    b'data: {"type":"content_block_start","index":%d,"content_block":{"type":%b}}\n\n'
)
_WHOLE: Final = (
    b"event: content_block_start\n"
    b'data: {"type":"content_block_start","index":%d,"content_block":%b}\n\n'
)
_DELTA: Final = (
    b"event: content_block_delta\n"
    b'data: {"type":"content_block_delta","index":%d,"delta":{"type":%b:'
)
_STOP: Final = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
_TEXT: Final = b'"text","text":""'
_TEXT_DELTA: Final = b'"text_delta","text"'
_REDACTED: Final = b'"redacted_thinking","data":%b'
_THOUGHT: Final = b'"thinking","thinking":"","signature":""'
_THOUGHT_DELTA: Final = b'"thinking_delta","thinking"'
_SIGNATURE_DELTA: Final = b'"signature_delta","signature"'
_CALL: Final = b'{"type":"tool_use","id":%b,"name":%b,"input":{}}'
_CITATION_DELTA: Final = b'"citations_delta","citation"'
_CALL_DELTA: Final = b'"input_json_delta","partial_json"'
_COUNT_TAIL: Final = b'"","estimated_tokens":%d' + TAIL


class Frame(NamedTuple):
    """What stands before and behind a text."""

    head: bytes
    tail: bytes


COUNT_EVERY_S: Final = 2.0
"""So often at most a client is told how much was thought that it is not shown."""


class OpenBlock:
    """A block that has started and not ended; by itself one that shows nothing.

    `head` and `tail` are the frame around a delta's text, where nothing else is to be done with it.
    """

    __slots__ = ("head", "index", "shown")
    tail: Final = TAIL
    broken = False
    """Whether what the client has of it has no valid end."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.head: bytes | None = None
        self.shown = False
        """Whether its start is out."""

    def take(self, event: Delta, out: list[bytes]) -> None:
        """Show more of it."""

    def end(self, event: BlockEnd, out: list[bytes]) -> bool:
        """End it; false if that depends on what follows, and is up to `settle`."""
        self.stop(out)
        return True

    def settle(self, out: list[bytes], *, followed: bool, cut: bool) -> None:
        """End it: another block has `followed`, or the answer is over, and maybe `cut` off here."""

    def stop(self, out: list[bytes]) -> None:
        """Write its end, if its start is out."""
        if self.shown:
            out.append(_STOP % self.index)

    def _start(self, inside: bytes, out: list[bytes]) -> None:
        self.shown = True
        out.append(_START % (self.index, inside))


class OpenText(OpenBlock):
    """Text. Blanks at its beginning wait for anything else, and with `trims` those at its end too."""

    __slots__ = ("_around", "_held", "_trims")

    def __init__(self, index: int, *, trims: bool) -> None:
        super().__init__(index)
        self._around = _DELTA % (index, _TEXT_DELTA)
        self._trims = trims
        self._held = ""

    def take(self, event: Delta, out: list[bytes]) -> None:
        """Show more of it."""
        text = event.text
        if self._held or not self.shown or not text or text[-1] in BLANKS:
            text = self._let(self._held + text, out)
        if text:
            out.append(self._around + json_text(text) + TAIL)

    def end(self, event: BlockEnd, out: list[bytes]) -> bool:
        """End it, unless blanks wait."""
        if self.shown and self._held:
            return False
        self.stop(out)
        return True

    def settle(self, out: list[bytes], *, followed: bool, cut: bool) -> None:
        """End it, without the blanks where another block follows."""
        if not followed:
            out.append(self._around + json_text(self._held) + TAIL)
        self.stop(out)

    def _let(self, text: str, out: list[bytes]) -> str:
        """Return what can be shown of a text; the rest waits."""
        self._held = ""
        if not self.shown:
            bare = text.lstrip(BLANKS)
            if not bare:
                self._held = text
                return ""
            if self.index:
                text = bare
            self._start(_TEXT, out)
            if not self._trims:
                self.head = self._around
        if self._trims:
            said = text.rstrip(BLANKS)
            self._held = text[len(said) :]
            return said
        return text


class OpenThought(OpenBlock):
    """A thought that is shown, then its signature."""

    __slots__ = ("_signer",)

    def __init__(self, index: int, signer: Signer) -> None:
        super().__init__(index)
        self._signer = signer

    def take(self, event: Delta, out: list[bytes]) -> None:
        """Show its first text."""
        text = event.text.lstrip(BLANKS)
        if text:
            self._start(_THOUGHT, out)
            self.head = _DELTA % (self.index, _THOUGHT_DELTA)
            out.append(self.head + json_text(text) + TAIL)

    def end(self, event: BlockEnd, out: list[bytes]) -> bool:
        """Sign and end it."""
        if event.opaque:
            self._end_stated(event, out)
        elif self.shown:
            self._sign(self._signer.signature(event.text.lstrip(BLANKS)), out)
        return super().end(event, out)

    def _end_stated(self, event: BlockEnd, out: list[bytes]) -> None:
        """Sign with what the vendor of the thought wants back."""
        redacted = redaction(event)
        if redacted:
            self._start(_REDACTED % json_text(redacted), out)
            return
        text = event.text.lstrip(BLANKS)
        signature = carried_signature(event, "" if self._signer.omitted else text)
        if signature and not self.shown:
            self._start(_THOUGHT, out)
        if self.shown:
            self._sign(signature or self._signer.signature(text), out)

    def _sign(self, signature: str, out: list[bytes]) -> None:
        out.append(_DELTA % (self.index, _SIGNATURE_DELTA) + json_text(signature) + TAIL)


class OmittedThought(OpenThought):
    """A thought that only its signature carries. With a clock, its length is told from time to time."""

    __slots__ = ("_monotonic_s", "_said_s", "_untold")

    def __init__(self, index: int, signer: Signer, monotonic_s: Callable[[], float] | None) -> None:
        super().__init__(index, signer)
        self._monotonic_s = monotonic_s
        self._untold = 0
        self._said_s = 0.0 if monotonic_s is None else monotonic_s()

    def take(self, event: Delta, out: list[bytes]) -> None:
        """Note that it goes on."""
        if not self.shown and event.text.lstrip(BLANKS):
            self._start(_THOUGHT, out)
        if self._monotonic_s is None:
            return
        self._untold += event.tokens
        now_s = self._monotonic_s()
        if self.shown and self._untold and now_s - self._said_s >= COUNT_EVERY_S:
            out.append(_DELTA % (self.index, _THOUGHT_DELTA) + _COUNT_TAIL % self._untold)
            self._untold, self._said_s = 0, now_s


class OpenCall(OpenBlock):
    """A call, whose arguments go through a gate. It starts as the JSON of its block without any."""

    __slots__ = ("_gate", "_said", "broken")

    def __init__(self, index: int, block: bytes, out: list[bytes], *, eager: bool) -> None:
        super().__init__(index)
        self._gate = ArgumentGate(eager=eager)
        self._said = False
        self.broken = False
        self.shown = True
        out.append(_WHOLE % (index, block))

    def take(self, event: Delta, out: list[bytes]) -> None:
        """Show what is whole of its arguments."""
        said = self._gate.feed(event.text)
        if said:
            self._show(said, out)

    def end(self, event: BlockEnd, out: list[bytes]) -> bool:
        """Wait: whether its arguments are all of them is known by what follows."""
        return False

    def settle(self, out: list[bytes], *, followed: bool, cut: bool) -> None:
        """Show the rest of its arguments."""
        said = self._gate.finish(cut=cut)
        self.broken = self._gate.broken
        if said or not self._said:
            self._show(said, out)
        self.stop(out)

    def _show(self, said: str, out: list[bytes]) -> None:
        self._said = True
        out.append(_DELTA % (self.index, _CALL_DELTA) + json_text(said) + TAIL)


def tool_use(call_id: str, name: str) -> bytes:
    """Return the JSON of the block of a call of a client's tool, without its input."""
    return _CALL % (json_text(call_id), json_text(name))


def whole_block(index: int, block: bytes) -> tuple[bytes, ...]:
    """Return the frames of a block that is whole from its start, of which this is the JSON."""
    return _WHOLE % (index, block), _STOP % index


def citation_frame(index: int, citation: bytes) -> bytes:
    """Return the frame of a citation of a text, of which this is the JSON."""
    return _DELTA % (index, _CITATION_DELTA) + citation + TAIL


def envelope_frames(index: int, envelope: str) -> tuple[bytes, ...]:
    """Return the frames of a thought without text that carries the state of another block."""
    signed = _DELTA % (index, _SIGNATURE_DELTA) + json_text(envelope) + TAIL
    return _START % (index, _THOUGHT), signed, _STOP % index


EMPTY_TEXT: Final = (_START % (0, _TEXT), _STOP % 0)
"""Frames of the one block of an answer that says nothing."""
FIRST_TEXT: Final = Frame(_DELTA % (0, _TEXT_DELTA), TAIL)
"""The frame around a delta of a text that an answer begins with."""
