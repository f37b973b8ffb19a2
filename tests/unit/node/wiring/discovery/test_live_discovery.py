"""Live discovery: a node follows its own sources and the cluster's, and has nothing of them without any."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from smg_node.cluster.discovery.discovery_service import ClusterSources
from smg_node.config.frozen_settings import plain_settings
from smg_node.config.sections.discovery import Discovery
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.discovery.dns.source import DnsSource
from smg_node.discovery.kubernetes.source import KubernetesSource
from smg_node.discovery.service import DiscoveryService
from smg_node.discovery.source import Show
from smg_node.system_clock import SystemClock
from smg_node.telemetry.metrics.meters import Meters
from smg_node.wiring.discovery.live_discovery import LiveDiscovery
from support.http.raw_http import until
from support.shared_sources import SharedSources

CHAT = {"selector": "app=vllm", "port": 50051}


@pytest.fixture(autouse=True)
def _silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources that are never answered."""

    async def run(self: object, show: Show) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(KubernetesSource, "run", run)
    monkeypatch.setattr(DnsSource, "run", run)


def live(sources: SharedSources, node: str, **own: Any) -> LiveDiscovery:
    discovery = plain_settings(cast(Any, SimpleNamespace(discovery=Discovery(**own)))).discovery
    shared = cast(Any, sources.shared[node])
    shared.held = True
    shared.watch_members = shared.watch_held = lambda heard: None
    base = SimpleNamespace(
        clock=SystemClock(), rng=None, meters=Meters(CollectorRegistry(), version="1")
    )
    outlook = SimpleNamespace(outlook=SimpleNamespace(sights=lambda worker_id: ()))
    return LiveDiscovery(
        cast(Any, SimpleNamespace(discovery=discovery)),
        cast(Any, base),
        shared,
        cast(Any, outlook),
        is_leaving=lambda: False,
    )


@asynccontextmanager
async def running(one: LiveDiscovery) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(one.run())
        try:
            yield
        finally:
            task.cancel()


def names(one: LiveDiscovery) -> list[str]:
    parts = one._parts
    return [] if parts is None else [f"{at.kind}/{at.name}" for at in parts.service.states()]


async def test_a_node_without_sources_has_none_until_the_cluster_defines_one() -> None:
    sources = SharedSources("a")
    one = live(sources, "a")
    assert one.own() == ()
    service = one.service()
    assert isinstance(service, ClusterSources)
    async with running(one):
        await asyncio.sleep(0)
        assert one._parts is None
        checked = service.check("kubernetes", "chat", CHAT)
        service.define("kubernetes", "chat", checked, version=None)
        await until(lambda: names(one) == ["kubernetes/chat"])
        await until(lambda: bool(sources.reports["a"].named()))
        service.remove("kubernetes", "chat", version=None)
        await until(lambda: names(one) == [])


async def test_the_clusters_definition_counts_in_place_of_the_nodes_own_until_it_is_removed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sources = SharedSources("a")
    own = {"kubernetes": {"chat": {"selector": "own=1"}}, "dns": {"metal": {"name": "_x"}}}
    one = live(sources, "a", **own)
    followed: list[DiscoveryService] = []
    async with running(one):
        await until(lambda: names(one) == ["dns/metal", "kubernetes/chat"])
        assert one._parts is not None
        followed.append(one._parts.service)
        sources.definitions["a"].set("kubernetes/chat", {"spec": {"port": 1}}, version=None)
        await until(lambda: names(one) == ["dns/metal"])
        assert list(one.unreadable) == ["kubernetes/chat"]
        assert "kubernetes/chat is not followed here" in caplog.text
        sources.definitions["a"].remove("kubernetes/chat", version=None)
        await until(lambda: names(one) == ["dns/metal", "kubernetes/chat"])
        assert one.unreadable == {}
        assert one._parts.service is followed[0]


def test_a_source_of_the_nodes_own_that_cannot_be_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: object, *given: object, **named: object) -> None:
        raise SmgError(ErrorKind.INVALID_REQUEST, "a spec that is none")

    monkeypatch.setattr(DnsSource, "__init__", refuse)
    with pytest.raises(SmgError):
        live(SharedSources("a"), "a", dns={"metal": {"name": "_x"}})
