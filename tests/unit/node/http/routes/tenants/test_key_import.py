"""Keys of other gateways over HTTP: taken over by digest, audited, and good at once."""

import hashlib
from typing import Any

import pytest

from support.http.http_node import node
from support.http.raw_http import ask
from unit.node.http.routes.tenants.test_keys import KEYS, bearer, closed, talk

IMPORT = f"{KEYS}/import"
KEY = "sk-0123456789abcdefghijklmnopqrstuv"
SHA = hashlib.sha256(KEY.encode()).hexdigest()


async def test_a_key_that_was_taken_over_is_good_at_once_and_audited() -> None:
    async with closed() as (served, admin, _):
        assert (await talk(served, bearer(KEY))).status == 401
        body = {"keys": [{"sha256": SHA, "tenant": "acme", "name": "x"}]}
        created: dict[str, Any] = {}
        for dry_run in (True, False):
            wanted = {**body, "dry_run": dry_run}
            answer = await ask(served.port, "POST", IMPORT, wanted, bearer(admin))
            assert answer.status == 200, answer.body
            said = answer.json()
            assert (said["dry_run"], said["unchanged"], said["refused"]) == (dry_run, 0, [])
            (created,) = said["created"]
            assert (created["tenant"], created["foreign"]) == ("acme", True)
        assert (await talk(served, bearer(KEY))).status == 200
        assert (await talk(served, {"x-api-key": KEY})).status == 200
        again = await ask(served.port, "POST", IMPORT, body, bearer(admin))
        assert (again.json()["created"], again.json()["unchanged"]) == ([], 1)
        audit = await ask(served.port, "GET", "/v1/cluster/audit", b"", bearer(admin))
        rows = [row for row in audit.json()["rows"] if row["action"] == "key.import"]
        assert [row["after"]["created"] for row in rows] == [[created["id"]]]
        assert SHA.encode() not in audit.body
        gone = await ask(served.port, "DELETE", f"{KEYS}/{created['id']}", b"", bearer(admin))
        assert gone.status == 200
        assert (await talk(served, bearer(KEY))).status == 401
        once_more = await ask(served.port, "POST", IMPORT, body, bearer(admin))
        assert [no["code"] for no in once_more.json()["refused"]] == ["key_revoked"]
        assert (await talk(served, bearer(KEY))).status == 401


async def test_only_administrators_take_keys_over() -> None:
    async with closed() as (served, _, user):
        body = {"keys": [{"sha256": SHA, "tenant": "acme"}]}
        assert (await ask(served.port, "POST", IMPORT, body, bearer(user))).status == 403
        assert (await ask(served.port, "POST", IMPORT, body)).status == 401


@pytest.mark.parametrize(
    ("keys", "where"),
    [
        (None, "keys"),
        ([], "keys"),
        ([{}] * 201, "keys"),
        (["x"], "keys[0]"),
        ([{"sha256": SHA, "key": KEY}], "keys[0]"),
        ([{"sha256": SHA}], "keys[0].tenant"),
        ([{"sha256": SHA, "tenant": "a b"}], "keys[0].tenant"),
        ([{"sha256": SHA, "tenant": "a", "role": "root"}], "keys[0].role"),
        ([{"sha256": SHA, "tenant": "a"}, {"sha256": "00", "tenant": "a"}], "keys[1].sha256"),
        ([{"sha256": "zz" * 32, "tenant": "a"}], "keys[0].sha256"),
        ([{"sha256": " " + SHA[1:], "tenant": "a"}], "keys[0].sha256"),
        ([{"sha256": SHA, "tenant": "a", "expires_ms": 0}], "keys[0].expires_ms"),
        ([{"sha256": SHA, "tenant": "a", "expires_ms": True}], "keys[0].expires_ms"),
    ],
)
async def test_what_is_no_list_of_keys_is_refused_with_its_place(keys: Any, where: str) -> None:
    async with node() as served:
        answer = await ask(served.port, "POST", IMPORT, {"keys": keys})
        assert (answer.status, answer.error()["param"]) == (400, where)
        assert KEY.encode() not in answer.body
        listed = await ask(served.port, "GET", KEYS)
        assert listed.json()["keys"] == []
