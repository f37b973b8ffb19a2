import base64
import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from support.http.admin_api import Asked, RunAdmin, admin_api

_KEY = base64.b64encode(bytes(range(32))).decode()
_ANSWER: dict[str, Any] = {
    "primary": "aabbccdd",
    "keys": [
        {"fingerprint": "aabbccdd", "primary": True, "members": ["a", "b"]},
        {"fingerprint": "00112233", "primary": False, "members": ["a"]},
    ],
    "members": {"a": "ok", "b": "no answer within 5 s"},
}


def _answers(_: Asked) -> tuple[int, Any]:
    return 200, _ANSWER


def test_a_key_is_made_without_any_node(run: RunAdmin) -> None:
    _, first, _ = run("cluster", "keyring", "generate")
    _, second, _ = run("cluster", "keyring", "generate")
    assert len(base64.b64decode(first.strip(), validate=True)) == 32
    assert first != second


def test_a_key_file_is_its_owners_alone_and_never_written_over(
    run: RunAdmin, tmp_path: Path
) -> None:
    file = tmp_path / "mesh.key"
    code, out, err = run("cluster", "keyring", "generate", "--out", str(file))
    assert (code, out) == (0, "")
    assert f"smg-node --mesh-key {file}" in err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = file.read_text()
    code, _, err = run("cluster", "keyring", "generate", "--out", str(file))
    assert (code, err) == (1, f"smg-admin: cannot write {file}: file exists\n")
    assert file.read_text() == kept


def test_keys_are_listed_by_fingerprint_with_who_holds_them(run: RunAdmin) -> None:
    with admin_api(_answers) as api:
        code, out, err = run("--url", api.url, "cluster", "keyring", "list")
        _, as_json, _ = run("--url", api.url, "cluster", "keyring", "list", "--json")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[1] == ["aabbccdd", "yes", "2", "of", "2:", "a,", "b"]
    assert lines[2] == ["00112233", "no", "1", "of", "2:", "a"]
    assert err == "b: no answer within 5 s\n"
    assert json.loads(as_json) == _ANSWER


def test_a_key_is_installed_from_a_file_and_never_from_the_command_line(
    run: RunAdmin, tmp_path: Path
) -> None:
    file = tmp_path / "new.key"
    file.write_text(f"# made in November\n\n  {_KEY}  # the second\nother\n")
    with admin_api(_answers) as api:
        code, _, _ = run("--url", api.url, "cluster", "keyring", "install", str(file))
    assert code == 0
    assert api.asked[0].body == {"operation": "install", "key": _KEY, "force": False}


def test_a_key_may_come_through_a_pipe(run: RunAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{_KEY}\n"))
    with admin_api(_answers) as api:
        assert run("--url", api.url, "cluster", "keyring", "install", "-")[0] == 0
    assert api.asked[0].body["key"] == _KEY


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "no such file"), (b"# none\n", "holds no key"), (b"\xff\xfe", "it is no text")],
)
def test_a_file_without_a_key_is_one_line(
    run: RunAdmin, tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "new.key"
    if content is not None:
        file.write_bytes(content)
    code, out, err = run("cluster", "keyring", "install", str(file))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert words in err


@pytest.mark.parametrize("operation", ["use", "remove"])
def test_the_next_steps_name_the_key_by_its_fingerprint(run: RunAdmin, operation: str) -> None:
    with admin_api(_answers) as api:
        run("--url", api.url, "cluster", "keyring", operation, "aabbccdd")
        run("--url", api.url, "cluster", "keyring", operation, "aabbccdd", "--force")
    assert [asked.body for asked in api.asked] == [
        {"operation": operation, "key": "aabbccdd", "force": forced} for forced in (False, True)
    ]


def test_a_refused_step_shows_the_nodes_own_words(run: RunAdmin) -> None:
    body = {"error": {"message": "b did not answer; nothing was changed", "code": "x"}}
    with admin_api(lambda _: (409, body)) as api:
        found = run("--url", api.url, "cluster", "keyring", "use", "aabbccdd")
    assert found == (1, "", "smg-admin: b did not answer; nothing was changed\n")
