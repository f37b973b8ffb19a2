"""Checkpoints of one stream: when they are due, written behind what was said in the same write.

A client goes on by itself only from a checkpoint that is the last thing it saw. So there is one behind
what begins an interaction and behind each finished step, and in between as often as is set. Where
the node drains, the stream ends with one, be it before its first event: its client goes on at another
node.
"""

from collections.abc import Callable, Sequence
from typing import Final

from smg_node.dialects.responses.events.numbered_events import NumberedEvent

_FIRST: Final = frozenset({"interaction.created", "step.stop"})
_LAST: Final = "interaction.completed"


class Checkpoints:
    """Checkpoints of one stream. `frame` makes the one behind an event's number, -1 before all events,
    and is told whether the stream ends there, because its node drains.
    """

    def __init__(
        self,
        frame: Callable[[int, bool], bytes],
        *,
        every_ms: int,
        now_s: Callable[[], float],
        drains: Callable[[], bool],
    ) -> None:
        self._frame = frame
        self._every_s = every_ms / 1_000
        self._now_s = now_s
        self._drains = drains
        self._due_s = float("-inf")
        self._told = -1
        """The number of the last event that was told; -1 before any."""
        self._over = False
        self.leaves = False
        """Whether the stream ends here, and goes on at another node."""

    def behind(self, told: Sequence[NumberedEvent]) -> bytes:
        """Return the checkpoint to be written with these events, b"" for none."""
        last = told[-1]
        if last.type == _LAST:
            self._over = True
            return b""
        self._told = last.sequence
        self.leaves = self._drains()
        now_s = self._now_s()
        early = now_s < self._due_s and not self.leaves
        if early and _FIRST.isdisjoint([one.type for one in told]):
            return b""
        self._due_s = now_s + self._every_s
        return self._frame(last.sequence, self.leaves)

    def can_leave(self) -> bool:
        """Return whether something is left to be told, which could go on elsewhere."""
        return not self._over

    def farewell(self) -> bytes:
        """Return the checkpoint to end with at this moment, where the node drains; b"" for none."""
        return self._frame(self._told, True) if self.can_leave() and self._drains() else b""
