"""What other nodes see of the workers: who looks at which, and what they found.

A *prober* looks at a worker every few seconds and tells all nodes what it saw, its *verdict*. Who the
probers of a worker are follows from who is alive, so all nodes agree about it without asking.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Sight:
    """A fresh verdict. `reason` is why it is down; of one that is up, a digest of who answered."""

    node: str
    up: bool
    reason: str = ""
    age_ms: int = 0


class ProberConsensus(Enum):
    """What the probers of a worker say together."""

    UP = "up"
    DOWN = "down"
    SPLIT = "split"
    NOTHING = "nothing"


def prober_consensus(sights: Sequence[Sight], probers: Sequence[str]) -> ProberConsensus:
    """Return what `probers` say; what others once said, when they were probers, does not count."""
    heard = [sight.up for sight in sights if sight.node in probers]
    if not heard:
        return ProberConsensus.NOTHING
    if all(heard):
        return ProberConsensus.UP
    return ProberConsensus.SPLIT if any(heard) else ProberConsensus.DOWN


class PeerVerdicts(Protocol):
    """The other nodes, as the fleet needs them."""

    @property
    def me(self) -> str:
        """This node's name."""
        ...

    def probers(self, worker_id: str) -> Sequence[str]:
        """Return who is in charge of looking at a worker now; all nodes agree, soon after a change."""
        ...

    def sights(self, worker_id: str) -> Sequence[Sight]:
        """Return the fresh verdicts of living nodes, this one's included."""
        ...

    def tell(self, worker_id: str, *, up: bool, reason: str, lasts_s: float) -> None:
        """Say what this node saw, which holds for so long; called after every look, it spreads what is new."""
        ...

    def fall_silent(self, worker_id: str) -> None:
        """Take this node's verdict back: it does not look any more."""
        ...


class NoPeers:
    """The outlook of a node that has nobody to rely on: it looks at everything itself."""

    me = ""

    def probers(self, worker_id: str) -> Sequence[str]:
        """Return this node."""
        return (self.me,)

    def sights(self, worker_id: str) -> Sequence[Sight]:
        """Return nothing."""
        return ()

    def tell(self, worker_id: str, *, up: bool, reason: str, lasts_s: float) -> None:
        """Tell nobody."""

    def fall_silent(self, worker_id: str) -> None:
        """Tell nobody."""
