"""Older amounts of limits: what stands, is minted and counts while some may go by what was before."""

from random import Random

import pytest

from smg_mesh.crdt.namespace import VALUE_BYTES_MAX
from smg_mesh.escrow.limit_model import Unit
from smg_mesh.state.limits.limit_rule import Amount, LimitRule
from smg_mesh.state.limits.older_amounts import OLDER_MAX
from support.state.fake_namespace import DAY_MS
from support.state.limit_views import MINUTE, SECOND, Views, requests

HOUR = 3_600_000


@pytest.fixture
def views() -> Views:
    return Views()


def test_more_stands_than_before_once_no_owner_can_go_by_what_was_before(views: Views) -> None:
    key, began_ms = "#requests/1000", views.world.wall_ms
    views["a"].put(requests(90, standing=0.1), version=0)
    views["b"].put(requests(90, standing=0.9), version=None)
    until_ms = began_ms + 7 * DAY_MS
    limit = views.limit(key, "c")
    assert limit.minted_before == ((90, 0.1, until_ms),)
    assert [limit.standing_right(3, began_ms=at) for at in (until_ms - 1, until_ms)] == [3, 27]
    shown = views["c"].rule("global")
    assert shown is not None
    assert shown.standing_from_ms == until_ms
    views.world.wall_ms = until_ms
    later = views["c"].rule("global")
    assert later is not None
    assert later.standing_from_ms == 0
    # A window that began before goes on by what counted in it.
    assert views.limit(key, "c").minted_before == limit.minted_before


@pytest.mark.parametrize(
    "now", [requests(90, standing=0.1), requests(40, standing=0.2), requests(900, standing=0.1)]
)
def test_where_no_larger_part_stands_it_does_so_at_once(views: Views, now: LimitRule) -> None:
    views["a"].put(requests(90, standing=0.1), version=0)
    written = views["a"].put(now, version=None)
    assert written.standing_from_ms == 0
    limit = views.limit("#requests/1000")
    for divisor in (1, 2, 3, 7, 10):
        began_ms = views.world.wall_ms
        assert limit.standing_right(divisor, began_ms=began_ms) == limit.standing_right(divisor)


def test_what_an_owner_may_have_minted_is_remembered_over_changes_that_hide_it(
    views: Views,
) -> None:
    key = "#requests/1000"
    for amount, standing in ((100, 0.1), (8, 0.9), (1_000, 0.5), (100, 0.9)):
        views["a"].put(requests(amount, standing=standing), version=None)
        views.world.wall_ms += 1_000
    assert views.limit(key).standing_right(1, began_ms=views.world.wall_ms) == 10


def test_the_least_of_earlier_versions_counts_in_windows_that_are_over(views: Views) -> None:
    key = "#requests/1000"
    for amount, standing in ((60, 0.5), (20, 0.8), (90, 0.1), (120, 0.5)):
        views["a"].put(requests(amount, standing=standing), version=None)
        views.world.wall_ms += 1_000
    limit = views.limit(key)
    assert limit.older == ()
    assert limit.least_amount == 20
    assert limit.least.standing_right(1) == 9
    assert limit.has_past


def test_changes_without_end_leave_few_numbers_of_every_kind(views: Views) -> None:
    key = "#requests/1000"
    for step in range(60):
        views["a"].put(requests(1_000 - step, standing=(step % 10) / 10), version=None)
        views.world.wall_ms += 60_000
    views["a"].put(requests(2_000, standing=1.0), version=None)
    limit = views.limit(key)
    assert len(limit.minted_before) <= 3 * OLDER_MAX
    # The least that stood with the largest amount: 1,000 of which nothing stood.
    assert limit.standing_right(1, began_ms=views.world.wall_ms) == 1_000


def test_a_record_of_all_amounts_takes_changes_without_end(views: Views) -> None:
    chance = Random(3)
    units: tuple[Unit, ...] = ("requests", "tokens", "input_tokens", "output_tokens")
    places = [(unit, window_ms) for unit in units for window_ms in (SECOND, MINUTE, HOUR, DAY_MS)]
    for _ in range(120):
        amounts = tuple(Amount(unit, chance.randrange(1 << 50), ms) for unit, ms in places)
        rule = LimitRule(amounts=amounts, standing=chance.random(), volatile=True)
        views["a"].put(rule, version=None)
        views.world.wall_ms += 60_000
    held = views.world["a"].get("global")
    assert held is not None
    assert len(held.value or b"") <= VALUE_BYTES_MAX * 3 // 4
