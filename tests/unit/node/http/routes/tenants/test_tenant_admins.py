"""Administrators of tenants: keys and limits of their own tenant, and nothing of another."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from smg_node.access.roles import Roles
from smg_node.core.access.permissions import DATA
from support.http.http_node import Node, node
from support.http.raw_http import Response, ask

KEYS = "/v1/cluster/keys"
LIMITS = "/v1/cluster/limits"
SETTINGS = "/v1/cluster/settings"
PER_MINUTE: Mapping[str, Any] = {"unit": "requests", "amount": 60, "window": "minute"}
OWN_ROLES = {
    "reader": ["history", "models"],
    "desk": ["look", "keys", "generate", "history"],
    "tuner": ["look", "settings"],
    "local": ["generate", "keys.own", "limits.own"],
}


class Caller:
    """Somebody with a key, at one node."""

    def __init__(self, served: Node, made: Mapping[str, Any]) -> None:
        self.served = served
        self.id: str = made["id"]
        self.headers = {"authorization": f"Bearer {made['key']}"}

    async def ask(
        self, method: str, path: str, body: Any = b"", version: object = None
    ) -> Response:
        headers = dict(self.headers)
        if version is not None:
            headers["if-match"] = str(version)
        return await ask(self.served.port, method, path, body, headers)

    async def made(self, **wish: Any) -> "Caller":
        answer = await self.ask("POST", KEYS, wish)
        assert answer.status == 201, answer.body
        return Caller(self.served, answer.json())

    async def limit(self, scope: str, body: Any = None, version: object = None) -> Response:
        where = f"{LIMITS}/{quote(scope, safe='=,/*')}"
        return await self.ask("GET" if body is None else "PUT", where, body or b"", version)


@asynccontextmanager
async def tenants() -> AsyncIterator[tuple[Caller, Caller, Caller]]:
    """A closed node: its administrator, and those of tenants a and b."""
    async with node(roles=Roles(OWN_ROLES)) as served:
        first = await ask(served.port, "POST", KEYS, {"role": "admin"})
        admin = Caller(served, first.json())
        both = [await admin.made(role="tenant_admin", tenant=name) for name in ("a", "b")]
        yield admin, both[0], both[1]


def said(answer: Response) -> tuple[int, str]:
    return answer.status, answer.headers.get("x-smg-error-code", "")


# ── Keys ─────────────────────────────────────────────────────────────────────


async def test_a_tenant_s_administrator_makes_lists_and_revokes_keys_of_its_tenant() -> None:
    async with tenants() as (_, a, b):
        user = await a.made(name="web")
        second = await a.made(role="tenant_admin", tenant="a")
        listed = (await a.ask("GET", KEYS)).json()["keys"]
        assert {one["id"] for one in listed} == {a.id, user.id, second.id}
        assert {one["tenant"] for one in listed} == {"a"}
        assert {one["tenant"] for one in (await b.ask("GET", KEYS)).json()["keys"]} == {"b"}
        assert (await user.ask("GET", "/v1/models")).status == 200
        assert (await second.ask("DELETE", f"{KEYS}/{user.id}")).status == 200
        assert (await user.ask("GET", "/v1/models")).status == 401


async def test_it_makes_no_key_of_another_tenant_and_none_that_may_more() -> None:
    async with tenants() as (_, a, _b):
        assert said(await a.ask("POST", KEYS, {"tenant": "b"})) == (403, "other_tenant")
        for role in ("operator", "admin", "desk", "tuner"):
            assert said(await a.ask("POST", KEYS, {"role": role})) == (403, "role_may_more")
        refused = await a.ask("POST", KEYS, {"role": "owner"})
        assert (refused.status, refused.error()["param"]) == (400, "role")
        assert "admin, operator" not in refused.error()["message"]
        assert (await a.ask("POST", KEYS, {"role": "reader"})).status == 201


async def test_keys_of_others_are_not_there_for_it_and_those_above_it_not_its_to_revoke() -> None:
    async with tenants() as (admin, a, b):
        boss = await admin.made(role="admin", tenant="a")
        for other in (b.id, admin.id, "nobody"):
            assert said(await a.ask("DELETE", f"{KEYS}/{other}")) == (404, "key_not_found")
        assert said(await a.ask("DELETE", f"{KEYS}/{boss.id}")) == (403, "key_may_more")
        assert said(await a.ask("DELETE", f"{KEYS}/{boss.id}?force=true")) == (403, "key_may_more")
        assert (await boss.ask("GET", KEYS)).status == 200


async def test_a_restricted_maker_makes_keys_that_are_restricted_as_far() -> None:
    async with tenants() as (admin, _, _b):
        a = await admin.made(role="tenant_admin", tenant="a", models=["llama-*"])
        assert said(await a.ask("POST", KEYS, {})) == (403, "key_may_more")
        assert said(await a.ask("POST", KEYS, {"models": ["*"]})) == (403, "key_may_more")
        assert (await a.ask("POST", KEYS, {"models": ["llama-3*"]})).status == 201


async def test_who_has_keys_of_all_tenants_still_makes_and_revokes_none_that_may_more() -> None:
    async with tenants() as (admin, a, _b):
        desk = await admin.made(role="desk")
        assert (await desk.ask("POST", KEYS, {"role": "reader", "tenant": "z"})).status == 403
        assert said(await desk.ask("POST", KEYS, {"role": "admin"})) == (403, "role_may_more")
        assert said(await desk.ask("POST", KEYS, {"role": "tuner"})) == (403, "role_may_more")
        # Without its last administrator the cluster would be open.
        revoked = await desk.ask("DELETE", f"{KEYS}/{admin.id}?force=true")
        assert said(revoked) == (403, "key_may_more")
        assert said(await desk.ask("DELETE", f"{KEYS}/{a.id}")) == (403, "key_may_more")
        other = await desk.made(role="desk")
        assert (await desk.ask("DELETE", f"{KEYS}/{other.id}")).status == 200


async def test_a_key_for_one_s_own_without_a_tenant_is_no_good() -> None:
    async with node(roles=Roles({"odd": ["look", "keys.own", "limits.own"]})) as served:
        admin = Caller(served, (await ask(served.port, "POST", KEYS, {"role": "admin"})).json())
        odd = await admin.made(role="odd")
        assert said(await odd.ask("GET", KEYS)) == (403, "no_tenant")
        assert said(await odd.ask("POST", KEYS, {})) == (403, "no_tenant")
        body = {"amounts": [PER_MINUTE]}
        assert said(await odd.limit("tenant=a", body, 0)) == (403, "no_tenant")


# ── Limits ───────────────────────────────────────────────────────────────────


async def test_it_sees_the_limits_of_its_tenant_and_of_its_keys_alone() -> None:
    async with tenants() as (admin, a, b):
        for scope in ("global", "tenant=a", "tenant=b", "model=m", "tenant=a,model=m", "tenant=*"):
            assert (await admin.limit(scope, {"amounts": [PER_MINUTE]}, "*")).status == 200
        for key in (a.id, b.id):
            made = await admin.limit(f"key={key}", {"concurrency": 2}, "*")
            assert made.status == 200
        listed = (await a.ask("GET", LIMITS)).json()
        assert {one["scope"] for one in listed["limits"]} == {
            "tenant=a",
            "tenant=a,model=m",
            f"key={a.id}",
        }
        used = (await a.ask("GET", f"{LIMITS}?use=true")).json()
        assert {one["key"].split("#")[0] for one in used["uses"]} <= {"tenant=a", "tenant=a,model=m", f"key={a.id}"}  # fmt: skip
        for scope in ("global", "tenant=b", "model=m", "tenant=*", f"key={b.id}", "provider=p"):
            assert said(await a.limit(scope)) == (404, "limit_not_found"), scope
        assert (await a.limit("tenant=a")).json()["limit"]["amounts"][0]["amount"] == 60


async def test_it_lowers_its_limits_and_nothing_else() -> None:
    async with tenants() as (admin, a, _b):
        whole = {"amounts": [PER_MINUTE], "concurrency": 8}
        version = (await admin.limit("tenant=a", whole, 0)).json()["version"]
        lower = {"amounts": [{**PER_MINUTE, "amount": 30}], "concurrency": 4}
        refusals: list[tuple[Any, str]] = [
            ({"amounts": [{**PER_MINUTE, "amount": 61}], "concurrency": 8}, "amounts"),
            ({"amounts": [PER_MINUTE], "concurrency": 9}, "concurrency"),
            ({"amounts": [PER_MINUTE]}, "concurrency"),
            ({"concurrency": 8}, "amounts"),
            ({"amounts": [{**PER_MINUTE, "window": "second"}], "concurrency": 8}, "amounts"),
            ({**whole, "mode": "strict"}, "mode"),
            ({**whole, "cached_weight": 0.0}, "cached_weight"),
            ({**whole, "on_exhausted": "finish"}, "on_exhausted"),
        ]
        for body, where in refusals:
            refused = await a.limit("tenant=a", body, version)
            assert said(refused) == (403, "limit_not_lower"), body
            assert refused.error()["param"] == where
        done = await a.limit("tenant=a", lower, version)
        assert done.status == 200, done.body
        # What was lowered is what it has from now on.
        raised = await a.limit("tenant=a", whole, done.json()["version"])
        assert said(raised) == (403, "limit_not_lower")
        assert said(await a.ask("DELETE", f"{LIMITS}/tenant=a", b"", "*")) == (
            403,
            "insufficient_permissions",
        )


async def test_a_rule_for_each_tenant_is_what_it_has_until_it_has_a_lower_one_of_its_own() -> None:
    async with tenants() as (admin, a, _b):
        assert (await admin.limit("tenant=*", {"amounts": [PER_MINUTE]}, 0)).status == 200
        above = {"amounts": [{**PER_MINUTE, "amount": 600}]}
        assert said(await a.limit("tenant=a", above, 0)) == (403, "limit_not_lower")
        assert (await a.limit("tenant=a", {"amounts": [PER_MINUTE]}, 0)).status == 200


async def test_it_sets_nothing_where_nothing_is_in_force_nor_for_others() -> None:
    async with tenants() as (admin, a, b):
        body = {"amounts": [PER_MINUTE]}
        # It would go before a rule that an administrator sets for each tenant later.
        assert said(await a.limit("tenant=a", body, 0)) == (403, "limit_not_lower")
        await admin.limit("tenant=b", body, 0)
        for scope in ("tenant=b", "global", "model=m", "tenant=*", "key=*", f"key={b.id}"):
            assert said(await a.limit(scope, body, "*")) == (403, "other_tenant"), scope
        await admin.limit("tenant=a,model=*", body, 0)
        assert said(await a.limit("tenant=a,model=*", body, "*")) == (403, "other_tenant")
        assert (await a.limit("tenant=a,model=m", body, 0)).status == 200


# ── What else there is ───────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path",
    ["/v1/cluster/usage", "/v1/cluster/audit", "/workers", "/metrics", SETTINGS, "/v1/cluster"],
)
async def test_nothing_of_the_cluster_is_a_tenant_s_administrator_s_to_see(path: str) -> None:
    async with tenants() as (_, a, _b):
        assert said(await a.ask("GET", path)) == (403, "insufficient_permissions")


async def test_settings_of_who_may_ask_need_the_permission_for_that() -> None:
    async with tenants() as (admin, _, _b):
        tuner = await admin.made(role="tuner")
        where = f"{SETTINGS}/auth.data"
        refused = await tuner.ask("PUT", where, {"value": "open"}, 0)
        assert said(refused) == (403, "insufficient_permissions")
        assert "permission access" in refused.error()["message"]
        assert (await admin.ask("PUT", where, {"value": "open"}, 0)).status == 200
        assert (await tuner.ask("DELETE", where, b"", "*")).status == 403
        (change,) = (await admin.ask("GET", f"{SETTINGS}/history")).json()["changes"]
        undone = await tuner.ask("POST", f"{SETTINGS}/rollback", {"change": change["id"]})
        assert said(undone) == (403, "insufficient_permissions")
        allowed = await tuner.ask("PUT", f"{SETTINGS}/routing.policy", {"value": "random"}, 0)
        assert allowed.status == 200, allowed.body


async def test_nobody_lets_everybody_in_who_may_more_than_he_may() -> None:
    async with tenants() as (admin, _, _b):
        gated, widened = ["settings", "access", "look"], ["settings", "access", *DATA]
        admin.served.parts.take_roles(Roles({"gate": gated, "wide": widened}))
        gate, wide = await admin.made(role="gate"), await admin.made(role="wide")
        bound = await admin.made(role="admin", routes=["admin"])
        where = f"{SETTINGS}/auth.data"
        for less in (gate, bound):
            refused = await less.ask("PUT", where, {"value": "open"}, 0)
            assert said(refused) == (403, "key_may_more")
            assert (await less.ask("DELETE", where, b"", "*")).status == 403
        assert (await wide.ask("PUT", where, {"value": "closed"}, 0)).status == 200


async def test_a_tenant_has_a_bound_of_keys_that_its_administrators_make() -> None:
    async with tenants() as (admin, a, b):
        parts = admin.served.parts
        parts.options = replace(parts.options, tenant_keys_max=3)
        first = await a.made(role="user")
        await a.made(role="user", expires_in_s=1)
        for name in ("user", "tenant_admin"):
            full = await a.ask("POST", KEYS, {"role": name})
            assert (full.status, full.error()["code"]) == (409, "tenant_keys_full")
            assert "tenant a has 3 keys" in full.error()["message"]
            assert "auth.tenant_keys_max" in full.error()["message"]
        # Another tenant has its own, and who has the keys of all is not bound.
        await b.made(role="user")
        await admin.made(role="user", tenant="a")
        assert (await a.ask("POST", KEYS, {"role": "user"})).status == 409
        for key_id in (first.id, first.id):
            await a.ask("DELETE", f"{KEYS}/{key_id}")
        assert (await a.ask("POST", KEYS, {"role": "user"})).status == 409
        parts.options = replace(parts.options, tenant_keys_max=4)
        await a.made(role="user")


async def test_making_and_revoking_in_turn_fills_nothing() -> None:
    async with tenants() as (admin, a, _):
        parts = admin.served.parts
        parts.options = replace(parts.options, tenant_keys_max=2)
        for _ in range(8):
            made = await a.made(role="user")
            assert (await a.ask("DELETE", f"{KEYS}/{made.id}")).status == 200
        rows = (await a.ask("GET", f"{KEYS}?all=true")).json()["keys"]
        states = [row["state"] for row in rows]
        # Before the last one was made, what was too many had been forgotten: it is the third.
        assert (states.count("active"), states.count("revoked")) == (1, 3)


async def test_no_key_makes_one_that_outlives_it() -> None:
    async with tenants() as (admin, a, _):
        for maker, wish in (
            (await admin.made(role="admin", expires_in_s=600), {"role": "admin"}),
            (await a.made(role="tenant_admin", expires_in_s=600), {"role": "user"}),
        ):
            seen = (await maker.ask("GET", KEYS)).json()["keys"]
            ends_ms = next(row["expires_ms"] for row in seen if row["id"] == maker.id)
            capped = await maker.ask("POST", KEYS, wish)
            assert (capped.status, capped.json()["expires_ms"]) == (201, ends_ms)
            shorter = await maker.ask("POST", KEYS, {**wish, "expires_in_s": 60})
            assert shorter.status == 201, shorter.body
            assert shorter.json()["expires_ms"] < ends_ms
            longer = await maker.ask("POST", KEYS, {**wish, "expires_in_s": 700})
            error = longer.error()
            assert (longer.status, error["code"]) == (403, "key_outlives_maker")
            assert (error["param"], "the key sent ends 1" in error["message"]) == (
                "expires_in_s",
                True,
            )


async def test_an_import_by_an_expiring_key_outlives_it_neither() -> None:
    async with tenants() as (admin, _, __):
        maker = await admin.made(role="admin", expires_in_s=600)
        row = {"sha256": "ab" * 32, "tenant": "a", "role": "user"}
        done = await maker.ask("POST", f"{KEYS}/import", {"keys": [row]})
        assert done.status == 200, done.body
        (created,) = done.json()["created"]
        rows = (await admin.ask("GET", KEYS)).json()["keys"]
        ends = {one["id"]: one["expires_ms"] for one in rows}
        assert ends[created["id"]] == ends[maker.id]
        late = {**row, "sha256": "cd" * 32, "expires_ms": ends[maker.id] + 1}
        refused = await maker.ask("POST", f"{KEYS}/import", {"keys": [late]})
        assert (refused.status, refused.error()["param"]) == (403, "keys[0].expires_ms")
