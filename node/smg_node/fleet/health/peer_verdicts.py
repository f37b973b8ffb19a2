"""Peer verdicts: the health verdicts that other nodes share about workers, and the probers of each
worker.

A *prober* looks at a worker every few seconds and tells all nodes what it saw, its *verdict*. The
probers of a worker follow from the living members, so all nodes agree about them without asking.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Sight:
    """A fresh verdict. `reason` is why it is down; of one that is up, a digest of the engine that
    answered.
    """

    node: str
    up: bool
    reason: str = ""
    age_ms: int = 0


class ProberConsensus(Enum):
    """Common verdict of the probers of a worker."""

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
    """Interface to the other nodes' verdicts, as the fleet needs it."""

    @property
    def me(self) -> str:
        """This node's name."""
        ...

    def probers(self, worker_id: str) -> Sequence[str]:
        """Return the nodes in charge of probing a worker now; all nodes agree, soon after a
        change.
        """
        ...

    def sights(self, worker_id: str) -> Sequence[Sight]:
        """Return the fresh verdicts of living nodes, this one's included."""
        ...

    def tell(self, worker_id: str, *, up: bool, reason: str, lasts_s: float) -> None:
        """Share this node's verdict, which holds for so long; called after every probe, it spreads
        what is new.
        """
        ...

    def fall_silent(self, worker_id: str) -> None:
        """Take this node's verdict back: it does not probe any more."""
        ...


class NoPeers:
    """Verdicts of a node without peers: it probes every worker itself."""

    me = ""

    def probers(self, worker_id: str) -> Sequence[str]:
        """Return this node."""
        return (self.me,)

    def sights(self, worker_id: str) -> Sequence[Sight]:
        """Return nothing."""
        return ()

    def tell(self, worker_id: str, *, up: bool, reason: str, lasts_s: float) -> None:
        """Do nothing."""

    def fall_silent(self, worker_id: str) -> None:
        """Do nothing."""
