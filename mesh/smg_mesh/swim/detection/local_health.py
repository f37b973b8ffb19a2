"""Local health score (Lifeguard): slows this node's probes while it is itself slow or isolated.

A node that is slow or cut off finds fault with all others.

The *score* (0 to 7) slows our probes down while things go wrong near us: it rises with failed probes
whose relays did not even report back, with doubts we had to refute and with stalls, and falls with
every probe that went well. From "Lifeguard: Local Health Awareness for More Accurate Failure
Detection" (2018).

*Isolated* is a node most of whose last ten probes failed while none of the relays it asked said
anything: then it is the one that is cut off, and it accuses no member until three probes went well.
A failed probe for which there was no relay to ask proves nothing.
"""

from collections import deque
from typing import Final

SCORE_MAX: Final = 7
WINDOW: Final = 10
GOOD_PROBES: Final = 3


class Health:
    """Local health of this node: its score, and whether it is isolated."""

    def __init__(self) -> None:
        self.score = 0
        self.isolated = False
        self._window: deque[bool] = deque(maxlen=WINDOW)
        """Of each probe whether it failed with all its relays silent."""
        self._good = 0

    def _change(self, by: int) -> None:
        self.score = min(SCORE_MAX, max(0, self.score + by))

    def probe_ok(self) -> None:
        """Count a probe that was answered, by whatever way."""
        self._change(-1)
        self._window.append(False)
        self._good += 1
        if self.isolated and self._good >= GOOD_PROBES:
            self.isolated = False
            self._window.clear()

    def probe_failed(self, *, relays: int, nacks: int) -> None:
        """Count a probe that was not; `nacks` of the `relays` asked said so."""
        self._change(relays - nacks if relays else 1)
        self._window.append(relays > 0 and nacks == 0)
        self._good = 0
        self.isolated = sum(self._window) > WINDOW // 2

    def refuted(self) -> None:
        """Count a doubt about us: another member did not hear us in time."""
        self._change(1)

    def stalled(self) -> None:
        """Count a stall of our own loop."""
        self._change(1)
