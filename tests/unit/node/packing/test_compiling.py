"""The compiler is optional: without it the room is Python, and says so; with it nothing old is left in use."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import smg_node.packing
from smg_node.packing import compiled
from support.twins import ROOM, twins

ROOT = Path(__file__).parents[4]
MODULES = sorted(path.stem for path in ROOM.glob("*.pxd"))


def machine_code(room: Path) -> set[str]:
    return {
        path.name.partition(".")[0] for path in room.iterdir() if path.suffix in (".so", ".pyd")
    }


def test_what_is_in_use_is_said() -> None:
    assert compiled() is (machine_code(ROOM) == set(MODULES))


@pytest.mark.parametrize("name", MODULES)
def test_machine_code_is_not_older_than_its_source(name: str) -> None:
    for module in twins(name)[1:]:
        made = Path(str(module.__file__)).stat().st_mtime
        for source in (ROOM / f"{name}.py", ROOM / f"{name}.pxd"):
            assert made >= source.stat().st_mtime, "make compile"


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"SMG_PURE": "1"}, "SMG_PURE=1"),
        ({"CC": "no-such-compiler"}, "stays Python, which is slower"),
    ],
)
def test_without_a_compiler_no_machine_code_is_left_and_all_goes_on(
    tmp_path: Path, environment: dict[str, str], said: str
) -> None:
    (tmp_path / "tools").mkdir()
    shutil.copy2(ROOT / "tools/compile.py", tmp_path / "tools")
    room = tmp_path / "node/smg_node/packing"
    shutil.copytree(ROOM, room, ignore=shutil.ignore_patterns("__pycache__"))
    (room / "ids.old.so").write_bytes(b"not in use any more")
    done = subprocess.run(
        [sys.executable, "tools/compile.py"],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert said in done.stderr
    assert not machine_code(room)
    assert (room / "ids.py").exists()


def test_the_room_has_types_for_the_compiler_of_every_module() -> None:
    modules = {path.stem for path in ROOM.glob("*.py")} - {"__init__"}
    assert modules == set(MODULES)
    assert smg_node.packing.__file__ is not None
