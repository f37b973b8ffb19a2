"""Roles over HTTP: defined, changed and taken away while requests come, by nobody who may less, and audited."""

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace as replace_row

from smg_mesh.state.access.access_state import AccessState
from smg_node.access.certificates import CertificateRule
from smg_node.access.roles import Roles
from smg_node.cluster.issuers.lazy_issuers import IssuerState, LazyIssuers
from smg_node.cluster.issuers.role_definitions import ROLES_MAX
from smg_node.config.frozen_settings import plain_settings
from smg_node.config.sections.auth import Auth
from smg_node.config.settings import Settings
from smg_node.core.access.permissions import BUILT_IN, DATA, PERMISSIONS
from support.http.http_node import Node, node
from support.http.raw_http import Response, ask, connect
from support.state.fake_namespace import FakeNamespaces

ROLES = "/v1/cluster/access/roles"
KEYS = "/v1/cluster/keys"
Headers = Mapping[str, str]


class Scene:
    """A closed node, its administrator, and what another node shares."""

    def __init__(self, one: Node, own: Mapping[str, Sequence[str]]) -> None:
        world = FakeNamespaces("node-a", "b", name="access")
        self.one = one
        self.state, self.others = AccessState(world["node-a"]), AccessState(world["b"])
        said = {name: tuple(words) for name, words in own.items()}
        auth = plain_settings(Settings(auth=Auth(roles=said))).auth
        parts = one.parts
        self.issuers = LazyIssuers("node-a", auth, parts.clock, random.Random(1), parts.meters)
        shared = SimpleNamespace(access=self.state, held=True, living=lambda: ["node-a"])
        self.issuers.connect(cast("IssuerState", shared), None)
        self.issuers.serve(parts)
        parts.role_access, parts.token_access = self.issuers.role_service, self.issuers.service
        self.admin: Headers = {}

    async def key(self, role: str, **wish: Any) -> Headers:
        """Make a key, and return the header that it is sent by."""
        made = await ask(self.one.port, "POST", KEYS, {"role": role, **wish}, self.admin)
        assert made.status == 201, made.body
        return {"authorization": f"Bearer {made.json()['key']}"}

    async def define(
        self, name: str, permissions: Any, version: str = "*", by: Headers | None = None
    ) -> Response:
        headers = {**(self.admin if by is None else by), "if-match": version}
        return await ask(
            self.one.port, "PUT", f"{ROLES}/{name}", {"permissions": permissions}, headers
        )

    async def remove(self, name: str, query: str = "", by: Headers | None = None) -> Response:
        headers = {**(self.admin if by is None else by), "if-match": "*"}
        return await ask(self.one.port, "DELETE", f"{ROLES}/{name}{query}", b"", headers)

    async def status(self, path: str, by: Headers) -> int:
        return (await ask(self.one.port, "GET", path, b"", by)).status


@asynccontextmanager
async def served(
    own: Mapping[str, Sequence[str]] | None = None, **changes: Any
) -> AsyncIterator[Scene]:
    async with node(**changes) as one:
        scene = Scene(one, own or {})
        scene.admin = await scene.key("admin")
        yield scene


async def test_a_role_is_defined_changed_and_taken_away_by_version() -> None:
    async with served({"billing": ["look", "prices"]}) as scene:
        made = (await scene.define("fleet", ["workers", "look", "look"], "0")).json()
        assert made == {
            "name": "fleet",
            "permissions": ["look", "workers"],
            "source": "cluster",
            "version": made["version"],
        }
        stale = await scene.define("fleet", ["look"], "0")
        assert (stale.status, stale.error()["code"]) == (409, "stale")
        again = (await scene.define("fleet", ["look"], made["version"])).json()
        assert again["permissions"] == ["look"]
        listed = (await ask(scene.one.port, "GET", ROLES, b"", scene.admin)).json()
        assert [(one["name"], one["source"]) for one in listed["roles"]] == [
            *((name, "built-in") for name in BUILT_IN),
            ("billing", "node"),
            ("fleet", "cluster"),
        ]
        gone = (await scene.remove("fleet")).json()
        assert gone == {
            "status": "removed",
            "name": "fleet",
            "now": None,
            "used_by": {"keys": [], "issuers": [], "certificates": []},
        }
        missing = await scene.remove("fleet")
        assert (missing.status, missing.error()["code"]) == (404, "role_not_found")
        rows = (await ask(scene.one.port, "GET", "/v1/cluster/audit", b"", scene.admin)).json()
        told = [row for row in rows["rows"] if row["action"] == "role.changed"]
        assert [row["subject"] for row in told] == ["fleet"] * 3
        assert told[0]["before"]["permissions"] == ["look"]


