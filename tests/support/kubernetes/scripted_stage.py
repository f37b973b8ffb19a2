"""The scripted API server as a stage of sources."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from smg_chaos.kubernetes.cluster import Cluster
from smg_chaos.kubernetes.faults import Faults
from smg_chaos.kubernetes.server import KubernetesServer
from smg_node.discovery.kubernetes.kube_config import Access
from support.kubernetes.kube_client import KubeClient

VERBS = ("list", "watch")


class ScriptedStage:
    """See `KubeStage`. Its bookmarks come every second."""

    bookmark_within_s = 3

    def __init__(self) -> None:
        self.namespace = "serving"
        self.cluster = Cluster()
        self.faults = Faults(bookmark_s=1.0)
        self.server = KubernetesServer(self.cluster, faults=self.faults)
        self.client: KubeClient

    def access(self) -> Access:
        """See `KubeStage`."""
        return Access(f"http://127.0.0.1:{self.server.port}", self.namespace)

    async def allow(self, *verbs: str) -> None:
        """See `KubeStage`. A watch that is open goes on."""
        self.faults.denied = [verb for verb in VERBS if verb not in verbs]

    async def compact(self) -> None:
        """See `KubeStage`."""
        self.cluster.compact()

    async def pause(self) -> None:
        """See `KubeStage`."""
        self.server.stop()

    async def go_on(self) -> None:
        """See `KubeStage`."""
        self.server.go_on()

    async def kill(self) -> None:
        """See `KubeStage`."""
        await self.server.close()

    async def start(self) -> None:
        """See `KubeStage`."""
        await self.server.listen("127.0.0.1", self.server.port)

    async def backup(self) -> object:
        """See `KubeStage`."""
        return self.cluster.backup()

    async def restore(self, backup: Any) -> None:
        """See `KubeStage`."""
        self.cluster.restore(backup)


@asynccontextmanager
async def scripted_stage() -> AsyncIterator[ScriptedStage]:
    """Serve, and close everything at the end."""
    stage = ScriptedStage()
    port = await stage.server.listen("127.0.0.1", 0)
    stage.client = KubeClient(f"http://127.0.0.1:{port}")
    try:
        yield stage
    finally:
        await stage.client.close()
        await stage.server.close()
