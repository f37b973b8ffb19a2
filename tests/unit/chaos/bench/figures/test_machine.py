"""What a page says of the machine it was measured on."""

from pathlib import Path

import pytest

from smg_chaos.bench.figures import machine

_TOLD = """processor\t: 0
cpu family\t: 25
model\t\t: 1
model name\t: Some CPU

processor\t: 1
cpu family\t: 26
model\t\t: 2
model name\t: Another
"""


def test_a_cpu_is_told_with_its_generation(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(_TOLD)
    assert machine.cpu_model(path) == "Some CPU (family 25, model 1)"


def test_a_cpu_that_tells_nothing_else_is_told_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("model name: Some CPU\n")
    assert machine.cpu_model(path) == "Some CPU"


def test_a_machine_without_such_a_file_is_told_all_the_same(tmp_path: Path) -> None:
    assert "family" not in machine.cpu_model(tmp_path / "none")


@pytest.mark.parametrize(
    ("line", "seconds"),
    [("cpu  1 2 3 4 5 6 7 800 0 0", 800), ("cpu  1 2 3 4", 0), ("", 0)],
)
def test_what_the_host_gave_to_others_is_the_eighth_number(
    line: str, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_first_line", lambda _: line)
    monkeypatch.setattr("os.sysconf", lambda _: 1)
    assert machine.stolen_s() == seconds
