"""A process knows those before it, by the disk that they share, and nobody else."""

from pathlib import Path
from random import Random

import pytest

from smg_node.history.runs.predecessors import KEPT_MAX, Predecessors, node_of


def lives_of(folder: Path, name: str = "n1", seed: int = 1) -> Predecessors:
    return Predecessors(folder, name, chance=Random(seed))


def test_each_process_knows_all_before_it(tmp_path: Path) -> None:
    lives = [lives_of(tmp_path / "lives", seed=seed) for seed in range(4)]
    assert len({life.owner for life in lives}) == 4
    for number, life in enumerate(lives):
        assert life.earlier == {before.owner for before in lives[:number]}
        assert node_of(life.owner) == "n1"
    assert [one.name for one in (tmp_path / "lives").iterdir()] == ["n1"]


def test_one_folder_may_have_nodes_of_several_names(tmp_path: Path) -> None:
    one = lives_of(tmp_path, "a")
    other = lives_of(tmp_path, "b", seed=2)
    assert other.earlier == frozenset()
    assert lives_of(tmp_path, "a", seed=3).earlier == {one.owner}


def test_what_was_long_ago_is_forgotten(tmp_path: Path) -> None:
    lives = [lives_of(tmp_path, seed=seed) for seed in range(KEPT_MAX + 5)]
    assert lives[-1].earlier == {life.owner for life in lives[-KEPT_MAX - 1 : -1]}


@pytest.mark.parametrize("content", [b"", b"\xff\x00 \n", b"x" * 10_000])
def test_nonsense_on_the_disk_is_nobody_of_ours(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "n1").write_bytes(content)
    first = lives_of(tmp_path)
    assert all(node_of(owner) == "n1" for owner in first.earlier)
    assert first.owner in lives_of(tmp_path, seed=2).earlier


def test_without_a_disk_it_only_takes_longer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "lives").write_text("a file, and no folder")
    assert lives_of(tmp_path / "lives").earlier == frozenset()
    assert "leaves no note" in caplog.text


def test_the_node_of_an_owner_may_have_any_name() -> None:
    assert node_of("a/b/0011aabb") == "a/b"
    assert node_of("0011aabb") == node_of("") == ""
