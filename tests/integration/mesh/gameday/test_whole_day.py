"""A game day of half a minute: three nodes, a store, a fault of each lane, and every promise kept."""

import json
import sys
import time
from pathlib import Path
from random import Random
from typing import IO

import pytest

from smg_chaos.gameday.lab.lab import Lab
from smg_chaos.gameday.stage import Stage
from smg_chaos.gameday.whole.scenario import whole
from smg_chaos.gameday.whole.scene import PLACES
from smg_chaos.statistics import Figure
from support.processes.lab import nodes, running_lab

pytestmark = pytest.mark.integration

SECONDS = 32.0
FAULTS = ("kill", "isolate", "full-disk", "engine", "store")


def told(figures: list[Figure]) -> str:
    return "; ".join(f"{one.metric}: {one.value} {one.says}" for one in figures)


def status_of(lab: Lab, command: list[str | Path], log: IO[bytes], folder: Path) -> int:
    """Return how a program of the lab ends."""
    program = lab.spawn("a", command, log, folder=folder)
    for _ in range(1000):
        if (code := program.ended()) is not None:
            return code
        time.sleep(0.02)
    raise AssertionError("it does not end")


@pytest.mark.long
async def test_a_short_day_with_a_dead_node_and_a_dead_engine_keeps_every_promise(
    tmp_path: Path,
) -> None:
    said: list[str] = []
    names = ("n0", "n1", "n2")
    async with nodes(tmp_path, *names, more_places=PLACES) as cluster:
        stage = Stage(
            cluster, SECONDS, 0, Random(3), said.append, streams=3, faults=FAULTS, engines=2, seed=3
        )
        figures = list(await whole(stage))
    missed = [one for one in figures if not one.is_met]
    assert not missed, told(missed) + "\n" + "\n".join(said)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["kept"]
    assert len(report["faults"]) >= 3
    exact = next(one for one in figures if one.metric == "streams whole and exact")
    assert exact.value is not None
    assert exact.value > 80
    page = (tmp_path / "report.html").read_text()
    assert all(fault["told"] in page for fault in report["faults"])


def test_a_disk_of_the_lab_is_full_for_its_programs_and_nobody_else(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    script = "open('disk/own', 'wb').write(b'x' * 100_000)"
    with running_lab(["a"]) as lab, (tmp_path / "log").open("wb") as log:
        lab.disk(folder, 1 << 20)
        assert lab.fill(folder) == 1 << 20
        command: list[str | Path] = [sys.executable, "-c", script]
        assert status_of(lab, command, log, tmp_path) == 1
        lab.clear(folder)
        assert status_of(lab, command, log, tmp_path) == 0
        assert not list(folder.iterdir())
        (folder / "outside").write_bytes(b"x" * (2 << 20))
    assert "No space left on device" in (tmp_path / "log").read_text()
