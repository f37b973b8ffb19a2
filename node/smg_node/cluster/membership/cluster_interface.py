"""Cluster interface: a node's part in the cluster, as the wiring uses it, mesh or not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from smg_node.config.address import Address
from smg_node.http.ports.node import Cluster

if TYPE_CHECKING:
    from smg_node.cluster.membership.member_query import MemberQueries

SOCKET: Final = "unix"
"""As which a listener for operators is published that only its own machine reaches."""
SPOOLED: Final = "spooled"
"""What a member says of itself while turns wait on its disk."""


@dataclass(frozen=True, slots=True)
class ReadinessReasons:
    """Reasons that keep this node from being ready, and remarks that do not."""

    reasons: Sequence[str] = ()
    degraded: Sequence[str] = ()


class ClusterInterface(Protocol):
    """One node's part in the cluster, from start to leave."""

    @property
    def desk(self) -> Cluster:
        """The service behind the HTTP surface."""
        ...

    @property
    def mesh(self) -> "MemberQueries | None":
        """The way to query other members; None for a standalone node."""
        ...

    def doubts(self) -> ReadinessReasons:
        """Return the cluster's reasons against sending work here."""
        ...

    async def start(self) -> None:
        """Open the mesh's ports; INTERNAL with the knob's name if that cannot be."""
        ...

    async def run(self) -> None:
        """Take part until cancelled."""
        ...

    def publish(self, http: Address, metrics: Address | None, operators: str = "") -> None:
        """Publish to the others where this node is reached; `operators` is `host:port` or `unix:/path` of a listener of
        their own, "" for none.
        """
        ...

    def say_spooling(self, *, on: bool) -> None:
        """Publish whether turns wait on this node's disk for the store that all share."""
        ...

    def say_leaving(self) -> None:
        """Publish that this node has begun to leave."""
        ...

    async def say_goodbye(self) -> None:
        """Announce to the others that this node leaves; takes at most a second."""
        ...

    async def stop(self) -> None:
        """Close everything; safe to call twice."""
        ...
