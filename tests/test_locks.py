"""What is installed is what pyproject.toml asks for: the lock files are current, and complete."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from support.house.tree import ROOT, pyproject

_PIN: Final = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)(?P<rest>.*)$")


def pins(name: str) -> dict[str, Version]:
    """Return what a lock file pins; AssertionError where a pin has no hash."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    found: dict[str, Version] = {}
    for line in filter(None, text.splitlines()):
        pin = _PIN.match(line)
        assert pin, f"{name}: {line[:60]}"
        assert "--hash=sha256:" in pin["rest"], f"{name}: {pin['name']} has no hash"
        found[canonicalize_name(pin["name"])] = Version(pin["version"])
    return found


def requirements(texts: Iterable[str]) -> Iterator[Requirement]:
    for text in texts:
        requirement = Requirement(text.partition("#")[0].strip())
        if requirement.name != "smg-node":  # the extra `all` names the other extras
            yield requirement


def lines_of(name: str) -> list[str]:
    lines = (ROOT / "tools" / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def asked() -> dict[str, list[str]]:
    """Return lock file to the requirements it must satisfy."""
    whole: dict[str, Any] = pyproject()
    project, groups = whole["project"], whole["dependency-groups"]
    extras = [text for extra in project["optional-dependencies"].values() for text in extra]
    return {
        "requirements.lock": [
            *project["dependencies"],
            *extras,
            *groups["dev"],
            *groups["conformance"],
        ],
        "requirements-vocab.lock": groups["vocab"],
        "requirements-recordings.lock": groups["recordings"],
        "requirements-mlx.lock": lines_of("mlx.in"),
        "requirements-mcp.lock": lines_of("mcp.in"),
        "requirements-pictures.lock": lines_of("pictures.in"),
    }


@pytest.mark.parametrize("name", sorted(asked()))
def test_the_lock_has_what_is_asked_for(name: str) -> None:
    pinned = pins(name)
    for requirement in requirements(asked()[name]):
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in {name}: run make lock"
        assert requirement.specifier.contains(version, prereleases=True), (
            f"{requirement}: {version}"
        )


def test_every_lock_is_looked_at() -> None:
    assert {path.name for path in ROOT.glob("*.lock")} == asked().keys()


def test_both_environments_speak_the_same_contract() -> None:
    contract = "smg-grpc-proto"
    assert pins("requirements.lock")[contract] == pins("requirements-mlx.lock")[contract]


@pytest.mark.parametrize("judges", ["mcp", "oidc"])
def test_what_npm_installs_is_locked_by_hash_and_names_no_place(judges: str) -> None:
    folder = ROOT / "tools" / judges
    asked_for = json.loads((folder / "package.json").read_text())["dependencies"]
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert packages.pop("")["dependencies"] == asked_for
    for name, version in asked_for.items():
        assert packages[f"node_modules/{name}"]["version"] == version
    for name, package in packages.items():
        assert package["integrity"].startswith("sha512-"), name
        assert "resolved" not in package, name
