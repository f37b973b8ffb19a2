"""The compiler is optional: without it the node is Python, and says so; with it nothing old is left in use."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from smg_node.native import compiled
from support.tools.compiled_forms import PACKAGE, twins

ROOT = Path(__file__).parents[4]
TYPES = sorted(PACKAGE.rglob("*.pxd"))
KERNELS = sorted(PACKAGE.rglob("*.pyx"))
"""What is machine code or not there at all: its twin is numpy."""


def names(paths: list[Path]) -> list[str]:
    return [".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in paths]


MODULES = names(TYPES)


def machine_code(package: Path) -> set[str]:
    return {
        ".".join((*path.relative_to(package).parent.parts, path.name.partition(".")[0]))
        for path in package.rglob("*")
        if path.suffix in (".so", ".pyd")
    }


def test_what_is_in_use_is_said() -> None:
    assert compiled() is (machine_code(PACKAGE) == {*MODULES, *names(KERNELS)})


@pytest.mark.parametrize("name", MODULES)
def test_machine_code_is_not_older_than_its_source(name: str) -> None:
    for module in twins(name)[1:]:
        made = Path(str(module.__file__)).stat().st_mtime
        source = (PACKAGE / name.replace(".", "/")).with_suffix(".py")
        for path in (source, source.with_suffix(".pxd")):
            assert made >= path.stat().st_mtime, "make compile"


@pytest.mark.parametrize("kernel", KERNELS, ids=names(KERNELS))
def test_a_kernel_is_not_older_than_its_source(kernel: Path) -> None:
    made = [path.stat().st_mtime for path in kernel.parent.glob(f"{kernel.stem}.*.so")]
    assert len(made) == int(compiled())
    sources = [kernel, *sorted(kernel.parent.glob("*.h"))]
    assert all(time >= source.stat().st_mtime for time in made for source in sources), (
        "make compile"
    )
    assert kernel.with_suffix(".pyi").exists()


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
    package = tmp_path / "node/smg_node"
    for path in TYPES:
        place = package / path.relative_to(PACKAGE)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place)
        shutil.copy2(path.with_suffix(".py"), place.with_suffix(".py"))
    for path in KERNELS:
        shutil.copy2(path, package / path.relative_to(PACKAGE))
    (package / "native/token_ids.old.so").write_bytes(b"not in use any more")
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
    assert not machine_code(package)
    assert (package / "native/token_ids.py").exists()


def test_native_has_types_for_the_compiler_of_every_module() -> None:
    modules = {f"native.{path.stem}" for path in (PACKAGE / "native").glob("*.py")}
    assert modules - {"native.__init__"} == {name for name in MODULES if name.startswith("native.")}
