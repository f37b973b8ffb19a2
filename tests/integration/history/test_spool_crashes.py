"""A process that is killed at any step loses no turn that it had acknowledged."""

import subprocess
import sys
from pathlib import Path

import pytest

from smg_node.history.spool.spool_format import SpooledTurn
from smg_node.history.spool.spool_replay import Replay
from support.history.spools import in_order, response_id, spool_at, turn

pytestmark = pytest.mark.integration

TESTS = Path(__file__).parents[2]


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


async def replayed(root: Path) -> tuple[list[str], list[str]]:
    """What the next process writes to the store, and what the one after it still finds."""
    found: list[str] = []

    async def commit(one: SpooledTurn) -> None:
        found.append(one.turn.response.id)
        assert one.turn == turn(int(found[-1][17:29], 16), int(found[-1][29:], 16))

    spool = spool_at(root, "2")
    await spool.adopt()
    replay = Replay(spool, commit, away=lambda: False, now_s=lambda: 0.0)
    while spool.turns:
        await replay.turn()
    await spool.close()
    later = spool_at(root, "3")
    await later.adopt()
    left = later.turns
    await later.close()
    return found, [""] * left


@pytest.fixture
def deaths(tmp_path: Path) -> list[Path]:
    """What processes left that were killed, each at another step."""
    told = subprocess.run(
        [sys.executable, "-m", "support.history.spool_crashes", str(tmp_path)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    ).stdout.split()
    lives, halves = map(int, told)
    # Each turn is written and synced, folders and files are made, notes are taken, files go.
    assert lives > 40
    assert halves > 10
    roots = sorted(tmp_path.iterdir())
    assert len(roots) == lives + halves
    return roots


async def test_no_turn_is_lost_that_was_acknowledged(deaths: list[Path]) -> None:
    asked = {response_id(1 + number % 2, number) for number in range(1, 7)} | {response_id(1, 9)}
    first = {response_id(1 + number % 2, number) for number in (1, 2, 3)}
    for root in deaths:
        acknowledged, before = lines(root / "acknowledged"), lines(root / "store")
        found, left = await replayed(root / "spool")
        assert set(acknowledged) <= set(before) | set(found), root.name
        assert set(before) | set(found) <= asked
        assert left == []
        assert in_order(found)
        assert in_order(before)
        # One that was on its way may be there although nobody was told.
        assert len(set(found) - set(acknowledged)) <= 1, root.name
        # The first three had been done when the fourth was acknowledged: they do not come back.
        if response_id(1, 4) in acknowledged:
            assert not first & set(found), root.name
