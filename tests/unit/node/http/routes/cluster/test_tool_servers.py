"""Servers of tools by HTTP: defined, changed and removed for the whole cluster, with their secrets sealed."""

import json
from typing import Any

import pytest

from smg_mesh.state.providers import sealed_in
from support.http.http_node import Node, node
from support.http.raw_http import Response, ask
from support.mcp.tool_desks import service_of
from support.state.fake_shared_state import FakeShared

SERVERS = "/v1/mcp/servers"
SECRET = "tok-very-secret"
DOCS = {"url": "https://docs.example/mcp", "auth": {"kind": "bearer", "token": SECRET}}


async def send(
    served: Node, method: str, path: str, body: Any = None, version: object = "*"
) -> Response:
    match = {"if-match": str(version), "content-type": "application/json"}
    return await ask(served.port, method, path, body, headers=match)


def shared_of(served: Node, name: str = "node-a") -> FakeShared:
    return served.world.nodes[name]


def secrets_of(served: Node, name: str) -> Any:
    found = shared_of(served, "b").providers.get(f"mcp/servers/{name}")
    assert found is not None
    assert SECRET not in json.dumps(found.value)
    sealed = sealed_in(found.value)
    if not sealed:
        return {}
    opened = shared_of(served).open_secret(sealed["all"])
    assert opened is not None
    return json.loads(opened)


async def test_a_server_is_defined_for_the_whole_cluster_and_its_secrets_are_sealed() -> None:
    async with node() as served:
        answer = await send(served, "PUT", f"{SERVERS}/docs", DOCS, 0)
        shown = await send(served, "GET", f"{SERVERS}/docs")
        listed = await send(served, "GET", SERVERS)
        secrets = secrets_of(served, "docs")
        elsewhere = service_of("b", served.world).server("docs")
    view = answer.json()
    assert (answer.status, shown.json()) == (200, view)
    assert answer.headers["etag"] == f'"{view["version"]}"'
    assert listed.json() == {"node": "node-a", "servers": [view], "unreadable": {}}
    assert (view["source"], view["owner"], view["trouble"]) == ("cluster", "node-a", "")
    assert view["spec"] == {"url": DOCS["url"], "auth": {"kind": "bearer"}}
    assert view["secrets"] == {"token": "(set)"}
    assert secrets == {"token": SECRET}
    assert (elsewhere.spec, elsewhere.version) == (view["spec"], view["version"])
    for said in (answer.body, shown.body, listed.body):
        assert SECRET.encode() not in said


async def test_the_audit_log_has_every_change_and_no_secret() -> None:
    async with node() as served:
        await send(served, "PUT", f"{SERVERS}/docs", DOCS)
        changed = {**DOCS, "auth": {"kind": "bearer", "token": "env:DOCS"}}
        await send(served, "PUT", f"{SERVERS}/docs", changed)
        await send(served, "DELETE", f"{SERVERS}/docs")
        rows = served.world.rows
    assert [(row.action, row.subject) for row in rows] == [
        ("mcp.set", "docs"),
        ("mcp.set", "docs"),
        ("mcp.remove", "docs"),
    ]
    assert (rows[0].before, rows[0].after["secrets"]) == (None, {"token": "(set)"})
    # The log itself shows nothing that is called a token.
    assert rows[1].after["secrets"] == {"token": "(set)"}
    assert rows[2].after is None
    assert SECRET not in repr(rows)


@pytest.mark.parametrize(
    ("after", "kept"),
    [
        ({"url": "https://docs.example/other", "auth": {"kind": "bearer"}}, {"token": SECRET}),
        ({"url": "https://docs.example/mcp", "auth": "none"}, {}),
        ({**DOCS, "auth": {"kind": "bearer", "token": "t2"}}, {"token": "t2"}),
    ],
)
async def test_a_secret_that_is_left_out_stays(after: Any, kept: Any) -> None:
    async with node() as served:
        await send(served, "PUT", f"{SERVERS}/docs", DOCS)
        answer = await send(served, "PUT", f"{SERVERS}/docs", after)
        assert answer.status == 200, answer.body
        assert secrets_of(served, "docs") == kept


@pytest.mark.parametrize(
    "after",
    [
        {"url": "https://evil.example/mcp", "auth": {"kind": "bearer"}},
        {"url": "http://docs.example/mcp", "auth": {"kind": "bearer"}},
        {"url": "https://docs.example:444/mcp", "auth": {"kind": "bearer"}},
        {"url": "https://docs.example/mcp", "auth": {"kind": "headers"}},
    ],
)
async def test_a_secret_does_not_go_where_it_was_not_given_for(after: Any) -> None:
    async with node() as served:
        await send(served, "PUT", f"{SERVERS}/docs", DOCS)
        answer = await send(served, "PUT", f"{SERVERS}/docs", after)
    assert (answer.status, answer.json()["error"]["code"]) == (400, "invalid_mcp_server")
    assert answer.json()["error"]["param"].startswith("auth.")


