"""Access over HTTP: issuers and their keys are shown, subjects denied and let in again, and each change is audited."""

from dataclasses import replace
from typing import Any

import pytest

from smg_mesh.shared import IssuerKeySet
from smg_node.access.roles import Roles
from smg_node.core.access.permissions import DATA, PERMISSIONS
from support.access.access_routes import ISSUERS, SPEC, SPEC_ISSUER, define, served
from support.access.issuers_of_test import LENT
from support.access.key_world import CORP
from support.access.one_token import OneToken
from support.http.http_node import Node
from support.http.raw_http import Response, ask

DENIALS = "/v1/cluster/access/denials"
WEEK_S = 7 * 86_400
SET = (
    b'{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},'
    b'{"kty":"oct","kid":"b","k":""}]}'
)


async def deny(one: Node, **body: Any) -> Response:
    return await ask(one.port, "POST", DENIALS, body)


async def test_issuers_are_listed_with_their_keys_and_those_that_are_skipped() -> None:
    async with served() as (one, world):
        now_ms = world.clock.now_ms()
        (never,) = (await ask(one.port, "GET", ISSUERS)).json()["issuers"]
        assert (never["state"], never["keys"], never["fetched_ms"]) == ("never", [], None)
        world.states["node-a"].keys.put(
            IssuerKeySet("corp", SET, now_ms, 300_000, CORP.issuer, "node-b")
        )
        (row,) = (await ask(one.port, "GET", ISSUERS)).json()["issuers"]
        assert row == {
            "name": "corp",
            "issuer": "https://sso.example",
            "state": "fresh",
            "keys": [{"kid": "a", "algorithms": ["Ed25519", "EdDSA"]}],
            "skipped": [{"kid": "b", "kind": "oct", "reason": "symmetric"}],
            "fetched_ms": now_ms,
            "fetched_by": "node-b",
            "good_until_ms": now_ms + 86_400_000,
            "refreshed_by": "node-a",
            "requests": 0,
            "failures": 0,
            "last_error": "",
            "last_error_ms": None,
            "introspection": False,
            "introspection_error": "",
            "source": "node",
            "version": "0",
            "spec": {},
        }


async def test_a_subject_is_denied_and_let_in_again() -> None:
    async with served() as (one, world):
        now_ms = world.clock.now_ms()
        made = await deny(one, issuer="corp", subject="auth0|a/b", for_s=WEEK_S, before_ms=7)
        assert made.json() == {
            "issuer": "corp",
            "subject": "auth0|a/b",
            "before_ms": 7,
            "until_ms": now_ms + WEEK_S * 1000,
            "made_ms": now_ms,
            "active": True,
        }
        assert (await ask(one.port, "GET", DENIALS)).json()["denials"] == [made.json()]
        world.clock.seconds += WEEK_S
        (over,) = (await ask(one.port, "GET", DENIALS)).json()["denials"]
        assert over["active"] is False
        gone = await ask(one.port, "DELETE", f"{DENIALS}/corp/auth0%7Ca%2Fb")
        assert (gone.status, gone.json()["subject"]) == (200, "auth0|a/b")
        assert (await ask(one.port, "GET", DENIALS)).json()["denials"] == []
        again = await ask(one.port, "DELETE", f"{DENIALS}/corp/auth0%7Ca%2Fb")
        assert (again.status, again.error()["code"]) == (404, "denial_not_found")
        rows = (await ask(one.port, "GET", "/v1/cluster/audit")).json()["rows"]
        assert [(row["action"], row["subject"]) for row in rows] == [
            ("access.undo", "corp/auth0|a/b"),
            ("access.deny", "corp/auth0|a/b"),
        ]


