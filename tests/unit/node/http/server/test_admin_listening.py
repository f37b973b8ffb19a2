"""The listener for operators: what is there and not at the public address, and whom a UNIX socket believes."""

import asyncio
import os
import re
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from smg_node.core.errors import SmgError
from smg_node.http.forwarding.control_proxy import Forwarding, Trusting
from smg_node.http.middleware import socket_guard
from smg_node.http.route_table import OPERATORS, ROUTES, Route, Router, public_routes
from support.http.http_node import Node, chat, hello, node
from support.http.raw_http import RawClient, Response, ask

OF_OPERATORS = [route for route in ROUTES if route.access in OPERATORS]
OF_TENANTS = [route for route in ROUTES if route.access == "data"]
PROBES = ("/liveness", "/readiness", "/health", "/version", "/openapi.json", "/")
MEANT = re.compile(r"did you mean (\S+) ([^?\s]+)\?")
KEYS = "/v1/cluster/keys"


def path_of(route: Route) -> str:
    return route.path.replace("{", "").replace("+}", "").replace("}", "")


@asynccontextmanager
async def over(path: Path) -> AsyncIterator[RawClient]:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()


async def ask_over(
    path: Path, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> Response:
    async with over(path) as client:
        await client.send(method, target, body, headers)
        return await client.response(bodiless=method == "HEAD")


async def admin_key(port: int) -> dict[str, str]:
    made = await ask(port, "POST", KEYS, {"role": "admin", "tenant": "ops", "name": "x"})
    assert made.status == 201, made.body
    return {"authorization": f"Bearer {made.json()['key']}"}


def port_of(served: Node) -> int:
    return int(served.server.operators_address.rpartition(":")[2])


async def test_no_operators_route_is_at_the_public_address_whatever_key_comes() -> None:
    async with node(admin_listen="127.0.0.1:0", admin_apart=True) as served:
        key = await admin_key(port_of(served))
        public = Router(public_routes(apart=True))
        for route in OF_OPERATORS:
            for headers in ({}, key):
                answer = await ask(served.port, route.method, path_of(route), b"", headers)
                assert answer.status == 404, (route, answer.body)
                assert answer.error()["code"] == "unknown_url"
                for meant in MEANT.findall(answer.error()["message"]):
                    assert public.find(*meant).route.access not in OPERATORS, meant
        for method in ("OPTIONS", "HEAD", "PATCH"):
            answer = await ask(served.port, method, "/workers", b"", key)
            assert answer.status == 404
        assert (await ask(served.port, "POST", "/v1/chat/completions", chat(), key)).status == 200
        for path in PROBES:
            assert (await ask(served.port, "GET", path)).status == 200


async def test_the_listener_for_operators_has_their_routes_and_the_probes_and_no_others() -> None:
    async with node(admin_listen="127.0.0.1:0", admin_apart=True) as served:
        port = port_of(served)
        for route in OF_TENANTS:
            answer = await ask(port, route.method, path_of(route))
            said = answer.headers["x-smg-error-code"]
            assert (answer.status, said) == (404, "unknown_url"), route
        for path in (*PROBES, "/workers", "/metrics", "/server_info", "/v1/cluster"):
            assert (await ask(port, "GET", path)).status == 200, path
        key = await admin_key(port)
        assert (await ask(port, "GET", "/workers")).status == 401
        assert (await ask(port, "GET", "/workers", b"", key)).status == 200


async def test_without_the_setting_all_routes_are_at_the_public_address() -> None:
    assert list(public_routes(apart=False)) == list(ROUTES)
    async with node() as served:
        assert served.server.operators_address == ""
        assert (await ask(served.port, "GET", "/workers")).status == 200


async def test_the_user_of_a_socket_is_an_administrator_and_the_audit_says_who(
    tmp_path: Path,
) -> None:
    path = tmp_path / "admin.sock"
    async with node(admin_listen=f"unix:{path}", admin_apart=True) as served:
        assert served.server.operators_address == f"unix:{path}"
        mode = path.stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
        body = b'{"role": "admin", "tenant": "ops", "name": "x"}'
        made = await ask_over(path, "POST", KEYS, body)
        assert made.status == 201, made.body
        again = await ask_over(path, "GET", KEYS)
        assert (again.status, again.json()["closed"]) == (200, True), "without any key, too"
        assert again.headers["cache-control"] == "no-store"
        audit = await ask_over(path, "GET", "/v1/cluster/audit")
        (entry,) = audit.json()["rows"]
        assert entry["who"] == f"socket:uid={os.geteuid()}"
        assert made.json()["key"].encode() not in audit.body
    assert not path.exists(), "nobody listens there any more"


async def test_a_key_sent_over_a_socket_counts_as_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    async with node(admin_listen=f"unix:{path}", admin_apart=True) as served:
        body = b'{"role": "operator", "tenant": "ops", "name": "x"}'
        await ask_over(path, "POST", KEYS, b'{"role": "admin", "tenant": "o", "name": "y"}')
        operator = (await ask_over(path, "POST", KEYS, body)).json()["key"]
        sent = {"authorization": f"Bearer {operator}"}
        assert (await ask_over(path, "GET", "/workers", headers=sent)).status == 200
        assert (await ask_over(path, "GET", KEYS, headers=sent)).status == 403
        wrong = {"authorization": "Bearer smg-abcdefgh-wrong"}
        assert (await ask_over(path, "GET", "/workers", headers=wrong)).status == 401
        assert served.server.operators_address


@pytest.mark.parametrize("uid", [None, 4242])
async def test_other_users_of_a_socket_are_refused_and_may_look_at_probes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int | None
) -> None:
    monkeypatch.setattr(socket_guard, "peer_uid", lambda _request: uid)
    path = tmp_path / "admin.sock"
    async with node(admin_listen=f"unix:{path}", admin_apart=True):
        refused = await ask_over(path, "GET", "/workers")
        assert (refused.status, refused.error()["code"]) == (403, "socket_of_another_user")
        assert (await ask_over(path, "GET", "/liveness")).status == 200


