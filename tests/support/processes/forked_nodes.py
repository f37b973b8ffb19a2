"""Nodes that are quickly there: everything is imported once, and each node is a fork of that; some of them are fated.

    python -m support.processes.forked_nodes

reads one line of JSON for each node from its standard input, and answers with its process id. When the input ends, so
do all of them.
"""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from support.history.crashing_store import DoomedStore, Fate
from support.processes.node import RunningNode
from support.processes.process import Process

READY_S: Final = 60.0
_URLS: Final = (
    r"metrics on (http://127\.0\.0\.1:[1-9]\d*)(?s:.*)listening on (http://127\.0\.0\.1:[1-9]\d*)"
)
_TESTS: Final = Path(__file__).parents[2]


# ── In the nursery ───────────────────────────────────────────────────────────


def _import_all() -> None:
    """Import what a node with any store needs, so that its forks have it."""
    import asyncpg
    import redis.asyncio
    import sqlalchemy.ext.asyncio

    import smg_node.cli
    import smg_node.config.settings
    import smg_node.config.sources.command_line
    import smg_node.config.sources.loader
    import smg_node.history.service.factory
    import smg_node.history.service.history_service
    import smg_node.wiring.node_process
    import smg_storage.redis.open
    import smg_storage.sql.open

    del asyncpg, redis, sqlalchemy, smg_node, smg_storage


def _live(order: dict[str, Any]) -> None:
    """Be a node, to its end."""
    import smg_storage.open
    from smg_node.cli import main
    from smg_node.history.runs import run_registry as background
    from smg_node.history.runs.background_run import Pace

    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)
    out = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for old in (0, 1, 2):
        os.dup2(out if old else os.open(os.devnull, os.O_RDONLY), old)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    fate, real = Fate(**order["fate"]), smg_storage.open.open_store
    smg_storage.open.open_store = lambda *given, **named: DoomedStore(real(*given, **named), fate)
    if order["lease_s"]:
        lease_s = float(order["lease_s"])
        made = partial(Pace, lease_s=lease_s, renew_s=lease_s / 3)
        # What it makes is the same, with other numbers.
        vars(background)["Pace"] = made
    os.chdir(order["folder"])
    os._exit(main(order["argv"]))


def main() -> None:
    """Raise nodes until nobody wants any more."""
    _import_all()
    # Whoever dies is nobody's business here.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    children: list[int] = []
    sys.stdout.write("0\n")
    sys.stdout.flush()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _live(json.loads(line))
        children.append(child)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
    for child in children:
        try:
            os.kill(child, signal.SIGTERM)
        except ProcessLookupError:
            continue


# ── Outside ──────────────────────────────────────────────────────────────────


class _Child:
    """A process that is somebody else's child, as `Process` needs it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return -signal.SIGKILL
        return None

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class Nursery:
    """Raises nodes."""

    def __init__(self, popen: "subprocess.Popen[str]", folder: Path) -> None:
        self._popen = popen
        self._folder = folder
        self._lives = 0
        self._raised: list[Raised] = []

    def raise_node(
        self, name: str, *flags: str, fate: Fate | None = None, lease_s: float = 0
    ) -> "Raised":
        """Begin a node of this name, whose data lies where earlier ones of it had theirs; do not wait for it."""
        self._lives += 1
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / f"life-{self._lives}.log"
        log.touch()
        free = "127.0.0.1:0"
        argv = [
            "--name",
            name,
            "--http",
            free,
            "--metrics",
            free,
            "--data-dir",
            str(folder / "data"),
        ]
        argv += ["--drain.settle-s", "0", "--readiness.min-workers", "1", *flags]
        order = {"argv": argv, "log": str(log), "folder": str(folder), "lease_s": lease_s}
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._popen.stdin.write(json.dumps({**order, "fate": asdict(fate or Fate())}) + "\n")
        self._popen.stdin.flush()
        pid = int(self._popen.stdout.readline())
        raised = Raised(name, Process(cast("Any", _Child(pid)), name, log))
        self._raised.append(raised)
        return raised

    def end_all(self) -> None:
        """Let all that are left die."""
        for raised in self._raised:
            raised.kill()
        self._raised.clear()


class Raised:
    """A node that was begun."""

    HANG: Final = signal.SIGSTOP
    GO_ON: Final = signal.SIGCONT

    def __init__(self, name: str, process: Process) -> None:
        self.name = name
        self.process = process

    def up(self) -> RunningNode:
        """Return it when its API answers and it has its workers."""
        process = self.process
        found: re.Match[str] = process.wait_for(_URLS, READY_S)
        node = RunningNode(found[2], found[1], process)
        process.wait_until(lambda: node.status("/readiness") == 200, "ready", READY_S)
        return node

    def mesh(self) -> str:
        """Return where others join it."""
        found: re.Match[str] = self.process.wait_for(r"mesh on (127\.0\.0\.1:[1-9]\d*)", READY_S)
        return found[1]

    def kill(self) -> None:
        """Let it die now."""
        self.process.signal(signal.SIGKILL)
        give_up_s = time.monotonic() + READY_S
        while self.process.ended() is None:
            assert time.monotonic() < give_up_s, f"{self.name} does not die"
            time.sleep(0.005)


@contextmanager
def nursery(folder: Path) -> Iterator[Nursery]:
    """Run a nursery; what its nodes write is below `folder`."""
    popen = subprocess.Popen(
        [sys.executable, "-m", "support.processes.forked_nodes"],
        cwd=_TESTS,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert popen.stdout is not None
        assert popen.stdout.readline() == "0\n"
        yield Nursery(popen, folder)
    finally:
        popen.communicate(timeout=READY_S)


def all_up(nodes: Sequence[Raised]) -> list[RunningNode]:
    """Return them when all of them are up."""
    return [node.up() for node in nodes]


if __name__ == "__main__":
    main()
