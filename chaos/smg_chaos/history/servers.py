"""Servers that histories are measured with: PostgreSQL, Valkey or Redis, given by URL or started
here.

A PostgreSQL started here has default settings: a write to the disk before a commit is acknowledged.
Valkey or Redis has its append-only file, which is written to the disk every second.
"""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from smg_chaos.bench.children import BenchError, Child, free_ports, spawn
from smg_chaos.stores import postgresql, redis
from smg_chaos.stores import run_as_user as become
from smg_chaos.stores.server_user import (
    ServerError,
    User,
    readable_copy,
    server_folder,
    server_user,
)

_READY_S: Final = 60.0
_FILES_S: Final = 120.0
_LOOK_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class StoreServer:
    """A running server: its URL for a node, and its process, unless it was started elsewhere."""

    url: str
    child: Child | None = None

    @property
    def pid(self) -> int:
        """Its process, 0 if that is not known."""
        return 0 if self.child is None else self.child.pid


@asynccontextmanager
async def running(
    kind: str, given: str, folder: Path, clock_s: Callable[[], float]
) -> AsyncIterator[StoreServer]:
    """Run a server of a kind, or use the `given` one; BenchError says what was tried."""
    if given:
        yield StoreServer(given)
        return
    tried = []
    with ExitStack() as stack:
        for begin in _ways(kind, folder):
            try:
                server, ready = begin(stack)
                await _ready(server, ready, clock_s)
            except (BenchError, ServerError, OSError, subprocess.SubprocessError) as error:
                tried.append(str(error))
                continue
            try:
                yield server
            finally:
                assert server.child is not None
                await server.child.stop()
            return
    raise BenchError("\n".join((f"no {kind} can be started here, and none is given", *tried)))


def _ways(kind: str, folder: Path) -> Iterator[Callable[[ExitStack], tuple[StoreServer, str]]]:
    for software, trees in postgresql.installed() if kind == "postgresql" else redis.installed():

        def begin(
            stack: ExitStack, software: Path = software, trees: Sequence[Path] = trees
        ) -> tuple[StoreServer, str]:
            user = server_user()
            (port,) = free_ports(1)
            own = stack.enter_context(server_folder(kind, user))
            if kind == "postgresql":
                initdb = readable_copy(trees, software / "initdb", own, user)
                make_files(initdb, own / "files", user)
                command = postgresql.server_command(initdb, own / "files", port=port, durable=True)
                url = f"postgresql://{postgresql.USER}@127.0.0.1:{port}/postgres"
                ready = postgresql.READY
            else:
                binary = readable_copy(trees, software, own, user)
                command = redis.server_command(binary, own, port=port, durability="everysec")
                url, ready = f"redis://127.0.0.1:{port}/0", redis.READY
            words = [*as_user(user, os.getpid()), *command]
            return StoreServer(url, spawn(kind, words, folder / f"{kind}.log")), ready

        yield begin


def as_user(user: User, parent: int) -> Sequence[str]:
    """Return the command prefix by which a server runs as a user and dies with `parent`."""
    path = str(become.__file__)
    return [sys.executable, "-I", "-S", path, str(parent), str(user.uid), str(user.gid)]


def make_files(initdb: Path, files: Path, user: User) -> None:
    """Create the data folder of a PostgreSQL; ServerError with its output."""
    made = subprocess.run(
        [*as_user(user, os.getpid()), *postgresql.files_command(initdb, files)],
        cwd=files.parent,
        env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_FILES_S,
        check=False,
    )
    if made.returncode != 0:
        said = (made.stdout + made.stderr).decode(errors="replace")
        raise ServerError(f"initdb ended with status {made.returncode}: {said[-2_000:]}")


async def _ready(server: StoreServer, ready: str, clock_s: Callable[[], float]) -> None:
    assert server.child is not None
    end_s = clock_s() + _READY_S
    while not re.search(ready, server.child.log.read_text(errors="replace")):
        if said := server.child.died():
            raise BenchError(said)
        if clock_s() > end_s:
            server.child.kill()
            raise BenchError(f"{server.child.name} is not ready\n{server.child.last_words()}")
        await asyncio.sleep(_LOOK_S)