async def test_a_name_in_the_body_makes_a_new_one_and_no_other() -> None:
    async with node() as served:
        made = await send(served, "POST", SERVERS, {"name": "docs", **DOCS})
        again = await send(served, "POST", SERVERS, {"name": "docs", **DOCS})
        unnamed = await send(served, "POST", SERVERS, DOCS)
    assert (made.status, made.json()["name"]) == (201, "docs")
    assert (again.status, again.json()["error"]["code"]) == (409, "stale")
    assert (unnamed.status, unnamed.json()["error"]["param"]) == (400, "name")


async def test_a_change_names_the_version_that_it_is_of() -> None:
    async with node() as served:
        first = (await send(served, "PUT", f"{SERVERS}/docs", DOCS, 0)).json()
        second = await send(served, "PUT", f"{SERVERS}/docs", DOCS, first["version"])
        stale = await send(served, "PUT", f"{SERVERS}/docs", DOCS, first["version"])
        headers = {"content-type": "application/json"}
        bare = await ask(served.port, "PUT", f"{SERVERS}/docs", DOCS, headers=headers)
        removed = await send(served, "DELETE", f"{SERVERS}/docs", version=first["version"])
    assert second.status == 200
    assert (stale.status, stale.json()["current"]["version"]) == (409, second.json()["version"])
    assert bare.status == 428
    assert removed.status == 409


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"command": "python"}, "command"),
        ({"url": "https://x/", "trust": "yes"}, "trust"),
        ({"url": "https://x/", "auth": "bearer"}, "auth.token"),
        ({}, "url"),
    ],
)
async def test_what_is_wrong_names_its_field(body: Any, where: str) -> None:
    async with node() as served:
        answer = await send(served, "PUT", f"{SERVERS}/docs", body)
    error = answer.json()["error"]
    assert (answer.status, error["code"], error["param"]) == (400, "invalid_mcp_server", where)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"{SERVERS}/none"),
        ("DELETE", f"{SERVERS}/none"),
        ("GET", f"{SERVERS}/none/tools"),
        ("POST", f"{SERVERS}/none/call"),
    ],
)
async def test_a_name_that_nobody_defined_is_not_there(method: str, path: str) -> None:
    async with node() as served:
        body = {"tool": "x"} if method == "POST" else None
        answer = await send(served, method, path, body)
        rows = list(served.world.rows)
    assert (answer.status, answer.json()["error"]["code"]) == (404, "mcp_server_not_found")
    assert not rows


async def test_what_cannot_be_read_here_is_reported_and_left() -> None:
    async with node() as served:
        providers = shared_of(served, "b").providers
        providers.set("mcp/servers/new", {"spec": {"url": "https://x/", "novel": 1}}, version=None)
        providers.set("mcp/servers/odd", 5, version=None)
        listed = (await send(served, "GET", SERVERS)).json()
        shown = await send(served, "GET", f"{SERVERS}/new")
        vendors = (await send(served, "GET", "/v1/cluster/providers")).json()
        removed = await send(served, "DELETE", f"{SERVERS}/odd")
    assert listed["servers"] == []
    assert set(listed["unreadable"]) == {"mcp/servers/new", "mcp/servers/odd"}
    assert "novel" in listed["unreadable"]["mcp/servers/new"]
    assert (shown.status, "not followed here" in shown.json()["error"]["message"]) == (404, True)
    assert vendors["unreadable"] == {}
    assert removed.status == 200


async def test_what_stands_in_a_query_is_not_shown_and_stays() -> None:
    url = f"https://docs.example/mcp?apiKey={SECRET}&fast"
    async with node() as served:
        made = await send(served, "PUT", f"{SERVERS}/docs", {"url": url})
        spec = made.json()["spec"]
        changed = await send(served, "PUT", f"{SERVERS}/docs", {**spec, "trust": "trusted"})
        value = shared_of(served, "b").providers.get("mcp/servers/docs")
        rows = list(served.world.rows)
    assert spec == {"url": "https://docs.example/mcp?apiKey=***&fast"}
    assert changed.json()["spec"] == {**spec, "trust": "trusted"}
    assert value is not None
    assert isinstance(value.value, dict)
    assert value.value["spec"] == {"url": url, "trust": "trusted"}
    assert SECRET not in repr(rows) + made.body.decode() + changed.body.decode()


async def test_what_is_shown_in_place_of_a_value_is_no_value_of_another_url() -> None:
    shown = "https://docs.example/mcp?apiKey=***"
    async with node() as served:
        unknown = await send(served, "PUT", f"{SERVERS}/docs", {"url": shown})
        url = f"https://docs.example/mcp?apiKey={SECRET}"
        made = await send(served, "PUT", f"{SERVERS}/docs", {"url": url})
        moved = await send(served, "PUT", f"{SERVERS}/docs", {"url": f"{shown}&page=2"})
        same = await send(served, "PUT", f"{SERVERS}/docs", {"url": shown})
        value = shared_of(served, "b").providers.get("mcp/servers/docs")
    assert [one.status for one in (unknown, made, moved, same)] == [400, 200, 400, 200]
    for refused in (unknown, moved):
        error = refused.json()["error"]
        assert (error["param"], error["code"]) == ("url", "invalid_mcp_server")
        assert SECRET not in refused.body.decode()
    assert value is not None
    assert isinstance(value.value, dict)
    assert value.value["spec"] == {"url": url}