async def test_what_is_defined_elsewhere_counts_for_keys_that_are_there_and_open_connections() -> (
    None
):
    async with served() as scene:
        await scene.define("fleet", ["look"])
        key = await scene.key("fleet")
        async with connect(scene.one.port) as client:

            async def get(path: str) -> Response:
                await client.send("GET", path, headers=key)
                return await client.response()

            assert (await get("/workers")).status == 200
            assert (await get(KEYS)).status == 403
            scene.others.roles.set("fleet", {"permissions": ["keys"]}, version=None)
            refused = await get("/workers")
            assert (refused.status, refused.error()["code"]) == (403, "insufficient_permissions")
            assert (await get(KEYS)).status == 200
            scene.others.roles.remove("fleet", version=None)
            refused = await get(KEYS)
            assert refused.status == 403
            assert "has role fleet, which is not known here" in refused.error()["message"]


async def test_a_definition_counts_in_place_of_the_settings_and_they_count_again_without_it() -> (
    None
):
    async with served({"fleet": ["look"]}) as scene:
        key = await scene.key("fleet")
        await scene.define("fleet", ["members"])
        assert await scene.status("/workers", key) == 403
        gone = await scene.remove("fleet", "?force=true")
        assert gone.json()["now"] == {
            "name": "fleet",
            "permissions": ["look"],
            "source": "node",
            "version": "0",
        }
        assert await scene.status("/workers", key) == 200


async def test_a_role_in_use_is_taken_away_by_force_only() -> None:
    rules = (CertificateRule("spiffe://prod/*", "fleet", "t"),)
    async with served() as scene:
        parts = scene.one.parts
        parts.options = replace(parts.options, certificates=rules)
        await scene.define("fleet", ["look"])
        key = await scene.key("fleet")
        spec = {"issuer": "https://sso.example", "audiences": ["smg"], "role_map": {"*": "fleet"}}
        path, match = "/v1/cluster/access/issuers/corp", {**scene.admin, "if-match": "*"}
        defined = await ask(scene.one.port, "PUT", path, spec, match)
        assert defined.status == 200, defined.body
        refused = await scene.remove("fleet")
        assert (refused.status, refused.error()["code"]) == (409, "role_in_use")
        for said in ("keys ", "issuers corp", "certificates spiffe://prod/*", "--force"):
            assert said in refused.error()["message"]
        assert await scene.status("/workers", key) == 200
        gone = (await scene.remove("fleet", "?force=true")).json()
        assert {what: len(names) for what, names in gone["used_by"].items()} == {
            "keys": 1,
            "issuers": 1,
            "certificates": 1,
        }
        assert await scene.status("/workers", key) == 403
        listed = (
            await ask(scene.one.port, "GET", "/v1/cluster/access/issuers", b"", scene.admin)
        ).json()
        assert "which is no role here" in listed["unreadable"]["corp"]
        # Defined again, all of it counts again.
        await scene.define("fleet", ["look"])
        assert await scene.status("/workers", key) == 200
        assert scene.issuers.unreadable == {}


async def test_a_revoked_key_does_not_hold_a_role() -> None:
    async with served() as scene:
        await scene.define("fleet", ["look"])
        made = await ask(scene.one.port, "POST", KEYS, {"role": "fleet"}, scene.admin)
        await ask(scene.one.port, "DELETE", f"{KEYS}/{made.json()['id']}", b"", scene.admin)
        assert (await scene.remove("fleet")).status == 200


@pytest.mark.parametrize(
    ("name", "body", "where"),
    [
        ("admin", {"permissions": ["look"]}, "name"),
        ("Fleet", {"permissions": ["look"]}, "name"),
        ("x" * 33, {"permissions": ["look"]}, "name"),
        ("fleet", {}, "permissions"),
        ("fleet", {"permissions": []}, "permissions"),
        ("fleet", {"permissions": "look"}, "permissions"),
        ("fleet", {"permissions": ["look", "flying"]}, "permissions[1]"),
        ("fleet", {"permissions": ["look", ["look"]]}, "permissions[1]"),
        ("fleet", {"permissions": ["look"], "models": ["m"]}, "models"),
    ],
)
async def test_what_is_wrong_with_a_role_is_named(
    name: str, body: dict[str, Any], where: str
) -> None:
    async with served() as scene:
        headers = {**scene.admin, "if-match": "*"}
        refused = await ask(scene.one.port, "PUT", f"{ROLES}/{name}", body, headers)
        assert (refused.status, refused.error()["param"]) == (400, where)
        assert scene.state.roles.all() == []


async def test_one_role_too_many_is_refused_and_others_may_still_change() -> None:
    async with served() as scene:
        for at in range(ROLES_MAX):
            scene.others.roles.set(f"r{at}", {"permissions": ["look"]}, version=None)
        refused = await scene.define("one-more", ["look"])
        assert (refused.status, refused.error()["code"]) == (400, "invalid_role")
        assert (await scene.define("r0", ["members"])).status == 200


