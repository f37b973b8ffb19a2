"""Live pieces: the pieces of one life's replica as its exchanges see them, each call run by the life."""

from collections.abc import Callable, Sequence
from typing import Final, ParamSpec, Protocol, TypeVar

from smg_chaos.simulate.replicas.replica_interface import Replica
from smg_mesh.sync.exchange.piece_interface import PieceState

_A = ParamSpec("_A")
_R = TypeVar("_R")


class CallRunner(Protocol):
    """The life whose replica is called."""

    replica: Replica

    def run(self, deed: Callable[_A, _R], *args: _A.args, **named: _A.kwargs) -> _R:
        """Call something of the replica, then do what it wished, then look at it."""
        ...


class LivePieces:
    """The pieces of a life as its exchanges see them."""

    def __init__(self, life: CallRunner) -> None:
        self._run: Final = life.run
        self._replica: Final = life.replica

    @property
    def stale(self) -> bool:
        """Whether the node was away for too long."""
        return self._replica.stale

    @property
    def history(self) -> bytes:
        """Which cluster's state it is."""
        return self._replica.history

    def digest(self) -> bytes:
        """Return 8 bytes over all pieces."""
        return self._replica.digest()

    def forget_stale(self) -> None:
        """Drop what is stale."""
        self._run(self._replica.forget_stale)

    def holdings(self, *, full: bool) -> Sequence[PieceState]:
        """Return every piece that is not empty."""
        return self._run(self._replica.holdings, full=full)

    def summary(self, name: str, epoch: int) -> bytes:
        """Return what is held of a piece."""
        return self._run(self._replica.summary, name, epoch)

    def missing(self, name: str, epoch: int, summary: bytes) -> bytes:
        """Return what another side lacks."""
        return self._run(self._replica.missing, name, epoch, summary)

    def merge(self, name: str, epoch: int, update: bytes, *, peer: str) -> None:
        """Take in what a peer sent."""
        self._run(self._replica.merge, name, epoch, update, peer=peer)

    def epoch(self, name: str) -> int:
        """Return the epoch at which a piece is held."""
        return self._replica.epoch(name)