@pytest.mark.parametrize(
    ("body", "status", "where"),
    [
        ({}, 400, "issuer"),
        ({"issuer": "corp"}, 400, "subject"),
        ({"issuer": "corp", "subject": "x"}, 400, "for_s"),
        ({"issuer": "corp", "subject": "", "for_s": 1}, 400, "subject"),
        ({"issuer": "corp", "subject": "x" * 1_025, "for_s": 1}, 400, "subject"),
        ({"issuer": "corp", "subject": "x", "for_s": 0}, 400, "for_s"),
        ({"issuer": "corp", "subject": "x", "for_s": 1.5}, 400, "for_s"),
        ({"issuer": "corp", "subject": "x", "for_s": 1, "before_ms": -1}, 400, "before_ms"),
        ({"issuer": "corp", "subject": "x", "for_s": 1, "sub": "y"}, 400, "sub"),
        ({"issuer": "nobody", "subject": "x", "for_s": 1}, 404, "issuer"),
    ],
)
async def test_what_is_wrong_with_a_denial_is_named(
    body: dict[str, Any], status: int, where: str
) -> None:
    async with served() as (one, world):
        refused = await deny(one, **body)
        assert (refused.status, refused.error()["param"]) == (status, where)
        assert world.states["node-a"].denials.all() == []


async def test_a_node_without_issuers_shows_none_and_denies_nobody() -> None:
    async with served() as (one, world):
        world.own = ()
        assert (await ask(one.port, "GET", ISSUERS)).json()["issuers"] == []
        refused = await deny(one, issuer="corp", subject="x", for_s=1)
        assert refused.status == 404
        assert "known: none" in refused.error()["message"]


async def test_an_issuer_is_defined_changed_and_taken_away_by_version() -> None:
    async with served() as (one, world):
        made = (await define(one, "other", SPEC, "0")).json()
        assert (made["name"], made["source"], made["state"]) == ("other", "cluster", "never")
        assert made["spec"] == {**SPEC, "leeway_s": 5.0}
        stale = await define(one, "other", SPEC, "0")
        assert (stale.status, stale.error()["code"]) == (409, "stale")
        again = await define(one, "other", {**SPEC, "tenant": "/team"}, made["version"])
        assert again.json()["spec"]["tenant"] == "/team"
        assert (await ask(one.port, "PUT", f"{ISSUERS}/other", SPEC)).status == 428
        world.states["node-a"].keys.put(IssuerKeySet("other", SET, 1, -1, SPEC_ISSUER, "b"))
        path, match = f"{ISSUERS}/other?force=true", {"if-match": again.json()["version"]}
        gone = await ask(one.port, "DELETE", path, b"", match)
        assert gone.json() == {"status": "removed", "name": "other", "now": None}
        assert world.states["node-a"].keys.get("other", SPEC_ISSUER) is None
        assert (await ask(one.port, "DELETE", path, b"", {"if-match": "*"})).status == 404
        rows = (await ask(one.port, "GET", "/v1/cluster/audit")).json()["rows"]
        assert [(row["action"], row["subject"]) for row in rows] == [
            ("issuer.changed", "other")
        ] * 3


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"audiences": []}, None),
        ({"audience": ["smg"]}, "audience"),
        ({"leeway_s": "soon"}, "leeway_s"),
        ({"leeway_s": 1_000}, "leeway_s"),
        ({"issuer": None}, "issuer"),
        ({"issuer": "http://other.example"}, None),
        ({"issuer": "https://sso.example"}, "issuer"),
        ({"role_map": {"x": "emperor"}}, None),
        ({"algorithms": ["HS256"]}, "algorithms"),
        ({"algorithms": ["none"]}, "algorithms"),
        ({"introspection": {"url": "https://other.example/i"}}, "introspection"),
        ({"introspection": 7}, "introspection"),
        ({"audiences": [7]}, "audiences.0"),
        ({"token_file": "/etc/hostname"}, None),
        ({"authority": "/etc/hostname"}, None),
        (
            {
                "introspection": {
                    "url": "https://other.example/i",
                    "client_id": "a",
                    "client_secret_file": "/etc/hostname",
                }
            },
            None,
        ),
    ],
)
async def test_what_is_wrong_with_a_definition_is_named(
    change: dict[str, Any], where: str | None
) -> None:
    async with served() as (one, world):
        refused = await define(one, "other", {**SPEC, **change})
        assert (refused.status, refused.error()["code"]) == (400, "invalid_issuer")
        assert refused.error()["param"] == where
        assert world.states["node-a"].definitions.all() == []


@pytest.mark.parametrize("name", ["Corp", "a%2Fb", "x" * 64, "-", "%C3%A4"])
async def test_a_name_that_metrics_and_audit_could_not_say_is_refused(name: str) -> None:
    async with served() as (one, _):
        refused = await define(one, name, SPEC)
        assert refused.status in (400, 404)


