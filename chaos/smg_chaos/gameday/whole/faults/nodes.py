"""Node faults: SIGKILL, SIGSTOP, and a rolling restart of all nodes."""

import signal
from typing import Final

from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import Operator, until
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.whole.faults.fault import Fault
from smg_chaos.gameday.whole.scene import Scene

_READY_S: Final = 60.0
_IN_S: Final = 10.0


async def started(scene: Scene, node: SmgAgent) -> None:
    """Begin another life of a node; return when it is ready, ClusterError if it does not become so."""
    seeds = [other.mesh_address for other in scene.cluster.others(node)]
    await scene.cluster.start_apart([node], seeds)
    if await until(scene.cluster, Operator(node).ready, _READY_S) is None:
        raise ClusterError(f"{node.name} does not become ready:\n{node.last_words()}")


class Kill(Fault):
    """The process ends without a word, and another begins on its files."""

    async def begin(self) -> None:
        """Kill it; its address refuses connections from then on."""
        for node in self.nodes:
            node.signal(signal.SIGKILL)
            assert node.program is not None
            await node.end_of(node.program)

    async def end(self) -> None:
        """Start it again."""
        for node in self.nodes:
            await started(self.scene, node)


class Pause(Fault):
    """The process stands still: its connections stay, and nothing is said."""

    async def begin(self) -> None:
        """Stop it."""
        for node in self.nodes:
            node.signal(signal.SIGSTOP)

    async def end(self) -> None:
        """Let it go on."""
        for node in self.nodes:
            node.signal(signal.SIGCONT)


class Rolling(Fault):
    """Every node is told to leave, in turn, and comes back before the next one goes.

    No client should notice.
    """

    async def begin(self) -> None:
        """Restart them all; ClusterError if one does not end, or does not come back."""
        for node in self.scene.nodes:
            node.signal(signal.SIGTERM)
            assert node.program is not None
            if await node.end_of(node.program) is None:
                raise ClusterError(f"{node.name} does not end:\n{node.last_words()}")
            await started(self.scene, node)
            # As an upgrade does: the next one goes when the balancer sends this one something again.
            await until(self.scene.cluster, lambda now=node: self._is_in(now), _IN_S)

    async def _is_in(self, node: SmgAgent) -> bool:
        return node.name in self.scene.balancer.up()

    async def end(self) -> None:
        """Do nothing: all nodes are back."""
