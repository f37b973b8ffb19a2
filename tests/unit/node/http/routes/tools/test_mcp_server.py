"""The node's own MCP server over HTTP: the door, its eras, and how calls end."""

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.mcp.server_spec import ServerSpec
from support.http.http_node import node
from support.http.raw_http import ask, connect, until
from support.mcp.client_calls import META, MODERN, events, new, old
from support.mcp.faulty_server import served
from support.mcp.pooled_tools import spec, tools_of
from support.mcp.serving_node import text, world


async def test_the_handshake_gives_no_session() -> None:
    async with world(description="For adding.") as (at, _, _tools):
        offer = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c"}}
        response = await old(at.port, "initialize", offer, path="/mcp/s")
        assert response.status == 200
        assert "mcp-session-id" not in response.headers
        result = response.json()["result"]
        assert result["protocolVersion"] == "2025-06-18"
        assert result["capabilities"] == {"tools": {}}
        assert result["serverInfo"]["name"] == "smg-node"
        assert result["instructions"] == "For adding."
        told = await old(at.port, "notifications/initialized", id_=None)
        assert (told.status, told.body) == (202, b"")
        assert (await old(at.port, "ping")).json()["result"] == {}


@pytest.mark.parametrize("wanted", ["2026-07-28", "2099-01-01", None, 3])
async def test_who_offers_another_revision_is_answered_with_the_newest_of_the_handshake(
    wanted: Any,
) -> None:
    async with node() as at:
        response = await old(at.port, "initialize", {"protocolVersion": wanted})
    assert response.json()["result"]["protocolVersion"] == "2025-11-25"


async def test_discovery_names_revision_and_server() -> None:
    async with world() as (at, _, _tools):
        result = (await new(at.port, "server/discover")).json()["result"]
    assert result["supportedVersions"] == [MODERN]
    assert result["capabilities"] == {"tools": {}}
    assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "smg-node"


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/s"])
async def test_there_are_no_streams_and_sessions_to_get_or_delete(method: str, path: str) -> None:
    async with node() as at:
        response = await ask(at.port, method, path)
    assert response.status == 405
    assert "POST" in response.headers["allow"]


async def test_a_node_without_servers_of_tools_is_a_server_without_tools() -> None:
    async with node() as at:
        assert (await old(at.port, "tools/list")).json()["result"] == {"tools": []}
        result = (await new(at.port, "tools/list")).json()["result"]
        assert (result["tools"], result["ttlMs"]) == ([], 0)
        assert (await new(at.port, "tools/call", {"name": "a__b"})).error()["code"] == -32602
        assert (await old(at.port, "tools/list", path="/mcp/a")).status == 404


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1:1", "", 200),
        ("127.0.0.1:1", "http://127.0.0.1:1", 200),
        ("localhost:1", "http://localhost:1", 200),
        ("[::1]:1", "http://[::1]:1", 200),
        ("127.0.0.1:1", "http://localhost:1", 403),
        ("127.0.0.1:1", "http://127.0.0.1:2", 403),
        ("evil.example.com", "http://evil.example.com", 403),
        ("127.0.0.1:1", "https://evil.example.com", 403),
        ("127.0.0.1:1", "null", 403),
        ("127.0.0.1:1", "http://[", 403),
        ("evil.example.com", "", 200),
    ],
)
async def test_pages_of_foreign_origins_are_refused(host: str, origin: str, status: int) -> None:
    async with node() as at:
        headers = {"host": host, **({"origin": origin} if origin else {})}
        response = await old(at.port, "ping", headers=headers)
    assert response.status == status


