"""`smg-chaos routing` as people run it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from smg_chaos.routing.cli import app

QUICK = ("--engines", "2", "--seconds", "30", "--warm-s", "10", "--nodes", "1")


def test_a_row_for_each_policy_is_printed_and_written(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    policies = ("--policy", "round_robin", "--policy", "omniscient", "--policy", "round_robin")
    ran = CliRunner().invoke(app, [*QUICK, *policies, "--json", str(file)])
    assert ran.exit_code == 0
    rows = [line.split()[0] for line in ran.stdout.splitlines()[3:]]
    assert rows == ["round_robin", "omniscient"]
    told = json.loads(file.read_bytes())
    assert [one["policy"] for one in told["results"]] == rows
    assert told["plan"]["size"]["gpus"] == 4


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--policy", "roundrobin"), "no policy 'roundrobin'; there are round_robin, random"),
        (("--warm-s", "30"), "everything would be warming up"),
    ],
)
def test_what_makes_no_sense_is_refused(flags: tuple[str, ...], says: str) -> None:
    ran = CliRunner().invoke(app, [*QUICK, *flags])
    assert ran.exit_code == 2
    assert says in ran.output
