"""The scripted API server in a thread of its own, for tests that wait for processes."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, TypeVar

from smg_chaos.kubernetes.cluster import Cluster
from smg_chaos.kubernetes.faults import Faults
from smg_chaos.kubernetes.server import KubernetesServer
from support.kubernetes.kube_client import KubeClient

SPACE: Final = "serving"
"""The namespace of its pods."""
T = TypeVar("T")


class ApiServer:
    """A scripted API server in a thread of its own, which does one thing after the other, and who changes its pods."""

    def __init__(self) -> None:
        self.server = KubernetesServer(Cluster(), faults=Faults(bookmark_s=1.0))
        self._work: asyncio.Queue[Callable[[], Coroutine[Any, Any, None]] | None] = asyncio.Queue()
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        self.port = self.do(lambda: self.server.listen("127.0.0.1", 0))
        self.client = self.do(self._client)

    async def _serve(self) -> None:
        self._loop.set_result(asyncio.get_running_loop())
        while (work := await self._work.get()) is not None:
            await work()

    async def _client(self) -> KubeClient:
        return KubeClient(f"http://127.0.0.1:{self.port}")

    def do(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do something in its loop."""
        done: Future[T] = Future()

        async def answered() -> None:
            try:
                done.set_result(await work())
            except Exception as error:
                # A door: whoever asked in the other thread is told.
                done.set_exception(error)

        self._loop.result(30).call_soon_threadsafe(self._work.put_nowait, answered)
        return done.result(30)

    def pod(self, name: str, address: str, *, is_ready: bool = True, **labels: str) -> None:
        """Make a pod whose engine is at that address; `app` is vllm."""
        labels = {"app": "vllm", **labels}
        self._pod(name, labels, address, "smg.ai/worker-ports", is_ready=is_ready)

    def peer(self, name: str, address: str) -> None:
        """Make the pod of a node whose mesh is at that address; it is not ready."""
        labels = {"app": "smg-node"}
        self._pod(name, labels, address, "sglang.ai/mesh-port", is_ready=False)

    def _pod(
        self, name: str, labels: dict[str, str], address: str, annotation: str, *, is_ready: bool
    ) -> None:
        host, _, port = address.rpartition(":")
        self.do(
            lambda: self.client.pod(
                name,
                namespace=SPACE,
                labels=labels,
                ip=host,
                is_ready=is_ready,
                annotations={annotation: port},
            )
        )

    def kubeconfig(self, path: Path) -> Path:
        """Write a file that leads to it; return its path."""
        path.write_text(
            "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],"
            f" clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{self.port}'}}}}],"
            " users: [{name: u, user: {token: t}}]}"
        )
        return path

    def ready(self, name: str, *, is_ready: bool) -> None:
        """Let its kubelet say whether it is ready."""
        self.do(lambda: self.client.runs(SPACE, name, ip="127.0.0.1", is_ready=is_ready))

    def label(self, name: str, **labels: str) -> None:
        """Change what it is selected by."""
        self.do(lambda: self.client.mark(SPACE, name, labels=labels))

    def delete(self, name: str, grace_s: int = 0) -> None:
        """End it."""
        self.do(lambda: self.client.delete(SPACE, name, grace_s=grace_s))

    @property
    def watches(self) -> tuple[int, int]:
        """How many watches are open, and how many were at once."""
        return self.server.audit.watches, self.server.audit.most_watches

    def close(self) -> None:
        """End it."""
        self.do(self.client.close)
        self.do(self.server.close)
        self._loop.result(30).call_soon_threadsafe(self._work.put_nowait, None)
        self._thread.join(10)
