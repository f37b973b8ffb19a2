"""Native stream: a vendor's stream of events as it passes to a client that speaks the vendor's API. Pure.

Only whole events pass, at any cut of the bytes into pieces. What they say is for the judge of the API: what comes
before the first word of an answer is held back, because until then another target may give it; a failure, and what
follows it, does not pass.
"""

from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.provider_dialect import EventJudge
from smg_node.dialects.sse_reader import EVENT_MAX_BYTES
from smg_node.dialects.worker_errors import WorkerError
from smg_node.engines.http.vendor_side import Undressing
from smg_node.pipeline.relay.relayed_events import KEPT_MAX_BYTES, borders, read_event

_BLANK_LINE: Final = b"\n\n"
_COMMENT: Final = b":"


class NativeStream:
    """Reader of one stream. Once there is a `failure` nothing passes any more."""

    def __init__(self, judge: EventJudge, undress: Undressing) -> None:
        self._judge = judge
        self._undress = undress
        self._held: list[bytes] = []
        """Pieces of an event that is not over."""
        self._size = 0
        self._kept: list[bytes] = []
        """Events before the first word of the answer."""
        self._kept_bytes = 0
        self._large: SmgError | None = None

    @property
    def failure(self) -> SmgError | WorkerError | None:
        """Why the answer is none."""
        return self._large or self._judge.failure

    @property
    def done(self) -> bool:
        """Whether the answer is whole."""
        return self._judge.done

    def feed(self, piece: bytes) -> bytes:
        """Return the whole events that may pass now, up to the failure if there is one."""
        if self.failure is not None:
            return b""
        self._size += len(piece)
        if self._size > EVENT_MAX_BYTES:
            self._large = SmgError(
                ErrorKind.UPSTREAM_FAILED,
                f"the vendor sent an event of more than {EVENT_MAX_BYTES} bytes",
            )
            return b""
        if b"\n" not in piece and b"\r" not in piece:
            self._held.append(piece)
            return b""
        data = b"".join((*self._held, piece)) if self._held else piece
        passed, rest = self._events(data)
        self._held = [rest] if rest else []
        self._size = len(rest)
        return self._let_go(passed)

    def finish(self) -> bytes:
        """Return the rest: the stream has come to its end, cleanly."""
        if self.failure is not None:
            return b""
        rest = b"".join(self._held)
        passed = rest
        if rest.strip():
            # The last event may lack the blank line after it.
            passed, _ = self._events(rest + _BLANK_LINE)
        if self.failure is None:
            self._judge.finish()
        if self.failure is not None:
            return self._let_go(passed)
        told = b"".join((*self._kept, passed))
        self._kept = []
        return told

    def _events(self, data: bytes) -> tuple[bytes, bytes]:
        """Read the whole events of `data`; return those that pass, and what is left."""
        judge, undress, start, passed = self._judge, self._undress, 0, list[bytes]()
        for stop, end in borders(data):
            event = data[start:stop]
            if event.startswith(b"data: ") and b"\n" not in event and b"\r" not in event:
                name, said = b"", event[6:]
            else:
                name, said = read_event(event)
            if said:
                judge.take(name, said)
                if judge.failure is not None:
                    break
                told = undress.event(said)
                if told is said:
                    passed.append(data[start:end])
                elif told is not None:
                    passed.append(_event(name, told) + data[stop:end])
            elif not event.strip() or event.lstrip().startswith(_COMMENT):
                # Anything else without data is no event, and may be anything.
                passed.append(data[start:end])
            start = end
        return b"".join(passed), data[start:]

    def _let_go(self, passed: bytes) -> bytes:
        """Return what may pass: nothing before the answer's first word, or a large beginning of it."""
        if not self._kept and self._judge.begun:
            return passed
        if passed:
            self._kept.append(passed)
            self._kept_bytes += len(passed)
        if not self._judge.begun and self._kept_bytes <= KEPT_MAX_BYTES:
            return b""
        told = b"".join(self._kept)
        self._kept, self._kept_bytes = [], 0
        return told


def _event(name: bytes, data: bytes) -> bytes:
    """Return an event without the blank line after it."""
    lines = b"\n".join(b"data: " + line for line in data.split(b"\n"))
    return b"event: %b\n%b" % (name, lines) if name else lines
