"""Real `smg-node` processes that are members of one mesh, on free ports of the loopback, and `smg-admin` beside them."""

import json
import os
import re
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from support.processes.node import RunningNode
from support.processes.previous_release import CURRENT, Release
from support.processes.process import Process, running
from support.processes.program_forks import program_server

# Far more than it takes: other tests use the machine at the same time.
WAIT_S: Final = 60.0
_POLL_S: Final = 0.05
_MESH: Final = r"mesh on (127\.0\.0\.1:[1-9]\d*)"
_HTTP: Final = r"listening on (http://127\.0\.0\.1:[1-9]\d*)"
_METRICS: Final = r"metrics on (http://127\.0\.0\.1:[1-9]\d*)"
_BIN: Final = Path(sys.executable).parent
FREE: Final = "127.0.0.1:0"


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str


def smg_admin(*words: str | Path, folder: Path | None = None) -> Said:
    """Run `smg-admin` to its end."""
    command = [str(word) for word in (_BIN / "smg-admin", *words)]
    with TemporaryDirectory() as scratch:
        out, err = Path(scratch, "out"), Path(scratch, "err")
        done = program_server().start(
            command, folder=folder or Path.cwd(), environment=os.environ, out=out, err=err
        )
        try:
            code = done.wait(WAIT_S)
        finally:
            done.kill()
        said = Said(code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))
    assert "Traceback" not in said.err, said.err
    return said


def make_key(folder: Path, name: str = "mesh.key") -> Path:
    """Return a new key file."""
    file = folder / name
    said = smg_admin("cluster", "keyring", "generate", "--out", file)
    assert said.code == 0, said.err
    return file


@dataclass(frozen=True, slots=True)
class MeshNode:
    """A node whose API answers. `mesh` is its address for `--join`."""

    name: str
    mesh: str
    node: RunningNode

    @property
    def process(self) -> Process:
        """The process itself."""
        return self.node.process

    def get(self, path: str) -> Any:
        """Return the JSON of a GET that succeeds."""
        with urllib.request.urlopen(self.node.url + path, timeout=10) as answer:
            return json.load(answer)

    def rows(self) -> Mapping[str, Any]:
        """Return its member table, by name."""
        return {row["name"]: row for row in self.get("/v1/cluster/members")["members"]}

    def states(self) -> Mapping[str, str]:
        """Return which state each member is in, for this node."""
        return {name: row["state"] for name, row in self.rows().items()}

    def story(self, name: str) -> Sequence[str]:
        """Return what happened to a member, in order, as this node saw it."""
        events = self.get("/v1/cluster/events")["events"]
        return [event["kind"] for event in events if event["name"] == name]

    def admin(self, *words: str | Path) -> Said:
        """Run `smg-admin` against this node."""
        return smg_admin("--url", self.node.url, *words)

    def awaits(self, what: str, true: Callable[[], bool]) -> None:
        """Return once `true()` holds; an error with this node's log if that takes too long."""
        self.process.wait_until(true, what, WAIT_S)

    def awaits_ready(self) -> None:
        """Return once it may be given requests: it has joined, and heard what it needs of the others."""
        self.awaits("ready", lambda: self.node.status("/readiness") == 200)

    def awaits_states(self, **states: str) -> None:
        """Return once these members are in these states, for this node."""
        self.awaits(f"seeing {states}", lambda: states.items() <= self.states().items())


def until(true: Callable[[], bool], what: str) -> None:
    """Return once `true()` holds; AssertionError if that takes too long."""
    give_up_s = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < give_up_s, f"not {what} within {WAIT_S:.0f} s"
        time.sleep(_POLL_S)


def flags_of(name: str, *, key: Path | None, join: Sequence[str] = ()) -> list[str]:
    """Return the flags of a member that is quick, on free ports; without a key it is insecure."""
    secrecy = ["--insecure-mesh"] if key is None else ["--mesh-key", str(key)]
    joins = [word for seed in join for word in ("--join", seed)]
    return ["--name", name, *secrecy, *joins]


@contextmanager
def mesh_node(
    scratch: Path, flags: Sequence[str], *, listen: str = FREE, release: Release = CURRENT
) -> Iterator[MeshNode]:
    """Run a node with these flags; what it writes stays in `scratch`, so a later one may be its next life."""
    ports = ("--http", FREE, "--metrics", FREE, "--mesh", listen)
    quick = ("--mesh.profile", "local", "--drain.settle-s", "0", "--readiness.min-workers", "0")
    quiet = ("--no-telemetry.access-log",)
    given = [*ports, *quick, *quiet, "--data-dir", str(scratch / "data"), *flags]
    name = flags[flags.index("--name") + 1]
    command, environment = [*release.command, *given], release.environment
    with running(command, folder=scratch / name, environment=environment) as process:
        url = _found(process, _HTTP)
        node = RunningNode(url, _found(process, _METRICS), process)
        yield MeshNode(name, _found(process, _MESH), node)


def _found(process: Process, pattern: str) -> str:
    found: re.Match[str] = process.wait_for(pattern, WAIT_S)
    return found[1]
