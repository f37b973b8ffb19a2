"""Compiles what is worth it to machine code beside its source: the modules of the node that have a `.pxd`, and `.pyx`.

The build of a wheel and the editable installation do this by themselves (it is hatchling's hook); `make compile`
does it by hand. The same source runs as Python where there is no compiler, or where SMG_PURE=1 asks for it: slower
by some microseconds a token, and otherwise the same. They know each other's layout, so it is all of them or none.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = "node"
PACKAGE = "smg_node"
COMMIT_FILE = "COMMIT"
# Indexes are checked, because these modules read what others send; none is ever negative.
DIRECTIVES = {
    "language_level": "3",
    "wraparound": False,
    "boundscheck": True,
    "annotation_typing": False,
    # Nobody pickles them.
    "auto_pickle": False,
}


class CompileHook(BuildHookInterface[Any]):
    """Puts the compiled modules into a wheel, or beside the source of an editable installation."""

    _noted: Any = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a wheel that has machine code in it says for which machine, and which commit it is."""
        if version != "editable":
            self._note_commit(build_data)
        if self.target_name != "wheel":
            return
        made = compile_all(Path(self.root))
        if made and version != "editable":
            build_data["artifacts"] += [str(path.relative_to(self.root)) for path in made]
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def _note_commit(self, build_data: dict[str, Any]) -> None:
        """Put the commit into what is built, in the file that `smg_node.wiring.build_commit` reads."""
        commit = commit_of(Path(self.root))
        if commit:
            self._noted = tempfile.NamedTemporaryFile("w", suffix=COMMIT_FILE)  # noqa: SIM115 - until `finalize`
            self._noted.write(commit + "\n")
            self._noted.flush()
            folder = PACKAGE if self.target_name == "wheel" else f"{ROOT}/{PACKAGE}"
            build_data["force_include"][self._noted.name] = f"{folder}/{COMMIT_FILE}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Drop the temporary file."""
        if self._noted is not None:
            self._noted.close()


def commit_of(root: Path) -> str:
    """Return the commit of the source: what SMG_COMMIT says, else git, else the file in a source distribution."""
    said = os.environ.get("SMG_COMMIT", "").strip()
    if said:
        return said
    noted = root / ROOT / PACKAGE / COMMIT_FILE
    if noted.is_file():
        return noted.read_text("ascii").strip()
    if not (root / ".git").exists():
        # Git would look further up, and find the commit of something else.
        return ""
    try:
        asked = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout.strip()


def compile_all(root: Path) -> list[Path]:
    """Return the compiled modules, made anew; none where they cannot or must not be. Old ones are gone then."""
    folder = root / ROOT
    for kind in ("*.so", "*.pyd"):
        for old in sorted((folder / PACKAGE).rglob(kind)):
            old.unlink()
    if os.environ.get("SMG_PURE") == "1":
        print("compile: SMG_PURE=1, so all stays Python", file=sys.stderr)
        return []
    try:
        with tempfile.TemporaryDirectory() as work:
            made = compiled(folder, Path(work))
    # Whatever is missing or broken (no compiler, no headers): the node runs without.
    except (Exception, SystemExit) as error:
        print(f"compile: all stays Python, which is slower: {error}", file=sys.stderr)
        return []
    print(f"compile: {len(made)} modules are machine code", file=sys.stderr)
    return made


def compiled(root: Path, work: Path) -> list[Path]:
    """Compile in `work` and put each module beside its source, in one move: some may be in use."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    compiler = os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "")
    if compiler and shutil.which(compiler.split()[0]) is None:
        raise RuntimeError(f"there is no C compiler {compiler.split()[0]!r}")
    at_once = os.cpu_count() or 1
    here = Path.cwd()
    os.chdir(root)
    try:
        modules = cythonize(
            [
                Extension(
                    ".".join(source.with_suffix("").parts),
                    [str(source)],
                    depends=[str(header) for header in sorted(source.parent.glob("*.h"))],
                    include_dirs=[str(source.parent)],
                    extra_compile_args=[] if sys.platform == "win32" else ["-g0", _level(source)],
                )
                for source in sources(Path())
            ],
            build_dir=str(work / "c"),
            compiler_directives=DIRECTIVES,
            # Its processes are forks; where they would be new ones, they would run the build again.
            nthreads=at_once if sys.platform == "linux" else 0,
            quiet=True,
            force=True,
        )
        command = build_ext(Distribution({"name": "smg-node", "ext_modules": modules}))
        command.build_lib, command.build_temp = str(work / "lib"), str(work / "o")
        command.parallel = at_once
        command.ensure_finalized()
        command.run()
    finally:
        os.chdir(here)
    made = []
    for built in sorted(Path(name) for name in command.get_outputs()):
        place = root / built.relative_to(command.build_lib)
        near = place.with_name(f".{place.name}")
        shutil.copy2(built, near)
        made.append(near.replace(place))
    return made


def sources(root: Path) -> list[Path]:
    """Return the modules that are compiled; a `.pyx` is nothing but that, its twin is another library."""
    twins = (types.with_suffix(".py") for types in (root / PACKAGE).rglob("*.pxd"))
    return sorted([*twins, *(root / PACKAGE).rglob("*.pyx")])


def _level(source: Path) -> str:
    """Return how hard the compiler tries: loops gain by it, all others take it twice as long and gain nothing."""
    if source.suffix == ".pyx":
        return "-O3"
    return "-O2" if source.parent.name == "native" else "-O1"


if __name__ == "__main__":
    compile_all(Path(__file__).resolve().parent.parent)
