"""Stage of a scenario: the cluster, durations, the random source and the output, as its
arguments.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from smg_chaos.gameday.agents.agent import Agent, Announced, Kind
from smg_chaos.gameday.agents.cluster import Cluster, ClusterError
from smg_chaos.statistics import Figure

_SETTLE_S: Final = 1.0
_STOP_LEAST_S: Final = 0.3
_RUN_S: Final = (0.5, 2.0)
WHOLE_AGAIN_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster that is not started, the scenario's durations and sizes, a random source, and an
    output.
    """

    cluster: Cluster
    seconds: float
    rounds: int
    rng: Random
    say: Callable[[str], None]
    streams: int = 0
    """How many at once, where a scenario has streams; 0: its own."""
    topology: str = "alone"
    """What the engines are, where a scenario has streams: each for itself, or in pairs."""
    faults: tuple[str, ...] = ()
    """Which may happen on a whole day; none named: all."""
    store: str = "postgresql"
    """Where a whole day keeps its history."""
    engines: int = 3
    """How many a whole day has."""
    seed: int = 1
    trials: tuple[str, ...] = ()
    """Which trials of limits are played instead of the limits' own parts."""
    window_s: int = 0
    """How long the windows of these trials are; 0: their own."""
    mode: str = "strict"
    """The mode of the limits in these trials."""

    def now_s(self) -> float:
        """Return the time on the switch's clock."""
        return self.cluster.monotonic_us() / 1e6

    async def whole_again(self) -> None:
        """Return when all members see all; ClusterError if that takes far too long."""
        if await self.cluster.until_whole(WHOLE_AGAIN_S) is None:
            raise ClusterError(f"not whole again: {await self.cluster.describe()}")

    async def pause(self, least_s: float = _SETTLE_S) -> None:
        """Wait for a short random time, never in step with any member's timers."""
        await asyncio.sleep(least_s + self.rng.random())

    def since(self, kind: Kind, about: Collection[str], since_ms: int) -> list[Announced]:
        """Return all announcements of this kind about these members."""
        return self.cluster.announced(kind, about, since_ms)

    def touched(self, metric: str, about: Collection[str], since_ms: int, limit: int) -> Figure:
        """Return how many of these members were declared dead, and how often."""
        said = self.since("down", about, since_ms)
        victims = {one.name for one in said}
        suspected = len(self.since("suspect", about, since_ms))
        says = f"said {len(said)} times; {suspected} doubts"
        return Figure(metric, len(victims), "", limit, says)

    async def stopping(self, agent: Agent, rng: Random, most_s: float, for_s: float) -> None:
        """Stop a process again and again, each time for at most `most_s`, for so long; it runs at the end."""
        end_ms = self.cluster.now_ms() + round(for_s * 1000)
        try:
            while self.cluster.now_ms() < end_ms:
                agent.signal(signal.SIGSTOP)
                await asyncio.sleep(rng.uniform(_STOP_LEAST_S, most_s))
                agent.signal(signal.SIGCONT)
                await asyncio.sleep(rng.uniform(*_RUN_S))
        finally:
            agent.signal(signal.SIGCONT)


Play = Callable[[Stage], Awaitable[Sequence[Figure]]]
"""A scenario: it starts the cluster, hurts it, and returns what it measured."""
