"""`smg-admin keys`, and how the command says who asks."""

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from smg_node.access.api_key import read_key_text
from smg_node.cluster.admin_key_file import read_admin_keys
from support.http.admin_api import Asked, RunAdmin, admin_api

KEY = "smg-k3x9q0a7m2bd-" + "s" * 43
ROW: dict[str, Any] = {
    "id": "k3x9q0a7m2bd",
    "tenant": "acme",
    "role": "user",
    "name": "checkout",
    "fingerprint": "9c2f10ab77d3",
    "state": "active",
    "source": "cluster",
    "created_ms": 1_754_000_000_000,
    "expires_ms": None,
    "revoked_ms": None,
}


def _made(asked: Asked) -> tuple[int, Any]:
    return 201, {**ROW, "key": KEY, "closes": asked.body["role"] == "admin"}


def test_a_new_key_is_all_that_is_printed(run: RunAdmin) -> None:
    with admin_api(_made) as api:
        code, out, err = run(
            "--url", api.url, "keys", "create", "--tenant", "acme", "--name", "checkout"
        )
    assert (code, out) == (0, f"{KEY}\n")
    assert "k3x9q0a7m2bd" in err
    assert KEY not in err
    assert "first admin key" not in err
    assert [(asked.method, asked.path, asked.body) for asked in api.asked] == [
        ("POST", "/v1/cluster/keys", {"role": "user", "name": "checkout", "tenant": "acme"})
    ]


def test_whoever_makes_the_first_admin_key_is_told_what_it_does(run: RunAdmin) -> None:
    with admin_api(_made) as api:
        code, out, err = run("--url", api.url, "keys", "create", "--role", "admin")
        _, as_json, _ = run("--url", api.url, "--json", "keys", "create", "--role", "admin")
    assert (code, out) == (0, f"{KEY}\n")
    assert "this is the first admin key" in err
    assert json.loads(as_json)["key"] == KEY
    assert "tenant" not in api.asked[0].body


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("60s", 60), ("30m", 1_800), ("12h", 43_200), ("90d", 7_776_000)],
)
def test_a_key_may_expire_after_a_while(run: RunAdmin, said: str, seconds: int) -> None:
    with admin_api(_made) as api:
        assert run("--url", api.url, "keys", "create", "--tenant", "a", "--expires", said)[0] == 0
    assert api.asked[0].body["expires_in_s"] == seconds


def test_a_key_may_expire_on_a_day(run: RunAdmin) -> None:
    day = datetime.now(UTC) + timedelta(days=10)
    said = day.strftime("%Y-%m-%d")
    with admin_api(_made) as api:
        assert run("--url", api.url, "keys", "create", "--tenant", "a", "--expires", said)[0] == 0
    left_s = api.asked[0].body["expires_in_s"]
    assert 9 * 86_400 - 5 <= left_s <= 10 * 86_400


@pytest.mark.parametrize("said", ["soon", "5", "5w", "2020-01-01", "2027-13-01", "-5d"])
def test_what_is_no_time_to_come_is_one_line(run: RunAdmin, said: str) -> None:
    with admin_api(_made) as api:
        code, _, err = run("--url", api.url, "keys", "create", "--tenant", "a", f"--expires={said}")
    assert (code, err.count("\n"), api.asked) == (1, 1, [])


def test_keys_are_listed_with_what_they_may(run: RunAdmin) -> None:
    file = {**ROW, "id": "boot", "tenant": "", "role": "admin", "source": "file"}
    file |= {"created_ms": None, "name": "key file"}
    answer = {"closed": True, "keys": [file, ROW]}
    with admin_api(lambda _: (200, answer)) as api:
        code, out, err = run("--url", api.url, "keys", "list")
        run("--url", api.url, "keys", "list", "--all")
        _, as_json, _ = run("--url", api.url, "keys", "list", "--json")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == [
        "ID", "TENANT", "ROLE", "NAME", "STATE", "CREATED", "EXPIRES", "FINGERPRINT"
    ]  # fmt: skip
    assert "active (file)" in lines[1]
    assert lines[2].split()[:5] == ["k3x9q0a7m2bd", "acme", "user", "checkout", "active"]
    assert json.loads(as_json) == answer
    assert [asked.path for asked in api.asked][:2] == [
        "/v1/cluster/keys",
        "/v1/cluster/keys?all=true",
    ]


def test_an_open_cluster_is_said_to_be_open(run: RunAdmin) -> None:
    with admin_api(lambda _: (200, {"closed": False, "keys": []})) as api:
        code, out, err = run("--url", api.url, "keys", "list")
    assert (code, out) == (0, "There are no keys.\n")
    assert err.startswith("no admin key exists")


def test_a_key_is_revoked_by_its_id_and_by_force_where_it_is_the_last(run: RunAdmin) -> None:
    def revokes(asked: Asked) -> tuple[int, Any]:
        return 200, {**ROW, "state": "revoked", "opens": "force" in asked.path}

    with admin_api(revokes) as api:
        found = {
            forced: run("--url", api.url, "keys", "revoke", ROW["id"], *(["--force"] * forced))
            for forced in (True, False)
        }
    assert found[False] == (0, "key k3x9q0a7m2bd of acme (user) is revoked\n", "")
    assert "the cluster is open again" in found[True][2]
    assert [(asked.method, asked.path) for asked in api.asked] == [
        ("DELETE", "/v1/cluster/keys/k3x9q0a7m2bd?force=true"),
        ("DELETE", "/v1/cluster/keys/k3x9q0a7m2bd"),
    ]


