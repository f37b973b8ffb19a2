"""Definitions of issuers that would leave nobody to administer the cluster, or open a part of it, are refused."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_row

from smg_node.access.certificates import CertificateRule
from smg_node.access.roles import Roles
from smg_node.core.access.permissions import PERMISSIONS
from smg_node.http.administrators import has_administrator
from support.access.access_routes import ISSUERS, SPEC, define, served
from support.http.raw_http import ask


async def test_the_first_issuer_that_makes_nobody_an_administrator_locks_no_operator_out() -> None:
    async with served() as (one, world):
        world.own = ()
        path, match = f"{ISSUERS}/other", {"if-match": "*"}
        refused = await ask(one.port, "PUT", path, SPEC, match)
        assert (refused.status, refused.error()["code"]) == (409, "nobody_administers")
        for said in ("keys create --role admin", "role admin", "--force"):
            assert said in refused.error()["message"]
        assert world.states["node-a"].definitions.all() == []
        kind = {**SPEC, "role_map": {"boss": "admin", "*": "user"}}
        made = await ask(one.port, "PUT", path, kind, match)
        assert (made.status, made.json()["closes"]) == (200, True)
        # It is the only one that lets an administrator in: neither changed nor removed by mistake.
        worse = await ask(one.port, "PUT", path, SPEC, match)
        assert (worse.status, worse.error()["code"]) == (409, "nobody_administers")
        await define(one, "third", {**SPEC, "issuer": "https://third.example"})
        gone = await ask(one.port, "DELETE", path, b"", match)
        assert (gone.status, gone.error()["code"]) == (409, "nobody_administers")
        assert (await ask(one.port, "DELETE", f"{path}?force=true", b"", match)).status == 200


async def test_with_an_admin_key_issuers_need_make_nobody_an_administrator() -> None:
    async with served() as (one, world):
        world.own = ()
        first = await ask(one.port, "POST", "/v1/cluster/keys", {"role": "admin"})
        admin = {"authorization": f"Bearer {first.json()['key']}", "if-match": "*"}
        made = await ask(one.port, "PUT", f"{ISSUERS}/other", SPEC, admin)
        assert (made.status, made.json()["closes"]) == (200, False)


async def test_an_admin_key_that_may_not_use_the_admin_api_lets_no_administrator_in() -> None:
    async with served() as (one, _):
        first = await ask(one.port, "POST", "/v1/cluster/keys", {"role": "admin"})
        admin = {"authorization": f"Bearer {first.json()['key']}"}
        wish = {"role": "admin", "routes": ["chat"]}
        await ask(one.port, "POST", "/v1/cluster/keys", wish, admin)
        path = f"/v1/cluster/keys/{first.json()['id']}"
        kept = await ask(one.port, "DELETE", path, b"", admin)
        assert (kept.status, kept.error()["code"]) == (409, "last_admin_key")
        views = [view for view in one.parts.keys.keys(revoked=False) if view.routes]
        one.parts.keys.keys = lambda *, revoked: views  # type: ignore[method-assign]  # the only one
        assert not has_administrator(one.parts, {})


@pytest.mark.parametrize("role", ["admin", "all"])
async def test_a_certificate_or_a_role_that_may_all_lets_an_administrator_in_too(role: str) -> None:
    rules = (CertificateRule("spiffe://prod/ops", role, "t"),)
    async with served(certificates=rules, roles=Roles({"all": PERMISSIONS})) as (one, world):
        world.own = ()
        assert has_administrator(one.parts, {})
        one.parts.options = replace(one.parts.options, certificates=())
        assert not has_administrator(one.parts, {"corp": {"user", "operator"}})
        assert has_administrator(one.parts, {"corp": {"user", role}})
        one.parts.options = replace(one.parts.options, admin_listen="unix:/run/smg.sock")
        assert has_administrator(one.parts, {})


async def test_an_issuer_of_this_node_alone_does_not_keep_the_others_closed() -> None:
    async with served() as (one, _):
        # Its own settings close this node; those of b do not.
        await define(one, "other", SPEC)
        rows = one.cluster.members()
        path, match = f"{ISSUERS}/other", {"if-match": "*"}
        kept = await ask(one.port, "DELETE", path, b"", match)
        assert (kept.status, kept.error()["code"]) == (409, "last_issuer")
        assert "loopback only, on b;" in kept.error()["message"]
        closed = [row if row.me else replace_row(row, meta={"closed": True}) for row in rows]
        one.cluster.members = lambda: closed  # type: ignore[method-assign]  # as they are now
        assert (await ask(one.port, "DELETE", path, b"", match)).status == 200
