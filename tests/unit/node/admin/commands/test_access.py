"""`smg-admin access`: issuers at a glance with what is wrong with them, and subjects denied for a while."""

import json
from pathlib import Path
from typing import Any

import pytest

from smg_node.http.openapi.access.keys import ACCESS_EXAMPLES
from smg_node.http.openapi.access.roles import ROLE_EXAMPLES
from support.http.admin_api import Asked, RunAdmin, admin_api

DENIAL: dict[str, Any] = dict(ACCESS_EXAMPLES["Denial"])
ISSUER: dict[str, Any] = dict(ACCESS_EXAMPLES["TokenIssuer"])
ROLE: dict[str, Any] = dict(ROLE_EXAMPLES["Role"])


def _answer(asked: Asked) -> tuple[int, Any]:
    if asked.path.endswith("/issuers"):
        away = {
            "last_error": "discovery: it answered 503",
            "last_error_ms": 1_754_000_000_000,
            "introspection_error": "it cannot be reached",
        }
        strange = {"newer": "it has a field of a newer release"}
        return 200, {"node": "a", "issuers": [{**ISSUER, **away}], "unreadable": strange}
    if "/issuers/" in asked.path:
        return 200, ISSUER if asked.method == "PUT" else {"now": None}
    if asked.method == "GET":
        return 200, {"node": "a", "denials": [DENIAL, {**DENIAL, "before_ms": 1, "active": False}]}
    return 200, DENIAL


def test_issuers_are_a_table_and_what_is_wrong_stands_below(run: RunAdmin) -> None:
    with admin_api(_answer) as api:
        code, out, err = run("--url", api.url, "access", "issuers")
        _, as_json, _ = run("--url", api.url, "--json", "access", "issuers")
    assert code == 0
    assert out.splitlines()[0].split() == [
        "NAME", "ISSUER", "STATE", "KEYS", "SKIPPED", "FETCHED", "BY", "REFRESHED", "BY",
    ]  # fmt: skip
    assert "https://sso.example/realms/prod" in out
    assert "key 'enc-1' (RSA RSA-OAEP) is skipped: not_for_signatures" in err
    assert "discovery: it answered 503" in err
    assert "it does not answer about tokens: it cannot be reached" in err
    assert "newer: the cluster's definition is not followed by this node" in err
    assert json.loads(as_json)["issuers"][0]["name"] == "corp"


def test_no_issuer_is_said_so(run: RunAdmin) -> None:
    with admin_api(lambda asked: (200, {"node": "a", "issuers": [], "unreadable": {}})) as api:
        code, out, _ = run("--url", api.url, "access", "issuers")
    assert (code, out) == (0, "No issuer is configured (auth.issuers).\n")


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (("--for", "24h"), {"for_s": 86_400}),
        (("--for", "90m"), {"for_s": 5_400}),
        (
            ("--for", "30d", "--before", "2027-01-31T12:00:00Z"),
            {"for_s": 2_592_000, "before_ms": 1_801_396_800_000},
        ),
        (
            ("--for", "1s", "--before", "2027-01-31"),
            {"for_s": 1, "before_ms": 1_801_353_600_000},
        ),
    ],
)
def test_a_subject_is_denied(run: RunAdmin, words: tuple[str, ...], body: dict[str, int]) -> None:
    with admin_api(_answer) as api:
        code, out, _ = run("--url", api.url, "access", "deny", "corp", "--sub", "alice", *words)
    assert code == 0
    assert out.startswith("tokens of alice (corp) are refused until 2025-")
    (asked,) = api.asked
    assert (asked.method, asked.path) == ("POST", "/v1/cluster/access/denials")
    assert asked.body == {"issuer": "corp", "subject": "alice", **body}


def test_before_now_is_the_time_of_this_machine(run: RunAdmin) -> None:
    with admin_api(_answer) as api:
        words = ("access", "deny", "corp", "--sub", "alice", "--for", "1h", "--before", "now")
        assert run("--url", api.url, *words)[0] == 0
    assert api.asked[0].body["before_ms"] > 1_754_000_000_000


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--for", "soon"), "--for takes 24h"),
        (("--for", "0h"), "--for takes 24h"),
        (("--for", "1h", "--before", "then"), "--before takes now or a time"),
    ],
)
def test_what_is_no_time_is_refused_before_anybody_is_asked(
    run: RunAdmin, words: tuple[str, ...], why: str
) -> None:
    with admin_api(_answer) as api:
        code, _, err = run("--url", api.url, "access", "deny", "corp", "--sub", "alice", *words)
    assert (code, api.asked) == (1, [])
    assert why in err


