"""`smg-admin discovery` against the real routes."""

import asyncio
import json
from pathlib import Path

from smg_node.cluster.discovery.discovery_service import ClusterSources
from support.http.admin_api import RunAdmin
from support.http.http_node import node
from support.shared_sources import SharedSources, SourcesHere


async def test_operators_see_sources_who_watches_them_and_what_is_wrong(run: RunAdmin) -> None:
    sources = SharedSources("node-a", "node-b")
    async with node() as served:
        served.parts.discovery = lambda: ClusterSources(SourcesHere(), sources.shared["node-a"])

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


async def test_operators_define_and_remove_sources(run: RunAdmin, tmp_path: Path) -> None:
    sources = SharedSources("node-a", "node-b")
    here = SourcesHere(("kubernetes", "chat"), **{"dns/metal": "this release cannot read it"})
    chat, wrong = tmp_path / "chat.yaml", tmp_path / "wrong.yaml"
    chat.write_text("kubernetes:\n  chat: {selector: app=vllm, port: 50051}\n")
    wrong.write_text("selector: app=vllm\nport: no port\n")
    async with node() as served:
        served.parts.discovery = lambda: ClusterSources(here, sources.shared["node-a"])

        async def command(*words: str) -> tuple[int, str, str]:
            where = ("--url", f"http://127.0.0.1:{served.port}")
            return await asyncio.to_thread(run, *where, *words)

        defined = await command("discovery", "define", "kubernetes/chat", "--file", str(chat))
        status = await command("discovery", "status")
        refused = await command("discovery", "define", "kubernetes/chat", "--file", str(wrong))
        nowhere = await command("discovery", "define", "file/chat", "--file", str(chat))
        stale = await command(
            "discovery", "define", "kubernetes/chat", "--file", str(chat), "--if-version", "0"
        )
        settings = tmp_path / "node.yaml"
        settings.write_text(
            f"http: {{}}\ndiscovery:\n  {chat.read_text().replace(chr(10), chr(10) + '  ')}"
        )
        whole = await command("discovery", "define", "kubernetes/chat", "--file", str(settings))
        other = await command("discovery", "define", "kubernetes/pool", "--file", str(settings))
        removed = await command("discovery", "remove", "kubernetes/chat")
        again = await command("discovery", "remove", "kubernetes/chat", "--if-version", "*")
    assert (defined[0], "is defined, version" in defined[1]) == (0, True)
    assert "cluster" in status[1]
    assert "counts, and not this node's own settings" in status[2]
    assert "dns/metal: the cluster's definition is not followed by node-a" in status[2]
    assert (refused[0], "port: 'no port' is neither" in refused[2]) == (1, True)
    assert "each node's own" in nowhere[2]
    assert "changed by somebody else" in stale[2]
    assert whole[0] == 0
    assert (other[0], "has no pool among its kubernetes: chat" in other[2]) == (1, True)
    assert "is gone" in removed[1]
    assert "this node's own settings define it" in removed[2]
    assert (again[0], "defines no source kubernetes/chat" in again[2]) == (1, True)
