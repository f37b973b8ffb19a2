"""`smg-admin mcp approvals` against the real routes and runs that really wait."""

import asyncio
import json

from support.http.admin_api import RunAdmin
from support.http.http_node import node
from support.mcp.waiting_nodes import WaitingProcess


async def test_operators_list_show_allow_and_deny(run: RunAdmin) -> None:
    async with node() as served:
        process = WaitingProcess("node-a")
        process.connect()
        served.parts.tool_approvals = process.approvals.service

        async def command(*words: str) -> tuple[int, str, str]:
            where = ("--url", f"http://127.0.0.1:{served.port}", "mcp", "approvals")
            return await asyncio.to_thread(run, *where, *words)

        assert "No run waits" in (await command("list"))[1]
        long = json.dumps({"text": "x" * 5_000, "odd": "\x1b[2J"}, ensure_ascii=False)
        async with process.run("drop", long) as first, process.run("send") as second:
            listed = await command("list")
            plain = json.loads((await command("list", "--json"))[1])
            ids = [one["id"] for one in plain["approvals"]]
            shown = await command("show", ids[0])
            allowed = await command("approve", ids[0])
            denied = await command("deny", ids[1], "--reason", "not today", "--json")
            again = await command("deny", ids[0])
            assert (await first).approve
            assert "not today" in (await second).why
        unknown = await command("show", "mcpa_1")
    assert (listed[0], "crm/drop" in listed[1], "crm/send" in listed[1]) == (0, True, True)
    assert "…" in listed[1]
    assert (shown[0], "x" * 5_000 in shown[1], "acme" in shown[1]) == (0, True, True)
    assert "\x1b" not in listed[1] + shown[1]
    assert allowed == (0, "crm/drop goes on on node-a\n", "")
    assert json.loads(denied[1])["approve"] is False
    assert (again[0], "already" in again[2]) == (1, True)
    assert (unknown[0], "mcpa_1" in unknown[2]) == (1, True)


async def test_nodes_that_cannot_be_asked_are_named(run: RunAdmin) -> None:
    async with node() as served:
        served.world.meshes["node-a"].silent.add("b")
        where = ("--url", f"http://127.0.0.1:{served.port}")
        code, _, said = await asyncio.to_thread(run, *where, "mcp", "approvals", "list")
    assert code == 0
    assert "b cannot be asked" in said