def test_a_whole_key_pasted_for_its_id_is_not_sent(run: RunAdmin) -> None:
    with admin_api(lambda _: (200, {**ROW, "state": "revoked", "opens": False})) as api:
        assert run("--url", api.url, "keys", "revoke", KEY)[0] == 0
    assert api.asked[0].path == "/v1/cluster/keys/k3x9q0a7m2bd"


def test_a_key_for_a_file_is_made_without_any_node(run: RunAdmin, tmp_path: Path) -> None:
    _, first, _ = run("keys", "generate")
    _, second, _ = run("keys", "generate")
    assert read_key_text(first.strip()) is not None
    assert first != second
    file = tmp_path / "admin.key"
    code, out, err = run("keys", "generate", "--out", str(file))
    assert (code, out) == (0, "")
    assert f"--auth.admin-key-file {file}" in err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(read_admin_keys(file).secrets) == 1
    code, _, err = run("keys", "generate", "--out", str(file))
    assert (code, err) == (1, f"smg-admin: cannot write {file}: file exists\n")


def _ok(_: Asked) -> tuple[int, Any]:
    return 200, {"closed": True, "keys": []}


def test_the_command_finds_its_own_key_in_flag_environment_or_file(
    run: RunAdmin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "admin.key"
    file.write_text(f"# mine\n\n{KEY}  # since November\n")
    with admin_api(_ok) as api:
        run("--url", api.url, "keys", "list")
        run("--url", api.url, "keys", "list", "--key-file", str(file))
        run("--url", api.url, "--key", "k1", "--key-file", str(file), "keys", "list")
        monkeypatch.setenv("SMG_KEY_FILE", str(file))
        run("--url", api.url, "keys", "list")
        monkeypatch.setenv("SMG_KEY", "k2")
        run("--url", api.url, "keys", "list")
        monkeypatch.setenv("SMG_ADMIN_KEY", "k3")
        run("--url", api.url, "keys", "list")
    said = [asked.authorization for asked in api.asked]
    expected = ["", KEY, "k1", KEY, "k2", "k3"]
    assert said == [f"Bearer {key}" if key else "" for key in expected]


def test_a_key_file_without_a_key_is_one_line(run: RunAdmin, tmp_path: Path) -> None:
    file = tmp_path / "admin.key"
    code, _, err = run("--key-file", str(file), "keys", "list")
    assert (code, err) == (1, f"smg-admin: cannot read {file}: no such file or directory\n")
    file.write_text("# nothing\n")
    assert run("--key-file", str(file), "keys", "list")[2] == f"smg-admin: {file} holds no key\n"


def test_a_refused_command_is_told_how_to_give_a_key(run: RunAdmin) -> None:
    with admin_api(lambda _: (401, {"error": {"message": "the key is not valid here"}})) as api:
        code, _, err = run("--url", api.url, "--key", KEY, "keys", "list")
    assert code == 1
    assert err.startswith("smg-admin: the key is not valid here (--key, SMG_KEY or --key-file")
    assert KEY not in err


ONLY: dict[str, Any] = {
    "models": ["llama-*", "qwen"],
    "networks": ["10.0.0.0/8"],
    "routes": ["chat"],
    "max_priority": "bulk",
}


def test_restrictions_are_sent_as_lists_and_members_that_do_not_know_them_are_named(
    run: RunAdmin,
) -> None:
    def restricted(asked: Asked) -> tuple[int, Any]:
        return 201, {**ROW, **ONLY, "key": KEY, "closes": False, "unknown_on": ["b", "c"]}

    given = ("--models", "llama-*, qwen", "--networks", "10.0.0.0/8", "--routes", "chat")
    with admin_api(restricted) as api:
        code, out, err = run(
            "--url", api.url, "keys", "create", "--tenant", "acme", *given, "--max-priority", "bulk"
        )
    assert (code, out) == (0, f"{KEY}\n")
    assert "older version do not know such a key and answer it 401: b, c" in err
    (asked,) = api.asked
    assert {name: asked.body[name] for name in ONLY} == ONLY


def test_restrictions_are_a_column_where_some_key_has_any(run: RunAdmin) -> None:
    answer = {"closed": True, "keys": [ROW, {**ROW, "id": "only", **ONLY}]}
    with admin_api(lambda _: (200, answer)) as api:
        _, out, _ = run("--url", api.url, "keys", "list")
    head, plain, restricted = out.splitlines()
    assert head.split()[-1] == "ONLY"
    assert "models=" not in plain
    said = "models=llama-*,qwen networks=10.0.0.0/8 routes=chat priority<=bulk"
    assert restricted.rstrip().endswith(said)


def test_one_key_is_shown_with_all_that_it_is_restricted_to(run: RunAdmin) -> None:
    answer = {"closed": True, "keys": [ROW, {**ROW, "id": "only", **ONLY}]}
    with admin_api(lambda _: (200, answer)) as api:
        _, out, _ = run("--url", api.url, "keys", "show", "only")
        _, as_json, _ = run("--url", api.url, "--json", "keys", "show", "only")
        code, _, err = run("--url", api.url, "keys", "show", "none")
    rows = dict(line.split(maxsplit=1) for line in out.splitlines()[1:])
    assert rows["MODELS"].strip() == "llama-*, qwen"
    assert rows["ROLE"].strip() == "user"
    assert rows["MAX"].split() == ["PRIORITY", "bulk"]
    assert json.loads(as_json)["networks"] == ["10.0.0.0/8"]
    assert code == 1
    assert "no key has the id 'none'" in err
