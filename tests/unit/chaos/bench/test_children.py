import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from smg_chaos.bench.children import BenchError, free_ports, spawn
from smg_chaos.bench.figures.process_accounting import tree_of

# A parent that ignores the polite way, with a child that outlives it.
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("ready", flush=True)
time.sleep(600)
"""


def exists(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def eventually(condition: Callable[[], bool], within_s: float = 30.0) -> None:
    end_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end_s, "it never happened"
        time.sleep(0.02)


async def test_a_process_and_all_it_left_behind_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smg_chaos.bench.children._STOP_S", 0.2)
    child = spawn("x", [sys.executable, "-c", STUBBORN], tmp_path / "x.log")
    eventually(lambda: "ready" in child.log.read_text())
    pids = tree_of(child.pid)
    assert len(pids) == 2
    await child.stop()
    eventually(lambda: not any(exists(pid) for pid in pids))
    assert child.died()


async def test_a_process_that_ended_says_how_with_the_end_of_its_log(tmp_path: Path) -> None:
    code = "import sys; print('what went wrong'); sys.exit(3)"
    child = spawn("the thing", [sys.executable, "-c", code], tmp_path / "x.log")
    eventually(lambda: bool(child.died()))
    assert "the thing ended with code 3" in child.died()
    assert "what went wrong" in child.died()
    await child.stop()


def test_a_program_that_does_not_exist_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="the thing cannot be started"):
        spawn("the thing", [str(tmp_path / "none")], tmp_path / "x.log")


async def test_it_leads_a_session_of_its_own_so_that_a_terminals_signals_pass_it_by(
    tmp_path: Path,
) -> None:
    child = spawn("x", [sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "x.log")
    assert os.getsid(child.pid) == child.pid != os.getsid(0)
    await child.stop()


def test_free_ports_differ() -> None:
    assert len(set(free_ports(20))) == 20