async def test_a_definition_that_is_not_understood_is_not_followed_and_said() -> None:
    async with served() as (one, world):
        shared = world.states["node-a"].definitions
        shared.set("newer", {**SPEC, "of_a_newer_release": True}, version=None)
        shared.set("corp", {"issuer": 7}, version=None)
        listed = (await ask(one.port, "GET", ISSUERS)).json()
        # What its own file says of the name does not count either: the cluster's word might have been narrower.
        assert listed["issuers"] == []
        assert sorted(listed["unreadable"]) == ["corp", "newer"]
        assert "of_a_newer_release" in listed["unreadable"]["newer"]


async def test_a_definition_may_name_files_that_the_node_lends_and_roles_that_it_has() -> None:
    async with served() as (one, world):
        body = {**SPEC, "token_file": LENT, "role_map": {"ops": "on-call"}}
        assert (await define(one, "other", body)).json()["spec"]["token_file"] == LENT
        assert world.states["node-a"].definitions.all() != []
        refused = await define(one, "other", {**SPEC, "token_file": f"{LENT}s"})
        assert "auth.issuer_files" in refused.error()["message"]


async def test_a_definition_that_is_too_large_is_refused_for_good() -> None:
    async with served() as (one, world):
        body = {**SPEC, "role_map": {"x" * 20_000: "user"}}
        refused = await define(one, "other", body)
        assert (refused.status, refused.error()["code"]) == (400, "issuer_too_large")
        assert world.states["node-a"].definitions.all() == []


async def test_a_second_issuer_with_introspection_is_refused() -> None:
    async with served() as (one, _):
        at = {"url": "https://a.example", "client_id": "a", "client_secret_file": LENT}
        body = {**SPEC, "introspection": at}
        assert (await define(one, "other", body)).status == 200
        assert (await define(one, "other", body)).status == 200
        refused = await define(one, "third", {**body, "issuer": "https://third.example"})
        assert (refused.status, refused.error()["param"]) == (400, "introspection")
        assert "other has an introspection" in refused.error()["message"]


async def test_nobody_maps_tokens_to_a_role_that_may_more_than_its_own() -> None:
    own = {"doorkeeper": ["access", *DATA]}
    async with served(roles=Roles(own)) as (one, world):
        first = await ask(one.port, "POST", "/v1/cluster/keys", {"role": "admin"})
        admin = {"authorization": f"Bearer {first.json()['key']}"}
        wish = {"role": "doorkeeper", "tenant": "acme"}
        made = await ask(one.port, "POST", "/v1/cluster/keys", wish, admin)
        keeper = {"authorization": f"Bearer {made.json()['key']}", "if-match": "*"}
        path = f"{ISSUERS}/other"
        grown = await ask(one.port, "PUT", path, {**SPEC, "role_map": {"*": "admin"}}, keeper)
        assert (grown.status, grown.error()["code"]) == (403, "role_may_more")
        assert world.states["node-a"].definitions.all() == []
        fine = await ask(one.port, "PUT", path, {**SPEC, "role_map": {"*": "user"}}, keeper)
        assert fine.status == 200


async def test_the_last_issuer_is_taken_away_by_force_only_where_nothing_else_closes() -> None:
    async with served() as (one, world):
        world.own = ()
        await define(one, "other", SPEC)
        path, match = f"{ISSUERS}/other", {"if-match": "*"}
        kept = await ask(one.port, "DELETE", path, b"", match)
        assert (kept.status, kept.error()["code"]) == (409, "last_issuer")
        assert (await ask(one.port, "DELETE", f"{path}?force=true", b"", match)).status == 200
        await define(one, "other", SPEC)
        await define(one, "third", {**SPEC, "issuer": "https://third.example"})
        assert (await ask(one.port, "DELETE", path, b"", match)).status == 200
        first = await ask(one.port, "POST", "/v1/cluster/keys", {"role": "admin"})
        admin = {"authorization": f"Bearer {first.json()['key']}", **match}
        assert (await ask(one.port, "DELETE", f"{ISSUERS}/third", b"", admin)).status == 200


