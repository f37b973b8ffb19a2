"""The access log: one line per answered request, written in batches.

A line costs about 2 us: one struct, one encode, one append. The sink's thread does the writing.
"""

from typing import Protocol

import msgspec

from smg_node.core.ports import Clock


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
        """Take one line, line feed included."""
        ...


class AccessLog:
    """Writes access lines to a sink while `enabled`, which may change at any time."""

    def __init__(
        self, sink: Lines | None, clock: Clock, *, readable: bool = False, enabled: bool = True
    ) -> None:
        """Write to `sink`; without one nothing is ever written."""
        self.enabled = enabled and sink is not None
        self._sink = sink
        self._clock = clock
        self._readable = readable
        self._encode = msgspec.json.Encoder().encode

    def turn(self, *, on: bool) -> None:
        """Write from now on, or no more."""
        self.enabled = on and self._sink is not None

    def now_ms(self) -> int:
        """Return the wall clock, for a line's `time_ms`."""
        return self._clock.now_ms()

    def record(self, line: AccessLine) -> None:
        """Write one line soon."""
        if self._sink is None or not self.enabled:
            return
        if self._readable:
            self._sink.put(_readable(line))
        else:
            self._sink.put(self._encode(line) + b"\n")


def _readable(line: AccessLine) -> bytes:
    parts = [line.method, line.path, str(line.status), f"{line.duration_ms:.1f}ms", line.request_id]
    parts += [part for part in (line.tenant, line.model, line.worker, line.error) if part]
    return " ".join(parts).encode("utf-8", "backslashreplace").replace(b"\n", b" ") + b"\n"
