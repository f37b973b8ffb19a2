"""A thousand pods of which two hundred change a minute: nothing is missed, nothing grows, and it costs little.

    pytest --long tests/integration/discovery/test_pod_churn.py --churn-s 3600 --timeout 4000 -s

The API server is another process. What watches, compares and registers is real, up to the documents; there is no fleet
behind it, because what engines cost is not what is measured.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, cast

import pytest

from smg_mesh.shared import Shared
from smg_node.cluster.workers.discovered_workers import DiscoveredWorkers
from smg_node.cluster.workers.source_reports import SourceReports
from smg_node.cluster.workers.worker_registry import ClusterRegistry
from smg_node.discovery.kubernetes.api_server import ApiServer
from smg_node.discovery.kubernetes.kube_config import Access
from smg_node.discovery.kubernetes.options import KubernetesOptions
from smg_node.discovery.kubernetes.source import KubernetesSource
from smg_node.discovery.service import DiscoveryService, Plan
from smg_node.fleet.fleet import Fleet
from support.kubernetes.pod_churn import PORT, SPACE, Churn, Watched
from support.mesh.shared_state_members import make_shared
from support.processes.process import running

pytestmark: Final = [pytest.mark.integration, pytest.mark.long]
CHAOS: Final = Path(sys.executable).with_name("smg-chaos")
PODS: Final = 1_000
PER_MINUTE: Final = 200
SETTLE_S: Final = 60.0
SAMPLE_S: Final = 5.0


@dataclass
class Written:
    """Counts of what was written; fulfils `Notes`."""

    count: int = 0

    def wrote(self, source: str, reason: str, count: int) -> None:
        self.count += count


class NoFleet:
    """Fleet to which workers are declared in vain."""

    def hear(self, *_: object, **__: object) -> None: ...

    def rely_on(self, *_: object, **__: object) -> None: ...

    def apply(self, *_: object) -> None: ...

    def hear_load(self, *_: object, **__: object) -> None: ...

    def loads(self) -> tuple[()]:
        return ()

    def workers(self) -> tuple[()]:
        return ()

    def has_workers(self) -> bool:
        return True


@dataclass
class Writer:
    """The one node that watches."""

    shared: Shared
    found: DiscoveredWorkers
    written: Written

    def document_bytes(self) -> int:
        return self.shared.state()["workers"].size_bytes


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Return the URL of an API server in a process of its own."""
    with running([CHAOS, "kube-api", "--bookmark-s", "5"], folder=tmp_path) as process:
        found: re.Match[str] = process.wait_for(r"url=(http://\S+)", 60.0)
        yield found[1]


@asynccontextmanager
async def writer(base: str, folder: Path) -> AsyncIterator[Writer]:
    """Run a node's discovery in front of a server, alone and with its state on disk."""
    shared, written = make_shared("n1", folder / "state"), Written()
    await shared.open(1)
    registry = ClusterRegistry(shared, cast(Fleet, NoFleet()), monotonic_s=time.monotonic)
    found = DiscoveredWorkers(
        shared.workers,
        registry,
        me="n1",
        is_held=lambda: shared.held,
        now_ms=lambda: int(1000 * time.monotonic()),
    )
    source = KubernetesSource(
        "chat",
        KubernetesOptions("app=vllm", namespace=SPACE, port=str(PORT), scheme="grpc"),
        monotonic_s=time.monotonic,
        rng=Random(3),
        api=lambda: ApiServer(lambda: Access(base, SPACE)),
    )
    reports = SourceReports(shared)
    service = DiscoveryService(
        [Plan(source, "chat")],
        me="n1",
        registry=found,
        reports=reports,
        empty_confirm_s=30,
        monotonic_s=time.monotonic,
        notes=written,
    )
    shared.watch_held(service.wake)
    shared.workers.watch(lambda ids: service.wake())
    reports.watch(service.wake)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run()) for run in (shared.run, registry.run, service.run)]
        try:
            yield Writer(shared, found, written)
        finally:
            for task in tasks:
                task.cancel()
    await shared.close()


async def test_many_pods_that_change_all_the_time(
    server: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    seconds = float(pytestconfig.getoption("--churn-s"))
    churn, watched = Churn(server, PODS, PER_MINUTE, Random(11)), Watched()
    async with writer(server, tmp_path) as node:

        def all_there() -> bool:
            return churn.up.is_set() and len(node.found.known("kubernetes")) == PODS

        churn.start()
        async with asyncio.timeout(600):
            await watched.until(all_there, churn, lambda: node.found.known("kubernetes"))
        watched.taken_s.clear()
        watched.late, before, changes = 0, node.written.count, churn.changes
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            watched.sample(node.document_bytes())
            sampled_s = min(until_s, time.monotonic() + SAMPLE_S)
            await watched.until(
                lambda at_s=sampled_s: time.monotonic() >= at_s,  # type: ignore[misc]  # bound now
                churn,
                lambda: node.found.known("kubernetes"),
            )
        watched.sample(node.document_bytes())
        await asyncio.to_thread(churn.stop)
        writes, changes = node.written.count - before, churn.changes - changes
        quiet_s = time.monotonic() + SETTLE_S
        await watched.until(
            lambda: not (watched.pending or churn.made) or time.monotonic() > quiet_s,
            churn,
            lambda: node.found.known("kubernetes"),
        )
        entries = node.found.known("kubernetes")
        registered = {one: (entry.state, entry.instance) for one, entry in entries.items()}
    documents = [bytes_ for *_, bytes_ in watched.samples]
    told = {"seconds": seconds, "changes": changes, "writes": writes, **watched.summary()}
    sys.stdout.write(json.dumps(told) + "\n")
    assert registered == churn.truth
    assert watched.pending == {}
    # Each change is one write at most, or two where a pod is replaced in the middle of a look.
    assert writes <= 1.2 * changes
    assert watched.cpu_share < 0.05
    # A tombstone and a row are some hundred bytes: what grows with changes would be megabytes after an hour.
    assert documents[-1] < 1.5 * documents[len(documents) // 2]