async def test_root_may_always(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_guard, "peer_uid", lambda _request: 0)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    path = tmp_path / "admin.sock"
    async with node(admin_listen=f"unix:{path}", admin_apart=True):
        assert (await ask_over(path, "GET", "/workers")).status == 200


async def test_data_processes_answer_for_operators_routes_themselves(tmp_path: Path) -> None:
    control_path, path = str(tmp_path / "http"), tmp_path / "admin.sock"
    routes = public_routes(apart=True)
    async with (
        node(
            hello,
            elsewhere=Trusting(),
            listen=f"unix:{control_path}",
            admin_listen=f"unix:{path}",
            admin_apart=True,
        ) as control,
        node(
            hello, elsewhere=Forwarding(control_path, lambda: True, routes), admin_apart=True
        ) as data,
    ):
        for target in ("/workers", "/metrics", KEYS):
            answer = await ask(data.port, "GET", target)
            assert (answer.status, answer.error()["code"]) == (404, "unknown_url")
        assert not control.access.lines, "nothing is passed on"
        for target in ("/workers", "/get_model_info?model=m", "/health_generate"):
            assert (await ask_over(path, "GET", target)).status == 200, target
        # What control answers for tenants is passed on as before, and its socket gives operators nothing.
        assert (await ask(data.port, "GET", "/v1/usage")).status in (200, 401)
        assert (await ask_over(Path(control_path), "GET", "/workers")).status == 404


async def test_a_socket_that_is_used_is_not_taken_and_one_left_behind_is(tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    async with node(admin_listen=f"unix:{path}", admin_apart=True):
        with pytest.raises(SmgError, match=r"http\.admin_listen.*in use"):
            async with node(admin_listen=f"unix:{path}", admin_apart=True):
                pass
        assert (await ask_over(path, "GET", "/liveness")).status == 200
        path.rename(tmp_path / "left.sock")
    async with node(admin_listen=f"unix:{tmp_path / 'left.sock'}", admin_apart=True):
        assert (await ask_over(tmp_path / "left.sock", "GET", "/liveness")).status == 200


@pytest.mark.parametrize("where", ["unix:/nowhere/at/all.sock", "192.0.2.1:9"])
async def test_an_address_that_cannot_be_is_said_in_an_operators_words(where: str) -> None:
    with pytest.raises(SmgError, match=r"http\.admin_listen: cannot listen on"):
        async with node(admin_listen=where, admin_apart=True):
            pass
