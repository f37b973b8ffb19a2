"""The release before this one, taken out of the history of this repository, so that tests can run it beside the tree."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Final

PREVIOUS: Final = "84dc6a5b8132a3d1624b40b729655e77a6c5d3ea"
"""The commit that is the release before this one. It is moved on, here and nowhere else, when one is made."""
_ROOTS: Final = ("node", "mesh", "storage", "proto", "migrations")
_REPOSITORY: Final = Path(__file__).parents[2]
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Release:
    """How a node of some release is started: the words before its flags, and what its environment has besides."""

    command: Sequence[str | Path]
    environment: Mapping[str, str] = field(default_factory=dict)


CURRENT: Final = Release((Path(sys.executable).with_name("smg-node"),))


def previous_release(folder: Path) -> Release:
    """Unpack the release before this one into `folder`; RuntimeError where the history does not have it.

    Its code runs with the libraries that are installed here: what is compared is what nodes say and keep.
    """
    roots = [folder / root for root in _ROOTS]
    archive = subprocess.run(
        ["git", "-C", _REPOSITORY, "archive", "--format=tar", PREVIOUS, *_ROOTS],
        capture_output=True, timeout=_PATIENCE_S, check=False,
    )  # fmt: skip
    if archive.returncode != 0:
        reason = archive.stderr.decode(errors="replace").strip()
        raise RuntimeError(
            f"the release before this one, {PREVIOUS[:12]}, cannot be taken out of the history of"
            f" {_REPOSITORY}: {reason}. A shallow clone lacks it: `git fetch --unshallow`"
        )
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as packed:
        packed.extractall(folder, filter="data")
    release = Release(
        (sys.executable, "-m", "smg_node"), {"PYTHONPATH": os.pathsep.join(map(str, roots))}
    )
    _is_run_from(release, roots[0])
    return release


def _is_run_from(release: Release, root: Path) -> None:
    """AssertionError unless that code is what Python finds: else this tree would be compared with itself."""
    found = subprocess.run(
        [sys.executable, "-c", "import smg_node; print(smg_node.__file__)"],
        env={**os.environ, **release.environment}, cwd=root,
        capture_output=True, text=True, timeout=_PATIENCE_S, check=True,
    )  # fmt: skip
    assert Path(found.stdout.strip()).is_relative_to(root), found.stdout
