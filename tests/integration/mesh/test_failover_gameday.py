"""Workers hurt under streams, as the gameday does it, in a few rounds: nobody notices, or is told clearly."""

from pathlib import Path

import pytest

from smg_chaos.gameday.failover import FLAGS, failover
from support.lab import played

pytestmark = pytest.mark.integration


async def test_streams_survive_kill_stall_and_removal_and_end_clearly_with_nobody_left(
    tmp_path: Path,
) -> None:
    figures = await played(failover, tmp_path, count=2, rounds=3, streams=16, flags=FLAGS)
    # How long a silence takes is the gameday's business: here, other tests use the same cores.
    counted = {name: figure for name, figure in figures.items() if figure.unit == ""}
    assert len(counted) == 4
    assert {name: figure.value for name, figure in counted.items()} == dict.fromkeys(counted, 0)
    assert all(figure.value is not None for figure in figures.values())
