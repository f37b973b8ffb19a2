"""The wheel of the release before this one, built from the history of this repository, to run beside the tree in tests."""

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
_REPOSITORY: Final = Path(__file__).parents[3]
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Release:
    """How a node of some release is started: the words before its flags, and what its environment has besides."""

    command: Sequence[str | Path]
    environment: Mapping[str, str] = field(default_factory=dict)


CURRENT: Final = Release((Path(sys.executable).with_name("smg-node"),))


def previous_release(folder: Path) -> Release:
    """Build the wheel of the release before this one and install it below `folder`; RuntimeError where that cannot be.

    It runs with the libraries that are installed here: what is compared is what nodes say and keep.
    """
    source, wheels, installed = folder / "source", folder / "wheels", folder / "installed"
    _unpack(source)
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, source)
    _pip("install", "--no-deps", "--no-index", "--target", installed, *wheels.glob("*.whl"))
    release = Release((sys.executable, "-m", "smg_node"), {"PYTHONPATH": str(installed)})
    _is_run_from(release, installed)
    return release


def _unpack(folder: Path) -> None:
    archive = subprocess.run(
        ["git", "-C", _REPOSITORY, "archive", "--format=tar", PREVIOUS],
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


def _pip(*words: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words],
        capture_output=True, text=True, timeout=_PATIENCE_S, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(
            f"the wheel of the release before this one cannot be had: {done.stderr.strip()}"
        )


def _is_run_from(release: Release, root: Path) -> None:
    """AssertionError unless that code is what Python finds: else this tree would be compared with itself."""
    found = subprocess.run(
        [sys.executable, "-c", "import smg_node; print(smg_node.__file__)"],
        env={**os.environ, **release.environment}, cwd=root,
        capture_output=True, text=True, timeout=_PATIENCE_S, check=True,
    )  # fmt: skip
    assert Path(found.stdout.strip()).is_relative_to(root), found.stdout
