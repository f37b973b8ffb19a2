"""The access log: one line per answered request, written in batches.

A line costs less than 1 us: one struct, one append. The sink's thread does the writing.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

AT_ONCE: Final = 64
"""So many lines are spelled together."""


class AccessLine(msgspec.Struct, omit_defaults=True, tag_field="log", tag="access"):
    """What an operator wants to know about one request; never a header, a key or a body."""

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
    """Takes finished lines."""

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
        self._lines: deque[AccessLine] = deque()
        # The loop hands lines over, and so does the sink's thread.
        self._lock = threading.Lock()
        self._wake: Callable[[], None] = self.hand_over
        if sink is not None:
            self._wake = sink.wake
            sink.draw(self.hand_over)

    def turn(self, *, on: bool) -> None:
        """Write from now on, or no more."""
        self.enabled = on and self._sink is not None

    def record(self, line: AccessLine) -> None:
        """Write one line soon."""
        if not self.enabled:
            return
        lines = self._lines
        lines.append(line)
        waiting = len(lines)
        if waiting == 1:
            self._wake()
        elif waiting >= AT_ONCE:
            self.hand_over()

    def hand_over(self) -> None:
        """Give the sink what was recorded."""
        sink, lines = self._sink, self._lines
        if sink is None:
            return
        with self._lock:
            taken = [lines.popleft() for _ in range(len(lines))]
            if taken:
                spelled = b"".join(map(_readable, taken)) if self._readable else self._spell(taken)
                sink.put(spelled)


def _readable(line: AccessLine) -> bytes:
    parts = [line.method, line.path, str(line.status), f"{line.duration_ms:.1f}ms", line.request_id]
    parts += [part for part in (line.tenant, line.model, line.worker, line.error) if part]
    return " ".join(parts).encode("utf-8", "backslashreplace").replace(b"\n", b" ") + b"\n"
