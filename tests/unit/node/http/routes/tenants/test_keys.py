"""Keys over HTTP: made, listed, revoked, asked for, and seen nowhere else."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from smg_node.access.identity import Role
from smg_node.core.generation.events import Event
from smg_node.http.ports.keys import KeyRequest
from support.access.one_token import OneToken
from support.http.http_node import FakeRun, Node, chat, for_ever, node
from support.http.raw_http import Response, ask, connect, until

KEYS = "/v1/cluster/keys"
ADMIN: Role = "admin"
AWAY = {"x-forwarded-for": "10.0.0.9"}
"""What makes this machine no operator of the node."""


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def made(served: Node, key: str = "", **wish: Any) -> dict[str, Any]:
    response = await ask(served.port, "POST", KEYS, wish, bearer(key) if key else {})
    assert response.status == 201, response.body
    answer: dict[str, Any] = response.json()
    return answer


@asynccontextmanager
async def closed() -> AsyncIterator[tuple[Node, str, str]]:
    """A node with an admin key and one of tenant acme; yields both."""
    async with node() as served:
        admin = await made(served, role="admin")
        user = await made(served, admin["key"], tenant="acme", name="checkout")
        yield served, admin["key"], user["key"]


async def talk(served: Node, headers: dict[str, str]) -> Response:
    return await ask(served.port, "POST", "/v1/chat/completions", chat(), headers)


async def test_a_key_is_shown_once_and_listed_without_it() -> None:
    async with node() as served:
        response = await ask(
            served.port, "POST", KEYS, {"tenant": "acme", "name": "x", "expires_in_s": 60}
        )
        one = response.json()
        assert (response.status, response.headers["cache-control"]) == (201, "no-store")
        assert one["expires_ms"] - one["created_ms"] == 60_000
        assert (one["tenant"], one["role"], one["state"]) == ("acme", "user", "active")
        listed = await ask(served.port, "GET", KEYS)
        assert one["key"].rpartition("-")[2].encode() not in listed.body
        (row,) = listed.json()["keys"]
        assert row == {name: value for name, value in one.items() if name not in ("key", "closes")}
        assert listed.json()["closed"] is False


async def test_the_first_admin_key_closes_data_and_admin_routes() -> None:
    async with node() as served:
        assert (await talk(served, {})).status == 200
        admin = await made(served, role="admin")
        assert admin["closes"] is True
        for path in ("/v1/models", "/workers", KEYS, "/v1/cluster", "/metrics"):
            refused = await ask(served.port, "GET", path)
            assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
            assert refused.error() == {
                "message": "this needs a key: send it as `Authorization: Bearer KEY` or `x-api-key: KEY`",
                "type": "invalid_request_error",
                "param": None,
                "code": "invalid_api_key",
            }
            assert (await ask(served.port, "GET", path, b"", bearer(admin["key"]))).status == 200
        for path in ("/liveness", "/readiness", "/health", "/version", "/openapi.json", "/"):
            assert (await ask(served.port, "GET", path)).status == 200


@pytest.mark.parametrize("name", ["authorization", "x-api-key", "x-goog-api-key"])
async def test_a_key_counts_under_each_of_its_names_and_says_whose_the_request_is(
    name: str,
) -> None:
    async with closed() as (served, _, user):
        sent = {name: f"Bearer {user}" if name == "authorization" else user}
        assert (await talk(served, sent)).status == 200
        (run,) = served.generations.runs
        assert (run.context.tenant, run.context.key_id) == ("acme", user.split("-")[1])
        assert run.context.caller not in ("", user)
        assert user not in repr(run.context)


async def test_roles_are_kept_apart() -> None:
    async with closed() as (served, admin, user):
        operator = (await made(served, admin, role="operator"))["key"]
        asked = [
            ("GET", "/v1/models", {user: 200, operator: 200, admin: 200}),
            ("GET", "/workers", {user: 403, operator: 200, admin: 200}),
            ("POST", "/workers/w-1/drain", {user: 403, operator: 403, admin: 200}),
            ("GET", KEYS, {user: 403, operator: 403, admin: 200}),
            ("GET", "/metrics", {user: 403, operator: 200, admin: 200}),
        ]
        for method, path, expected in asked:
            for key, status in expected.items():
                answer = await ask(served.port, method, path, b"", bearer(key))
                assert (path, answer.status) == (path, status)
                if status == 403:
                    assert answer.error()["code"] == "insufficient_permissions"


async def test_with_a_key_an_operator_may_come_from_anywhere() -> None:
    async with node() as served:
        assert (await ask(served.port, "GET", "/workers", b"", AWAY)).status == 403
        admin = (await made(served, role="admin"))["key"]
        assert (
            await ask(served.port, "GET", "/workers", b"", {**AWAY, **bearer(admin)})
        ).status == 200


async def test_a_stranger_is_refused_before_the_body_is_read() -> None:
    async with closed() as (served, _, _), connect(served.port) as client:
        head = {"content-length": "1000000", "content-type": "application/json"}
        await client.send("POST", "/v1/chat/completions", b"", head)
        response = await client.response()
        assert response.status == 401
        assert await client.at_end()
        assert not served.generations.runs


async def test_a_revoked_key_is_worthless_at_once_also_on_open_connections() -> None:
    async with closed() as (served, admin, user), connect(served.port) as client:
        await client.send("GET", "/v1/models", b"", bearer(user))
        assert (await client.response()).status == 200
        path = f"{KEYS}/{user.split('-')[1]}"
        gone = await ask(served.port, "DELETE", path, b"", bearer(admin))
        assert (gone.status, gone.json()["state"], gone.json()["opens"]) == (200, "revoked", False)
        await client.send("GET", "/v1/models", b"", bearer(user))
        assert (await client.response()).status == 401
        rows = (await ask(served.port, "GET", f"{KEYS}?all=true", b"", bearer(admin))).json()
        assert [row["state"] for row in rows["keys"]] == ["active", "revoked"]


async def test_a_key_made_on_another_node_is_good_here_and_revoked_there_it_is_not() -> None:
    async with node() as served:
        other = served.world.desks("b").keys
        admin = other.create(KeyRequest("", ADMIN))
        assert (await ask(served.port, "GET", "/workers")).status == 401
        assert (await ask(served.port, "GET", "/workers", b"", bearer(admin.text))).status == 200
        other.revoke(admin.view.id, force=True)
        assert (await ask(served.port, "GET", "/workers")).status == 200


async def test_where_tokens_close_the_cluster_no_key_closes_or_opens_it() -> None:
    async with node() as served:
        served.parts.authenticator = OneToken("admin")
        operator = bearer("t")
        assert (await ask(served.port, "GET", KEYS, b"", operator)).json()["closed"] is True
        asked = {"keys": [{"sha256": "ab" * 32, "role": "admin"}], "dry_run": True}
        taken = await ask(served.port, "POST", f"{KEYS}/import", asked, operator)
        assert (len(taken.json()["created"]), taken.json()["closes"]) == (1, False)
        first = await made(served, "t", role="admin")
        assert first["closes"] is False
        path = f"{KEYS}/{first['id']}?force=true"
        gone = await ask(served.port, "DELETE", path, b"", operator)
        assert (gone.status, gone.json()["opens"]) == (200, False)


async def test_the_last_admin_key_is_revoked_by_force_only() -> None:
    async with node() as served:
        admin = (await made(served, role="admin"))["key"]
        path = f"{KEYS}/{admin.split('-')[1]}"
        refused = await ask(served.port, "DELETE", path, b"", bearer(admin))
        assert (refused.status, refused.error()["code"]) == (409, "last_admin_key")
        done = await ask(served.port, "DELETE", f"{path}?force=true", b"", bearer(admin))
        assert (done.status, done.json()["opens"]) == (200, True)
        assert (await talk(served, {})).status == 200
        assert (await ask(served.port, "GET", KEYS, b"", AWAY)).status == 403
        unknown = await ask(served.port, "DELETE", f"{KEYS}/nobody")
        assert (unknown.status, unknown.error()["code"]) == (404, "key_not_found")


@pytest.mark.parametrize(
    ("wish", "param"),
    [
        ({}, "tenant"),
        ({"tenant": ""}, "tenant"),
        ({"tenant": "a b"}, "tenant"),
        ({"tenant": "a,b=c"}, "tenant"),
        ({"tenant": "*"}, "tenant"),
        ({"tenant": "x" * 65}, "tenant"),
        ({"tenant": 7}, "tenant"),
        ({"tenant": "a", "role": "root"}, "role"),
        ({"tenant": "a", "name": "x" * 65}, "name"),
        ({"tenant": "a", "name": "a\nb"}, "name"),
        ({"tenant": "a", "expires_in_s": 0}, "expires_in_s"),
        ({"tenant": "a", "expires_in_s": 1.5}, "expires_in_s"),
        ({"tenant": "a", "expires_in_s": 10**12}, "expires_in_s"),
        ({"tenant": "a", "rolle": "admin"}, "rolle"),
    ],
)
async def test_what_cannot_be_wished_is_refused_by_name(wish: Any, param: str) -> None:
    async with node() as served:
        response = await ask(served.port, "POST", KEYS, wish)
        assert (response.status, response.error()["param"]) == (400, param)
        assert not served.parts.keys.keys(revoked=True)


async def test_two_different_keys_are_one_too_many_whoever_asks() -> None:
    async with closed() as (served, admin, user):
        both = {**bearer(admin), "x-api-key": user}
        refused = await ask(served.port, "GET", "/workers", b"", both)
        assert (refused.status, refused.error()["code"]) == (400, "conflicting_credentials")
        beside = {**bearer("sk-of-another-house"), "x-api-key": admin}
        assert (await ask(served.port, "GET", "/workers", b"", beside)).status == 200


async def test_data_can_be_kept_open_and_follows_when_that_changes() -> None:
    async with node(data_access="open") as served:
        admin = (await made(served, role="admin"))["key"]
        assert (await talk(served, {})).status == 200
        assert (await talk(served, bearer("sk-anything"))).status == 200
        assert (await talk(served, bearer("smg-gone-" + "s" * 43))).status == 401
        assert (await ask(served.port, "GET", "/workers")).status == 401
        assert (await talk(served, bearer(admin))).status == 200
        parts = served.parts
        parts.retune(replace(parts.options, data_access="auto"), parts.reading, parts.dialects)
        assert (await talk(served, {})).status == 401
        assert (await talk(served, bearer(admin))).status == 200


async def test_a_node_that_joins_refuses_data_until_it_knows_whether_there_are_keys() -> None:
    async with node() as served:
        shared = served.world.nodes["node-a"]
        shared.held = False
        response = await talk(served, {})
        assert (response.status, response.error()["code"]) == (503, "joining")
        assert response.headers["retry-after"] == "1"
        assert (await ask(served.port, "GET", "/v1/cluster/members")).status == 200
        shared.held = True
        assert (await talk(served, {})).status == 200


async def test_a_web_page_may_read_why_it_was_refused() -> None:
    async with node(cors_allowed_origins=("https://a.example",)) as served:
        await made(served, role="admin")
        refused = await talk(served, {"origin": "https://a.example"})
        assert refused.status == 401
        assert refused.headers["access-control-allow-origin"] == "https://a.example"


async def test_changes_are_written_down_with_who_made_them() -> None:
    async with closed() as (served, admin, user):
        await ask(served.port, "DELETE", f"{KEYS}/{user.split('-')[1]}", b"", bearer(admin))
        rows = (
            await ask(served.port, "GET", "/v1/cluster/audit?action=key", b"", bearer(admin))
        ).json()["rows"]
        who = f"key:{admin.split('-')[1]}"
        assert [(row["action"], row["who"]) for row in rows] == [
            ("key.revoke", who),
            ("key.create", who),
            ("key.create", "loopback"),
        ]
        assert rows[0]["before"]["state"] == "active"
        assert rows[0]["after"]["state"] == "revoked"
        assert (rows[1]["after"]["tenant"], rows[1]["after"]["role"]) == ("acme", "user")


async def test_access_log_and_metrics_say_the_tenant() -> None:
    async with closed() as (served, _, user):
        await talk(served, bearer(user))
        await talk(served, {})
        await until(lambda: len(served.access.lines) == 4)
        lines = [json.loads(line) for line in served.access.lines]
        mine = next(line for line in lines if line["path"].endswith("completions"))
        assert (mine["tenant"], mine["key_id"]) == ("acme", user.split("-")[1])
        assert "tenant" not in lines[-1]
        name = "smg_node_tenant_http_requests_total"
        assert served.sample(name, tenant="acme", status="200") == 1
        assert served.sample(name, tenant="", status="401") == 0


async def test_tenants_without_end_do_not_make_series_without_end() -> None:
    async with node() as served:
        for number in range(1_200):
            served.meters.tenant_requests(f"t{number}", 200).inc()
        name = "smg_node_tenant_http_requests_total"
        assert served.sample(name, tenant="t999", status="200") == 1
        assert served.sample(name, tenant="t1000", status="200") == 0
        assert served.sample(name, tenant="other", status="200") == 200


async def test_no_secret_is_in_logs_metrics_errors_or_state(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(0)
    planted = "smg-planted-" + "PlantedSecret" * 4
    async with closed() as (served, admin, user):
        secrets = [key.rpartition("-")[2] for key in (admin, user, planted)]
        said = []
        for key in (user, planted, admin + "x", f"{planted} x"):
            for method, path in (
                ("GET", "/workers"),
                ("GET", f"/workers/{key.replace(' ', '%20')}"),
                ("POST", "/v1/chat/completions"),
                ("POST", KEYS),
            ):
                body = b"" if method == "GET" else b'{"model": 7}'
                said.append(await ask(served.port, method, path, body, bearer(key)))
        for path in ("/metrics", "/server_info", "/v1/cluster/audit", "/v1/cluster/state", KEYS):
            answer = await ask(served.port, "GET", path, b"", bearer(admin))
            said += [answer]
        store = served.world.keys["node-a"].everything()
        # A path is the client's own text: an access line shows it, and nothing else may.
        lines = [json.loads(line) for line in served.access.lines]
        shown = [
            *(f"{answer.headers} {answer.body!r}" for answer in said),
            caplog.text,
            repr(store),
            *(json.dumps({**line, "path": ""}) for line in lines),
        ]
        for secret in secrets:
            assert not [text for text in shown if secret in text and "nothing at" not in text]


async def test_a_stream_that_runs_outlives_its_key() -> None:
    started = asyncio.Event()

    async def waits(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        started.set()
        async for batch in for_ever(run):
            yield batch

    async with node(waits) as served, connect(served.port) as client:
        admin = (await made(served, role="admin"))["key"]
        user = (await made(served, admin, tenant="acme"))["key"]
        body = json.dumps(chat(stream=True)).encode()
        await client.send("POST", "/v1/chat/completions", body, bearer(user))
        assert (await client.head())[0] == 200
        await started.wait()
        await ask(served.port, "DELETE", f"{KEYS}/{user.split('-')[1]}", b"", bearer(admin))
        (run,) = served.generations.runs
        assert not run.closed.is_set()
        client.vanish()
        await until(run.closed.is_set)


async def test_who_comes_when_the_node_was_set_aside_is_told_so_with_or_without_a_key() -> None:
    async with node() as served:
        await made(served, role="admin")
        served.server.set_aside(on=True)
        response = await talk(served, {})
        assert (response.status, response.error()["code"]) == (503, "draining")
