import asyncio
import json
from contextlib import AsyncExitStack

import pytest

from smg_node.http.app import Server
from smg_node.http.ports.node import ClusterEvent
from smg_node.http.routes.cluster.events import WATCHERS_MAX
from support.http.http_node import Node, node
from support.http.raw_http import RawClient, ask, connect, until

PATH = "/v1/cluster/events"


def happened(number: int, kind: str = "member_up") -> ClusterEvent:
    return ClusterEvent(number, 1_700_000_000_000 + number, kind, "b", {"why": "a\nb"})


async def watch(client: RawClient, query: str = "", **headers: str) -> tuple[int, dict[str, str]]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    await client.send("GET", f"{PATH}?stream=true{query}", headers=sent)
    return await client.head()


async def drained(server: Server) -> None:
    async with asyncio.timeout(20):
        await server.drain()


def tell(served: Node, *numbers: int) -> None:
    for number in numbers:
        served.cluster.tell(happened(number))


async def test_events_are_listed_after_an_id() -> None:
    async with node() as served:
        tell(served, 1, 2, 3)
        whole = (await ask(served.port, "GET", PATH)).json()
        rest = (await ask(served.port, "GET", f"{PATH}?after=2")).json()
    assert (whole["node"], whole["boot"]) == ("node-a", 7)
    assert [event["id"] for event in whole["events"]] == [1, 2, 3]
    assert rest["events"] == [
        {
            "id": 3,
            "time_ms": 1_700_000_000_003,
            "kind": "member_up",
            "name": "b",
            "detail": {"why": "a\nb"},
        }
    ]


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "9" * 30, "%C2%B2"])
async def test_an_id_that_is_none_is_refused(after: str) -> None:
    async with node() as served:
        refused = await ask(served.port, "GET", f"{PATH}?after={after}")
    assert (refused.status, refused.error()["param"]) == (400, "after")


async def test_a_stream_begins_at_once_and_carries_events_as_they_come() -> None:
    async with node() as served, connect(served.port) as client:
        tell(served, 1, 2)
        status, headers = await watch(client, "&after=1")
        assert status == 200
        assert headers["content-type"] == "text/event-stream; charset=utf-8"
        assert await client.chunk() == b": watching\n\n"
        second = (await client.chunk()).decode()
        served.cluster.tell(happened(3, "member_down"))
        third = (await client.chunk()).decode()
    head, data, *rest = second.partition("data: ")
    assert head == "id: 2\nevent: member_up\n"
    assert json.loads("".join(rest))["id"] == 2
    assert second.count("\n") == 4
    assert data
    assert third.startswith("id: 3\nevent: member_down\ndata: {")


async def test_a_client_that_comes_back_goes_on_where_it_was() -> None:
    async with node() as served, connect(served.port) as client:
        tell(served, 1, 2)
        await watch(client, last_event_id="1")
        await client.chunk()
        assert (await client.chunk()).startswith(b"id: 2\n")


async def test_a_quiet_stream_is_kept_alive() -> None:
    async with (
        node(commit_after_s=0.04, keepalive_s=0.04) as served,
        connect(served.port) as client,
    ):
        await watch(client)
        assert await client.chunk() == b": watching\n\n"
        assert await client.chunk() == b": ping\n\n"


async def test_a_watcher_that_goes_away_is_forgotten() -> None:
    async with node() as served:
        async with connect(served.port) as client:
            await watch(client)
            await client.chunk()
            assert served.cluster.watching == 1
            client.vanish()
        await until(lambda: served.cluster.watching == 0)


async def test_no_farewell_waits_for_a_watcher() -> None:
    async with node(grace_s=600.0) as served, connect(served.port) as client:
        await watch(client)
        assert await client.chunk() == b": watching\n\n"
        await drained(served.server)
        assert await client.chunk() == b""
        await until(lambda: served.cluster.watching == 0)


async def test_watchers_do_not_count_as_requests_in_flight() -> None:
    async with node() as served, connect(served.port) as client:
        await watch(client)
        await client.chunk()
        assert served.sample("smg_node_http_requests_inflight") == 0


async def test_there_is_a_limit_to_watchers() -> None:
    async with node() as served, AsyncExitStack() as stack:
        for _ in range(WATCHERS_MAX):
            client = await stack.enter_async_context(connect(served.port))
            assert (await watch(client))[0] == 200
        one_more = await ask(served.port, "GET", f"{PATH}?stream=true")
    assert (one_more.status, one_more.error()["code"]) == (503, "too_many_watchers")


async def test_a_head_request_is_not_streamed_to() -> None:
    async with node() as served, connect(served.port) as client:
        await client.send("HEAD", f"{PATH}?stream=true")
        assert (await client.response(bodiless=True)).status == 200
