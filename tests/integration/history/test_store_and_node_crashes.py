"""The gameday of history in short: the store dies under chats and comes back, and a node that keeps turns for it dies too."""

from pathlib import Path

import pytest

from smg_chaos.gameday.history.database_server import PLACE, Kind
from smg_chaos.gameday.history.scenario import history_on
from support.processes.lab import played

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("kind", ["postgresql", pytest.param("redis", marks=pytest.mark.long)])
async def test_nothing_that_was_acknowledged_is_lost_or_there_twice(
    tmp_path: Path, kind: Kind
) -> None:
    figures = await played(
        history_on(kind), tmp_path, count=2, seconds=2.0, streams=5, more_places=[PLACE]
    )
    assert figures[f"{kind}: acknowledged turns missing"].says.split()[1].rstrip(",") != "0"
    assert figures[f"{kind}: spools empty after its return"].value is not None
    counted = {name: figure for name, figure in figures.items() if figure.unit == ""}
    assert len(counted) == 9
    assert {name: figure.value for name, figure in counted.items()} == dict.fromkeys(counted, 0)
