"""`smg-chaos gameday` as people run it: a table, figures in a file, an exit code, and nothing left behind."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from smg_chaos.bench.figures.process_accounting import tree_of
from support.processes.lab import running_lab
from support.processes.process import running

pytestmark = pytest.mark.integration

GAMEDAY = (sys.executable, "-m", "smg_chaos.cli", "gameday")
WAIT_S = 120.0


@pytest.fixture(autouse=True)
def lab_is_possible() -> None:
    with running_lab(["probe"]):
        pass


def test_a_scenario_is_played_and_told_to_people_and_machines(tmp_path: Path) -> None:
    results = tmp_path / "figures.json"
    flags = ("late-seed", "--quick", "--json", str(results), "--out", str(tmp_path / "out"))
    with running([*GAMEDAY, *flags], folder=tmp_path, environment={"NO_COLOR": "1"}) as process:
        code = process.wait(WAIT_S)
        said = process.said()
    told = json.loads(results.read_bytes())
    (outcome,) = told["outcomes"]
    (figure,) = outcome["figures"]
    assert (outcome["scenario"], outcome["system"], outcome["failed"]) == (
        "late-seed",
        "smg-node",
        "",
    )
    assert figure["metric"] == "joined after the seed appeared"
    assert figure["value"] is not None
    assert code == (0 if figure["is_met"] else 1)
    assert "late-seed, smg-node: 3 nodes: the seed comes last" in said
    assert ("met" if figure["is_met"] else "MISSED") in said
    (folder,) = (tmp_path / "out").iterdir()
    assert json.loads((folder / "figures.json").read_bytes()) == told
    assert (folder / "late-seed" / "smg-node" / "n00" / "output.log").stat().st_size


def test_nothing_is_left_when_it_is_killed_in_the_middle(tmp_path: Path) -> None:
    flags = ("late-seed", "--quick", "--out", str(tmp_path / "out"))
    with running([*GAMEDAY, *flags], folder=tmp_path) as process:
        nodes: list[int] = []

        def started() -> bool:
            nodes[:] = [pid for pid in tree_of(process.pid) if b"smg-node" in command_of(pid)]
            return len(nodes) >= 2

        process.wait_until(started, "running nodes", WAIT_S)
        everything = tree_of(process.pid)
        process.signal(signal.SIGKILL)
        assert process.wait(WAIT_S) == -signal.SIGKILL
        others = [pid for pid in everything if pid != process.pid]
        end_s = time.monotonic() + WAIT_S
        while any(map(command_of, others)) and time.monotonic() < end_s:
            time.sleep(0.02)
    assert not any(map(command_of, others))


def command_of(pid: int) -> bytes:
    """Return the command line of a process; nothing once it has ended, whoever its number is given to."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("flags", "code", "why"),
    [
        (("crush",), 2, "no scenario is called 'crush'"),
        (("crash", "--system", "surf"), 2, "no system is called 'surf'"),
        (("crash", "--system", "serf", "--peers", "."), 1, "`make serf` fetches it"),
    ],
)
def test_what_cannot_be_played_is_said_in_one_line(
    flags: tuple[str, ...], code: int, why: str, tmp_path: Path
) -> None:
    with running([*GAMEDAY, *flags, "--out", "out"], folder=tmp_path) as process:
        assert process.wait(WAIT_S) == code
        said = process.said()
    assert why in said
    assert said.count("\n") == 1
    assert os.listdir(tmp_path) == [process.log.name]
