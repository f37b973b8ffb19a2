import json
from pathlib import Path

import pytest

from smg_node.history.spool.dead_letters import DeadTurns
from smg_node.history.spool.spool_format import encode, spooled
from support.history.spools import ACCESS, SaltSource, response_id, spool_at, turn
from support.http.admin_api import RunAdmin


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The spool of a node, with three turns that the store did not take."""
    root = tmp_path / "spool" / "n1"
    turns = DeadTurns(root, salt=SaltSource())
    for number in (1, 2, 3):
        one = spooled(ACCESS, turn(number, 1), now_us=1_700_000_000_000_000)
        assert turns.bury(one, encode(one), kind="conflict", reason="other", now_us=2)
    return root


def left(root: Path) -> list[int]:
    return [one.number for one in DeadTurns(root, salt=SaltSource()).all()]


async def test_dead_turns_are_shown(root: Path, tmp_path: Path, run: RunAdmin) -> None:
    where = ("--data-dir", str(tmp_path), "--name", "n1")
    code, out, _ = run("db", "dead", "list", *where)
    assert code == 0
    assert "2023-11-14T22:13:20+00:00" in out
    assert all(response_id(number, 1) in out for number in (1, 2, 3))
    code, out, _ = run("--json", "db", "dead", "list", *where)
    first = json.loads(out)[0]
    assert code == 0
    assert (first["number"], first["tenant"], first["kind"]) == (1, "acme", "conflict")
    code, out, _ = run("db", "dead", "list", "--data-dir", str(tmp_path), "--name", "n2")
    assert (code, out) == (0, "The store took every turn.\n")


def test_dead_turns_are_dropped_by_number(root: Path, tmp_path: Path, run: RunAdmin) -> None:
    where = ("--data-dir", str(tmp_path), "--name", "n1")
    assert run("db", "dead", "drop", "2", *where)[0] == 0
    assert left(root) == [1, 3]
    code, _, said = run("db", "dead", "drop", "2", "3", *where)
    assert code == 1
    assert "some of them are not there" in said
    assert left(root) == [1]
    assert run("db", "dead", "drop", "--all", *where)[0] == 0
    assert left(root) == []


@pytest.mark.parametrize("words", [(), ("1", "--all")])
def test_which_ones_has_to_be_said_once(
    root: Path, tmp_path: Path, run: RunAdmin, words: tuple[str, ...]
) -> None:
    where = ("--data-dir", str(tmp_path), "--name", "n1")
    code, _, said = run("db", "dead", "retry", *words, *where)
    assert code != 0
    assert "--all" in said
    assert left(root) == [1, 2, 3]


async def test_dead_turns_are_given_back_to_the_spool(
    root: Path, tmp_path: Path, run: RunAdmin
) -> None:
    where = ("--data-dir", str(tmp_path), "--name", "n1")
    assert run("--json", "db", "dead", "retry", "--all", *where)[:2] == (0, '{\n  "turns": 3\n}\n')
    assert left(root) == []
    spool = spool_at(root)
    assert await spool.adopt() == 3
    assert spool.waits("acme", [response_id(3, 1)])
    await spool.close()


def test_what_cannot_be_read_is_left_alone(root: Path, tmp_path: Path, run: RunAdmin) -> None:
    (root / "dead" / "000000000002.turn").write_bytes(b"nonsense")
    where = ("--data-dir", str(tmp_path), "--name", "n1")
    assert run("db", "dead", "retry", "2", *where)[0] == 1
    assert left(root) == [1, 3]
    assert (root / "dead" / "000000000002.turn").exists()


def test_no_more_are_set_aside_than_may_be(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smg_node.history.spool.dead_letters.DEAD_MAX", 3)
    one = spooled(ACCESS, turn(9, 1), now_us=1)
    turns = DeadTurns(root, salt=SaltSource())
    assert not turns.bury(one, encode(one), kind="conflict", reason="other", now_us=2)
    assert left(root) == [1, 2, 3]
