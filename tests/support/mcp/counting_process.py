"""A server of tools that counts, as a process of its own."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from support.processes.process import running


@contextmanager
def counting_server(folder: Path, *flags: str) -> Iterator[str]:
    """Run a server; yield its URL."""
    command: list[str | Path] = [Path(sys.executable).parent / "smg-chaos", "mcp-server", *flags]
    with running(command, folder=folder) as process:
        yield process.wait_for(r"url=(\S+)", 60)[1]


def counts_of(url: str) -> Any:
    """Return what a server counts: requests by method, and tools that ran."""
    with urlopen(url.replace("/mcp", "/_mcp/counts"), timeout=30) as answer:
        return json.loads(answer.read())
