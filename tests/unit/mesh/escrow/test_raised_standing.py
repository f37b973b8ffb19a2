"""Ledgers and treasuries together: the part of a limit that stands is changed while its windows run."""

from collections.abc import Callable

import pytest

from smg_chaos.simulate.rights.limit_versions import Versions
from smg_mesh.escrow.limit_model import Limit
from support.rights.rights_world import WALL_MS, World

CHANGES = (
    ((90, 0.1), (90, 0.9)),
    ((90, 0.5), (90, 1.0)),
    ((90, 0.0), (90, 1.0)),
    ((90, 0.1), (60, 0.9)),
    ((60, 0.1), (90, 0.9)),
    ((90, 0.9), (90, 0.1)),
    ((90, 0.1), (90, 0.5), (90, 0.9)),
    ((90, 0.1), (90, 0.9), (90, 0.1), (90, 0.9)),
    ((90, 0.1), (300, 0.05), (90, 0.9)),
    ((100, 0.1), (8, 0.9), (100, 0.9)),
)
WINDOWS_MS = (1_000, 20_000, 60_000, 300_000)


def keen(world: World) -> None:
    """Let requests wait at every node, whatever there is."""
    for node in world.nodes.values():
        for key in world.limits.limits:
            while node.spend(key):
                pass
            share = node.share(key)
            assert share is not None
            share.wanted, share.wants_more = 200, True


def quiet_but_for(name: str) -> Callable[[World], None]:
    """Return a load at one node only."""

    def load(world: World) -> None:
        for key in world.limits.limits:
            while world.nodes[name].spend(key):
                pass
            share = world.nodes[name].share(key)
            assert share is not None
            share.wanted, share.wants_more = 200, True

    return load


class Place:
    """A world at the begin of a window of its only limit."""

    def __init__(self, first: tuple[int, float], window_ms: int, *, keep_ms: int) -> None:
        self.key = f"tenant=a#requests/{window_ms}"
        self.window_ms = window_ms
        limit = Limit(self.key, "requests", first[0], window_ms, "strict", first[1])
        self.versions = Versions(limit, keep_ms=keep_ms)
        self.world = World(limit, names="abc")
        self.world.run(1)
        self.begin_window()

    def begin_window(self) -> None:
        world = self.world
        world.now_ms += self.window_ms - (WALL_MS + world.now_ms) % self.window_ms

    def change(self, amount: int, standing: float) -> None:
        """Let all nodes go by another version from now on."""
        wall_ms = WALL_MS + self.world.now_ms
        limit = self.versions.write(amount, standing, wall_ms=wall_ms)
        self.world.limits.limits[self.key] = limit
        self.world.adopted_ms = wall_ms

    def got(self, window: int) -> int:
        return self.world.got.get((self.key, window), 0)

    @property
    def window(self) -> int:
        return (WALL_MS + self.world.now_ms) // self.window_ms


@pytest.mark.parametrize("versions", CHANGES)
@pytest.mark.parametrize("window_ms", WINDOWS_MS)
@pytest.mark.parametrize("after_ms", [0, 400])
def test_no_window_gives_more_than_the_largest_amount_that_it_has_seen(
    versions: tuple[tuple[int, float], ...], window_ms: int, after_ms: int
) -> None:
    place = Place(versions[0], window_ms, keep_ms=10**9)
    window = place.window
    place.world.run(max(1, after_ms), quiet_but_for("a"), audits=True)
    largest = versions[0][0]
    for amount, standing in versions[1:]:
        place.change(amount, standing)
        largest = max(largest, amount)
        place.world.run(100, keen)
    place.world.run(1_900, keen)
    used = [place.got(number) for number in range(window, place.window + 1)]
    assert max(used) <= largest
    # Nor does any of it go to waste in a window that is whole: what may not stand yet, is minted.
    if window_ms <= 1_000:
        assert used[-2] == versions[-1][0]


def test_all_that_is_to_stand_does_so_once_no_owner_can_mint_by_what_was_before() -> None:
    place = Place((90, 0.1), 1_000, keep_ms=3_000)
    place.change(90, 0.9)
    stood = []
    for _ in range(6):
        limit = place.world.limits.limits[place.key]
        stood.append(limit.standing_right(3, began_ms=place.window * 1_000))
        place.world.run(1_000, keen, audits=True)
    assert stood == [3, 3, 3, 27, 27, 27]
    assert [place.got(place.window - back) for back in range(5, 0, -1)] == [90] * 5
