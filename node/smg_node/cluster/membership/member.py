"""Member of the mesh: a node's start, publication, readiness and leave, around its HTTP server's
life.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import Final

from smg_mesh.mesh import MeshError
from smg_node.cluster.membership.cluster_interface import SOCKET, SPOOLED, ReadinessReasons
from smg_node.cluster.membership.cluster_service import LEAVING, ClusterService
from smg_node.cluster.membership.mesh_port import MeshPort
from smg_node.cluster.membership.shutdown import SUPERSEDED, Shutdown
from smg_node.config.address import Address, parse_address, split_host_port
from smg_node.core.errors import ErrorKind, SmgError

_EVERY_HOST: Final = ("0.0.0.0", "::")

_log = logging.getLogger("smg_node.cluster")


class Member:
    """This node among the others."""

    def __init__(self, mesh: MeshPort, farewell: Shutdown, *, security: str) -> None:
        self.desk = ClusterService(mesh, farewell)
        self.mesh = mesh
        self._mesh = mesh
        self._farewell = farewell
        self._security = security

    def doubts(self) -> ReadinessReasons:
        """Return why no work should be sent here yet, and what is not as it should be.

        A member that once found the others and holds what they share stays ready when it loses
        them: its clients can still reach it, and its workers too. Only a node that never held it
        may have an empty view.
        """
        status = self._mesh.status()
        why_not = self._mesh.ready()
        if why_not is not None and not (status.joined and status.held):
            return ReadinessReasons(reasons=(f"mesh: {why_not}",), degraded=status.degraded)
        return ReadinessReasons(degraded=status.degraded)

    async def start(self) -> None:
        """Bind the mesh's ports and log it; INTERNAL with the knob's name if that cannot be."""
        try:
            await self._mesh.start()
        except (MeshError, OSError, ValueError) as error:
            hint = " (--mesh names another address)" if "listen" in str(error) else ""
            raise SmgError(ErrorKind.INTERNAL, f"the mesh does not start: {error}{hint}") from error
        status = self._mesh.status()
        seeds = ", ".join(seed.seed for seed in status.seeds) or "nobody: it waits to be joined"
        _log.info(
            "mesh on %s, %s, cluster %r, joins %s",
            status.address,
            self._security,
            status.label,
            seeds,
            extra={"fields": {"mesh_address": status.address, "boot": status.boot}},
        )

    async def run(self) -> None:
        """Take part until cancelled; another process that keeps this name ends the node."""
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._step_down(), name="superseded")
            try:
                await self._mesh.run()
            finally:
                watching.cancel()

    async def _step_down(self) -> None:
        await self._mesh.superseded.wait()
        _log.error(
            "another process has this node's name: stepping down, and not to be started again"
        )
        self._farewell.leave("superseded", code=SUPERSEDED)

    def publish(self, http: Address, metrics: Address | None, operators: str = "") -> None:
        """Publish where this node is reached: on its mesh address, where it listens on all."""
        host, _ = split_host_port(self._mesh.status().address)
        said = {"http": http, "metrics": metrics}
        socket = {}
        if operators.startswith(SOCKET):
            socket = {"admin": SOCKET}
        elif operators:
            said["admin"] = parse_address(operators)
        reached = {
            kind: str(replace(where, host=host) if where.host in _EVERY_HOST else where)
            for kind, where in said.items()
            if where is not None
        }
        self._mesh.set_meta(**reached, **socket)

    def say_spooling(self, *, on: bool) -> None:
        """Publish whether turns wait on this node's disk."""
        # A node that has not begun or has ended cannot publish, and turns wait for its next start.
        with suppress(MeshError):
            self._mesh.set_meta(**{SPOOLED: on})

    def say_leaving(self) -> None:
        """Publish that this node has begun to leave."""
        self._mesh.set_meta(**{LEAVING: True})

    async def say_goodbye(self) -> None:
        """Leave the mesh, unless another process keeps this name."""
        if self._farewell.code == SUPERSEDED:
            return
        # Nothing that goes wrong now may keep the node from ending; the others will notice its silence.
        with suppress(MeshError, OSError):
            await self._mesh.leave()

    async def stop(self) -> None:
        """Close everything."""
        await self._mesh.stop()
