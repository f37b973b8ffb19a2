"""The other nodes, as history sees them: asked over the mesh, and gone when the mesh says so."""

from collections.abc import Mapping
from typing import Final

from smg_node.cluster.membership.cluster_interface import SPOOLED, ClusterInterface
from smg_node.cluster.membership.errors import no_member
from smg_node.cluster.membership.member_query import query_member
from smg_node.cluster.membership.mesh_port import Answer
from smg_node.history.peers.peer_interface import PeerContact

_GONE: Final = ("dead", "left")


class HistoryPeers:
    """All members but this one."""

    def __init__(self, life: ClusterInterface) -> None:
        self._life: Final = life

    async def ask(self, node: str, topic: str, payload: bytes, *, deadline_s: float) -> bytes:
        """Return what a member answers; NOT_FOUND for a stranger, else why there is no answer."""
        mesh = self._life.mesh
        if mesh is None:
            raise no_member(node)
        return await query_member(mesh, node, topic, payload, deadline_s=deadline_s)

    def answer(self, topic: str, reply: Answer) -> None:
        """Answer what members ask about `topic`."""
        if self._life.mesh is not None:
            self._life.mesh.answer(topic, reply)

    def gone(self) -> Mapping[str, int]:
        """Return the names of those who are dead or have left, and since when: Unix time in milliseconds."""
        rows = self._life.desk.members()
        return {row.name: row.since_ms for row in rows if row.state in _GONE and not row.me}

    def known(self) -> Mapping[str, str]:
        """Return the state of every other member: alive, suspect, dead or left."""
        return {row.name: row.state for row in self._life.desk.members() if not row.me}

    def heard(self) -> Mapping[str, PeerContact]:
        """Return when every other member was heard last that has not left."""
        rows = self._life.desk.members()
        return {
            row.name: PeerContact(
                row.state, float("inf") if row.lag_ms is None else row.lag_ms / 1_000
            )
            for row in rows
            if row.state != "left" and not row.me
        }

    def spooling(self) -> Mapping[str, str]:
        """Return which other members say that they have turns on their disks for the store, and their state."""
        rows = self._life.desk.members()
        return {row.name: row.state for row in rows if not row.me and row.meta.get(SPOOLED)}

    def say_spooling(self, *, on: bool) -> None:
        """Tell the other members whether this node has."""
        self._life.say_spooling(on=on)
