import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.http.forwarding.control_proxy import PEER, Forwarding, Trusting
from smg_node.http.forwarding.proxied_answer import passed_answer
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.request_head import Head
from smg_node.http.ports.node import ClusterEvent
from smg_node.http.route_table import ROUTES
from support.http.http_node import Node, chat, hello, node
from support.http.raw_http import ask, connect, until


@asynccontextmanager
async def both(
    folder: Path, linked: Callable[[], bool] = lambda: True
) -> AsyncIterator[tuple[Node, Node]]:
    """Yield the surface of a data process, and that of its control process behind it."""
    path = str(folder / "http")
    async with (
        node(hello, elsewhere=Trusting(), listen=f"unix:{path}") as control,
        node(hello, elsewhere=Forwarding(path, linked)) as data,
    ):
        yield data, control


def asked_of(served: Node) -> list[str]:
    lines = [json.loads(line) for line in served.access.lines]
    return [f"{line['method']} {line['path']}" for line in lines]


async def test_each_process_answers_and_logs_what_is_its_own(tmp_path: Path) -> None:
    async with both(tmp_path) as (data, control):
        async with connect(data.port) as client:
            for method, path, body in (
                ("POST", "/v1/chat/completions", json.dumps(chat()).encode()),
                ("GET", "/workers", b""),
                ("GET", "/v1/models", b""),
                ("GET", "/v1/cluster/keys?all=true", b""),
            ):
                await client.send(method, path, body)
                assert (await client.response()).status == 200, path
        here, there = asked_of(data), asked_of(control)
    assert here == ["POST /v1/chat/completions", "GET /v1/models"]
    assert there == ["GET /workers", "GET /v1/cluster/keys"]
    peers = {json.loads(line)["peer"] for line in control.access.lines}
    assert peers == {"127.0.0.1"}, "whoever asked, and not the process in between"


async def test_nobody_can_say_who_he_is_by_our_own_header(tmp_path: Path) -> None:
    async with both(tmp_path) as (data, control):
        await ask(data.port, "GET", "/workers", headers={PEER: "10.9.8.7", "X-SMG-Peer": "::1"})
        await ask(data.port, "GET", "/v1/models", headers={PEER: "10.9.8.7"})
    assert [json.loads(line)["peer"] for line in control.access.lines] == ["127.0.0.1"]
    assert [json.loads(line)["peer"] for line in data.access.lines] == ["127.0.0.1"]


async def test_bodies_pass_whole_however_they_are_framed(tmp_path: Path) -> None:
    body = json.dumps({"url": "grpc://127.0.0.1:9", "labels": {"a": "b" * 90_000}}).encode()
    async with both(tmp_path) as (data, control):
        with_length = await ask(data.port, "POST", "/workers", json.loads(body))
        direct = len(control.access.lines)
        async with connect(data.port) as client:
            headers = {"transfer-encoding": "chunked", "content-length": "-"}
            await client.send("POST", "/workers", headers=headers)
            for at in range(0, len(body), 30_000):
                part = body[at : at + 30_000]
                client.writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            client.writer.write(b"0\r\n\r\n")
            chunked = await client.response()
            await client.send("GET", "/v1/models")
            assert (await client.response()).status == 200, "the connection goes on"
    assert direct == 1
    assert chunked.status == with_length.status
    assert chunked.json() == with_length.json()


async def test_a_body_that_is_not_framed_as_it_should_be_ends_with_a_word(tmp_path: Path) -> None:
    async with both(tmp_path) as (data, _), connect(data.port) as client:
        headers = {"transfer-encoding": "chunked", "content-length": "-"}
        await client.send("POST", "/workers", headers=headers)
        client.writer.write(b"2\r\n{}\r\nno length\r\n")
        answer = await client.response()
        assert (answer.status, answer.error()["code"]) == (400, "invalid_body")
        assert answer.headers["connection"] == "close"


async def test_a_request_keeps_its_id_and_a_client_its_expectation(tmp_path: Path) -> None:
    async with both(tmp_path) as (data, _), connect(data.port) as client:
        headers = {"x-request-id": "mine", "expect": "100-continue", "content-length": "2"}
        await client.send("POST", "/workers", headers=headers)
        assert (await client.head())[0] == 100
        client.writer.write(b"{}")
        answer = await client.response()
        assert (answer.status, answer.headers["x-request-id"]) == (400, "mine")


