"""Imports point down, and every contract that says so is shown to fire."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from support.house.tree import FLOORS, ROOT, contract, pyproject

CONTRACTS: Final[tuple[dict[str, Any], ...]] = tuple(
    pyproject()["tool"]["importlinter"]["contracts"]
)


@dataclass(frozen=True)
class Wrong:
    """Imports that a contract must object to: importing module to what it imports.

    `rooms` are packages that may not be built yet and are made for the occasion.
    """

    imports: Mapping[str, Sequence[str]]
    rooms: tuple[str, ...] = ()


def intruders(modules: Sequence[str]) -> Iterator[str]:
    """Yield a new module inside each package, and next to each module that is none."""
    for module in modules:
        is_package = (ROOT / path_of(module)).with_suffix("").is_dir()
        yield f"{module}.intruder" if is_package else module


def path_of(module: str) -> str:
    """Return where a module of ours lies."""
    package, *inner = module.split(".")
    return "/".join([package.removeprefix("smg_"), package, *inner]) + ".py"


PURE: Final = contract("pure")
MESH_ROOMS: Final = ("state", "io", "sync", "swim", "crdt", "escrow")

WRONG: Final[Mapping[str, Wrong]] = {
    "floors": Wrong(
        {
            "smg_node.intruder": ["smg_chaos"],
            "smg_mesh.intruder": ["smg_node.core", "smg_storage"],
            "smg_storage.intruder": ["smg_mesh", "smg_node.core"],
            "smg_proto.intruder": ["smg_mesh", "smg_migrations"],
            "smg_migrations.intruder": ["smg_storage", "smg_node.core"],
        }
    ),
    "node": Wrong(
        {
            "smg_node.core.intruder": ["smg_node.system_clock", "smg_node.http"],
            "smg_node.telemetry.intruder": ["smg_node.engines"],
            "smg_node.dialects.intruder": ["smg_node.tokens", "smg_node.pipeline"],
            "smg_node.tokens.intruder": ["smg_node.parsers", "smg_node.prompts"],
            "smg_node.engines.intruder": ["smg_node.fleet"],
            "smg_node.routing.intruder": ["smg_node.pipeline"],
            "smg_node.pipeline.intruder": ["smg_node.http"],
            "smg_node.http.intruder": ["smg_node.wiring.node_process"],
        }
    ),
    "mesh": Wrong(
        {
            "smg_mesh.config": ["smg_mesh.swim"],
            "smg_mesh.swim.intruder": ["smg_mesh.sync", "smg_mesh.io"],
            "smg_mesh.crdt.intruder": ["smg_mesh.state"],
        },
        rooms=tuple(f"smg_mesh.{room}" for room in MESH_ROOMS),
    ),
    "pure": Wrong(dict.fromkeys(intruders(PURE["source_modules"]), PURE["forbidden_modules"])),
    "pipeline": Wrong({"smg_node.pipeline.intruder": ["aiohttp", "grpc", "httptools"]}),
    "front-door": Wrong(
        {"smg_node.http.intruder": [f"smg_mesh.{room}" for room in MESH_ROOMS]},
        rooms=tuple(f"smg_mesh.{room}" for room in MESH_ROOMS),
    ),
}


def room_contracts() -> list[dict[str, Any]]:
    """Return the contracts about floors inside a room."""
    return [one for one in CONTRACTS if one["id"].startswith("room-")]


def upward(contract: Mapping[str, Any]) -> tuple[str, str]:
    """Return a module of the lowest layer and one of the highest, with the names of their rooms."""
    (room,) = contract["containers"]
    lowest, highest = (contract["layers"][at].split(" | ")[0] for at in (-1, 0))
    (module,) = intruders([f"{room}.{lowest}"])
    return module, f"{room}.{highest}"


def lint(root: Path, *contracts: str) -> tuple[bool, str]:
    """Return whether the contracts hold for the source below `root`, and what import-linter says."""
    program = Path(sys.executable).with_name("lint-imports")
    limits = [word for name in contracts for word in ("--contract", name)]
    roots = os.pathsep.join(str(root / floor) for floor in FLOORS)
    done = subprocess.run(
        [program, "--no-cache", "--no-logo", "--config", ROOT / "pyproject.toml", *limits],
        cwd=root,
        env={**os.environ, "PYTHONPATH": roots, "COLUMNS": "300", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the source that may be spoilt."""
    for floor in FLOORS:
        package = Path(floor, f"smg_{floor}")
        skip = shutil.ignore_patterns("__pycache__", "*.txt", "*.md")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=skip)
    return tmp_path


def add(root: Path, module: str, line: str) -> None:
    """Append a line to a module, which is made if there is none."""
    path = root / path_of(module)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(line)


def test_every_contract_holds() -> None:
    held, said = lint(ROOT)
    assert held, said
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken" in said


def test_every_contract_is_shown_to_fire() -> None:
    rooms = {contract["id"] for contract in room_contracts()}
    assert len(rooms) > 20
    assert WRONG.keys() | rooms | {"acyclic"} == {contract["id"] for contract in CONTRACTS}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_the_contract_fires(name: str, copy: Path) -> None:
    wrong = WRONG[name]
    for room in wrong.rooms:
        package = copy / path_of(room).removesuffix(".py")
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
    for module, imported in wrong.imports.items():
        for target in imported:
            add(copy, module, f"import {target}\n")
    held, said = lint(copy, name)
    assert not held
    assert f"{contract(name)['name']} BROKEN" in said
    broken = said.partition("Broken contracts")[2]
    unseen = [
        f"{module} -> {target}"
        for module, imported in wrong.imports.items()
        for target in imported
        if f"{module} -> {target} (l." not in broken
    ]
    assert not unseen, said


def test_the_contracts_inside_rooms_fire(copy: Path) -> None:
    # All at once: what takes time is to read the whole tree.
    for one in room_contracts():
        module, target = upward(one)
        add(copy, module, f"import {target}\n")
    held, said = lint(copy, *(one["id"] for one in room_contracts()))
    assert not held
    kept = [one["id"] for one in room_contracts() if f"{one['name']} BROKEN" not in said]
    assert not kept, said


def test_the_contract_against_circles_fires_on_imports_for_types_too(copy: Path) -> None:
    typed = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import smg_node.config.output\n"
    )
    add(copy, "smg_node.config.address", typed)
    held, said = lint(copy, "acyclic")
    assert not held
    assert "No cycles are allowed in smg_node.config." in said


def test_a_room_that_no_layer_names_is_refused(copy: Path) -> None:
    exhaustive = [one for one in CONTRACTS if one.get("exhaustive")]
    for one in exhaustive:
        (package,) = one["containers"]
        add(copy, f"{package}.attic", "")
    for name in ("node", "room-http", "room-mesh-io"):
        held, said = lint(copy, name)
        assert not held
        assert "attic" in said
    assert len(exhaustive) > 20


def test_the_front_door_of_the_mesh_is_open(copy: Path) -> None:
    add(copy, "smg_mesh.mesh", "")
    add(copy, "smg_node.http.guest", "import smg_mesh.mesh\n")
    held, said = lint(copy, "front-door")
    assert held, said
