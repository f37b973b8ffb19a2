"""Database server at a place of the lab: PostgreSQL or Redis, killed with all its processes and
restarted on its files.

It keeps what it acknowledged over its own death, not over a power cut. Clients at the place are
trusted.
"""

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

from smg_chaos.gameday.agents.cluster import Cluster, ClusterError
from smg_chaos.gameday.lab.lab import Program
from smg_chaos.history.servers import as_user, make_files
from smg_chaos.stores import postgresql, redis
from smg_chaos.stores.process_tree import children_of, is_alive, kill_all
from smg_chaos.stores.server_user import ServerError, readable_copy, server_folder, server_user

Kind = Literal["postgresql", "redis"]
PLACE: Final = "store"
_PORTS: Final[dict[Kind, int]] = {"postgresql": 5432, "redis": 6379}
_START_S: Final = 60.0
_LOOK_S: Final = 0.02
_NEIGHBOURS: Final = "\nhost all all 10.77.0.0/16 trust\n"


class StoreServer:
    """One server, across its lives."""

    def __init__(
        self, cluster: Cluster, kind: Kind, command: Sequence[str], ready: str, log: Path
    ) -> None:
        self.kind: Final = kind
        self._cluster = cluster
        self._command = command
        self._ready = ready
        self._log = log
        self._lives = 0
        self._program: Program | None = None

    @property
    def url(self) -> str:
        """URL for the nodes."""
        where = f"{self._cluster.lab.address(PLACE)}:{_PORTS[self.kind]}"
        if self.kind == "redis":
            return f"redis://{where}/0"
        return f"postgresql://{postgresql.USER}@{where}/postgres"

    async def start(self) -> None:
        """Start a life; return when it takes connections. ClusterError with its output if it does
        not.
        """
        self._lives += 1
        log = self._log.with_name(f"{self._log.stem}-{self._lives}.log")
        with log.open("wb") as output:
            self._program = self._cluster.lab.spawn(
                PLACE, self._command, output, folder=self._log.parent
            )
        for _ in range(round(_START_S / _LOOK_S)):
            if re.search(self._ready, log.read_text(errors="replace")):
                return
            if self._program.ended() is not None:
                break
            await asyncio.sleep(_LOOK_S)
        said = log.read_text(errors="replace")[-2000:]
        raise ClusterError(f"{self.kind} does not start:\n{said}")

    def stop(self) -> None:
        """Stop all its processes (SIGSTOP): connections stay, and nothing is answered."""
        self._signal_all(signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue them (SIGCONT)."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._program is not None
        for pid in (self._program.pid, *children_of(self._program.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    async def kill(self) -> None:
        """Kill it; return when none of its processes is there any more, ClusterError if some
        stay.
        """
        program = self._program
        assert program is not None
        family = [program.pid, *children_of(program.pid)]
        kill_all(family)
        for _ in range(round(_START_S / _LOOK_S)):
            if program.ended() is not None and not any(map(is_alive, family[1:])):
                return
            await asyncio.sleep(_LOOK_S)
        raise ClusterError(f"{self.kind} leaves processes behind that do not die")


@contextmanager
def prepared(cluster: Cluster, kind: Kind, log: Path) -> Iterator[StoreServer]:
    """Make a server that is not started yet, on files of its own; ServerError says what was
    tried.
    """
    tried = []
    with ExitStack() as stack:
        for begin in _ways(cluster, kind):
            try:
                command, ready = begin(stack)
            except (ServerError, OSError, subprocess.SubprocessError) as error:
                tried.append(str(error))
                continue
            yield StoreServer(cluster, kind, command, ready, log)
            return
    raise ServerError("\n".join((f"no {kind} is installed here that could be started", *tried)))


def _ways(
    cluster: Cluster, kind: Kind
) -> Iterator[Callable[[ExitStack], tuple[Sequence[str], str]]]:
    host, port = cluster.lab.address(PLACE), _PORTS[kind]
    for software, trees in postgresql.installed() if kind == "postgresql" else redis.installed():

        def begin(
            stack: ExitStack, software: Path = software, trees: Sequence[Path] = trees
        ) -> tuple[Sequence[str], str]:
            user = server_user()
            own = stack.enter_context(server_folder(kind, user))
            if kind == "redis":
                binary = readable_copy(trees, software, own, user)
                command = redis.server_command(
                    binary, own, port=port, host=host, durability="always"
                )
                return [*as_user(user, 0), *command], redis.READY
            initdb = readable_copy(trees, software / "initdb", own, user)
            make_files(initdb, own / "files", user)
            with (own / "files" / "pg_hba.conf").open("a") as rules:
                rules.write(_NEIGHBOURS)
            command = postgresql.server_command(initdb, own / "files", port=port, host=host)
            return [*as_user(user, 0), *command], postgresql.READY

        yield begin