async def test_nobody_replaces_or_removes_an_issuer_whose_tokens_may_more_than_it() -> None:
    async with served(roles=Roles({"doorkeeper": ["access", *DATA]})) as (one, world):
        world.issuers = {"corp": replace(CORP, role_map=(("ops", "operator"),))}
        shared = world.states["node-a"].definitions
        first = await ask(one.port, "POST", "/v1/cluster/keys", {"role": "admin"})
        admin = {"authorization": f"Bearer {first.json()['key']}", "if-match": "*"}
        wish = {"role": "doorkeeper", "tenant": "acme"}
        made = await ask(one.port, "POST", "/v1/cluster/keys", wish, admin)
        keeper = {"authorization": f"Bearer {made.json()['key']}", "if-match": "*"}
        for name, roles in (("other", {"*": "admin"}), ("newer", {"x": "operator"})):
            newer = {"of_a_newer_release": True} if name == "newer" else {}
            body = {**SPEC, "issuer": f"https://{name}.example", "role_map": roles, **newer}
            shared.set(name, body, version=None)
        for name in ("other", "newer"):
            path = f"{ISSUERS}/{name}"
            less = {**SPEC, "role_map": {"*": "user"}}
            for method, content in (("PUT", less), ("DELETE", b"")):
                refused = await ask(one.port, method, path, content, keeper)
                assert (refused.status, refused.error()["code"]) == (403, "role_may_more")
        # Without the cluster's narrower word, what nodes' own settings say counts again: of corp that is more.
        shared.set("corp", {**SPEC, "issuer": CORP.issuer, "role_map": {"*": "user"}}, version=None)
        refused = await ask(one.port, "DELETE", f"{ISSUERS}/corp", b"", keeper)
        assert (refused.status, refused.error()["code"]) == (403, "role_may_more")
        assert [held.alias for held in shared.all()] == ["corp", "newer", "other"]
        assert (await ask(one.port, "DELETE", f"{ISSUERS}/newer", b"", admin)).status == 200


async def test_a_restricted_administrator_defines_no_issuer_and_opens_no_cluster() -> None:
    async with served() as (one, world):
        keys, here = "/v1/cluster/keys", {"networks": ["127.0.0.0/8"]}
        first = (await ask(one.port, "POST", keys, {"role": "admin"})).json()
        admin = {"authorization": f"Bearer {first['key']}"}
        made = (await ask(one.port, "POST", keys, {"role": "admin", **here}, admin)).json()
        bound = {"authorization": f"Bearer {made['key']}", "if-match": "*"}
        refused = await ask(one.port, "PUT", f"{ISSUERS}/other", SPEC, bound)
        assert (refused.status, refused.error()["code"]) == (403, "key_may_more")
        assert world.states["node-a"].definitions.all() == []
        gone = await ask(one.port, "DELETE", f"{keys}/{first['id']}", b"", bound)
        assert gone.status == 200
        last = await ask(one.port, "DELETE", f"{keys}/{made['id']}?force=true", b"", bound)
        assert (last.status, last.error()["code"]) == (403, "key_may_more")


async def test_who_may_less_than_an_administrator_opens_no_cluster() -> None:
    own = {"doorkeeper": ["access", *DATA], "all": PERMISSIONS}
    async with served(roles=Roles(own)) as (one, world):
        world.own = ()
        await define(one, "other", {**SPEC, "role_map": {"*": "user"}})
        path, headers = f"{ISSUERS}/other", {"authorization": "Bearer x", "if-match": "*"}
        for role, asked, status, code in (
            ("doorkeeper", path, 409, "last_issuer"),
            ("doorkeeper", f"{path}?force=true", 403, "key_may_more"),
            ("all", f"{path}?force=true", 200, None),
        ):
            one.parts.authenticator = OneToken(role)
            answer = await ask(one.port, "DELETE", asked, b"", headers)
            assert answer.status == status
            assert code is None or answer.error()["code"] == code


async def test_an_issuer_that_the_cluster_does_not_define_is_not_found_whatever_is_left() -> None:
    async with served() as (one, world):
        world.own = ()
        gone = await ask(one.port, "DELETE", f"{ISSUERS}/other", b"", {"if-match": "*"})
        assert (gone.status, gone.error()["code"]) == (404, "issuer_not_found")
