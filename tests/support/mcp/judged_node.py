"""The official conformance suite's scenarios for servers, run against a server, and against it through a node."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from support.mcp.real_servers import PROGRAMS, Command, listening, node, package, python

_LINE: Final = re.compile(r"^[✓✗] ([a-z0-9-]+): (\d+) passed, (\d+) failed$", re.MULTILINE)
_LIMIT_S: Final = 600


class Judgement(NamedTuple):
    """How one scenario ended."""

    passed: int
    failed: int


@contextmanager
def judged_server(folder: Path) -> Iterator[str]:
    """Run a server that has what the suite's scenarios about tools want; yield its URL."""
    with listening([python(), PROGRAMS / "judged_server.py"], folder, "/mcp") as url:
        yield url


def judge(url: str, revision: str, folder: Path) -> Mapping[str, Judgement]:
    """Return how the scenarios that a revision requires end against a server."""
    folder.mkdir()
    command: Command = [
        node(),
        package("conformance"),
        "server",
        "--url",
        url,
        "--requirements",
        revision,
    ]
    done = subprocess.run(
        command,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    found = _LINE.findall(done.stdout)
    assert found, done.stdout + done.stderr
    return {name: Judgement(int(passed), int(failed)) for name, passed, failed in found}
