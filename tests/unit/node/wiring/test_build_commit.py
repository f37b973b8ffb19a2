"""The commit that `/version` shows: from a built wheel, a checkout, or nothing."""

from pathlib import Path

import pytest

from smg_node.wiring.build_commit import COMMIT_FILE, build_commit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def checkout(root: Path, head: str) -> Path:
    package = root / "node" / "smg_node"
    package.mkdir(parents=True)
    (root / "pyproject.toml").touch()
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text(head)
    return package


def test_a_wheel_brings_its_commit_in_a_file(tmp_path: Path) -> None:
    (tmp_path / COMMIT_FILE).write_text(f"{COMMIT}\n")
    assert build_commit(tmp_path) == COMMIT


def test_a_checkout_of_a_commit_is_that_commit(tmp_path: Path) -> None:
    assert build_commit(checkout(tmp_path, f"{COMMIT}\n")) == COMMIT


def test_a_branch_is_found_where_git_keeps_it(tmp_path: Path) -> None:
    package = checkout(tmp_path, "ref: refs/heads/main\n")
    packed = tmp_path / ".git" / "packed-refs"
    packed.write_text(f"# pack-refs with: peeled\n{COMMIT} refs/heads/main\n^{'f' * 40}\n")
    assert build_commit(package) == COMMIT
    loose = tmp_path / ".git" / "refs" / "heads" / "main"
    loose.parent.mkdir(parents=True)
    loose.write_text("f" * 40)
    assert build_commit(package) == "f" * 40


def test_a_worktree_has_its_own_head_and_the_branches_of_all(tmp_path: Path) -> None:
    package = checkout(tmp_path / "tree", "unused")
    own, shared = tmp_path / "git" / "worktrees" / "tree", tmp_path / "git"
    own.mkdir(parents=True)
    for path in (tmp_path / "tree" / ".git").iterdir():
        path.unlink()
    (tmp_path / "tree" / ".git").rmdir()
    (tmp_path / "tree" / ".git").write_text(f"gitdir: {own}\n")
    (own / "HEAD").write_text("ref: refs/heads/side")
    (own / "commondir").write_text("../..\n")
    (shared / "refs" / "heads").mkdir(parents=True)
    (shared / "refs" / "heads" / "side").write_text(COMMIT)
    assert build_commit(package) == COMMIT


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none", "ref: HEAD", "nonsense", "é"])
def test_what_is_not_understood_is_no_commit(tmp_path: Path, head: str) -> None:
    assert build_commit(checkout(tmp_path, head)) == ""


def test_what_is_no_checkout_has_no_commit(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "smg_node"
    package.mkdir(parents=True)
    assert build_commit(package) == ""
    (tmp_path / ".git").mkdir()
    assert build_commit(package) == "", "the checkout of something else"
