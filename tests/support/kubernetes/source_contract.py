"""The suite that a Kubernetes source passes in front of every API server, scripted or real."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

from smg_node.discovery.kubernetes.api_server import ApiServer
from smg_node.discovery.kubernetes.kube_config import Access
from smg_node.discovery.kubernetes.options import KubernetesOptions
from smg_node.discovery.kubernetes.watching import WatchTimes
from support.kubernetes.kube_client import KubeClient
from support.kubernetes.running_source import (
    LEAVING,
    READY,
    UNREADY,
    HeldApi,
    Views,
    running,
)

QUICK: Final = WatchTimes(retry_max_ms=2_000)


class KubeStage(Protocol):
    """An API server in front of which a source runs, with a namespace for one test."""

    namespace: str
    client: KubeClient
    """May do everything."""
    bookmark_within_s: int
    """A watch of so many seconds brings a bookmark, even if nothing happens."""

    def access(self) -> Access:
        """Return how the source reaches it: with the right to list and watch pods in the namespace, and no other."""
        ...

    async def allow(self, *verbs: str) -> None:
        """Let the source do this with pods in the namespace, and nothing else."""
        ...

    async def compact(self) -> None:
        """Forget the history of all objects."""
        ...

    async def pause(self) -> None:
        """Stop the server's process; what it has said stays said."""
        ...

    async def go_on(self) -> None:
        """Let it go on."""
        ...

    async def kill(self) -> None:
        """Kill the server."""
        ...

    async def start(self) -> None:
        """Start it again, with what its store has."""
        ...

    async def backup(self) -> object:
        """Return a backup of the store."""
        ...

    async def restore(self, backup: Any) -> None:
        """Give the server the store of a backup."""
        ...


def a_source(
    stage: KubeStage, times: WatchTimes | None = None, **options: Any
) -> AbstractAsyncContextManager[Views]:
    """Run a source of the pods with the label app=vllm."""
    chosen = {"selector": "app=vllm", "port": "50051", **options}
    wanted = KubernetesOptions(namespace=stage.namespace, **chosen)
    return running(ApiServer(stage.access), wanted, times=times)


async def a_pod(stage: KubeStage, name: str, ip: str, **more: Any) -> str:
    """Make a pod that runs; return its uid."""
    said = {"labels": {"app": "vllm"}, "ip": ip, **more}
    made = await stage.client.pod(name, namespace=stage.namespace, **said)
    return str(made["metadata"]["uid"])


async def pods_are_listed_and_followed(stage: KubeStage) -> None:
    """A ready pod is a ready sighting with its uid, listed or watched; without an address it is none."""
    uid = await a_pod(stage, "vllm-0", "10.1.0.1")
    await stage.client.pod("vllm-1", namespace=stage.namespace, labels={"app": "vllm"})
    async with a_source(stage) as views:
        await views.until_states({"10.1.0.1:50051": READY})
        one = views.now.sightings["10.1.0.1:50051"]
        assert one.instance == uid
        assert one.origin == f"pod {stage.namespace}/vllm-0"
        assert one.url.labels["k8s.pod"] == "vllm-0"
        assert one.url.labels["k8s.namespace"] == stage.namespace
        assert one.url.labels["k8s.node"] == "node-1"
        await stage.client.runs(stage.namespace, "vllm-1", ip="10.1.0.2", is_ready=True)
        took = await views.until_states({"10.1.0.1:50051": READY, "10.1.0.2:50051": READY})
        assert took < 10
        assert views.source.counts.lists == 1


async def readiness_comes_and_goes(stage: KubeStage) -> None:
    """A pod whose condition is false is unready and stays in the view."""
    await a_pod(stage, "vllm-0", "10.1.0.1")
    async with a_source(stage) as views:
        await views.until_states({"10.1.0.1:50051": READY})
        await stage.client.runs(stage.namespace, "vllm-0", ip="10.1.0.1", is_ready=False)
        await views.until_states({"10.1.0.1:50051": UNREADY})
        await stage.client.runs(stage.namespace, "vllm-0", ip="10.1.0.1", is_ready=True)
        await views.until_states({"10.1.0.1:50051": READY})


async def a_graceful_end_is_leaving_and_then_gone(stage: KubeStage) -> None:
    """A pod with a grace leaves first; once its kubelet ended it, its endpoint is gone expressly."""
    await a_pod(stage, "vllm-0", "10.1.0.1")
    async with a_source(stage) as views:
        await views.until_states({"10.1.0.1:50051": READY})
        await stage.client.delete(stage.namespace, "vllm-0")
        await views.until_states({"10.1.0.1:50051": LEAVING})
        await stage.client.delete(stage.namespace, "vllm-0", grace_s=0)
        await views.until_states({})
        assert views.now.gone == {"10.1.0.1:50051"}


