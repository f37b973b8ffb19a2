"""A Kubernetes source that runs, and the views that it shows."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random

from smg_node.discovery.kubernetes.api_server import Api, ApiServer
from smg_node.discovery.kubernetes.kube_config import Access
from smg_node.discovery.kubernetes.options import KubernetesOptions
from smg_node.discovery.kubernetes.source import KubernetesSource
from smg_node.discovery.kubernetes.watching import WatchTimes
from smg_node.discovery.sighting import SightingState, View
from smg_node.engines.http.transport import HttpAnswer

PATIENCE_S = 30.0
_LOOK_S = 0.05

READY, UNREADY, LEAVING = SightingState.READY, SightingState.UNREADY, SightingState.LEAVING


class Views:
    """All views that a source showed, with the moment of each by the monotonic clock."""

    def __init__(self, source: KubernetesSource) -> None:
        self.source = source
        self.all: list[View] = []
        self._news = asyncio.Event()

    @property
    def now(self) -> View:
        """The last view."""
        return self.all[-1] if self.all else View({})

    @property
    def states(self) -> dict[str, SightingState]:
        """The state at each endpoint."""
        return {endpoint: one.state for endpoint, one in self.now.sightings.items()}

    def show(self, view: View) -> None:
        """See `Show`."""
        self.all.append(view)
        self._news.set()

    async def until(self, fits: Callable[["Views"], bool], patience_s: float = PATIENCE_S) -> float:
        """Return how long it took until that held; fails if it never does."""
        begun = time.monotonic()
        try:
            async with asyncio.timeout(patience_s):
                while not fits(self):
                    self._news.clear()
                    # What is waited for may be no part of a view.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_LOOK_S):
                            await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"it did not come to that; the last view: {self.now}") from None
        return time.monotonic() - begun

    async def until_states(self, states: dict[str, SightingState]) -> float:
        """Return how long it took until those are the states."""
        return await self.until(lambda views: views.states == states and views.now.whole_ms > 0)

    async def until_watches(self, more: int) -> float:
        """Return how long it took until that many more watches were begun."""
        after = self.source.counts.watches + more
        return await self.until(lambda views: views.source.counts.watches >= after)


class HeldApi(ApiServer):
    """An API server at which nothing is watched until `go_on`: as of a process that slept after its list."""

    def __init__(self, read: Callable[[], Access]) -> None:
        super().__init__(read)
        self._going = asyncio.Event()

    def go_on(self) -> None:
        """Let watches begin."""
        self._going.set()

    async def get(self, path: str) -> HttpAnswer:
        """See `Api`."""
        if "watch=1" in path:
            await self._going.wait()
        return await super().get(path)


@asynccontextmanager
async def running(
    api: Api, options: KubernetesOptions, *, times: WatchTimes | None = None
) -> AsyncIterator[Views]:
    """Run a source against a server, and stop it at the end."""
    source = KubernetesSource(
        "chat",
        options,
        monotonic_s=time.monotonic,
        rng=Random(7),
        api=lambda: api,
        times=times,
    )
    views = Views(source)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(source.run(views.show))
        try:
            yield views
        finally:
            task.cancel()
