"""Administrators of tenants and holders of own roles, in any order: none sees, makes, revokes or raises what is not its.

Whoever makes a key may use it from then on, so a chain of makers is tried as well.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.access.restrictions import Restrictions, is_within, restrictions_of
from smg_node.access.roles import Roles
from support.http.http_node import node
from support.http.raw_http import RawClient, Response, connect
from support.tools.example_counts import example_count

KEYS: Final = "/v1/cluster/keys"
LIMITS: Final = "/v1/cluster/limits"
ROLES: Final = Roles(
    {
        "reader": ["history", "models"],
        "desk": ["look", "keys", "history", "models"],
        "local": ["generate", "keys.own", "limits.own"],
        "watch": ["look", "keys.own"],
    }
)
TENANTS: Final = ("a", "b")
SCOPES: Final = ("tenant=a", "tenant=b", "tenant=*", "global", "model=m", "tenant=a,model=m", "key=*")  # fmt: skip
FIRST: Final = (
    ("tenant_admin", "a", ()),
    ("tenant_admin", "b", ()),
    ("tenant_admin", "a", ("llama-*",)),
    ("local", "a", ()),
    ("desk", "", ()),
    ("watch", "b", ()),
    ("user", "a", ()),
)
MODELS: Final = st.sampled_from([(), ("llama-*",), ("llama-3",), ("*",)])
WHO: Final = st.integers(0, 8)
MAKE: Final = st.tuples(
    st.just("make"),
    WHO,
    st.sampled_from(["user", "tenant_admin", *ROLES.names, "nobody"]),
    st.sampled_from([None, None, *TENANTS]),
    MODELS,
)
STEPS: Final = st.one_of(
    MAKE,
    st.tuples(st.just("revoke"), WHO, st.integers(0, 15)),
    st.tuples(st.just("set"), WHO, st.sampled_from(SCOPES), st.integers(0, 3)),
    st.tuples(st.just("list"), WHO),
    MAKE,
    st.tuples(st.just("limits"), WHO),
    st.tuples(st.just("limit"), WHO, st.sampled_from(SCOPES)),
    st.tuples(st.just("unset"), WHO, st.sampled_from(SCOPES)),
)


class Caller:
    """The holder of a key: what it is, and what it may not pass."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.id, self.key, self.tenant, self.role = (
            row[name] for name in ("id", "key", "tenant", "role")
        )
        self.held = ROLES.of(self.role)
        self.only = only_of(row)


def only_of(row: Mapping[str, Any]) -> Restrictions | None:
    return restrictions_of(row["models"], row["networks"], row["routes"], row["max_priority"])