async def an_end_without_grace_is_gone_at_once(stage: KubeStage) -> None:
    """A pod that is deleted by force is gone expressly; a new one of its name is another instance."""
    first = await a_pod(stage, "vllm-0", "10.1.0.1")
    async with a_source(stage) as views:
        await views.until_states({"10.1.0.1:50051": READY})
        await stage.client.delete(stage.namespace, "vllm-0", grace_s=0)
        await views.until_states({})
        assert views.now.gone == {"10.1.0.1:50051"}
        second = await a_pod(stage, "vllm-0", "10.1.0.1")
        await views.until_states({"10.1.0.1:50051": READY})
        assert views.now.sightings["10.1.0.1:50051"].instance == second != first
        assert views.now.gone == frozenset()


async def a_label_moved_away_is_missing_and_not_gone(stage: KubeStage) -> None:
    """A pod that is not selected any more lives: it is missing, and back with its label it is the same instance."""
    uid = await a_pod(stage, "vllm-0", "10.1.0.1")
    async with a_source(stage) as views:
        await views.until_states({"10.1.0.1:50051": READY})
        await stage.client.mark(stage.namespace, "vllm-0", labels={"app": "other"})
        await views.until_states({})
        assert views.now.gone == frozenset()
        await stage.client.mark(stage.namespace, "vllm-0", labels={"app": "vllm"})
        await views.until_states({"10.1.0.1:50051": READY})
        assert views.now.sightings["10.1.0.1:50051"].instance == uid


async def annotated_ports_come_and_go(stage: KubeStage) -> None:
    """Two ports, then four, then one: as many workers, all of them of one instance."""
    await a_pod(stage, "vllm-0", "10.1.0.1", annotations={"smg.ai/worker-ports": "7001,7002"})
    async with a_source(stage) as views:
        await views.until_states({f"10.1.0.1:{port}": READY for port in (7001, 7002)})
        for ports in ((7001, 7002, 7003, 7004), (7003,)):
            said = {"smg.ai/worker-ports": ",".join(map(str, ports))}
            await stage.client.mark(stage.namespace, "vllm-0", annotations=said)
            await views.until_states({f"10.1.0.1:{port}": READY for port in ports})
        await stage.client.mark(
            stage.namespace, "vllm-0", annotations={"smg.ai/worker-ports": "7003;"}
        )
        await views.until_states({"10.1.0.1:50051": READY})
        assert "smg.ai/worker-ports" in views.now.unusable[0].why


async def a_completed_pod_is_gone(stage: KubeStage) -> None:
    """A pod that completed keeps its address and is no worker."""
    await a_pod(stage, "vllm-0", "10.1.0.1")
    async with a_source(stage) as views:
        await views.until_states({"10.1.0.1:50051": READY})
        await stage.client.runs(
            stage.namespace, "vllm-0", ip="10.1.0.1", is_ready=False, phase="Succeeded"
        )
        await views.until_states({})
        assert views.now.gone == {"10.1.0.1:50051"}


async def selectors_are_the_servers_own(stage: KubeStage) -> None:
    """Sets, exclusions and absences are understood; what is no selector is named with the server's words."""
    await a_pod(stage, "vllm-0", "10.1.0.1", labels={"app": "vllm", "tier": "chat"})
    await a_pod(stage, "vllm-1", "10.1.0.2", labels={"app": "vllm", "tier": "batch"})
    await a_pod(
        stage, "vllm-2", "10.1.0.3", labels={"app": "vllm", "tier": "chat", "canary": "yes"}
    )
    selector = "app=vllm, tier in (chat,code), tier notin (batch), !canary"
    async with a_source(stage, selector=selector) as views:
        await views.until_states({"10.1.0.1:50051": READY})
    async with a_source(stage, selector="app in vllm)") as views:
        await views.until(lambda views: views.now.trouble != "")
        assert views.now.trouble.startswith(
            f"400: list of pods in the namespace {stage.namespace}: "
        )
        assert "unable to parse" in views.now.trouble
        assert views.now.whole_ms == 0


async def list_and_watch_are_enough(stage: KubeStage) -> None:
    """Without a right the status names verb, resource and namespace, and nothing is lost; given back, it heals."""
    await a_pod(stage, "vllm-0", "10.1.0.1")
    await stage.allow("watch")
    async with a_source(stage, QUICK) as views:
        await views.until(lambda views: views.now.trouble != "")
        expected = f"403: no right to list pods in the namespace {stage.namespace}: "
        assert views.now.trouble.startswith(expected)
        assert views.now.failing_since_ms > 0
        await stage.allow("list")
        await views.until(lambda views: "no right to watch pods" in views.now.trouble)
        assert views.states == {"10.1.0.1:50051": READY}
        await stage.allow("list", "watch")
        await views.until(lambda views: views.now.trouble == "")
        assert views.now.failing_since_ms == 0
        assert views.states == {"10.1.0.1:50051": READY}


