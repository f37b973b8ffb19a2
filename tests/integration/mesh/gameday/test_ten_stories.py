"""Ten stories that a cluster of gateways has to get right, as the gameday plays them: nothing is lost, refused or over."""

from pathlib import Path
from random import Random

import pytest

from smg_chaos.gameday.stage import Stage
from smg_chaos.gameday.ten.scenario import FLAGS, PLACES, ten
from support.processes.lab import nodes

pytestmark = pytest.mark.integration


@pytest.mark.long
async def test_all_ten_end_well(tmp_path: Path) -> None:
    async with nodes(tmp_path, "n0", "n1", "n2", flags=FLAGS, more_places=PLACES) as cluster:
        figures = await ten(Stage(cluster, 4.0, 1, Random(1), print))
    assert {one.metric[0] for one in figures} == set("abcdefghij")
    assert all(one.value is not None for one in figures)
    # How soon is the gameday's business: here, other tests use the same cores.
    missed = [one for one in figures if not one.is_met and one.unit != "s"]
    assert not missed, missed
