"""Build commit: the commit of the source that this node runs, as `/version` shows it.

A wheel brings it in a file that its build wrote (`tools/compile.py`). A checkout is asked itself: its
`.git` is read as files, because git may not be installed. Anything else has none, which is no error.
"""

import re
from pathlib import Path
from typing import Final

COMMIT_FILE: Final = "COMMIT"
"""Name of the file beside the package's modules."""
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}(-dirty)?\Z")
_PROJECT: Final = "pyproject.toml"
_REF: Final = "ref: "
_REFS_MAX: Final = 5
"""References that name references: git follows so many."""


def build_commit(package: Path | None = None) -> str:
    """Return the commit in hexadecimal digits, "" if it is not known. `package` is the folder of the node's package."""
    folder = Path(__file__).resolve().parent.parent if package is None else package
    try:
        return _written(folder / COMMIT_FILE) or _checked_out(folder.parent.parent)
    except (OSError, UnicodeDecodeError):
        return ""


def _written(file: Path) -> str:
    return _valid(file.read_text("ascii")) if file.is_file() else ""


def _checked_out(root: Path) -> str:
    """Return the commit of a checkout of this project, "" if `root` is none."""
    git = root / ".git"
    if not (root / _PROJECT).is_file() or not git.exists():
        return ""
    if git.is_file():
        # A worktree or submodule says where its own folder is.
        git = root / git.read_text("utf-8").partition("gitdir:")[2].strip()
    common = git / "commondir"
    shared = git / common.read_text("utf-8").strip() if common.is_file() else git
    said = (git / "HEAD").read_text("utf-8").strip()
    for _ in range(_REFS_MAX):
        if not said.startswith(_REF):
            break
        said = _reference(said.removeprefix(_REF), git, shared)
    return _valid(said)


def _reference(name: str, git: Path, shared: Path) -> str:
    """Return what a reference holds: a commit, or another reference."""
    for folder in (git, shared):
        if (folder / name).is_file():
            return (folder / name).read_text("utf-8").strip()
    packed = shared / "packed-refs"
    for line in packed.read_text("utf-8").splitlines() if packed.is_file() else ():
        commit, _, packed_name = line.partition(" ")
        if packed_name == name:
            return commit
    return ""


def _valid(said: str) -> str:
    return said.strip() if _COMMIT.match(said.strip()) else ""
