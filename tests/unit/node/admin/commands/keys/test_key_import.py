"""`smg-admin keys import`: what is sent, what is said, and that no key is."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from support.http.admin_api import Asked, RunAdmin, admin_api

KEY = "sk-0123456789abcdefghijklmnopqrstuv"
SHA = hashlib.sha256(KEY.encode()).hexdigest()


def taking(asked: Asked) -> tuple[int, Any]:
    created = [{"id": f"f{index}"} for index, _ in enumerate(asked.body["keys"])]
    return 200, {"created": created, "unchanged": 0, "refused": [], "closes": False}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "keys.csv"
    file.write_text(f"tenant,name,key,expires\nacme,checkout,{KEY},2999-01-01\n")
    return file


def test_only_the_digest_of_a_key_is_sent(run: RunAdmin, table: Path) -> None:
    with admin_api(taking) as api:
        code, out, err = run("--url", api.url, "keys", "import", "--from", "csv", str(table))
    assert (code, out) == (0, "1 keys taken over, 0 are there already\n"), err
    assert [(asked.method, asked.path) for asked in api.asked] == [
        ("POST", "/v1/cluster/keys/import")
    ]
    assert api.asked[0].body == {
        "keys": [
            {
                "sha256": SHA,
                "role": "user",
                "name": "checkout",
                "tenant": "acme",
                "expires_ms": 32_472_144_000_000,
            }
        ],
        "dry_run": False,
    }
    assert KEY not in out + err


def test_keys_that_end_with_the_one_that_takes_them_over_are_no_surprise(
    run: RunAdmin, tmp_path: Path
) -> None:
    file = tmp_path / "keys.csv"
    file.write_text(f"tenant,sha256,expires\na,{'1' * 64},\na,{'2' * 64},2026-12-01\n")
    ends = [1_796_083_200_000, 1_796_086_800_000]
    created = [{"id": f"f{end}", "expires_ms": end} for end in ends]
    answer = {"created": created, "unchanged": 0, "refused": [], "closes": False}
    with admin_api(lambda _: (200, answer)) as api:
        code, _, err = run("--url", api.url, "keys", "import", "--from", "csv", str(file))
    assert code == 0
    assert "those without an end end with the key that takes them over, 2026-12-01 01:00" in err


def test_a_dry_run_is_the_nodes_to_judge(run: RunAdmin, table: Path) -> None:
    with admin_api(taking) as api:
        words = ("keys", "import", "--from", "csv", str(table), "--dry-run")
        code, out, _ = run("--url", api.url, *words)
    assert (code, out) == (0, "1 keys would be taken over, 0 are there already\n")
    assert api.asked[0].body["dry_run"] is True


def test_many_keys_are_sent_in_batches_with_word_of_how_far_it_is(
    run: RunAdmin, tmp_path: Path
) -> None:
    file = tmp_path / "keys.csv"
    rows = "".join(f"a,{number:064x}\n" for number in range(4_100))
    file.write_text(f"tenant,sha256\n{rows}")
    with admin_api(taking) as api:
        code, out, err = run("--url", api.url, "keys", "import", "--from", "csv", str(file))
    assert (code, out) == (0, "4100 keys taken over, 0 are there already\n")
    assert [len(asked.body["keys"]) for asked in api.asked] == [200] * 20 + [100]
    assert err.splitlines() == ["2000 of 4100 keys", "4000 of 4100 keys"]


def test_what_the_node_refuses_is_said_by_line(run: RunAdmin, tmp_path: Path) -> None:
    file = tmp_path / "keys.csv"
    file.write_text(f"tenant,sha256\n\na,{'1' * 64}\nb,{'2' * 64}\n")
    no = {"index": 1, "id": "f2", "code": "key_revoked", "message": "the key is revoked here"}
    answer = {"created": [{"id": "f1"}], "unchanged": 0, "refused": [no], "closes": True}
    with admin_api(lambda _: (200, answer)) as api:
        words = ("--url", api.url, "keys", "import", "--from", "csv", str(file))
        code, out, err = run(*words)
        _, as_json, _ = run(*words, "--json")
    assert (code, out) == (1, "1 keys taken over, 0 are there already\n")
    assert "line 4: the key is revoked here" in err
    assert "first admin keys" in err
    assert json.loads(as_json)["refused"] == [
        {"line": 4, "id": "f2", "code": "key_revoked", "message": "the key is revoked here"}
    ]


def test_a_file_with_something_wrong_is_not_sent_at_all(run: RunAdmin, tmp_path: Path) -> None:
    file = tmp_path / "keys.csv"
    file.write_text(f"tenant,key\nacme,{KEY}\nacme,secret-7\n")
    with admin_api(taking) as api:
        code, out, err = run("--url", api.url, "keys", "import", "--from", "csv", str(file))
    assert (code, out, api.asked) == (1, "", [])
    assert f"{file}, line 3, column key: a key of 8 characters can be guessed" in err
    assert f"{file} is not imported" in err
    assert "secret-7" not in err


def test_keys_for_some_models_only_stay_so_unless_something_else_is_meant(
    run: RunAdmin, tmp_path: Path
) -> None:
    file = tmp_path / "keys.csv"
    file.write_text(f'token,team_id,models\n{SHA},a,"{{gpt-4o,llama-*}}"\n')
    with admin_api(taking) as api:
        words = ("--url", api.url, "keys", "import", "--from", "litellm", str(file))
        assert run(*words)[0] == 0
        code, out, err = run(*words, "--ignore-models")
    assert [asked.body["keys"][0].get("models") for asked in api.asked] == [
        ["gpt-4o", "llama-*"],
        None,
    ]
    assert (code, out) == (0, "1 keys taken over, 0 are there already\n")
    assert "1 keys may ask for every model here" in err


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ("{all-team-models}", "all-team-models is a list"),
        (f"{{{'x' * 129}}}", "a name has 1 to 128"),
        ("{" + ",".join(map(str, range(33))) + "}", "32 models at most, and this one is for 33"),
    ],
)
def test_models_that_cannot_be_kept_are_refused_unless_they_are_to_be_ignored(
    run: RunAdmin, tmp_path: Path, models: str, said: str
) -> None:
    file = tmp_path / "keys.csv"
    file.write_text(f'token,team_id,models\n{SHA},a,"{models}"\n')
    with admin_api(taking) as api:
        words = ("--url", api.url, "keys", "import", "--from", "litellm", str(file))
        code, _, err = run(*words)
        assert (code, api.asked) == (1, [])
        assert f"line 2, column models: {said}" in err.replace("a key may be for ", "")
        assert run(*words, "--ignore-models")[0] == 0


def test_members_that_do_not_know_such_keys_are_named(run: RunAdmin, table: Path) -> None:
    def script(asked: Asked) -> tuple[int, Any]:
        return 200, {**taking(asked)[1], "unknown_on": ["old-1"]}

    with admin_api(script) as api:
        code, _, err = run("--url", api.url, "keys", "import", "--from", "csv", str(table))
    assert code == 0
    assert "members of an older version do not know such keys and answer them 401: old-1" in err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot read"),
        (b"tenant,key\na,\xff\n", "line 2: it is not UTF-8 text"),
        (b"tenant,key\n", "holds no keys"),
    ],
)
def test_files_that_are_none_are_one_line(
    run: RunAdmin, tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "keys.csv"
    if content is not None:
        file.write_bytes(content)
    with admin_api(taking) as api:
        code, _, err = run("--url", api.url, "keys", "import", "--from", "csv", str(file))
    assert (code, err.count("\n"), api.asked) == (1, 1, [])
    assert said in err


def test_an_unknown_format_is_bad_usage(run: RunAdmin, table: Path) -> None:
    assert run("keys", "import", "--from", "kong", str(table))[0] == 2


def test_what_was_taken_over_before_a_failure_is_said(run: RunAdmin, tmp_path: Path) -> None:
    file = tmp_path / "keys.csv"
    rows = "".join(f"a,{number:064x}\n" for number in range(300))
    file.write_text(f"tenant,sha256\n{rows}")
    full = {"error": {"message": "there may be 10000 keys; no more fit"}}

    def script(asked: Asked) -> tuple[int, Any]:
        return taking(asked) if len(asked.body["keys"]) == 200 else (409, full)

    with admin_api(script) as api:
        code, _, err = run("--url", api.url, "keys", "import", "--from", "csv", str(file))
    assert code == 1
    assert "no more fit; 200 keys were taken over before" in err
