"""Answer filter: base of what reads a worker's whole answer as it passes, changes it or ends it. Pure.

A stream is read event by event, at any cut of its bytes; a body as one object. What a filter does not
change passes byte for byte.
"""

from abc import ABC, abstractmethod
from typing import Any, Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.pipeline.relay.relayed_events import DONE, borders, read_event

WHOLE_MAX_BYTES: Final = 16 * 1024 * 1024
"""An answer that is read whole may be so long."""
_SAYS_DONE: Final = b"[DONE]"
_BLANK: Final = b"\n\n"
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


class AnswerFilter(ABC):
    """Filter of one answer. Once it is `over`, nothing more of the answer is needed.

    Any method may raise SmgError: then the worker has failed.
    """

    whole_max_bytes = WHOLE_MAX_BYTES
    """A body that is longer passes unread, unless it is `needed`: then its worker has failed."""
    needed = False

    def __init__(self) -> None:
        self.over = False
        self._held = b""

    # ── For those that carry the answer ──────────────────────────────────────

    def feed(self, piece: bytes) -> bytes:
        """Return the events of a stream that may pass now."""
        data = self._held + piece if self._held else piece
        start, passed = 0, list[bytes]()
        for stop, end in borders(data):
            passed.append(self._event(data[start:stop], data[start:end]))
            start = end
            if self.over:
                break
        self._held = data[start:]
        return b"".join(passed)

    def finish(self) -> bytes:
        """Return the rest of a stream that has come to its end."""
        rest, self._held = self._held, b""
        return self._event(rest, rest) if rest.strip() and not self.over else b""

    def body(self, body: bytes) -> bytes:
        """Return a whole answer as it passes; the same bytes where nothing is changed."""
        try:
            answer = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "the worker's answer is no JSON") from None
        if not isinstance(answer, dict) or not isinstance(answer.get("choices"), list):
            return body
        return _encode(answer) if self.whole(answer) else body

    # ── For filters ──────────────────────────────────────────────────────────

    @abstractmethod
    def chunk(self, chunk: dict[str, Any], raw: bytes) -> bytes:
        """Return what passes in place of an event, which is `raw`."""

    def ending(self) -> bytes:
        """Return what comes before the last event of a stream that is whole."""
        return b""

    @abstractmethod
    def whole(self, answer: dict[str, Any]) -> bool:
        """Change a whole answer; whether it was changed."""

    def _event(self, event: bytes, raw: bytes) -> bytes:
        name, said = read_event(event)
        said = said.strip()
        if not said or name == b"error":
            return raw
        if said == _SAYS_DONE:
            return self.ending() + DONE
        try:
            chunk = _decode(said)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return raw
        if not isinstance(chunk, dict) or not isinstance(chunk.get("choices"), list):
            return raw
        return self.chunk(chunk, raw)


def event_of(chunk: dict[str, Any]) -> bytes:
    """Return a chunk as an event."""
    return b"data: " + _encode(chunk) + _BLANK


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list, nothing for anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_at(place: object, *names: str) -> str:
    """Return the first text that is not empty under these names, "" if there is none."""
    if not isinstance(place, dict):
        return ""
    found = (place.get(name) for name in names)
    return next((text for text in found if isinstance(text, str) and text), "")