def test_denials_are_listed_and_undone(run: RunAdmin) -> None:
    with admin_api(_answer) as api:
        _, listed, _ = run("--url", api.url, "access", "denied")
        code, out, _ = run("--url", api.url, "access", "undo", "corp", "--sub", "a/b|c")
    assert "active" in listed
    assert "over" in listed
    assert (code, out) == (0, "tokens of alice (corp) are good again\n")
    assert api.asked[-1].method == "DELETE"
    assert api.asked[-1].path.startswith("/v1/cluster/access/denials/corp/a")


def test_an_issuer_is_defined_by_a_file_over_the_version_that_was_seen(
    run: RunAdmin, tmp_path: Path
) -> None:
    file = tmp_path / "corp.yaml"
    file.write_text("issuer: https://sso.example\naudiences: [smg]\nrole_map: {'*': user}\n")
    with admin_api(_answer) as api:
        code, out, _ = run("--url", api.url, "access", "define", "corp", "--file", str(file))
        new = run("--url", api.url, "access", "define", "new", "--file", str(file))
        gone = run("--url", api.url, "access", "remove", "corp", "--if-version", "*")
    assert (code, new[0], gone[0]) == (0, 0, 0), (new, out)
    assert "issuer corp" in out
    writes = [asked for asked in api.asked if asked.method != "GET"]
    assert [asked.method for asked in writes] == ["PUT", "PUT", "DELETE"]
    assert writes[0].body == {
        "issuer": "https://sso.example",
        "audiences": ["smg"],
        "role_map": {"*": "user"},
    }


def test_a_whole_file_of_issuers_must_have_that_one(run: RunAdmin, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text("issuers:\n  corp: {issuer: https://sso.example}\n")
    with admin_api(_answer) as api:
        code, _, err = run("--url", api.url, "access", "define", "other", "--file", str(file))
    assert (code, api.asked) == (1, [])
    assert "has no other among its issuers: corp" in err


def test_what_the_node_does_not_follow_is_written_over_only_if_that_is_said(
    run: RunAdmin, tmp_path: Path
) -> None:
    file = tmp_path / "newer.yaml"
    file.write_text("issuer: https://sso.example\n")
    with admin_api(_answer) as api:
        for words in (("remove", "newer"), ("define", "newer", "--file", str(file))):
            code, _, err = run("--url", api.url, "access", *words)
            assert (code, "it has a field of a newer release" in err) == (1, True)
            assert "--if-version '*'" in err
            assert run("--url", api.url, "access", *words, "--if-version", "*")[0] == 0
    writes = [asked.method for asked in api.asked if asked.method != "GET"]
    assert writes == ["DELETE", "PUT"]


def _roles(asked: Asked) -> tuple[int, Any]:
    if asked.method == "GET":
        strange = {"newer": "there is no permission 'teleport'"}
        return 200, {"node": "a", "roles": [ROLE], "unreadable": strange}
    if asked.method == "PUT":
        return 200, ROLE
    used = {"keys": ["k1", "k2"], "issuers": [], "certificates": ["x"]}
    return 200, {**ROLE_EXAMPLES["RoleRemoved"], "used_by": used}


def test_roles_are_listed_defined_and_taken_away_over_the_version_that_was_seen(
    run: RunAdmin,
) -> None:
    with admin_api(_roles) as api:
        _, listed, err = run("--url", api.url, "access", "roles")
        words = ("--permissions", "look, workers")
        made = run("--url", api.url, "access", "define-role", "fleet", *words)
        new = run("--url", api.url, "access", "define-role", "new", *words)
        gone = run("--url", api.url, "access", "remove-role", "fleet", "--force")
        strange = run("--url", api.url, "access", "define-role", "newer", *words)
    assert listed.splitlines()[1].split() == ["fleet", "cluster", "look", "workers"]
    assert "newer: the cluster's definition is not followed by this node" in err
    assert made[1] == "role fleet may look, workers, version 115964116992\n"
    assert (made[0], new[0], gone[0], strange[0]) == (0, 0, 0, 1)
    assert "nothing is opened any more by what has it: 2 keys, 1 certificates" in gone[2]
    writes = [asked for asked in api.asked if asked.method != "GET"]
    assert [(asked.method, asked.path.rpartition("/")[2]) for asked in writes] == [
        ("PUT", "fleet"),
        ("PUT", "new"),
        ("DELETE", "fleet?force=true"),
    ]
    assert writes[0].body == {"permissions": ["look", "workers"]}
