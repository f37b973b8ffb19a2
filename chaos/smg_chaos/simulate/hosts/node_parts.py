"""Node parts: what a node carries beside its core, as hosts, links and other parts call it.

The parts themselves lie in rooms above: `replicas` (shared state), `rights` (limits), `world.joining` (the search
for peers).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from smg_mesh.escrow.spendable_share import Share
    from smg_mesh.state.workers.worker_registry import WorkerRegistry
    from smg_mesh.swim.messages import Address, News
    from smg_mesh.sync.exchange.piece_interface import Pieces
    from smg_mesh.sync.join_progress import Arrival

_A = ParamSpec("_A")
_R = TypeVar("_R")


class PeerSearch(Protocol):
    """The search of a node for its peers."""

    def exchanged(self) -> None:
        """Learn that an exchange with a peer went well."""
        ...

    def lost_all(self) -> None:
        """Learn that no other member is alive here any more."""
        ...


class SharedViews(Protocol):
    """The views of shared state that a node's own code reads."""

    @property
    def workers(self) -> "WorkerRegistry":
        """The workers of the cluster."""
        ...

    @property
    def registers(self) -> object:
        """The ephemeral registers of all nodes."""
        ...


class DigestSource(Protocol):
    """A replica, as far as an exchange says what it holds."""

    def digest(self) -> bytes:
        """Return 8 bytes over all pieces."""
        ...


class SharedLife(Protocol):
    """The shared state of one life of a node."""

    @property
    def arrival(self) -> "Arrival":
        """How far the node has come to hold the cluster's state."""
        ...

    @property
    def pieces(self) -> "Pieces":
        """The pieces as exchanges see them."""
        ...

    @property
    def replica(self) -> DigestSource:
        """The replica itself."""
        ...

    @property
    def views(self) -> SharedViews:
        """What the node's own code sees of it."""
        ...

    def run(self, deed: Callable[_A, _R], *args: _A.args, **named: _A.kwargs) -> _R:
        """Call something of the replica or above it, then do what it wished."""
        ...

    def hear(self, news: "News") -> None:
        """Take a rumor that the core heard."""
        ...

    def members_changed(self) -> None:
        """Learn that other members live."""
        ...

    def rebooted(self, boot: int) -> None:
        """Go on as a later life."""
        ...

    def met(self, peer: str, *, full: bool, held: bool) -> None:
        """Learn that an exchange came to its end."""
        ...

    def close(self) -> None:
        """Write everything that is not on the disk yet."""
        ...

    def end(self) -> None:
        """The process is gone."""
        ...


class OfferCount(Protocol):
    """The page of a window, as far as requests are counted on it."""

    offered: int


class RightsLife(Protocol):
    """The rights of one life of a node."""

    def share(self, key: str) -> "Share | None":
        """Return the share of a key, awake."""
        ...

    def want(self, share: "Share", cost: int) -> None:
        """Ask for so much soon: a request waits for it."""
        ...

    def charge(self, share: "Share", cost: int) -> OfferCount:
        """Count what was charged to a share."""
        ...

    def hear(self, packet: bytes, sender: "Address") -> None:
        """Take a packet."""
        ...

    def members_changed(self) -> None:
        """Learn that other members live."""
        ...

    def rebooted(self, boot: int) -> None:
        """Begin anew as another life."""
        ...

    def leave(self) -> None:
        """Have no rights any more: the node says goodbye."""
        ...

    def end(self) -> None:
        """Let what its books say last stay."""
        ...
