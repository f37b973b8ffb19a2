"""A rolling restart of three nodes under streams, as the gameday does it: no client notices."""

from pathlib import Path
from random import Random

import pytest

from smg_chaos.gameday.rolling.scenario import FLAGS, PLACES, rolling
from smg_chaos.gameday.stage import Stage
from support.processes.lab import nodes

pytestmark = pytest.mark.integration


@pytest.mark.long
async def test_nodes_are_restarted_in_turn_and_no_stream_is_cut_or_refused(tmp_path: Path) -> None:
    async with nodes(tmp_path, "n0", "n1", "n2", flags=FLAGS, more_places=PLACES) as cluster:
        stage = Stage(cluster, 4.0, 1, Random(1), print, streams=20, engines=1)
        figures = {one.metric: one for one in await rolling(stage)}
    # How long it takes until all agree is the gameday's business: here, other tests use the same cores.
    missed = [one for one in figures.values() if not one.is_met and one.unit != "s"]
    assert not missed, missed
    assert figures["restarts"].value == 3
    fewest = figures["streams open when a node was told to go, the fewest"].value
    assert fewest is not None
    assert fewest >= 15
