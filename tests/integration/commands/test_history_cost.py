"""`smg-chaos history` on a real node, for a moment."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration


def test_it_measures_every_case_on_a_real_node(tmp_path: Path) -> None:
    told = subprocess.run(
        [
            *(Path(sys.executable).with_name("smg-chaos"), "history", "--store", "redis"),
            *("--clients", "2", "--rounds", "1", "--slice-s", "0.4", "--seconds", "0"),
            *("--out", tmp_path, "--json", tmp_path / "figures.json"),
        ],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    cases = [(row["store"], row["streamed"], row["clients"]) for row in figures["cells"]]
    assert cases == [("redis", False, 2), ("redis", True, 2)]
    for row in figures["cells"]:
        assert min(row["answers"], row["plain_node_us"], row["server_us"]) > 0
    # Each operation is one call of a function of ours.
    assert {row["calls"] for row in figures["calls"]} == {1}
    assert "added node us" in told.stdout
