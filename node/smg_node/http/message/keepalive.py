"""Keepalive: one coarse timer that writes comments into all quiet streams.

It looks at every open stream a few times per interval. A stream that has not even begun for
`commit_after_s` is begun with a comment; one that has been silent for `keepalive_s` gets a comment
too, so that neither the client nor a proxy takes it for dead.
"""

import asyncio
from typing import Final, Protocol

_TICKS_PER_INTERVAL: Final = 8
_TICK_MIN_S: Final = 0.005
_TICK_MAX_S: Final = 1.0


class IdleStream(Protocol):
    """A stream that may fall silent."""

    committed: bool
    quiet_ticks: int
    """Ticks since something was written; whoever writes sets it to zero."""

    def ping(self) -> None:
        """Write a comment, and the head before it if there was none; never raises."""
        ...


class KeepaliveTimer:
    """Keeps streams alive; runs only while there are any."""

    def __init__(self, *, commit_after_s: float, keepalive_s: float) -> None:
        self._streams: dict[IdleStream, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tick_s = _TICK_MAX_S
        self._commit_ticks = self._keepalive_ticks = 1
        self.retune(commit_after_s=commit_after_s, keepalive_s=keepalive_s)

    def retune(self, *, commit_after_s: float, keepalive_s: float) -> None:
        """Apply other times, to open streams as well; how long they have been quiet is kept."""
        before_s = self._tick_s
        shorter_s = min(commit_after_s, keepalive_s)
        self._tick_s = min(max(shorter_s / _TICKS_PER_INTERVAL, _TICK_MIN_S), _TICK_MAX_S)
        self._commit_ticks = max(1, round(commit_after_s / self._tick_s))
        self._keepalive_ticks = max(1, round(keepalive_s / self._tick_s))
        for stream in self._streams:
            stream.quiet_ticks = int(stream.quiet_ticks * before_s / self._tick_s)
        if self._timer is not None:
            self._timer.cancel()
            self._wind()

    @property
    def alone(self) -> bool:
        """Whether there is one stream at most."""
        return len(self._streams) < 2

    def add(self, stream: IdleStream) -> None:
        """Watch a stream from now on."""
        self._streams[stream] = None
        if self._timer is None:
            self._wind()

    def remove(self, stream: IdleStream) -> None:
        """Stop watching it."""
        self._streams.pop(stream, None)

    def close(self) -> None:
        """Stop; streams that are left get no more comments."""
        self._streams.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wind(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._tick_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        for stream in list(self._streams):
            stream.quiet_ticks += 1
            due = self._keepalive_ticks if stream.committed else self._commit_ticks
            if stream.quiet_ticks >= due:
                stream.quiet_ticks = 0
                stream.ping()
        if self._streams:
            self._wind()
