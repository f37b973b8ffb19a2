"""What the server does by itself, whichever of the two it is: the order of requests, ends of connections, sockets."""

import asyncio
import json
import stat
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from support.http.http_node import FakeRun, chat, hello, node
from support.http.raw_http import RawClient, connect, until

pytestmark = pytest.mark.usefixtures("either_server")

CHAT = "/v1/chat/completions"
GOOD = json.dumps(chat()).encode()
LIVE = b"GET /liveness HTTP/1.1\r\nHost: x\r\n\r\n"


def post(path: str, body: bytes, *lines: str) -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: x", *lines, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(head).encode() + body


async def statuses(client: RawClient, count: int) -> list[int]:
    return [(await client.response()).status for _ in range(count)]


async def test_requests_that_do_not_wait_are_answered_in_their_order() -> None:
    async with node() as served, connect(served.port) as client:
        client.writer.write(LIVE + post(CHAT, GOOD) + post("/nowhere", b"{}") + LIVE)
        assert await statuses(client, 4) == [200, 200, 404, 200]


async def test_any_number_of_requests_may_come_at_once() -> None:
    async with node() as served, connect(served.port) as client:
        client.writer.write((LIVE + post(CHAT, GOOD)) * 300)
        assert await statuses(client, 600) == [200] * 600
        assert len(served.generations.runs) == 300


async def test_what_is_no_request_is_answered_after_those_before_it() -> None:
    async with node() as served, connect(served.port) as client:
        client.writer.write(post(CHAT, GOOD))
        await until(lambda: served.generations.runs)
        client.writer.write(b"nonsense\r\n\r\n")
        assert await statuses(client, 2) == [200, 400]
        assert await client.at_end()


async def test_nothing_is_read_after_a_request_that_ends_its_connection() -> None:
    async with node() as served, connect(served.port) as client:
        client.writer.write(post(CHAT, GOOD, "Connection: close"))
        response = await client.response()
        assert (response.status, response.headers["connection"]) == (200, "close")
        assert await client.at_end()
        assert len(served.generations.runs) == 1


async def test_an_old_client_keeps_its_connection_only_if_it_asks() -> None:
    async with node() as served, connect(served.port) as client:
        await client.send("GET", "/liveness", headers={"connection": "keep-alive"}, version="1.0")
        assert (await client.response()).headers["connection"] == "keep-alive"
        await client.send("GET", "/liveness", headers={"host": "-"}, version="1.0")
        assert (await client.response()).headers["connection"] == "close"
        assert await client.at_end()


async def test_the_head_of_an_answer_alone_leaves_the_connection_good() -> None:
    async with node() as served, connect(served.port) as client:
        await client.send("HEAD", "/v1/models")
        head = await client.response(bodiless=True)
        assert int(head.headers["content-length"]) > 0
        await client.send("GET", "/liveness")
        assert (await client.response()).status == 200


async def test_a_request_that_offers_another_protocol_is_answered_in_this_one() -> None:
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
    async with node() as served, connect(served.port) as client:
        client.writer.write(post(CHAT, GOOD, *offer))
        response = await client.response()
        assert (response.status, response.json()["object"]) == (200, "chat.completion")
        client.writer.write(LIVE)
        assert (await client.response()).status == 200


async def test_an_answer_that_came_early_can_be_read_although_the_body_still_comes() -> None:
    body = b" " * 3_000_000
    async with node(body_max_bytes=4096) as served, connect(served.port) as client:
        head = post(CHAT, b"", f"Content-Length: {len(body)}").replace(
            b"Content-Length: 0\r\n", b""
        )
        client.writer.write(head + body[:1000])
        await asyncio.sleep(0.05)
        client.writer.write(body[1000:])
        assert (await client.response()).status == 413
        assert await client.at_end()


async def test_a_large_body_that_nobody_reads_does_not_wait_for_ever() -> None:
    async with node() as served, connect(served.port) as client:
        client.writer.write(post("/nowhere", b" " * 1_000_000))
        assert (await client.response()).status == 404
        assert await client.at_end()


async def test_a_client_that_leaves_while_others_wait_in_line_ends_all_of_them() -> None:
    begun = asyncio.Event()

    async def waits(run: FakeRun):  # type: ignore[no-untyped-def] # a script, as in the support
        begun.set()
        await asyncio.Event().wait()
        async for batch in hello(run):
            yield batch

    async with node(waits) as served:
        async with connect(served.port) as client:
            client.writer.write(post(CHAT, GOOD) * 5)
            await begun.wait()
            client.vanish()
            await served.generations.runs[0].closed.wait()
        await until(lambda: not served.sample("smg_node_http_connections"))
        assert len(served.generations.runs) == 1


async def test_a_unix_socket_is_its_owners_alone_and_replaces_what_was_left_behind(
    tmp_path: Path,
) -> None:
    path = tmp_path / "door"
    for _ in range(2):
        async with node(listen=f"unix:{path}") as served:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert served.server.address.host == str(path)
            reader, writer = await asyncio.open_unix_connection(path)
            client = RawClient(reader, writer)
            # Whoever may open the socket is this machine's operator.
            await client.send("GET", "/workers")
            assert (await client.response()).status == 200
            client.close()
        assert path.exists()


@pytest.mark.parametrize(
    "holds",
    [
        test_requests_that_do_not_wait_are_answered_in_their_order,
        test_any_number_of_requests_may_come_at_once,
        test_what_is_no_request_is_answered_after_those_before_it,
        test_nothing_is_read_after_a_request_that_ends_its_connection,
        test_an_old_client_keeps_its_connection_only_if_it_asks,
        test_the_head_of_an_answer_alone_leaves_the_connection_good,
        test_a_request_that_offers_another_protocol_is_answered_in_this_one,
        test_an_answer_that_came_early_can_be_read_although_the_body_still_comes,
        test_a_large_body_that_nobody_reads_does_not_wait_for_ever,
        test_a_client_that_leaves_while_others_wait_in_line_ends_all_of_them,
    ],
    ids=lambda holds: holds.__name__.removeprefix("test_"),
)
def test_the_same_holds_on_the_loop_of_a_node(
    holds: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    uvloop.run(holds())
