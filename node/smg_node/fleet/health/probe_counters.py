"""Probe counters: thresholds that turn a worker up or down, and the reconnect backoff of an absent
one. Pure.
"""

from dataclasses import dataclass
from typing import Final

EAGER_S: Final = 120.0
"""An engine may take that long to start, and is to be found at once when it has; later tries cost more."""
PAUSE_MAX_S: Final = 10.0
_SHARE: Final = 20


@dataclass(slots=True)
class ProbeCounter:
    """Counts looks at one worker. `down_after` bad ones in a row turn it down, `up_after` good ones up."""

    down_after: int
    up_after: int
    up: bool = False
    _run: int = 0

    def good(self) -> bool:
        """Note a good look; return whether it turned the worker up."""
        if self.up:
            self._run = 0
            return False
        self._run += 1
        if self._run < self.up_after:
            return False
        self.up, self._run = True, 0
        return True

    def bad(self) -> bool:
        """Note a bad look; return whether it turned the worker down."""
        if not self.up:
            self._run = 0
            return False
        self._run += 1
        if self._run < self.down_after:
            return False
        self.up, self._run = False, 0
        return True

    @property
    def steady(self) -> bool:
        """Whether it is up and its last look was good."""
        return self.up and not self._run

    def restart(self) -> None:
        """Start again from down, as for a worker never seen."""
        self.up, self._run = False, 0


class ReconnectBackoff:
    """Pause between two attempts to reach a worker that cannot be reached."""

    def __init__(self) -> None:
        self._missed_s: float | None = None

    def pause_s(self, retry_s: float, now_s: float) -> float:
        """Return the pause after a try at `now_s`: of one missing for long, a twentieth of that time."""
        if self._missed_s is None:
            self._missed_s = now_s
        missed_s = now_s - self._missed_s
        return retry_s if missed_s < EAGER_S else max(retry_s, min(PAUSE_MAX_S, missed_s / _SHARE))

    def found(self) -> None:
        """Note that it is there."""
        self._missed_s = None
