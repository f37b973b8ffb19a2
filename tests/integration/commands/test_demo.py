"""`smg-node --demo`: what it prints can be pasted, works, and nothing is left behind."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.processes.process import running

pytestmark = pytest.mark.integration

SAYS = "six quick zebras jump over one lazy dog, café 🙂 and 你好!"


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in found.split()]


def test_the_printed_commands_work_when_pasted(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("smg-node")
    listen = ("--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
    command: list[str | Path] = [program, "--demo", *listen, "--data-dir", tmp_path / "data"]
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