class World:
    """A closed node, everybody who has a key, and all that its administrator sees."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.admin = ""
        self.callers: list[Caller] = []
        self.ids: list[str] = []

    async def ask(
        self, key: str, method: str, path: str, body: Any = b"", version: str = ""
    ) -> Response:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        if version:
            headers["if-match"] = version
        packed = body if isinstance(body, bytes) else json.dumps(body).encode()
        await self.client.send(method, path, packed, headers)
        return await self.client.response()

    async def keys(self) -> dict[str, Any]:
        answer = await self.ask(self.admin, "GET", f"{KEYS}?all=true")
        return {row["id"]: row for row in answer.json()["keys"]}

    async def limits(self) -> dict[str, dict[str, int]]:
        answer = await self.ask(self.admin, "GET", LIMITS)
        return {
            row["scope"]: {one["unit"] + one["window"]: one["amount"] for one in row["amounts"]}
            for row in answer.json()["limits"]
        }

    async def begin(self) -> None:
        made = await self.ask("", "POST", KEYS, {"role": "admin"})
        self.admin = made.json()["key"]
        self.ids.append(made.json()["id"])
        for role, tenant, models in FIRST:
            wish: dict[str, Any] = {"role": role, "models": list(models)}
            made = await self.ask(self.admin, "POST", KEYS, wish | ({"tenant": tenant} if tenant else {}))  # fmt: skip
            assert made.status == 201, made.body
            self.callers.append(Caller(made.json()))
            self.ids.append(made.json()["id"])
        for scope in ("tenant=a", "tenant=*", "global", "model=m"):
            await self.ask(self.admin, "PUT", f"{LIMITS}/{scope}", limit(2), "*")

    # ── What must hold ───────────────────────────────────────────────────────

    async def step(self, what: str, who: int, *given: Any) -> None:
        caller = self.callers[who % len(self.callers)]
        before = await self.keys(), await self.limits()
        match what:
            case "list":
                answer = await self.ask(caller.key, "GET", f"{KEYS}?all=true")
                if answer.status == 200 and "keys" not in caller.held:
                    assert "keys.own" in caller.held
                    assert {row["tenant"] for row in answer.json()["keys"]} <= {caller.tenant}
            case "make":
                await self._make(caller, *given)
            case "revoke":
                await self._revoke(caller, before[0][self.ids[given[0] % len(self.ids)]])
            case "limits" | "limit":
                path = "" if what == "limits" else f"/{given[0]}"
                answer = await self.ask(caller.key, "GET", f"{LIMITS}{path}")
                if answer.status == 200 and "look" not in caller.held:
                    rows = answer.json().get("limits", [answer.json().get("limit")])
                    named = {dict(one.split("=") for one in row["scope"].split(",")).get("tenant") for row in rows}  # fmt: skip
                    assert named <= {caller.tenant}
            case "set":
                scope, amount = given
                await self.ask(caller.key, "PUT", f"{LIMITS}/{scope}", limit(amount), "*")
            case _:
                await self.ask(caller.key, "DELETE", f"{LIMITS}/{given[0]}", b"", "*")
        await self._nothing_else_changed(caller, *before)

    async def _make(
        self, caller: Caller, role: str, tenant: str | None, models: tuple[str, ...]
    ) -> None:
        wish: dict[str, Any] = {"role": role, "models": list(models)}
        answer = await self.ask(caller.key, "POST", KEYS, wish | ({"tenant": tenant} if tenant else {}))  # fmt: skip
        if answer.status != 201:
            return
        made = Caller(answer.json())
        assert ROLES.is_within(made.role, caller.role)
        assert is_within(made.only, caller.only)
        if "keys" not in caller.held:
            assert made.tenant == caller.tenant
        self.callers.append(made)
        self.ids.append(made.id)

    async def _revoke(self, caller: Caller, row: Mapping[str, Any]) -> None:
        answer = await self.ask(caller.key, "DELETE", f"{KEYS}/{row['id']}?force=true")
        if answer.status == 200:
            assert ROLES.is_within(row["role"], caller.role)
            assert "keys" in caller.held or row["tenant"] == caller.tenant

    async def _nothing_else_changed(
        self,
        caller: Caller,
        keys: Mapping[str, Any],
        limits: Mapping[str, Mapping[str, int]],
    ) -> None:
        now_keys, now_limits = await self.keys(), await self.limits()
        for key_id, row in keys.items():
            if "keys" not in caller.held and row["tenant"] != caller.tenant:
                assert now_keys[key_id] == row
        for key_id in now_keys.keys() - keys.keys():
            assert "keys" in caller.held or now_keys[key_id]["tenant"] == caller.tenant
        assert now_limits.keys() >= limits.keys()
        for scope, amounts in now_limits.items():
            if limits.get(scope) == amounts:
                continue
            # Whatever changed is of the caller's tenant, and lower than what that had.
            assert "limits.own" in caller.held
            assert scope == f"tenant={caller.tenant}"
            had = limits.get(scope) or limits["tenant=*"]
            assert all(amounts[one] <= amount for one, amount in had.items())


def limit(amount: int) -> dict[str, Any]:
    return {"amounts": [{"unit": "requests", "amount": amount, "window": "minute"}]}


@settings(max_examples=example_count(150), deadline=None)
@given(st.lists(STEPS, min_size=4, max_size=20))
def test_whatever_they_do_nobody_gets_beyond_its_own(steps: list[tuple[Any, ...]]) -> None:
    async def scenario() -> None:
        async with node(roles=ROLES) as served, connect(served.port) as client:
            world = World(client)
            await world.begin()
            for step in steps:
                await world.step(*step)

    asyncio.run(scenario())
