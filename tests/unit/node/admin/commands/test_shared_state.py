"""`smg-admin audit`, `sessions`, `cluster state` and the cluster's view of workers, against the real routes."""

import asyncio
import json
from pathlib import Path

from support.http.admin_api import RunAdmin
from support.http.http_node import Node, node
from support.state.fake_shared_state import FakeNamespaceState


async def admin(run: RunAdmin, served: Node, *words: str) -> tuple[int, str, str]:
    return await asyncio.to_thread(run, "--url", f"http://127.0.0.1:{served.port}", *words)


async def test_the_audit_log_tells_what_changed(run: RunAdmin) -> None:
    async with node() as served:
        nothing = await admin(run, served, "audit")
        await admin(run, served, "workers", "patch", "w-1", "--priority", "80")
        await admin(run, served, "config", "set", "limits.n_max", "4")
        table = await admin(run, served, "audit")
        (row,) = json.loads(
            (await admin(run, served, "audit", "--action", "worker", "--json", "--limit", "3"))[1]
        )
        none = await admin(run, served, "audit", "--subject", "other", "--who", "x", "--node", "y")
    assert nothing[1] == "Nothing was changed that is still remembered.\n"
    lines = table[1].splitlines()
    assert lines[0].split() == ["ID", "TIME", "ON", "BY", "ACTION", "SUBJECT", "CHANGE"]
    assert " ".join(lines[1].split()).endswith("setting.set limits.n_max - -> value=4")
    assert " ".join(lines[2].split()).endswith("worker.change w-1 priority: 50 -> 80")
    assert "loopback from 127.0.0.1" in lines[1]
    assert (row["subject"], row["after"]["priority"]) == ("w-1", 80)
    assert none[1] == nothing[1]


async def test_a_worker_is_patched_with_what_is_said(run: RunAdmin, tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("sk-secret-of-the-engine\n")
    async with node() as served:
        words = ["--cost", "0.5", "--label", "rack=r2", "--api-key-file", str(secret)]
        done = await admin(run, served, "workers", "patch", "grpc://e:1", *words)
        bare = await admin(
            run, served, "workers", "patch", "w-1", "--no-labels", "--no-api-key", "--json"
        )
        nothing = await admin(run, served, "workers", "patch", "w-1")
        bad = await admin(run, served, "workers", "patch", "w-1", "--priority", "-1")
        first, second = (call[2] for call in served.workers.calls)
    assert done[1] == "w-1 is changed on every node: api_key, cost, labels\n"
    assert (first.cost, first.labels, first.api_key) == (
        0.5,
        {"rack": "r2"},
        "sk-secret-of-the-engine",
    )
    assert (second.labels, second.api_key, second.priority) == ({}, "", None)
    assert json.loads(bare[1])["has_key"] is False
    assert nothing[0] == 2
    assert (bad[0], "priority must be" in bad[2]) == (1, True)
    assert "sk-secret" not in done[1] + bare[1] + repr(served.world.rows)


async def test_a_worker_is_added_with_its_full_spec(run: RunAdmin, tmp_path: Path) -> None:
    secret, empty = tmp_path / "key", tmp_path / "empty"
    secret.write_text("sk-1\n")
    empty.write_text("\n")
    words = ["--priority", "0", "--cost", "2", "--contract", "sglang", "--model", "m2"]
    async with node() as served:
        code, _, _ = await admin(
            run, served, "workers", "add", "grpc://e:2", *words, "--api-key-file", str(secret)
        )
        ((_, wish),) = served.workers.calls
        refused = await admin(
            run, served, "workers", "add", "grpc://e:3", "--api-key-file", str(empty)
        )
    assert code == 0
    assert (wish.priority, wish.cost, wish.contract, wish.model) == (0, 2.0, "sglang", "m2")
    assert wish.api_key == "sk-1"
    assert (refused[0], "holds no key" in refused[2]) == (1, True)


async def test_the_clusters_view_of_the_workers_is_listed_and_shown(run: RunAdmin) -> None:
    async with node() as served:
        table = await admin(run, served, "workers", "list", "--cluster")
        none = await admin(run, served, "workers", "list", "--cluster", "--status", "failed")
        rows = json.loads((await admin(run, served, "workers", "list", "--cluster", "--json"))[1])
        shown = await admin(run, served, "workers", "show", "w-1")
        machine = json.loads((await admin(run, served, "workers", "show", "w-1", "--json"))[1])
    assert "b, not c" in table[1]
    assert none[1] == "There are no workers.\n"
    assert rows[0]["probers"] == ["b", "c"]
    assert "What the cluster says:" in shown[1]
    assert "down (no answer), 340 ms ago" in shown[1]
    assert "4 requests, 40 tokens, told 200 ms ago" in shown[1]
    assert "worker_type" not in shown[1]
    assert machine["cluster"]["registered_by"] == "b"


async def test_replicated_state_is_compared_with_the_other_members(run: RunAdmin) -> None:
    async with node() as served:
        served.world.desks("b")
        same = await admin(run, served, "cluster", "state")
        one = await admin(run, served, "cluster", "state", "settings", "--json")
        alone = await admin(run, served, "cluster", "state", "--alone")
        served.world.nodes["b"].states["workers"] = FakeNamespaceState("ffff")
        served.world.nodes["node-a"].held = False
        differ = await admin(run, served, "cluster", "state")
        of_one = await admin(run, served, "cluster", "state", "workers")
        served.world.meshes["node-a"].silent.add("b")
        silent = await admin(run, served, "cluster", "state")
        none = await admin(run, served, "cluster", "state", "nonsense")
    assert (same[0], same[1].splitlines()[-1]) == (0, "b holds the same")
    assert json.loads(one[1])["namespace"]["digest"] == "00ff"
    assert len(alone[1].splitlines()) == 3
    assert (differ[0], differ[1].splitlines()[-1]) == (1, "b differs: workers")
    assert "still joining" in differ[2]
    assert of_one[1].splitlines()[-1] == "b differs: another digest"
    assert "cannot be compared" in silent[1]
    assert (none[0], "no namespace is called" in none[2]) == (1, True)


async def test_a_sticky_placement_is_shown_and_ended(run: RunAdmin) -> None:
    async with node() as served:
        shown = await admin(run, served, "sessions", "show", "key-1", "--model", "m")
        ended = await admin(run, served, "sessions", "end", "key-1", "--model", "m")
        gone = await admin(run, served, "sessions", "show", "key-1", "--model", "m", "--json")
    assert "by least_load, on b" in shown[1]
    assert ended[1] == "4be1d2f39a07c655 no longer goes to w-1\n"
    assert gone[0] == 1