async def test_pages_of_allowed_origins_and_of_the_own_name_with_a_key_are_let_in() -> None:
    async with node(cors_allowed_origins=("https://app.example.com",)) as at:
        sent = {"origin": "https://app.example.com"}
        response = await old(at.port, "ping", headers=sent)
        assert response.status == 200
        assert response.headers["access-control-allow-origin"] == "https://app.example.com"
        made = await ask(at.port, "POST", "/v1/cluster/keys", {"tenant": "t", "name": "x"})
        own = {"host": "node.example.com", "origin": "https://node.example.com"}
        assert (await old(at.port, "ping", headers=own)).status == 403
        key = {"authorization": f"Bearer {made.json()['key']}"}
        assert (await old(at.port, "ping", headers={**own, **key})).status == 200


@pytest.mark.usefixtures("either_server")
@pytest.mark.parametrize("name", ["mcp-method", "Mcp-Method", "mcp-protocol-version"])
async def test_a_header_of_the_protocol_counts_once(name: str) -> None:
    async with node() as at, connect(at.port) as client:
        meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        first = {"content-type": "application/json", "mcp-method": "tools/list"}
        sent = {**first, "mcp-protocol-version": MODERN}
        body = json.dumps(message).encode()
        await client.send("POST", "/mcp", body, sent)
        once = await client.response()
        # Two lines of one name, spelled in one.
        again = {**sent, "x-a": f"1\r\n{name}: tools/call"}
        await client.send("POST", "/mcp", body, again)
        twice = await client.response()
    assert once.status == 200
    assert (twice.status, twice.error()["code"]) == (400, -32020)


async def test_a_batch_is_answered_by_a_list_without_its_notifications() -> None:
    async with world() as (at, server, _tools):
        calls = [
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "s__echo"}},
            {"jsonrpc": "2.0", "method": "notifications/cancelled"},
            {"jsonrpc": "2.0", "id": "b", "method": "nothing"},
        ]
        sent = {"content-type": "application/json", "mcp-protocol-version": "2025-03-26"}
        response = await ask(at.port, "POST", "/mcp", json.dumps(calls).encode(), sent)
        quiet = await ask(at.port, "POST", "/mcp", json.dumps(calls[1:2]).encode(), sent)
        assert server.book.runs["echo"] == 1
    assert [(one["id"], "result" in one) for one in response.json()] == [(1, True), ("b", False)]
    assert (quiet.status, quiet.body) == (202, b"")


async def test_each_call_of_a_batch_is_a_run_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [
        {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"name": f"s__{tool}"}}
        for id_, tool in enumerate(("echo", "slow", "echo"))
    ]
    sent = {"content-type": "application/json", "mcp-protocol-version": "2025-03-26"}
    async with world() as (at, server, tools):
        made = tools.call

        async def limited(server: Any, tool: str, *rest: Any) -> Any:
            if tool == "slow":
                raise SmgError(ErrorKind.RATE_LIMITED, "100 a day are used up")
            return await made(server, tool, *rest)

        monkeypatch.setattr(tools, "call", limited)
        response = await ask(at.port, "POST", "/mcp", json.dumps(calls).encode(), sent)
        assert server.book.runs["echo"] == 2
    results = [one["result"] for one in response.json()]
    assert [one.get("isError", False) for one in results] == [False, True, False]
    assert results[1]["content"][0]["text"] == "not run: 100 a day are used up"
    assert len({call[3].key for call in tools.calls}) == 2


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [(b"{", 400, -32700), (b"3", 400, -32600), (b"", 400, -32700), (b"\xff" * 70_000, 400, -32700)],
)
async def test_bodies_that_are_no_message(body: bytes, status: int, code: int) -> None:
    async with node() as at:
        response = await ask(at.port, "POST", "/mcp", body, {"content-type": "application/json"})
    assert (response.status, response.error()["code"], response.json()["id"]) == (
        status,
        code,
        None,
    )


async def test_limits_and_types_of_bodies_are_those_of_all_routes() -> None:
    async with node(body_max_bytes=100) as at:
        large = await old(at.port, "ping", {"x": "x" * 200})
        typed = await ask(at.port, "POST", "/mcp", b"{}", {"content-type": "text/plain"})
    assert (large.status, typed.status) == (413, 415)


