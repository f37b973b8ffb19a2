"""How far a member is with taking no more work, as the route tells it."""

import asyncio
import json
from typing import Any

import msgspec

from smg_mesh.mesh import AskError
from smg_node.cluster.membership.drain_status import DRAIN
from smg_node.http.ports.drain import DrainView, OpenWork
from support.http.chat_client import CHAT, JSON
from support.http.http_node import Node, chat, for_ever, node
from support.http.raw_http import ask, connect, until

STREAM = json.dumps(chat(stream=True)).encode()


async def told(served: Node, name: str = "node-a") -> dict[str, Any]:
    answer = await ask(served.port, "GET", f"/v1/cluster/members/{name}/drain")
    assert answer.status == 200, answer.body
    shown: dict[str, Any] = answer.json()
    return shown


async def test_what_tenants_have_open_is_counted_and_who_looks_is_not() -> None:
    async with node(for_ever) as served, connect(served.port) as one, connect(served.port) as two:
        before = await told(served)
        await one.send("POST", CHAT, STREAM, JSON)
        await until(lambda: served.server.work().streams == 1)
        await two.send("POST", CHAT, json.dumps(chat()).encode(), JSON)
        await until(lambda: served.server.work().requests == 1)
        now = await told(served)
    assert (before["stage"], before["open"], before["patience_s"]) == ("serving", 0, 30)
    assert (now["streams"], now["requests"], now["open"]) == (1, 1, 2)
    assert now["duties"] == {"limits": 2, "workers": 1, "spooled": False}


async def test_a_node_set_aside_settles_drains_and_is_empty() -> None:
    async with node(for_ever, settle_s=0.2) as served, connect(served.port) as client:
        await client.send("POST", CHAT, STREAM, JSON)
        await until(lambda: served.server.work().streams == 1)
        served.server.set_aside(on=True)
        first = await told(served)
        await until(lambda: not served.server.work().taking)
        then = await told(served)
        client.vanish()
        await until(lambda: served.server.work().left == 0)
        last = await told(served)
    assert first["stage"] == "settling"
    assert 0 < first["settle_left_s"] <= 0.2
    assert (then["stage"], then["open"], then["settle_left_s"]) == ("draining", 1, 0)
    assert (last["stage"], last["open"], last["cut_left_s"]) == ("drained", 0, None)


async def test_a_node_that_leaves_says_when_it_cuts_off_what_is_open() -> None:
    async with (
        node(for_ever, settle_s=600.0, grace_s=30.0) as served,
        asyncio.TaskGroup() as tasks,
    ):
        farewell = tasks.create_task(served.server.drain())
        await until(lambda: served.server.farewell_times().cut_left_s is not None)
        leaving = await told(served)
        served.server.hurry()
        await farewell
    assert leaving["stage"] == "leaving"
    assert 620 < leaving["cut_left_s"] <= 630
    assert leaving["patience_s"] == 630


async def test_who_asks_for_readiness_and_what_he_was_told_last_is_shown() -> None:
    async with node() as served:
        await ask(served.port, "GET", "/readiness", headers={"user-agent": "kube-probe/1.31"})
        await ask(served.port, "GET", "/readiness")
        served.server.set_aside(on=True)
        await ask(served.port, "GET", "/readiness")
        probers = (await told(served))["probers"]
    assert [(one["agent"], one["told_ready"]) for one in probers] == [
        ("kube-probe/1.31", True),
        ("", False),
    ]
    assert {one["address"] for one in probers} == {"127.0.0.1"}


async def test_another_member_is_asked_and_its_own_words_are_shown() -> None:
    async def answer(payload: bytes, caller: str) -> bytes:
        return msgspec.msgpack.encode(
            DrainView("whatever", 0, "draining", OpenWork(1, 2, 3, silent=("1-77",)))
        )

    async with node() as served:
        served.world.meshes["b"].answer(DRAIN, answer)
        shown = await told(served, "b")
    assert (shown["name"], shown["boot"], shown["open"]) == ("b", 7, 6)
    assert (shown["background"], shown["silent_processes"]) == (3, ["1-77"])


async def test_strangers_and_members_that_do_not_know_the_question_are_told_apart() -> None:
    async def answer(payload: bytes, caller: str) -> bytes:
        raise AskError("unknown", "b knows nothing about it")

    async with node() as served:
        served.world.meshes["b"].answer(DRAIN, answer)
        stranger = await ask(served.port, "GET", "/v1/cluster/members/x/drain")
        older = await ask(served.port, "GET", "/v1/cluster/members/b/drain")
    assert (stranger.status, stranger.error()["code"]) == (404, "member_not_found")
    assert (older.status, older.error()["code"]) == (502, "member_refused")


async def test_the_dead_are_not_asked() -> None:
    async with node() as served:
        shown = await told(served, "c")
    assert (shown["name"], shown["stage"], shown["open"]) == ("c", "dead", 0)
