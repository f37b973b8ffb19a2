"""Crowd fault: streams begin ten times as often."""

from typing import Final

from smg_chaos.gameday.whole.faults.fault import Fault

_TIMES: Final = 10.0
_MANY: Final = 40
"""Streams that are open at once on a day without a crowd are a quarter of that."""


class Crowd(Fault):
    """Streams begin ten times as often."""

    async def begin(self) -> None:
        """Raise the rate of streams tenfold."""
        self.scene.traffic.factor = _TIMES

    async def end(self) -> None:
        """Set the rate back."""
        self.scene.traffic.factor = 1.0

    async def healed(self) -> bool:
        """Return whether no more streams are open than on any day."""
        return self.scene.traffic.open < _MANY
