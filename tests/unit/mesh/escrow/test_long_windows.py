"""Ledgers and treasuries together: windows of a minute and of a day, which accrue and lapse."""

import pytest

from smg_mesh.escrow.limit_model import Limit
from support.rights.rights_world import WALL_MS, World, rate

MINUTE = "tenant=t#tokens/60000"
HOUR = "tenant=t#tokens/3600000"
EVEN = {"a": 40.0, "b": 40.0, "c": 40.0, "d": 40.0, "e": 40.0}


def minute(amount: int = 6_000, mode: str = "strict") -> Limit:
    return Limit(MINUTE, "tokens", amount, 60_000, mode=mode)  # type: ignore[arg-type]  # the mode is drawn by the test


def at_the_border(*limits: Limit, names: str = "abcde", length_ms: int = 60_000) -> World:
    """A world that has just begun a window, and has lived for some time."""
    world = World(*limits, names=names)
    world.run(1)
    world.now_ms += length_ms - (WALL_MS + world.now_ms) % length_ms
    return world


def total(world: World, key: str = MINUTE) -> list[int]:
    return [got for (at, _), got in sorted(world.got.items()) if at == key]


def test_a_minute_is_used_up_under_overload_and_not_exceeded() -> None:
    world = at_the_border(minute())
    world.run(59_990, rate(**EVEN), audits=True)
    assert total(world) == [6_000]


def test_a_minute_is_used_up_by_one_busy_node() -> None:
    world = at_the_border(minute())
    world.run(59_990, rate(b=190.0, a=2.0, c=2.0, d=2.0, e=2.0), audits=True)
    assert 5_900 <= total(world)[0] <= 6_000


def test_without_an_owner_a_node_lives_at_a_steady_rate() -> None:
    world = at_the_border(minute())
    world.hand_over("")
    load = rate(b=1_000.0)
    for slices in range(1, 7):
        world.run(9_990, load, audits=True)
        assert total(world) == [100 * slices]
        world.run(10)


def test_what_stood_and_was_not_spent_lapses_and_is_minted_again() -> None:
    world = at_the_border(minute(), names="ab")
    world.run(40_000, rate(a=1.0, b=1.0), audits=True)
    world.run(19_900, rate(b=1_000.0), audits=True)
    assert 5_700 <= total(world)[0] <= 6_000


def test_a_restart_loses_a_slice_and_not_a_budget() -> None:
    world = at_the_border(minute())
    world.hand_over("")
    load = rate(b=1_000.0)
    world.run(15_000, load)
    world.restart("b")
    world.run(4_900, load, audits=True)
    assert total(world) == [200]
    world.run(10_000, load, audits=True)
    assert 295 <= total(world)[0] <= 300


def test_owners_that_die_again_and_again_do_not_mint_twice() -> None:
    world = at_the_border(minute())
    load = rate(**EVEN)
    for name in "bcdeab":
        world.run(7_000, load, audits=True)
        world.restart(world.owner[0])
        world.hand_over(name)
    world.run(17_900, load, audits=True)
    assert 5_400 <= total(world)[0] <= 6_000


def test_an_hour_accrues_for_keys_that_sleep_too_and_what_passed_lapses() -> None:
    hour = Limit(HOUR, "tokens", 36_000, 3_600_000, mode="strict")
    world = at_the_border(hour, names="ab", length_ms=3_600_000)
    world.run(1_000, rate(a=5.0, b=5.0), audits=True)
    world.now_ms += 30 * 60_000
    world.run(1_000, rate(b=2_000.0), audits=True)
    rows = {row.name: row for row in world.nodes["b"].ledger.rows() if row.key == HOUR}
    assert 4_400 <= rows["b"].lapsed <= rows["b"].standing <= 4_600


def test_a_right_never_grows_within_a_window() -> None:
    low = Limit(MINUTE, "tokens", 6_000, 60_000, mode="strict", standing=0.1)
    high = Limit(
        MINUTE,
        "tokens",
        6_000,
        60_000,
        mode="strict",
        standing=0.9,
        version=1,
        older=((6_000, 0.1),),
    )
    world = at_the_border(low)
    load = rate(**EVEN)
    world.run(30_000, load, audits=True)
    world.limits.limits[MINUTE] = high
    world.run(29_990, load, audits=True)
    assert total(world)[0] <= 6_000
    assert sum(row.standing for node in world.nodes.values() for row in node.ledger.rows()) <= 600


def test_given_rights_that_nobody_uses_go_back() -> None:
    world = at_the_border(minute())
    world.run(5_000, rate(b=300.0), audits=True)
    world.run(25_000, audits=True)
    share = world.nodes["b"].ledger.peek(MINUTE)
    assert share is not None
    assert share.left == 0
    world.run(5_000, rate(c=400.0), audits=True)
    assert world.by_node[MINUTE, next(iter(world.got))[1], "c"] > 1_500


def test_a_minority_that_borrows_does_so_slice_by_slice() -> None:
    world = at_the_border(minute(mode="balanced"))
    for name in "de":
        world.cut(name, off=True)
    world.run(59_900, rate(d=1_000.0, e=1_000.0), audits=True)
    assert 2_100 <= total(world)[0] <= 2_400
    share = world.nodes["d"].share(MINUTE)
    assert share is not None
    assert share.state == "borrowed"


@pytest.mark.parametrize(
    ("amount", "fewest", "most"), [(10**9, 6, 30), (200_000, 130, 400), (80_000, 200, 900)]
)
def test_an_owner_is_asked_the_more_seldom_the_more_it_has_left(
    amount: int, fewest: int, most: int
) -> None:
    """For a second's demand at once, where there is plenty; for thirty milliseconds' where it soon comes to its end."""
    key = "model=m#requests/86400000"
    world = World(Limit(key, "requests", amount, 86_400_000, mode="strict"), names="ab")
    world.run(3_000, rate(b=5_000.0), audits=True)
    before, share = world.packets, world.nodes["b"].share(key)
    assert share is not None
    refused = share.offered - share.spent
    world.run(4_000, rate(b=5_000.0), audits=True)
    assert share.offered - share.spent == refused
    assert fewest <= world.packets - before <= most
