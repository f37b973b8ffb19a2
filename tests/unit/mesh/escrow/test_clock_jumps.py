"""Ledgers and treasuries together: a limit that is changed, and a clock that jumps back into windows that are over."""

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from smg_mesh.escrow.limit_model import Limit
from support.rights.rights_world import WALL_MS, World, rate

WINDOW_MS = 20_000
KEY = f"tenant=a#requests/{WINDOW_MS}"


@dataclass(frozen=True)
class Change:
    """What a limit was, and what it becomes after a window of it is over."""

    amount: int
    standing: float
    to_amount: int
    to_standing: float


CHANGES = (
    Change(6, 0.9, 12, 0.1),
    Change(6, 0.5, 18, 0.5),
    Change(60, 0.5, 180, 0.8),
    Change(60, 0.1, 120, 0.9),
    Change(60, 0.0, 120, 0.0),
    Change(60, 0.5, 6, 0.5),
)


def begun(change: Change, *, window_ms: int = WINDOW_MS) -> tuple[World, int]:
    """A world at the begin of a window, and the number of that window."""
    key = f"tenant=a#requests/{window_ms}"
    limit = Limit(key, "requests", change.amount, window_ms, "strict", change.standing)
    world = World(limit, names="abc")
    world.run(1)
    world.now_ms += window_ms - (WALL_MS + world.now_ms) % window_ms
    return world, (WALL_MS + world.now_ms) // window_ms


def changed(world: World, amount: int, standing: float) -> None:
    """Let a limit be another one, and all nodes know of it."""
    for key, last in list(world.limits.limits.items()):
        older = (*last.older, (last.amount, last.standing))
        world.limits.limits[key] = replace(
            last, amount=amount, standing=standing, version=last.version + 1, older=older
        )


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("back_ms", [20_500, 26_386, 39_900])
@pytest.mark.parametrize("who", ["a", "b"])
def test_a_limit_that_is_raised_counts_in_no_window_that_was_over_by_a_clock_that_jumped_back(
    change: Change, back_ms: int, who: str
) -> None:
    world, window = begun(change)
    world.run(WINDOW_MS + 300, rate(a=30.0, b=1.0), audits=True)
    spent = world.got[KEY, window]
    assert spent > 0
    changed(world, change.to_amount, change.to_standing)
    world.run(500, rate(a=30.0))
    world.nodes[who].offset_ms -= back_ms
    world.run(2 * WINDOW_MS, rate(a=30.0, b=30.0, c=30.0))
    assert world.got[KEY, window] <= change.amount


@pytest.mark.parametrize("change", CHANGES)
def test_nor_does_more_stand_then_with_a_node_that_had_slept_through_it(change: Change) -> None:
    world, window = begun(change)
    world.nodes["c"].paused = True
    world.run(WINDOW_MS + 300, rate(a=30.0, b=30.0), audits=True)
    world.nodes["c"].paused = False
    world.hand_over("")
    world.run(10)
    changed(world, change.to_amount, change.to_standing)
    world.nodes["c"].offset_ms -= 20_300
    world.run(19_000, rate(c=30.0))
    assert world.got[KEY, window] <= change.amount
