"""What a program sees whose clock is made wrong and whose disk slow while it runs, and what it must not notice."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import CLOCK_REALTIME, clock_gettime_ns
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.whole import clock_skew as skews
from smg_chaos.gameday.whole.clock_skew import Skew, compiled
from support.processes import clock_program

NS: Final = clock_program.NS
DELAY_S: Final = 0.03
WRITES: Final = ("write", "writev", "pwrite", "fsync", "fdatasync")
LONG_NS: Final = 20 * NS
"""Every jump below is longer, and no machine so busy."""


class Program:
    """A `clock_program` with its skew."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.data = folder / "data"
        self.data.mkdir()
        self.elsewhere = folder / "database"
        self.elsewhere.mkdir()
        self.skew = Skew(library, folder / "skew", self.data)
        self.process = subprocess.Popen(
            [sys.executable, "-S", clock_program.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **self.skew.environment},
        )

    def tell(self, *asked: str) -> dict[str, int]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        told: dict[str, int] = json.loads(self.process.stdout.readline())
        return told

    def close(self) -> None:
        said, _ = self.process.communicate(timeout=30.0)
        assert (said, self.process.returncode) == ("", 0)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def shared(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    made = Program(library, tmp_path_factory.mktemp("program"))
    yield made
    made.close()


@pytest.fixture
def program(shared: Program) -> Iterator[Program]:
    yield shared
    shared.skew.set_clock(0.0)
    shared.skew.set_disk(0.0)


def check_clocks(told: dict[str, int], ahead_ns: int, before: int, after: int) -> None:
    """Check what was told between two moments of the right clock, which is coarser in some ways to ask."""
    least, most = before + ahead_ns, after + ahead_ns
    assert least <= told["realtime"] <= most
    assert least - NS // 10 <= told["coarse"] <= most
    assert least // 1000 <= told["gettimeofday_us"] <= most // 1000
    assert least // NS <= told["time_s"] <= most // NS


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(-400 * 86_400_000, 400 * 86_400_000))
def test_the_wall_clock_is_wrong_by_just_so_much_and_the_others_are_right(
    program: Program, ahead_ms: int
) -> None:
    earlier = program.tell("clocks")["monotonic"]
    program.skew.set_clock(ahead_ms / 1000)
    before = clock_gettime_ns(CLOCK_REALTIME)
    told = program.tell("clocks")
    after = clock_gettime_ns(CLOCK_REALTIME)
    # Seconds as a float are good for a hundredth of a millisecond over a year.
    check_clocks(told, round(ahead_ms / 1000 * 1e9), before, after)
    assert 0 <= told["monotonic"] - earlier < LONG_NS


def test_a_clock_that_is_set_right_is_right(program: Program) -> None:
    program.skew.set_clock(-3600.0)
    program.skew.set_clock(0.0)
    before = clock_gettime_ns(CLOCK_REALTIME)
    told = program.tell("clocks")
    check_clocks(told, 0, before, clock_gettime_ns(CLOCK_REALTIME))


def test_a_program_that_it_starts_sees_the_same_clock(program: Program) -> None:
    program.skew.set_clock(1800.0)
    before = clock_gettime_ns(CLOCK_REALTIME)
    told = program.tell("child")
    check_clocks(told, 1800 * NS, before, clock_gettime_ns(CLOCK_REALTIME))


@pytest.mark.parametrize("ahead_s", [-45.0, 45.0])
def test_who_waits_until_a_moment_of_the_wrong_clock_waits_as_long_as_ever(
    program: Program, ahead_s: float
) -> None:
    program.skew.set_clock(ahead_s)
    for how, took in program.tell("waits").items():
        assert clock_program.WAIT_NS * 0.9 <= took < LONG_NS, how


def test_only_writes_and_syncs_in_the_data_folder_take_longer(program: Program) -> None:
    program.skew.set_disk(DELAY_S)
    slow = program.tell("disk", str(program.data))
    assert [how for how in WRITES if slow[how] < DELAY_S * NS] == []
    program.skew.set_disk(LONG_NS / NS)
    elsewhere = program.tell("disk", str(program.elsewhere))
    assert max(elsewhere.values()) < LONG_NS
    assert program.tell("pipe", "")["pipe"] < LONG_NS
    program.skew.set_disk(0.0)
    assert max(program.tell("disk", str(program.data)).values()) < LONG_NS


def test_a_folder_whose_name_only_begins_alike_is_another(program: Program) -> None:
    neighbour = program.data.with_name("data-of-another")
    neighbour.mkdir()
    program.skew.set_disk(LONG_NS / NS)
    assert max(program.tell("disk", str(neighbour)).values()) < LONG_NS


def test_both_are_right_without_their_file(library: Path) -> None:
    """A life that outlasts its folder must not fail for it."""
    environment = {**os.environ, "LD_PRELOAD": str(library), "SKEW_NUMBERS": "/nowhere/skew"}
    before = clock_gettime_ns(CLOCK_REALTIME)
    done = subprocess.run(
        [sys.executable, "-S", clock_program.__file__],
        input='["clocks"]\n',
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stderr == ""
    check_clocks(json.loads(done.stdout), 0, before, clock_gettime_ns(CLOCK_REALTIME))


def test_what_the_compiler_says_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("int clock_gettime(\n")
    monkeypatch.setattr(skews, "SOURCE", broken)
    with pytest.raises(ClusterError, match=r"broken\.c is not compiled:\n(?s:.)*error"):
        compiled(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="need a C compiler called cc"):
        compiled(tmp_path)
