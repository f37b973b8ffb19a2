"""Relayed events: reads a worker's stream of chat or completion chunks as it passes, and says whether it was whole. Pure.

Only whole events pass, at any cut of the bytes into pieces, so that a failure is always an event of
its own. Finish reasons decide, not the worker's word for it:

    every choice finished, then [DONE]                       whole
    every choice asked for finished, then the end            whole; [DONE] is added
    [DONE], or the end, with a choice that did not finish    the worker's failure
    an error, before or after any of that                    an error; what follows it is dropped

What comes before the first word of an answer is held back: until then another worker may give it.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.chat.listener import NO_REASONS
from smg_node.dialects.sse_reader import EVENT_MAX_BYTES
from smg_node.dialects.worker_errors import NO_WORDS, WorkerError, error_of

DONE: Final = b"data: [DONE]\n\n"
KEPT_MAX_BYTES: Final = 65_536
"""Who says so much before the first word of an answer has begun it."""
_BORDER: Final = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
"""A blank line: two ends of lines, each in one of the three forms the format allows."""
_LINES: Final = re.compile(rb"\r\n|\n|\r")
_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SAYS_DONE: Final = b"[DONE]"
_INDEX_MAX: Final = 4_096


class _Choice(msgspec.Struct, gc=False):
    index: int = 0
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, gc=False):
    """A chunk as nearly all are; what is not is decoded once more, as it is."""

    choices: list[_Choice]
    error: None = None


_chunk: Final = msgspec.json.Decoder(_Chunk).decode
_decode: Final = msgspec.json.Decoder().decode


class RelayedEvents:
    """Reader of one stream. Once there is a `failure`, or it is `done`, nothing passes any more.

    `begun`: something of the answer has passed, so no other worker may give it.
    """

    def __init__(self, answers: int) -> None:
        """Expect so many answers, as far as the request says."""
        self.begun = False
        self.done = False
        self.failure: SmgError | WorkerError | None = None
        self._answers = max(1, answers)
        self._held: list[bytes] = []
        """Pieces of an event that is not over."""
        self._size = 0
        self._kept: list[bytes] = []
        """Events before the first word of the answer."""
        self._open: set[int] = set()
        """Choices that have begun and not finished."""
        self._finished: set[int] = set()

    @property
    def _stopped(self) -> bool:
        """Whether nothing passes any more."""
        return self.done or self.failure is not None

    def feed(self, piece: bytes) -> bytes:
        """Return the whole events that may pass now, up to the `failure` if there is one."""
        if self._stopped:
            return b""
        if self.begun and not self._held and _is_one_event(piece):
            return piece if self._passes(piece[:-2]) else b""
        self._size += len(piece)
        if self._size > EVENT_MAX_BYTES:
            self.failure = _broken(f"the worker sent an event of more than {EVENT_MAX_BYTES} bytes")
            return b""
        if b"\n" not in piece and b"\r" not in piece:
            self._held.append(piece)
            return b""
        data = b"".join((*self._held, piece)) if self._held else piece
        passed, at = self._events(data)
        rest = data[at:]
        self._held = [rest] if rest else []
        self._size = len(rest)
        return passed

    def finish(self) -> bytes:
        """Return the remaining events: the stream has come to its end, cleanly."""
        if self._stopped:
            return b""
        passed, rest = b"", b"".join(self._held)
        if rest.strip():
            # The last event may lack the blank line after it.
            passed, _ = self._events(rest + b"\n\n")
        if self._stopped:
            return passed
        if self._open or len(self._finished) < self._answers:
            self.failure = _broken("the worker ended its answer before the end of it")
            return passed
        self.done = True
        return passed + DONE

    def _events(self, data: bytes) -> tuple[bytes, int]:
        """Read the whole events of `data`; return what passes of them, and where they end."""
        start, passed = 0, list[bytes]()
        for stop, end in borders(data):
            if self._passes(data[start:stop]):
                passed.append(data[start:end])
            start = end
            if self._stopped:
                break
        if not passed:
            return b"", start
        if not self.begun:
            self._kept += passed
            passed = []
            self.begun = sum(map(len, self._kept)) > KEPT_MAX_BYTES
            if not self.begun:
                return b"", start
        told = b"".join((*self._kept, *passed))
        self._kept = []
        return told, start

    def _passes(self, event: bytes) -> bool:
        """Take in one event; whether it is passed on."""
        name = b""
        if event.startswith(b"data: ") and b"\n" not in event and b"\r" not in event:
            said = event[6:]
        else:
            name, said = read_event(event)
        said = said.strip()
        if not said:
            # A comment keeps a connection open; without one, an event of nothing is none.
            return self.begun and b"data" not in event
        if said == _SAYS_DONE:
            return self._over()
        self._hear(said, is_error=name == b"error")
        return self.failure is None

    def _over(self) -> bool:
        if self._open or not self._finished:
            self.failure = _broken("the worker said that its answer was over before the end of it")
            return False
        self.done = True
        return True

    def _hear(self, said: bytes, *, is_error: bool) -> None:
        if self.begun and not is_error:
            try:
                chunk = _chunk(said)
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass
            else:
                for choice in chunk.choices:
                    self._choose(choice.index, choice.finish_reason)
                return
        try:
            told = _decode(said)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.failure = NO_WORDS if is_error else _broken("the worker's answer is no JSON")
            return
        error = error_of(told)
        if error is not None or is_error:
            self.failure = error or error_of({"error": told}) or NO_WORDS
            return
        self._read_choices(told)

    def _read_choices(self, told: Any) -> None:
        choices = told.get("choices") if isinstance(told, dict) else [None]
        for choice in () if choices is None else choices if isinstance(choices, list) else [None]:
            if not isinstance(choice, dict) or not isinstance(choice.get("index") or 0, int):
                self.failure = _broken(
                    "the worker's answer has something else where choices belong"
                )
                return
            self.begun = self.begun or _has_words(choice)
            self._choose(choice.get("index") or 0, choice.get("finish_reason"))

    def _choose(self, index: int, reason: object) -> None:
        if not 0 <= index < _INDEX_MAX:
            self.failure = _broken(f"the worker's answer has a choice {index}")
        elif not reason:
            if index not in self._finished:
                self._open.add(index)
        elif not isinstance(reason, str) or reason in NO_REASONS:
            self.failure = _broken("the worker gave up in the middle of its answer")
        else:
            self._open.discard(index)
            self._finished.add(index)


def _has_words(choice: dict[str, Any]) -> bool:
    """Whether a choice has some of the answer: more than that there will be one."""
    for part in (choice.get("delta"), choice.get("message")):
        if isinstance(part, dict) and any(value for name, value in part.items() if name != "role"):
            return True
    return bool(choice.get("text") or choice.get("finish_reason"))


def _is_one_event(piece: bytes) -> bool:
    """Whether a piece is an event as nearly all are: whole, alone, and with plain ends of lines."""
    return (
        piece.find(b"\n\n") == len(piece) - 2
        and b"\r" not in piece
        and 2 <= len(piece) <= EVENT_MAX_BYTES
    )


def borders(data: bytes) -> Iterable[tuple[int, int]]:
    """Yield where each event of `data` ends, without and with the blank line after it."""
    if b"\r" in data:
        yield from (border.span() for border in _BORDER.finditer(data))
        return
    at = data.find(b"\n\n")
    while at >= 0:
        yield at, at + 2
        at = data.find(b"\n\n", at + 2)


def read_event(event: bytes) -> tuple[bytes, bytes]:
    """Return name and data of an event."""
    name, said = b"", []
    for line in _LINES.split(event.removeprefix(_ORDER_MARK)):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            said.append(value)
        elif field == b"event":
            name = value
    return name, b"\n".join(said)


def _broken(message: str) -> SmgError:
    return SmgError(ErrorKind.UPSTREAM_FAILED, message)
