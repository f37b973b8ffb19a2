"""Compiles what is worth it, node/smg_node/packing, to machine code beside its source.

The build of a wheel and the editable installation do this by themselves (it is hatchling's hook); `make compile`
does it by hand. The same source runs as Python where there is no compiler, or where SMG_PURE=1 asks for it: slower
by some microseconds a token, and otherwise the same.
"""

import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOM = "node/smg_node/packing"
# Indexes are checked, because these modules read what others send; none is ever negative.
DIRECTIVES = {
    "language_level": "3",
    "wraparound": False,
    "boundscheck": True,
    "annotation_typing": False,
}


class CompileHook(BuildHookInterface[Any]):
    """Puts the compiled modules into a wheel, or beside the source of an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a wheel that has machine code in it says for which machine."""
        if self.target_name != "wheel":
            return
        made = compile_room(Path(self.root))
        if made and version != "editable":
            build_data["artifacts"] += [str(path.relative_to(self.root)) for path in made]
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


def compile_room(root: Path) -> list[Path]:
    """Return the compiled modules, made anew; none where they cannot or must not be. Old ones are gone then."""
    room = root / ROOM
    for old in sorted(room.glob("*.so")) + sorted(room.glob("*.pyd")):
        old.unlink()
    if os.environ.get("SMG_PURE") == "1":
        print("compile: SMG_PURE=1, so packing stays Python", file=sys.stderr)
        return []
    try:
        with tempfile.TemporaryDirectory() as folder:
            made = compiled(room, Path(folder))
    # Whatever is missing or broken (no compiler, no headers): the node runs without.
    except (Exception, SystemExit) as error:
        print(f"compile: packing stays Python, which is slower: {error}", file=sys.stderr)
        return []
    print(f"compile: {len(made)} modules of packing are machine code", file=sys.stderr)
    return made


def compiled(room: Path, folder: Path) -> list[Path]:
    """Compile in `folder` and put the modules into `room`, each in one move: some may be in use."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    compiler = os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "")
    if compiler and shutil.which(compiler.split()[0]) is None:
        raise RuntimeError(f"there is no C compiler {compiler.split()[0]!r}")
    root = room.parent.parent
    here = Path.cwd()
    os.chdir(root)
    try:
        sources = sorted(path.with_suffix(".py") for path in room.glob("*.pxd"))
        modules = cythonize(
            [
                Extension(
                    ".".join(source.relative_to(root).with_suffix("").parts),
                    [str(source.relative_to(root))],
                    extra_compile_args=[] if sys.platform == "win32" else ["-O2", "-g0"],
                )
                for source in sources
            ],
            build_dir=str(folder / "c"),
            compiler_directives=DIRECTIVES,
            quiet=True,
            force=True,
        )
        command = build_ext(Distribution({"name": "smg-node", "ext_modules": modules}))
        command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "o")
        command.ensure_finalized()
        command.run()
    finally:
        os.chdir(here)
    made = []
    for built in sorted(Path(name) for name in command.get_outputs()):
        near = room / f".{built.name}"
        shutil.copy2(built, near)
        made.append(near.replace(room / built.name))
    return made


if __name__ == "__main__":
    compile_room(Path(__file__).resolve().parent.parent)
