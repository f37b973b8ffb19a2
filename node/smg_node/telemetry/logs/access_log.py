"""Access log: one line per answered request, written in batches.

A line costs its request one append: what it is made of is put aside, and made into lines together. The sink's thread does
the writing.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import msgspec

AT_ONCE: Final = 64
"""So many lines are spelled together."""


class AccessLine(msgspec.Struct, omit_defaults=True, tag_field="log", tag="access"):
    """Facts of one request for operators; never a header, a key or a body."""

    time_ms: int
    request_id: str
    method: str
    path: str
    status: int
    duration_ms: float
    bytes: int = 0
    peer: str = ""
    model: str = ""
    worker: str = ""
    error: str = ""
    trace_id: str = ""
    tenant: str = ""
    key_id: str = ""


class Lines(Protocol):
    """Port to the sink that takes finished lines."""

    def put(self, line: bytes, /) -> None:
        """Take a line, or several, line feeds included."""
        ...

    def draw(self, source: Callable[[], None], /) -> None:
        """Call `source` before anything is written, in whichever thread."""
        ...

    def wake(self) -> None:
        """Write soon, because a source has something."""
        ...


class AccessLog:
    """Writes access lines to a sink while `enabled`, which may change at any time.

    Lines are spelled 64 at a time, or when the sink is about to write: one by one each would cost three times as much.
    """

    def __init__(self, sink: Lines | None, *, readable: bool = False, enabled: bool = True) -> None:
        """Write to `sink`; without one nothing is ever written."""
        self.enabled = enabled and sink is not None
        self._sink = sink
        self._readable = readable
        self._spell = msgspec.json.Encoder().encode_lines
        self._lines_of: Callable[[Sequence[Any]], Iterable[AccessLine]] = iter
        self._aside: deque[object] = deque()
        # The loop hands lines over, and so does the sink's thread.
        self._lock = threading.Lock()
        self._wake: Callable[[], None] = self.hand_over
        if sink is not None:
            self._wake = sink.wake
            sink.draw(self.hand_over)

    def turn(self, *, on: bool) -> None:
        """Turn writing on or off from now on."""
        self.enabled = on and self._sink is not None

    def reads(self, lines_of: Callable[[Sequence[Any]], Iterable[AccessLine]]) -> None:
        """Make lines of later records with `lines_of`, a line each; it may be called in another
        thread.
        """
        self._lines_of = lines_of

    def record(self, ended: object) -> None:
        """Write one line soon: `ended`, or what is made of it. Nothing of it changes any more."""
        if not self.enabled:
            return
        aside = self._aside
        aside.append(ended)
        if not 1 < len(aside) < AT_ONCE:
            self._move(len(aside))

    def _move(self, waiting: int) -> None:
        """Bound the wait of the first record to the sink's, and their number to one batch."""
        if waiting == 1:
            self._wake()
        elif waiting:
            self.hand_over()

    def hand_over(self) -> None:
        """Give the sink what was recorded."""
        sink, aside = self._sink, self._aside
        if sink is None:
            return
        with self._lock:
            taken = [aside.popleft() for _ in range(len(aside))]
            if taken:
                lines = self._lines_of(taken)
                spelled = b"".join(map(_readable, lines)) if self._readable else self._spell(lines)
                sink.put(spelled)


def _readable(line: AccessLine) -> bytes:
    """Return a line for human eyes, which begins as those of other loggers do."""
    clock = datetime.fromtimestamp(line.time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    parts = [
        f"{clock[11:23]} {'info':<8}access:",
        line.method,
        line.path,
        str(line.status),
        f"{line.duration_ms:.1f}ms",
        line.request_id,
    ]
    parts += [part for part in (line.tenant, line.model, line.worker, line.error) if part]
    return " ".join(parts).encode("utf-8", "backslashreplace").replace(b"\n", b" ") + b"\n"
