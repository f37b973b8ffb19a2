"""History peers: the other nodes as history uses them, queried over the mesh."""

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
        """Return a member's answer; NOT_FOUND for an unknown one, else the error that says why
        there is none.
        """
        mesh = self._life.mesh
        if mesh is None:
            raise no_member(node)
        return await query_member(mesh, node, topic, payload, deadline_s=deadline_s)

    def answer(self, topic: str, reply: Answer) -> None:
        """Register the answerer of members' questions about `topic`."""
        if self._life.mesh is not None:
            self._life.mesh.answer(topic, reply)

    def gone(self) -> Mapping[str, int]:
        """Return members that are dead or have left, and since when: Unix time in milliseconds."""
        rows = self._life.desk.members()
        return {row.name: row.since_ms for row in rows if row.state in _GONE and not row.me}

    def known(self) -> Mapping[str, str]:
        """Return the state of every other member: alive, suspect, dead or left."""
        return {row.name: row.state for row in self._life.desk.members() if not row.me}

    def heard(self) -> Mapping[str, PeerContact]:
        """Return when each other member that has not left was last heard from."""
        rows = self._life.desk.members()
        return {
            row.name: PeerContact(
                row.state, float("inf") if row.lag_ms is None else row.lag_ms / 1_000
            )
            for row in rows
            if row.state != "left" and not row.me
        }

    def spooling(self) -> Mapping[str, str]:
        """Return which other members report turns on their disks for the store, and the members'
        state.
        """
        rows = self._life.desk.members()
        return {row.name: row.state for row in rows if not row.me and row.meta.get(SPOOLED)}

    def say_spooling(self, *, on: bool) -> None:
        """Report to the other members whether this node has turns on its disk."""
        self._life.say_spooling(on=on)
