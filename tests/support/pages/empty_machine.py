"""Somebody who follows pages from an empty machine: every block is typed, and what comes of it is looked at."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from support.pages.page_blocks import Block, has_shape

_ROOT: Final = Path(__file__).parents[3]
_BEGUN_S: Final = 60.0
_POLL_S: Final = 0.02
_UNSHARE: Final = (
    *("unshare", "--net", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"),
    *(() if os.geteuid() == 0 else ("--user", "--map-root-user")),
)


class Scene:
    """An empty machine, and whoever types on it; see `scene`."""

    def __init__(self, ground: "subprocess.Popen[str]", folder: Path) -> None:
        self._ground = ground
        self._folder = folder
        self._count = 0

    def follow(self, block: Block) -> str:
        """Type a block; return what is wrong with what came of it, "" if nothing is."""
        self._count += 1
        if block.ends:
            self._tell({"do": "end"})
            home = self._folder / "home"
            home.rename(self._folder / f"home-{self._count}")
            home.mkdir()
            (self._folder / ".env").unlink(missing_ok=True)
        log = self._folder / f"block-{self._count}.log"
        order = {
            "do": "begin" if block.stays else "run",
            "script": str(self._script(block)),
            "log": str(log),
            "folder": str(self._folder),
        }
        code = self._tell(order)["code"]
        if block.stays:
            return self._until_it_says(block.stays, log, block.place)
        said = log.read_text(encoding="utf-8", errors="replace")
        if code != 0:
            ended = "has not ended" if code is None else f"ended with {code}"
            return f"{block.place} {ended}:\n{block.text}\n{said[-3000:]}"
        if block.shown and not has_shape(said, block.shown):
            return f"{block.place} says\n{said}\nand the page shows\n{block.shown}"
        return ""

    def _script(self, block: Block) -> Path:
        script = self._folder / f"block-{self._count}.sh"
        text = block.text
        if block.language == "python":
            script.with_suffix(".py").write_text(text, encoding="utf-8")
            text = f"python {script.with_suffix('.py').name}\n"
        kept = "" if block.stays else "trap 'export -p > .env' EXIT\n"
        before = f"set -euo pipefail\nif [ -f .env ]; then . ./.env; fi\n{kept}"
        script.write_text(before + text, encoding="utf-8")
        return script

    def _until_it_says(self, pattern: str, log: Path, place: str) -> str:
        give_up_s = time.monotonic() + _BEGUN_S
        while not re.search(pattern, said := log.read_text(encoding="utf-8", errors="replace")):
            if time.monotonic() > give_up_s:
                return f"{place} has not said {pattern!r}:\n{said[-3000:]}"
            time.sleep(_POLL_S)
        return ""

    def _tell(self, order: dict[str, str]) -> dict[str, int | None]:
        assert self._ground.stdin is not None
        assert self._ground.stdout is not None
        self._ground.stdin.write(json.dumps(order) + "\n")
        self._ground.stdin.flush()
        answer = self._ground.stdout.readline()
        if not answer:
            raise RuntimeError(f"the scene is gone: {_log(self._folder)}")
        said: dict[str, int | None] = json.loads(answer)
        return said


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    """Make an empty machine below a folder: a network, processes and a home of its own.

    Its ports are those of nobody else, so blocks are typed as they stand. Whatever runs there ends with it, and it ends with
    this process, however that ends. RuntimeError where the kernel makes none.
    """
    (folder / "home").mkdir(parents=True)
    (folder / "deploy").symlink_to(_ROOT / "deploy")
    with (folder / "ground.log").open("w", encoding="utf-8") as log:
        ground = subprocess.Popen(
            [*_UNSHARE, sys.executable, "-m", "support.pages.machine_program", str(folder)],
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert ground.stdout is not None
        if ground.stdout.readline() != "READY\n":
            raise RuntimeError(f"no machine of one's own can be made: {_log(folder)}")
        yield Scene(ground, folder)
    finally:
        ground.communicate(timeout=30)


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SMG_")}
    programs = Path(sys.executable).parent
    own = {
        "HOME": str(folder / "home"),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(_source_roots()),
        "COLUMNS": "120",
    }
    return kept | own


def _source_roots() -> Sequence[str]:
    return [
        entry
        for entry in sys.path
        if Path(entry).is_relative_to(_ROOT) and "site-packages" not in entry
    ]


def _log(folder: Path) -> str:
    return (folder / "ground.log").read_text(encoding="utf-8", errors="replace")[-3000:]
