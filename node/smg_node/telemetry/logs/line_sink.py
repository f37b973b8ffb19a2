"""Line sink of the logs: a bounded buffer and one thread that writes it; the loop never blocks.

Writing to a pipe whose reader has stopped blocks, and a blocked event loop stops every stream of
the node. So only this thread writes: lines are put into a list, the thread writes the list at most
ten times a second, and when 8 MiB wait, further lines are dropped and counted.
"""

import threading
from collections.abc import Callable
from typing import BinaryIO, Final

_FLUSH_INTERVAL_S: Final = 0.1
_BUFFER_BYTES_MAX: Final = 8 * 1024 * 1024


class LineSink:
    """Takes lines from any thread; writes them to `stream` soon, in order. `close` it at the end."""

    def __init__(self, stream: BinaryIO, *, buffer_bytes_max: int = _BUFFER_BYTES_MAX) -> None:
        self._stream = stream
        self._buffer_bytes_max = buffer_bytes_max
        self._lines: list[bytes] = []
        self._bytes = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._sources: list[Callable[[], None]] = []
        self.dropped = 0
        """How many lines were lost so far."""
        self._thread = threading.Thread(target=self._run, name="log-sink", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Take one line, its line feed included; never waits for the reader of the log."""
        with self._lock:
            if self._bytes + len(line) > self._buffer_bytes_max:
                self.dropped += 1
                return
            self._lines.append(line)
            self._bytes += len(line)
            first = len(self._lines) == 1
        if first:
            self._wake.set()

    def draw(self, source: Callable[[], None]) -> None:
        """Call `source`, in the writing thread, before anything is written: it may put what it has
        kept back.
        """
        self._sources.append(source)

    def wake(self) -> None:
        """Write soon, because a source has something."""
        self._wake.set()

    def close(self, timeout_s: float = 2.0) -> None:
        """Write what is left and stop; gives up after `timeout_s`. Safe to call twice."""
        self._closing.set()
        self._wake.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            self._wake.wait()
            # Let lines gather, so that a busy second costs ten writes; closing cuts it short.
            self._closing.wait(_FLUSH_INTERVAL_S)
            closing = self._closing.is_set()
            self._wake.clear()
            for source in self._sources:
                source()
            self._flush()
            if closing:
                return

    def _flush(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
            self._bytes = 0
        if not lines:
            return
        try:
            self._stream.write(b"".join(lines))
            self._stream.flush()
        except (OSError, ValueError):
            # The reader is gone; there is nowhere left to report it but the counter.
            self.dropped += len(lines)