async def test_a_stream_passes_as_it_comes_and_ends_with_its_client(tmp_path: Path) -> None:
    async with both(tmp_path) as (data, control):
        async with connect(data.port) as client:
            await client.send("GET", "/v1/cluster/events?stream=true")
            status, headers = await client.head()
            assert (status, headers["transfer-encoding"]) == (200, "chunked")
            assert control.sample("smg_http_inflight") == 0, "it only watches"
            control.cluster.tell(ClusterEvent(1, 1, "member_up", "b", {}))
            assert b"watching" in await client.chunk()
            assert b"member_up" in await client.chunk()
        await until(lambda: asked_of(control))


async def test_head_has_no_body_and_old_clients_get_one_without_chunks(tmp_path: Path) -> None:
    async with both(tmp_path) as (data, _), connect(data.port) as client:
        await client.send("HEAD", "/workers")
        assert (await client.response(bodiless=True)).status == 200
        await client.send("GET", "/workers", version="1.0")
        answer = await client.response()
        assert answer.headers["connection"] == "close"
        assert answer.json()["workers"]


async def test_without_a_control_process_clients_are_told_to_come_again(tmp_path: Path) -> None:
    linked = [True]
    async with both(tmp_path, lambda: linked[0]) as (data, control):
        linked[0] = False
        away = await ask(data.port, "GET", "/workers")
        assert (away.status, away.headers["retry-after"]) == (503, "1")
        assert away.error()["code"] == "control_away"
        assert (await ask(data.port, "POST", "/v1/chat/completions", chat())).status == 200
        linked[0] = True
        await control.server.stop()
        gone = await ask(data.port, "GET", "/workers")
        assert gone.error()["code"] == "control_away"


async def test_a_path_that_is_none_is_answered_here(tmp_path: Path) -> None:
    async with both(tmp_path) as (data, control):
        answer = await ask(data.port, "GET", "/v1/nothing")
        wrong = await ask(data.port, "DELETE", "/workers")
        encoded = await ask(data.port, "GET", "/%77orkers")
    assert (answer.status, wrong.status, encoded.status) == (404, 405, 200)
    assert asked_of(control) == ["GET /%77orkers"]


def test_what_clients_ask_all_the_time_is_answered_by_data_processes() -> None:
    by_data = {route.path for route in ROUTES if route.by == "data"}
    often = {"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/models"}
    assert often | {"/readiness", "/liveness", "/health"} <= by_data
    changing = [
        one for one in ROUTES if one.access == "admin" and not one.path.startswith("/parse")
    ]
    assert {one.by for one in changing} == {"control"}, "who changes something needs who writes"


class _Whole:
    whole = True


def asked(*, http11: bool = True) -> HttpRequest:
    body, line = _Whole(), object()
    head = Head("GET", "/", {}, [], http11=http11, keep_alive=http11)
    return HttpRequest(head, body, line)  # type: ignore[arg-type]  # read for its head only


@given(st.binary(max_size=300), st.integers(0, 300), st.integers(1, 7))
def test_an_answer_is_whole_when_its_last_byte_came_and_never_before(
    body: bytes, missing: int, step: int
) -> None:
    for head, data in (
        (b"content-length: %d\r\n" % len(body), body),
        (
            b"transfer-encoding: chunked\r\n",
            b"%x\r\n%b\r\n0\r\n\r\n" % (len(body) or 1, body or b"x"),
        ),
    ):
        answer = passed_answer(
            b"HTTP/1.1 200 OK\r\n" + head + b"connection: close\r\n\r\n", asked()
        )
        assert b"connection" not in answer.head
        sent = data[: max(0, len(data) - missing)]
        for at in range(0, len(sent), step):
            answer.count(sent[at : at + step])
        assert answer.whole == (len(sent) == len(data))


async def test_a_control_process_that_dies_in_the_middle_cannot_pass_for_an_end(
    tmp_path: Path,
) -> None:
    async def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345")
        await writer.drain()
        writer.close()

    path = str(tmp_path / "http")
    dying = await asyncio.start_unix_server(begin, path)
    async with (
        dying,
        node(hello, elsewhere=Forwarding(path, lambda: True)) as data,
        connect(data.port) as client,
    ):
        await client.send("GET", "/workers")
        await client.head()
        with pytest.raises(ConnectionResetError):
            await client.reader.readexactly(100)
