"""Ledgers and treasuries together: a limit that is changed, and a clock that jumps back to windows that are over."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from smg_chaos.simulate.rights.limit_versions import Versions
from smg_mesh.escrow.limit_model import Limit
from support.rights.rights_world import WALL_MS, World

BACKLOG = 200


def keen(names: str) -> Callable[[World], None]:
    """Return a load of requests that wait at these nodes, whatever there is."""

    def load(world: World) -> None:
        for node in (world.nodes[name] for name in names):
            for key in world.limits.limits:
                while node.spend(key):
                    pass
                share = node.share(key)
                assert share is not None
                share.wanted, share.wants_more = BACKLOG, True

    return load


@dataclass(frozen=True)
class Change:
    """What a limit was, and what it becomes once a window of it is over."""

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
WINDOWS_MS = (20_000, 60_000, 300_000, 86_400_000)


class Place:
    """A world just after the begin of a window."""

    def __init__(self, change: Change, window_ms: int) -> None:
        self.key = f"tenant=a#requests/{window_ms}"
        self.window_ms = window_ms
        limit = Limit(self.key, "requests", change.amount, window_ms, "strict", change.standing)
        self.world = World(limit, names="abc")
        self._versions = Versions(limit)
        self.world.run(1)
        self.go_to(0)
        self.window = (WALL_MS + self.world.now_ms) // window_ms

    def go_to(self, after_ms: int) -> None:
        """Let the time pass until so long after the next border, when nothing happens."""
        world = self.world
        world.now_ms += self.window_ms - (WALL_MS + world.now_ms) % self.window_ms + after_ms

    def change(self, amount: int, standing: float) -> None:
        """Let the limit be another one, and all nodes know of it."""
        wall_ms = WALL_MS + self.world.now_ms
        limit = self._versions.write(amount, standing, wall_ms=wall_ms)
        self.world.limits.limits[self.key] = limit

    @property
    def got(self) -> int:
        """What was admitted in the window of the begin, at whatever time."""
        return self.world.got.get((self.key, self.window), 0)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("window_ms", WINDOWS_MS)
def test_a_limit_that_is_raised_counts_in_no_window_that_was_over_when_the_owners_clock_jumps_back(
    change: Change, window_ms: int
) -> None:
    place = Place(change, window_ms)
    place.world.run(800, keen("a"), audits=True)
    before = place.got
    assert before >= change.amount * (1 - change.standing) - 1
    place.go_to(50)
    place.world.run(100, keen("a"), audits=True)
    place.change(change.to_amount, change.to_standing)
    place.world.run(100, keen("a"))
    place.world.nodes["a"].offset_ms -= window_ms + 550
    place.world.run(1_200, keen("abc"))
    assert before <= place.got <= change.amount


@pytest.mark.parametrize("to_amounts", [(120, 60), (30, 120), (30, 60), (120, 180), (180, 20, 90)])
def test_so_it_is_if_it_is_changed_again_and_again(to_amounts: tuple[int, ...]) -> None:
    place = Place(Change(60, 0.5, 0, 0.5), 20_000)
    place.world.run(800, keen("a"), audits=True)
    place.go_to(50)
    for amount in to_amounts:
        place.world.run(60, keen("a"))
        place.change(amount, 0.5)
    place.world.nodes["a"].offset_ms -= 20_550
    place.world.run(1_200, keen("abc"))
    assert place.got <= 60


@pytest.mark.parametrize("back_ms", [100, 550, 5_000, 20_550, 60_000, 3_600_000])
@pytest.mark.parametrize("ahead_ms", [0, 20_000, 25_000, 600_000])
def test_so_it_is_wherever_the_clock_of_the_owner_jumps_before(back_ms: int, ahead_ms: int) -> None:
    place = Place(Change(60, 0.5, 120, 0.5), 20_000)
    place.world.run(800, keen("a"), audits=True)
    place.go_to(50)
    place.world.nodes["a"].offset_ms += ahead_ms
    place.world.run(50, keen("a"))
    place.change(120, 0.5)
    place.world.nodes["a"].offset_ms -= ahead_ms + back_ms
    place.world.run(1_200, keen("abc"))
    assert place.got <= 60


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("window_ms", WINDOWS_MS)
def test_another_owner_whose_clock_jumped_back_does_not_know_what_was_allowed_and_takes_the_least(
    change: Change, window_ms: int
) -> None:
    place = Place(change, window_ms)
    place.world.run(800, keen("a"), audits=True)
    place.go_to(50)
    place.world.run(100, keen("a"), audits=True)
    place.change(change.to_amount, change.to_standing)
    place.world.nodes["b"].offset_ms -= window_ms + 400
    place.world.hand_over("b")
    place.world.run(1_200, keen("abc"))
    assert place.got <= change.amount


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("window_ms", WINDOWS_MS)
def test_no_more_stands_in_it_with_a_node_that_had_slept_through_it(
    change: Change, window_ms: int
) -> None:
    place = Place(change, window_ms)
    place.world.nodes["c"].paused = True
    place.world.run(800, keen("ab"), audits=True)
    place.go_to(50)
    place.world.nodes["c"].paused = False
    place.world.hand_over("")
    place.world.run(10)
    place.change(change.to_amount, change.to_standing)
    place.world.nodes["c"].offset_ms -= window_ms + 40
    for _ in range(4):
        place.world.run(100, keen("c"))
        place.world.now_ms += min(10_000, window_ms // 4)
    assert place.got <= change.amount


@pytest.mark.parametrize("back_ms", [0, 300])
def test_a_limit_that_is_raised_in_a_window_that_goes_on_counts_at_once_in_what_the_owner_has(
    back_ms: int,
) -> None:
    place = Place(Change(60, 0.5, 120, 0.5), 20_000)
    place.world.run(800, keen("a"), audits=True)
    assert place.got == 60
    place.change(120, 0.5)
    place.world.nodes["a"].offset_ms -= back_ms
    place.world.run(1_200, keen("abc"))
    assert place.got == 90
