"""Skewed clock and slow disk: a node's wall clock jumps, or its writes take longer."""

from random import Random
from typing import Final

from smg_chaos.gameday.whole.faults.fault import Fault

_JUMP_S: Final = (2.0, 45.0)
"""As a virtual machine's clock does that slept, or one that is set right at last: less than a mesh distrusts."""
_DELAY_S: Final = (0.05, 0.5)


class Skewed(Fault):
    """One of both."""

    def rng(self) -> Random:
        """Return chance of its own: by the plan, so by the day's seed."""
        return Random(f"{self.planned.at_s}/{self.planned.seconds}")


class ClockJumps(Skewed):
    """The wall clock is suddenly ahead or behind, and right again in the end."""

    async def begin(self) -> None:
        """Let it jump."""
        rng = self.rng()
        for node in self.nodes:
            ahead_s = rng.choice((-1, 1)) * rng.uniform(*_JUMP_S)
            self.scene.skews[node.name].set_clock(ahead_s)

    async def end(self) -> None:
        """Let it jump back."""
        for node in self.nodes:
            self.scene.skews[node.name].set_clock(0.0)


class SlowDisk(Skewed):
    """Every write and every sync in the data folder takes 50 to 500 ms more."""

    async def begin(self) -> None:
        """Slow it down."""
        for node in self.nodes:
            self.scene.skews[node.name].set_disk(self.rng().uniform(*_DELAY_S))

    async def end(self) -> None:
        """Let it be as quick as before."""
        for node in self.nodes:
            self.scene.skews[node.name].set_disk(0.0)