async def test_nobody_defines_changes_or_takes_away_a_role_that_may_more_than_he() -> None:
    async with served({"mighty": [*DATA, "keyring"]}) as scene:
        await scene.define("doorkeeper", ["access", "look"])
        await scene.define("strong", ["look", "keys"])
        key = await scene.key("doorkeeper")
        for asked in (
            scene.define("doorkeeper", ["access", "look", "keys"], by=key),
            scene.define("new", ["look", "settings"], by=key),
            # What is taken away from others counts as well, and what a node's settings say of the name.
            scene.define("strong", ["look"], by=key),
            scene.define("mighty", ["look"], by=key),
            scene.remove("strong", by=key),
        ):
            refused = await asked
            assert (refused.status, refused.error()["code"]) == (403, "role_may_more")
        assert (await scene.define("weak", ["look"], by=key)).status == 200
        assert (await scene.remove("weak", by=key)).status == 200
        bound = await scene.key("admin", networks=["127.0.0.0/8"])
        refused = await scene.define("new", ["look"], by=bound)
        assert (refused.status, refused.error()["code"]) == (403, "key_may_more")


async def test_a_definition_of_a_newer_release_is_no_role_here_and_is_said() -> None:
    async with served({"fleet": ["look"]}) as scene:
        key = await scene.key("fleet")
        scene.others.roles.set("fleet", {"permissions": ["look", "teleport"]}, version=None)
        assert await scene.status("/workers", key) == 403
        listed = (await ask(scene.one.port, "GET", ROLES, b"", scene.admin)).json()
        assert "teleport" in listed["unreadable"]["fleet"]
        assert "fleet" not in [one["name"] for one in listed["roles"]]


async def test_changed_settings_of_the_surface_keep_the_roles() -> None:
    async with served() as scene:
        await scene.define("fleet", list(PERMISSIONS))
        roles = scene.one.parts.options.roles
        assert isinstance(roles, Roles)
        assert roles.of("fleet") == frozenset(PERMISSIONS)
        assert scene.issuers.terms().roles is roles


async def test_a_role_that_is_not_followed_here_is_taken_from_nobody_who_may_less() -> None:
    async with served() as scene:
        await scene.define("smith", ["access"])
        smith = await scene.key("smith")
        said = {"permissions": ["look", "workers", "teleport"]}
        scene.others.roles.set("fleet", said, version=None)
        made = await scene.define("fleet", ["access"], by=smith)
        assert (made.status, made.error()["code"]) == (403, "role_may_more")
        gone = await scene.remove("fleet", "?force=true", by=smith)
        assert (gone.status, gone.error()["code"]) == (403, "role_may_more")
        assert (await scene.define("fleet", ["look"])).status == 200


async def test_a_role_by_which_alone_somebody_administers_is_not_lessened() -> None:
    async with served() as scene:
        await scene.define("chief", list(PERMISSIONS))
        chief = await scene.key("chief")
        listed = (await ask(scene.one.port, "GET", KEYS, b"", chief)).json()["keys"]
        (first,) = [one["id"] for one in listed if one["role"] == "admin"]
        other = await scene.key("admin", expires_in_s=60)
        gone = await ask(scene.one.port, "DELETE", f"{KEYS}/{first}", b"", chief)
        assert gone.status == 200
        # Somebody else administers as well.
        assert (await scene.define("chief", list(PERMISSIONS), by=other)).status == 200
        views = [one for one in scene.one.parts.keys.keys(revoked=False) if one.role == "chief"]
        scene.one.parts.keys.keys = lambda *, revoked: views  # type: ignore[method-assign]  # the only ones
        less = await scene.define("chief", ["look"], by=chief)
        assert (less.status, less.error()["code"]) == (409, "nobody_administers")
        assert "keys create --role admin" in less.error()["message"]
        assert (await scene.define("chief", list(PERMISSIONS), by=chief)).status == 200
        await scene.define("chef", list(PERMISSIONS), by=chief)
        views.append(replace_row(views[0], role="chef"))
        assert (await scene.define("chief", ["look"], by=chief)).status == 200


async def test_a_role_is_not_taken_from_an_issuer_whose_tokens_may_more_than_the_caller() -> None:
    async with served() as scene:
        await scene.define("smith", ["access", "look"])
        await scene.define("fleet", ["look"])
        smith = await scene.key("smith")
        roles = {"boss": "admin", "*": "fleet"}
        spec: dict[str, Any] = {"issuer": "https://sso.example", "audiences": ["smg"]}
        spec |= {"roles": "/groups", "role_map": roles}
        path, match = "/v1/cluster/access/issuers/corp", {**scene.admin, "if-match": "*"}
        assert (await ask(scene.one.port, "PUT", path, spec, match)).status == 200
        # Without it none of the tokens would be taken, those of administrators neither.
        gone = await scene.remove("fleet", "?force=true", by=smith)
        assert (gone.status, gone.error()["code"]) == (403, "role_may_more")
        assert scene.issuers.unreadable == {}
        spec["role_map"] = {"*": "fleet"}
        assert (await ask(scene.one.port, "PUT", path, spec, match)).status == 200
        assert (await scene.remove("fleet", "?force=true", by=smith)).status == 200
