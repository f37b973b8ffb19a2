"""`smg-node --demo`: what it prints can be pasted, works, and nothing is left behind."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.http.certificate_authority import Authority
from support.http.served_tls import write_pair
from support.processes.node import running_node
from support.processes.process import running

pytestmark = pytest.mark.integration

SAYS = "six quick zebras jump over one lazy dog, café 🙂 and 你好!"


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in found.split()]


@pytest.mark.parametrize(
    ("tls", "operators"),
    [
        (False, ()),
        (True, ()),
        (False, ("--http.admin-listen", "unix:{folder}/a.sock")),
        (True, ("--http.admin-listen", "127.0.0.1:0", "--http.admin-tls")),
    ],
)
def test_the_printed_commands_work_when_pasted(
    tmp_path: Path, *, tls: bool, operators: tuple[str, ...]
) -> None:
    program = Path(sys.executable).with_name("smg-node")
    listen = ("--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
    command: list[str | Path] = [program, "--demo", *listen, "--data-dir", tmp_path / "data"]
    command += [one.format(folder=tmp_path) for one in operators]
    if tls:
        pair = write_pair(tmp_path / "its files", Authority("one"), "localhost")
        command += ["--tls-cert-path", pair.certificate, "--tls-key-path", pair.key]
    with running(command, folder=tmp_path / "run", forked=False) as node:
        node.wait_for("Ctrl-C ends it", 60)
        node.wait_for(r"is ready: demo(?s:.*)is ready: demo", 60)
        said = node.said()
        paste = said[said.index("# A whole answer:") : said.index("Ctrl-C ends it")]
        done = subprocess.run(
            ["bash", "-e"], input=paste, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        whole, rest = done.stdout.split("\n", 1)
        assert SAYS in whole
        assert "data: [DONE]" in rest
        assert f"Hello from a simulated engine: {SAYS}\n" in rest
        assert rest.count("ready") >= 2
        (engines,) = children(node.pid)
        node.signal(signal.SIGINT)
        assert node.wait(20) == 0
        assert not Path(f"/proc/{engines}").exists()


def test_engines_end_with_a_demo_that_is_killed(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("smg-node")
    listen = ("--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
    command: list[str | Path] = [program, "--demo", *listen, "--data-dir", tmp_path / "data"]
    with running(command, folder=tmp_path / "run", forked=False) as node:
        node.wait_for("Ctrl-C ends it", 60)
        (engines,) = children(node.pid)
        node.signal(signal.SIGKILL)
        node.wait(20)
        for _ in range(200):
            if not Path(f"/proc/{engines}").exists():
                break
            time.sleep(0.05)
        assert not Path(f"/proc/{engines}").exists()


# Gives a program a terminal, and passes on what it writes there.
_ON_A_TERMINAL = "import pty, sys; pty.spawn(sys.argv[1:])"
_LOGGED = re.compile(r"\d\d:\d\d:\d\d\.\d{3} (?:info|warning) +[a-z_.]+: \S")


@pytest.mark.parametrize("format_of", ["auto", "json"])
def test_a_terminal_gets_lines_for_people_unless_it_is_told_otherwise(
    tmp_path: Path, format_of: str
) -> None:
    program = Path(sys.executable).with_name("smg-node")
    flags = ("--demo", "--telemetry.log-format", format_of)
    begin = (sys.executable, "-c", _ON_A_TERMINAL, program)
    with running_node(tmp_path, flags=flags, command=begin) as node:
        assert node.status("/v1/models") == 200
        node.process.wait_for(r"/v1/models", 60)
        node.process.wait_for("Ctrl-C ends it", 60)
        node.process.wait_for(r"is ready: demo(?s:.*)is ready: demo", 60)
        said = node.process.said().replace("\r", "")
    banner, printed, rest = re.split(
        r"(?ms)^The demo is up(.*)^Ctrl-C ends it\.$", said, maxsplit=1
    )
    assert "smg-admin" in printed
    logged = [line for line in (*banner.splitlines(), *rest.splitlines()) if line]
    if format_of == "json":
        assert {
            type(json.loads(line)["level" if "level" in line else "log"]) for line in logged
        } == {str}
        return
    assert logged[0].startswith("smg-node ")
    facts = [line for line in logged if line.startswith("  ")]
    assert any(line.split()[:2] == ["workers", "two"] for line in facts)
    lines = [line for line in logged[1:] if not line.startswith("  ")]
    assert [line for line in lines if not _LOGGED.match(line)] == []
    assert sum(" access: GET /v1/models 200 " in line for line in lines) == 1
