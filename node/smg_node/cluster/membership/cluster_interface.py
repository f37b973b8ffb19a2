"""What the wiring needs of a node's part in the cluster, whether there is a mesh or not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from smg_node.config.address import Address
from smg_node.http.ports.node import Cluster

if TYPE_CHECKING:
    from smg_node.cluster.membership.member_query import MemberQueries

SPOOLED: Final = "spooled"
"""What a member says of itself while turns wait on its disk."""


@dataclass(frozen=True, slots=True)
class ReadinessReasons:
    """What keeps this node from being ready, and what is only worth knowing."""

    reasons: Sequence[str] = ()
    degraded: Sequence[str] = ()


class ClusterInterface(Protocol):
    """One node's part in the cluster, from its start to its goodbye."""

    @property
    def desk(self) -> Cluster:
        """What answers the HTTP surface."""
        ...

    @property
    def mesh(self) -> "MemberQueries | None":
        """What asks other members; None for a node alone."""
        ...

    def doubts(self) -> ReadinessReasons:
        """Say whether the cluster has anything against work being sent here."""
        ...

    async def start(self) -> None:
        """Open the mesh's ports; INTERNAL with the knob's name if that cannot be."""
        ...

    async def run(self) -> None:
        """Take part until cancelled."""
        ...

    def publish(self, http: Address, metrics: Address | None) -> None:
        """Tell the others where this node is reached."""
        ...

    def say_spooling(self, *, on: bool) -> None:
        """Tell the others whether turns wait on this node's disk for the store that all share."""
        ...

    def say_leaving(self) -> None:
        """Tell the others that this node has begun to leave."""
        ...

    async def say_goodbye(self) -> None:
        """Tell the others that this node is gone; takes at most a second."""
        ...

    async def stop(self) -> None:
        """Close everything; safe to call twice."""
        ...
