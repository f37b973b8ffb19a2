"""Roster keeper: a life without a roster hears from those that tell it one how late it is for them."""

from random import Random

import pytest
from msgspec.structs import replace

from smg_mesh.escrow.limit_model import Life, Roster
from smg_mesh.escrow.roster.roster_keeper import RosterKeeper
from smg_mesh.escrow.roster.roster_values import first, parts

ROSTER = replace(first(bytes(range(16)), ["a", "b", "c"]), proven=True)
WALL_MS = 1_700_000_000_000
DAY_MS = 86_400_000


def keeper(roster: Roster | None) -> RosterKeeper:
    return RosterKeeper(
        Life("b", 1), expect=3, roster=roster, rng=Random(1), now_ms=0, wall_ms=WALL_MS
    )


def hear(one: RosterKeeper, *clocks_ms: int) -> int:
    for wall_ms in clocks_ms:
        for part in parts(ROSTER, wall_ms=wall_ms):
            one.heard(part, now_ms=5, wall_ms=WALL_MS + 5)
    return one.told_ms


@pytest.mark.parametrize(
    ("clocks_ms", "told_ms"),
    [
        ((WALL_MS + 184_820,), WALL_MS + 184_820),
        ((WALL_MS + 9, WALL_MS + 3), WALL_MS + 9),
        ((WALL_MS - 60_000,), WALL_MS - 60_000),
        ((WALL_MS + 900 * DAY_MS,), WALL_MS + 5 + 2 * DAY_MS),
        ((0,), 0),
    ],
)
def test_the_latest_clock_is_kept_up_to_two_days_ahead(
    clocks_ms: tuple[int, ...], told_ms: int
) -> None:
    assert hear(keeper(None), *clocks_ms) == told_ms


def test_a_life_that_has_its_roster_from_its_disk_goes_by_its_own_clock() -> None:
    assert hear(keeper(ROSTER), WALL_MS + 184_820) == 0


def test_a_roster_is_told_with_the_clock_of_who_tells_it() -> None:
    one = keeper(ROSTER)
    one.step(term=0, synced=True, now_ms=7, wall_ms=WALL_MS + 7)
    told = one.noticed("c", bytes(16), 0, now_ms=700)
    told += one.noticed("a", ROSTER.id, 0, now_ms=700)
    clocks = [part.wall_ms for _, part in told if hasattr(part, "wall_ms")]
    assert clocks == [WALL_MS + 7]
