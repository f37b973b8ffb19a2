"""`smg-admin db`: what an operator types and reads, over files and without a node."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from support.http.admin_api import Asked, RunAdmin, admin_api


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SMG_CONFIG", "SMG_STORAGE__URL", "SMG_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_tables_are_looked_at_made_and_found_up_to_date(run: RunAdmin, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'h.db'}"
    none = run("db", "status", "--store", store)
    made = run("db", "migrate", "--store", store)
    again = run("db", "migrate", "--store", store)
    table = run("db", "status", "--store", store)
    parsed = json.loads(run("db", "status", "--store", store, "--json")[1])
    assert none[0] == 0
    assert "run `smg-admin db migrate`" in none[1]
    assert made[:2] == (0, made[1])
    assert made[1].startswith("done: 0001: The tables of history")
    assert made[2] == "the tables are of revision 0001\n"
    assert again == (0, "", "there is nothing to do\nthe tables are of revision 0001\n")
    assert dict(line.split(maxsplit=1) for line in table[1].splitlines()) == {
        "store": store,
        "said": "by   flag --store",
        "revision": "0001",
        "needed": "0001",
        "tables": "up to date",
    }
    assert parsed == {
        "store": store,
        "said_by": "flag --store",
        "revision": "0001",
        "needed": "0001",
        "newest": "0001",
        "state": "current",
    }


@pytest.mark.parametrize(("found", "state"), [("0000", "old"), ("0002", "newer")])
def test_older_and_newer_tables_are_told_apart(
    run: RunAdmin, tmp_path: Path, found: str, state: str
) -> None:
    store = f"sqlite:///{tmp_path / 'h.db'}"
    run("db", "migrate", "--store", store)
    with sqlite3.connect(tmp_path / "h.db") as connection:
        connection.execute("UPDATE smg_schema_version SET version_num = ?", (found,))
    connection.close()
    assert json.loads(run("db", "status", "--store", store, "--json")[1])["state"] == state


def test_the_store_is_that_of_the_configuration(
    run: RunAdmin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "node.yaml"
    file.write_text("storage:\n  url: sqlite:///talks.db\n  owner: ''\n")
    words = ("--config", str(file), "--data-dir", str(tmp_path))
    assert run("db", "migrate", *words)[0] == 0
    assert (tmp_path / "talks.db").exists()
    monkeypatch.setenv("SMG_STORAGE__URL", f"sqlite:///{tmp_path / 'other.db'}")
    moved = json.loads(run("db", "migrate", "--config", str(file), "--json")[1])
    assert moved["store"].endswith("other.db")
    assert (moved["before"], moved["revision"], moved["dry_run"]) == (None, "0001", False)
    assert (tmp_path / "other.db").exists()


def test_a_dry_run_and_statements_change_nothing(run: RunAdmin, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'h.db'}"
    planned = run("db", "migrate", "--store", store, "--dry-run")
    script = run("db", "migrate", "--store", store, "--sql")
    from_base = run("db", "migrate", "--store", "postgresql://h/d", "--sql", "--from", "base")
    assert planned[1].startswith("would do: 0001: ")
    assert not (tmp_path / "h.db").exists()
    assert 'CREATE TABLE "responses"' in script[1]
    assert '"raw_response" JSON NOT NULL' in from_base[1]
    run("db", "migrate", "--store", store)
    assert "CREATE TABLE" not in run("db", "migrate", "--store", store, "--sql")[1]


def test_somebody_elses_work_is_written_down(run: RunAdmin, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'h.db'}"
    with sqlite3.connect(tmp_path / "h.db") as connection:
        script = run("db", "migrate", "--store", store, "--sql")[1]
        tables = script.split("INSERT INTO", maxsplit=1)[0].replace("BEGIN;", "")
        connection.executescript(tables)
    connection.close()
    stamped = run("db", "stamp", "--store", store)
    told = json.loads(run("db", "stamp", "--store", store, "--to", "0001", "--json")[1])
    assert stamped == (0, "", "the tables are of revision 0001\n")
    assert (told["before"], told["revision"], told["steps"]) == ("0001", "0001", [])
    assert json.loads(run("db", "status", "--store", store, "--json")[1])["state"] == "current"


def test_going_back_has_to_be_said(run: RunAdmin, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'h.db'}"
    run("db", "migrate", "--store", store)
    meant_up = run("db", "migrate", "--store", store, "--to", "base")
    back = run("db", "migrate", "--store", store, "--to", "base", "--down")
    assert meant_up[2].startswith("there is nothing to do\n")
    assert back[1].startswith("done: undo 0001: ")
    assert back[2] == "there are no tables\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--store", "memory:"], "has no tables"),
        (["--store", "redis://h/0"], "has no tables"),
        (["--store", "sqlitee:///x"], "did you mean sqlite?"),
        (["--store", "postgresql://u:topsecret@127.0.0.1:1/d"], "cannot be reached"),
        (["--config", "/nowhere/node.yaml"], "/nowhere/node.yaml"),
        (["--to", "0815"], "no revision '0815'"),
        (["--store", "sqlite:////nowhere/at/all/h.db"], "cannot be made"),
    ],
)
def test_what_cannot_be_is_one_line(
    run: RunAdmin, tmp_path: Path, words: list[str], said: str
) -> None:
    code, out, err = run("db", "migrate", "--data-dir", str(tmp_path), *words)
    assert (code, out) == (1, "")
    assert said in err
    assert "topsecret" not in err
    assert len(err.splitlines()) == 1


def test_from_needs_sql(run: RunAdmin) -> None:
    code, _, err = run("db", "migrate", "--from", "base")
    assert code == 2
    assert "only with --sql" in err


def test_help_teaches_with_examples(run: RunAdmin) -> None:
    _, said, _ = run("db", "migrate", "--help")
    assert "smg-admin db migrate --sql --from base > tables.sql" in said
    _, whole, _ = run("db", "--help")
    for word in ("status", "migrate", "stamp"):
        assert f"  {word} " in whole


@pytest.mark.parametrize("named", ["flag", "folder", "file", "environment", "nothing"])
def test_status_says_who_named_the_store(
    run: RunAdmin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "node.yaml"
    file.write_text("storage:\n  url: sqlite:///talks.db\n")
    words, store, said_by = {
        "flag": (["--store", "sqlite:////tmp/x.db"], "/tmp/x.db", "flag --store"),
        "folder": (["--data-dir", "/tmp/d"], "/tmp/d/history.db", "flag --data-dir"),
        "file": (["--config", str(file)], "talks.db", f"file {file}, line 2"),
        "environment": ([], "/tmp/e.db", "environment SMG_STORAGE__URL"),
        "nothing": ([], "/.local/share/smg-node/history.db", "the default"),
    }[named]
    if named == "environment":
        monkeypatch.setenv("SMG_STORAGE__URL", "sqlite:////tmp/e.db")
    told = json.loads(run("--url", "http://127.0.0.1:9", "db", "status", *words, "--json")[1])
    assert told["store"].endswith(store)
    assert told["said_by"] == said_by


def card(url: str, folder: object) -> dict[str, Any]:
    return {"node": "a", "settings": {"data_dir": folder, "storage": {"url": url}}}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (card("sqlite:///history.db", "/var/lib/smg"), "add --data-dir /var/lib/smg, or name"),
        (card("postgresql://smg:***@db/h", "HOME"), "add --store postgresql://smg:***@db/h, or"),
        (card("memory:", "/x"), "add --store memory: --data-dir /x, or name its configuration"),
        (card("sqlite:///history.db", "HOME"), ""),
        ({"node": "a"}, ""),
        ([], ""),
        (None, ""),
    ],
)
@pytest.mark.parametrize(
    "words", [["status"], ["migrate", "--dry-run"], ["stamp"], ["dead", "list"]]
)
def test_a_store_that_the_running_node_does_not_use_is_not_looked_at(
    run: RunAdmin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    answer: Any,
    says: str,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    home = tmp_path / ".local" / "share" / "smg-node"
    home.mkdir(parents=True)
    told = json.loads(json.dumps(answer).replace('"HOME"', json.dumps(str(home))))

    def script(asked: Asked) -> tuple[int, Any]:
        assert asked.path == "/server_info"
        return (200, told) if told is not None else (403, {"error": {"message": "no"}})

    with admin_api(script) as api:
        code, _, err = run("--url", api.url, "db", *words)
        assert run("--url", api.url, "db", *words, "--data-dir", str(tmp_path))[0] == 0
        assert len(api.asked) == 1, "who says where it is is not corrected"
    if says:
        assert code == 1
        assert err.startswith(f"smg-admin: the node at {api.url} keeps its history elsewhere")
        assert says in err
        assert list(home.iterdir()) == []
    else:
        assert code == 0