@pytest.mark.usefixtures("either_server")
async def test_losing_the_client_cancels_the_call() -> None:
    async with world() as (at, server, _tools):
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "s__slow", "arguments": {"seconds": 30}},
        }
        for accept in ("application/json", "application/json, text/event-stream"):
            before = server.book.cancelled

            def goes_on(before: int = before) -> bool:
                return server.book.methods["tools/call"] > before

            def is_cancelled(before: int = before) -> bool:
                return server.book.cancelled > before

            async with connect(at.port) as client:
                headers = {"content-type": "application/json", "accept": accept}
                await client.send("POST", "/mcp", json.dumps(message).encode(), headers)
                await until(goes_on)
                client.vanish()
            await until(is_cancelled)
        assert not server.book.runs


async def test_a_long_call_shows_a_sign_of_life() -> None:
    async with (
        served() as server,
        tools_of(spec("s", server.url)) as tools,
        node(commit_after_s=0.05, keepalive_s=0.05) as at,
    ):
        at.parts.offered_tools = lambda: tools
        params = {"name": "s__slow", "arguments": {"seconds": 0.5}}
        response = await new(at.port, "tools/call", params)
        plain = await new(at.port, "tools/call", params, headers={"accept": "application/json"})
    assert response.body.startswith(b": ping")
    (answer,) = events(response)
    assert answer["result"]["content"][0]["text"] == "1 steps"
    assert plain.json()["result"] == answer["result"]


@pytest.mark.parametrize("ask", [new, old], ids=["new", "old"])
async def test_progress_reaches_who_wants_it(ask: Any) -> None:
    async with world(answers="sse") as (at, _, _tools):
        params = {"name": "s__slow", "arguments": {"seconds": 0.3, "steps": 3}}
        wanted = {**params, "_meta": {"progressToken": "p"}}
        told = await (
            new(at.port, "tools/call", params, token="p")
            if ask is new
            else old(at.port, "tools/call", wanted)
        )
        *steps, answer = events(told)
        assert [step["params"] for step in steps] == [
            {"progressToken": "p", "progress": done, "total": 3} for done in (1, 2, 3)
        ]
        assert {step["method"] for step in steps} == {"notifications/progress"}
        assert answer["result"]["content"] == [{"type": "text", "text": "3 steps"}]
        plain = await ask(at.port, "tools/call", params)
        assert text(plain) == "3 steps"
        json_only = await ask(
            at.port, "tools/call", wanted if ask is old else params, headers={"accept": "*/*"}
        )
        assert text(json_only) == "3 steps"


async def test_a_node_that_stops_says_so_in_a_stream_that_began() -> None:
    async with (
        served() as server,
        tools_of(spec("s", server.url)) as tools,
        node(commit_after_s=0.01, grace_s=0.3) as at,
    ):
        at.parts.offered_tools = lambda: tools
        params = {"name": "s__slow", "arguments": {"seconds": 30}}
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(new(at.port, "tools/call", params))
            await until(lambda: server.book.methods["tools/call"])
            await at.server.drain()
        (answer,) = events(asking.result())
    assert answer["error"]["code"] == -32603
    assert answer["id"] == 1


async def test_who_is_asked_for_a_trace_passes_it_on() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with world() as (at, _, tools):
        await new(at.port, "tools/call", {"name": "s__echo"}, headers={"traceparent": parent})
    assert tools.calls[0][3].trace == {"traceparent": parent}


async def test_definitions_may_change_between_requests() -> None:
    async with world() as (at, _, tools):
        assert (await old(at.port, "tools/list", path="/mcp/s")).status == 200
        tools.specs = [replace(one, tenants=("nobody",)) for one in tools.specs]
        assert (await old(at.port, "tools/list", path="/mcp/s")).status == 404
        assert isinstance(tools.specs[0], ServerSpec)
