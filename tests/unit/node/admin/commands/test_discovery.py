"""`smg-admin discovery status` against the real route."""

import asyncio
import json

from smg_node.cluster.workers.discovery_views import ClusterDiscovery
from support.http.admin_api import RunAdmin
from support.http.http_node import node
from support.shared_sources import SharedSources


async def test_operators_see_sources_who_watches_them_and_what_is_wrong(run: RunAdmin) -> None:
    sources = SharedSources("node-a", "node-b")
    async with node() as served:
        served.parts.discovery = lambda: ClusterDiscovery(sources.shared["node-a"])

        async def command(*words: str) -> tuple[int, str, str]:
            where = ("--url", f"http://127.0.0.1:{served.port}", "discovery", "status")
            return await asyncio.to_thread(run, *where, *words)

        assert "No source of workers is configured" in (await command())[1]
        sources.find("node-a", "x")
        sources.reports["node-a"].publish(
            "kubernetes",
            "chat",
            {
                "standing": "ok",
                "writing": True,
                "sightings": 5,
                "age_ms": 100,
                "waiting": 3,
                "held": "10.0.0.9:1: an operator removed it",
                "unusable": "pod serving/x: wrong ports",
            },
        )
        fine = await command()
        plain = json.loads((await command("--json"))[1])
        failing = {"standing": "failing", "since_ms": 20_000, "trouble": "403 pods list"}
        sources.reports["node-a"].publish("kubernetes", "chat", failing)
        wrong = await command()
    assert fine[0] == 0
    for word in ("kubernetes/chat", "node-a", "5", "ok"):
        assert word in fine[1]
    for note in ("an operator removed it", "wrong ports", "3 wait for room"):
        assert note in fine[2]
    assert plain["sources"][0]["members"][0]["sightings"] == 5
    assert (wrong[0], "403 pods list" in wrong[2], "failing" in wrong[1]) == (1, True, True)