async def a_server_that_pauses_loses_nothing(stage: KubeStage) -> None:
    """A server whose process is stopped is silent: the view stays, and what ended meanwhile is gone after it is back."""
    times = WatchTimes(
        silence_ms=3_000, list_deadline_ms=2_000, head_deadline_ms=2_000, retry_max_ms=1_000
    )
    await a_pod(stage, "vllm-0", "10.1.0.1")
    await a_pod(stage, "vllm-1", "10.1.0.2")
    both = {"10.1.0.1:50051": READY, "10.1.0.2:50051": READY}
    async with a_source(stage, times) as views:
        await views.until_states(both)
        await stage.pause()
        await views.until(lambda views: "did not come in time" in views.now.trouble)
        assert views.states == both
        await stage.go_on()
        await stage.client.delete(stage.namespace, "vllm-1", grace_s=0)
        await views.until_states({"10.1.0.1:50051": READY})
        await views.until(lambda views: views.now.trouble == "")
        assert all(set(view.sightings) >= {"10.1.0.1:50051"} for view in views.all if view.whole_ms)


async def a_server_that_dies_loses_nothing(stage: KubeStage) -> None:
    """A server that was killed is named as not to be reached; the view stays until it says otherwise."""
    await a_pod(stage, "vllm-0", "10.1.0.1")
    async with a_source(stage, QUICK) as views:
        await views.until_states({"10.1.0.1:50051": READY})
        await stage.kill()
        await views.until(lambda views: "failed to connect" in views.now.trouble)
        assert views.states == {"10.1.0.1:50051": READY}
        await stage.start()
        await a_pod(stage, "vllm-1", "10.1.0.2")
        await views.until_states({"10.1.0.1:50051": READY, "10.1.0.2:50051": READY})
        await views.until(lambda views: views.now.trouble == "")


async def compacted_history_costs_one_list(stage: KubeStage) -> None:
    """A version that was compacted before it is watched from is an error under status 200: one list, and no flap."""
    await a_pod(stage, "vllm-0", "10.1.0.1")
    held = HeldApi(stage.access)
    options = KubernetesOptions("app=vllm", namespace=stage.namespace, port="50051")
    async with running(held, options, times=QUICK) as views:
        await views.until_states({"10.1.0.1:50051": READY})
        await a_pod(stage, "vllm-1", "10.1.0.2")
        await stage.compact()
        held.go_on()
        await views.until_states({"10.1.0.1:50051": READY, "10.1.0.2:50051": READY})
        assert views.source.counts.expired == 1
        assert views.source.counts.lists == 2
        assert all("10.1.0.1:50051" in view.sightings for view in views.all if view.whole_ms)


async def a_watch_goes_on_where_the_one_before_ended(stage: KubeStage) -> None:
    """A watch that the server ends in time is followed by the next one, without a list and without a gap."""
    times = WatchTimes(watch_min_s=1, watch_max_s=1, early_ms=500)
    await a_pod(stage, "vllm-0", "10.1.0.1")
    async with a_source(stage, times) as views:
        await views.until_states({"10.1.0.1:50051": READY})
        for number in range(1, 6):
            await asyncio.sleep(0.5)
            await a_pod(stage, f"vllm-{number}", f"10.1.0.{number + 1}")
        await views.until(lambda views: len(views.states) == 6)
        assert views.source.counts.lists == 1
        assert views.source.counts.watches >= 2


async def a_restored_backup_is_followed(stage: KubeStage) -> None:
    """A store that went back in time: versions of the future are silent, so the view is listed anew."""
    times = WatchTimes(silence_ms=5_000, retry_max_ms=1_000)
    await a_pod(stage, "vllm-0", "10.1.0.1")
    backup = await stage.backup()
    async with a_source(stage, times) as views:
        await views.until_states({"10.1.0.1:50051": READY})
        for number in range(5):
            await a_pod(stage, f"late-{number}", f"10.1.1.{number + 1}")
        await views.until(lambda views: len(views.states) == 6)
        await stage.restore(backup)
        await views.until_states({"10.1.0.1:50051": READY})
        await a_pod(stage, "vllm-1", "10.1.0.2")
        await views.until_states({"10.1.0.1:50051": READY, "10.1.0.2:50051": READY})


async def long_lists_come_in_pages(stage: KubeStage) -> None:
    """More pods than a page holds are all there."""
    addresses = [f"10.2.{number // 250}.{number % 250 + 1}" for number in range(520)]
    gate = asyncio.Semaphore(16)

    async def make(number: int, address: str) -> None:
        async with gate:
            await a_pod(stage, f"vllm-{number}", address)

    await asyncio.gather(*(make(number, it) for number, it in enumerate(addresses)))
    async with a_source(stage) as views:
        await views.until_states({f"{address}:50051": READY for address in addresses})
        assert views.source.counts.lists == 1


Clause = Callable[[KubeStage], Awaitable[None]]
CONTRACT: Final[tuple[Clause, ...]] = (
    pods_are_listed_and_followed,
    readiness_comes_and_goes,
    a_graceful_end_is_leaving_and_then_gone,
    an_end_without_grace_is_gone_at_once,
    a_label_moved_away_is_missing_and_not_gone,
    annotated_ports_come_and_go,
    a_completed_pod_is_gone,
    selectors_are_the_servers_own,
    list_and_watch_are_enough,
    a_server_that_pauses_loses_nothing,
    a_server_that_dies_loses_nothing,
    compacted_history_costs_one_list,
    a_watch_goes_on_where_the_one_before_ended,
    a_restored_backup_is_followed,
    long_lists_come_in_pages,
)
