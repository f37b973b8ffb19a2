import pytest

from smg_node.admission.limit_counters import Tallies
from smg_node.admission.limit_matching import Matched, Matcher
from smg_node.core.prices.price_list import PriceList
from support.http.request_usage import flat
from support.rights.fake_rights import FakeShare, LimitWorld, limit


def matcher_of(world: LimitWorld, kinds_max: int = 100) -> Matcher:
    return Matcher(world.rules, world.rights, Tallies(), prices=PriceList(), kinds_max=kinds_max)


def found(matcher: Matcher, tenant: str = "acme", model: str = "m") -> Matched:
    matched = matcher.find(tenant, "k", model)
    assert matched is not None
    return matched


def test_what_nothing_limits_is_found_once() -> None:
    world = LimitWorld()
    matcher = matcher_of(world)
    assert [matcher.find("", "", "m") for _ in range(3)] == [None] * 3
    assert world.rules.asked == 1


def test_limits_are_found_once_for_each_kind_of_request() -> None:
    world = LimitWorld()
    world.add(limit(), 5)
    matcher = matcher_of(world)
    one = found(matcher)
    assert found(matcher) is one
    other = found(matcher, model="n")
    assert other is not one
    # One limit is one measure, whoever meets it.
    assert one.entry[0] is other.entry[0]
    assert (world.rules.asked, len(matcher)) == (2, 2)


def test_a_change_of_definitions_is_seen_at_once() -> None:
    world = LimitWorld()
    matcher = matcher_of(world)
    assert matcher.find("acme", "k", "m") is None
    world.add(limit(), 5)
    one = found(matcher)
    world.add(limit("tokens"), 5)
    assert len(one.measures) == 1
    assert len(found(matcher).measures) == 2


def test_requests_are_charged_before_what_is_open_and_both_before_tokens() -> None:
    world = LimitWorld()
    for unit in ("tokens", "concurrent", "requests", "cost"):
        world.add(limit(unit, window_ms=0 if unit == "concurrent" else 60_000), 5)
    units = [measure.unit for measure in found(matcher_of(world)).measures]
    assert units == ["requests", "concurrent", "tokens", "cost"]


def test_a_limit_without_a_share_limits_nothing() -> None:
    world = LimitWorld()
    share = world.add(limit(), 5)
    del world.rights.shares[share.key]
    assert matcher_of(world).find("acme", "k", "m") is None


def test_kinds_are_forgotten_oldest_first() -> None:
    world = LimitWorld()
    matcher = matcher_of(world, kinds_max=3)
    for tenant in "abcdef":
        match = limit(scope=f"tenant={tenant}")
        world.rights.shares[match.key] = FakeShare(match.key, 1)
        world.rules.only[tenant, "k", "m"] = [match]
        found(matcher, tenant)
    assert len(matcher) == 3
    assert world.rules.asked == 6
    found(matcher, "f")
    assert world.rules.asked == 6
    found(matcher, "a")
    assert world.rules.asked == 7


def test_a_share_that_was_exchanged_is_found_again() -> None:
    world = LimitWorld()
    old = world.add(limit(), 5)
    matcher = matcher_of(world)
    one = found(matcher)
    assert one.entry_shares == (old,)
    new = world.rights.shares[old.key] = FakeShare(old.key, 9)
    assert matcher.renew(one) is one
    assert one.entry_shares == (new,)
    assert one.entry[0].share is new


def test_a_limit_that_is_gone_is_met_no_more_and_the_others_are() -> None:
    world = LimitWorld()
    gone, tokens = limit(), limit("tokens")
    world.add(gone, 5)
    world.add(tokens, 5)
    matcher = matcher_of(world)
    one = found(matcher)
    del world.rights.shares[gone.key]
    world.rules.matches.remove(gone)
    two = matcher.renew(one)
    assert [measure.key for measure in two.measures] == [tokens.key]
    del world.rights.shares[tokens.key]
    world.rules.matches.clear()
    assert matcher.renew(two).measures == ()


def test_tokens_count_by_what_the_limit_is_on() -> None:
    world = LimitWorld()
    units = ("tokens", "input_tokens", "output_tokens", "cost")
    for unit in units:
        world.add(limit(unit, cached_weight=0.1), 10**9)  # type: ignore[arg-type]  # they are units
    matcher = matcher_of(world)
    matcher.reprice(PriceList({"m": flat(2.5, 0.25, 10.0)}))
    weighed = {
        tariff.measure.unit: tariff.weigh(1_000, 400, 50) for tariff in found(matcher).tariffs
    }
    assert weighed == {
        "tokens": 600 + 40 + 50,
        "input_tokens": 640,
        "output_tokens": 50,
        "cost": 1_500 + 100 + 500,
    }
    assert [tariff.weigh(9, 0, 9) for tariff in found(matcher, model="free").tariffs][3] == 0


# ── What clients are told ────────────────────────────────────────────────────


def test_what_remains_is_what_is_here_and_what_the_owner_has() -> None:
    world = LimitWorld()
    share = world.add(limit(), 30, 100)
    measure = found(matcher_of(world)).entry[0]
    share.pool = 20
    told = measure.told(world.wall_ms)
    assert (told.limit, told.remaining, told.reset_ms) == (100, 50, 40_000)
    assert told.resets_ms == world.wall_ms + 40_000
    assert told.name == "tenant=acme#requests/minute"


def test_before_the_owner_of_a_window_has_spoken_all_that_was_not_spent_here_remains() -> None:
    world = LimitWorld()
    share = world.add(limit(), 3, 100)
    share.pool, share.spent = -1, 7
    assert found(matcher_of(world)).entry[0].told(world.wall_ms).remaining == 93


@pytest.mark.parametrize(("pool", "state"), [(-1, "standing"), (50, "standing"), (50, "borrowed")])
def test_without_an_owner_only_what_is_here_remains(pool: int, state: str) -> None:
    world = LimitWorld()
    share = world.add(limit(), 30, 100)
    share.pool, share.state = pool, state  # type: ignore[assignment]  # one of the states
    told = found(matcher_of(world)).entry[0].told(world.wall_ms)
    assert (told.remaining, told.state) == (30, state)


def test_what_remains_never_rises_in_a_window_and_is_never_negative() -> None:
    world = LimitWorld()
    share = world.add(limit(), 30, 100)
    measure = found(matcher_of(world)).entry[0]
    seen = []
    for left, pool in [(30, 0), (50, 10), (20, 3), (-4, 0), (90, 0)]:
        share.left, share.pool = left, pool
        seen.append(measure.told(world.wall_ms).remaining)
    assert seen == [30, 30, 23, 0, 0]
    share.window += 1
    assert measure.told(world.wall_ms).remaining == 90
    share.left = 900
    share.window += 1
    assert measure.told(world.wall_ms).remaining == 100


def test_what_is_told_before_the_owner_has_spoken_is_forgotten() -> None:
    world = LimitWorld()
    share = world.add(limit(), 0, 100)
    measure = found(matcher_of(world)).entry[0]
    seen = []
    for left, pool in [(0, -1), (5, 80), (5, -1), (9, 70)]:
        share.left, share.pool = left, pool
        seen.append(measure.told(world.wall_ms).remaining)
    # What the owner said last stands while nobody knows more.
    assert seen == [100, 85, 85, 79]


def test_a_refusal_is_told_as_nothing_and_ends_a_long_window_only_if_it_is_used_up() -> None:
    world = LimitWorld()
    share = world.add(limit(), 0, 100)
    measure = found(matcher_of(world)).entry[0]
    seen = []
    for pool, most in [(60, 0), (60, None), (0, 0), (60, None)]:
        share.pool = pool
        seen.append(measure.told(world.wall_ms, most=most).remaining)
    assert seen == [0, 60, 0, 0]


def test_a_limit_in_debt_has_nothing_left() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens"), 30, 100)
    share.debt = 1
    assert found(matcher_of(world)).tariffs[0].measure.told(world.wall_ms).remaining == 0


def test_a_debt_is_taken_from_what_the_owner_has_left_and_no_more_is_told_to_be_gone() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens", window_ms=86_400_000), 30, 1_000)
    measure = found(matcher_of(world)).tariffs[0].measure
    share.pool, share.debt = 500, 9
    assert measure.told(world.wall_ms).remaining == 521
    share.left, share.debt = 25, 0
    assert measure.told(world.wall_ms).remaining == 521
    share.left, share.pool, share.debt = 0, 0, 1
    assert measure.told(world.wall_ms).remaining == 0


def test_what_is_open_at_a_time_may_rise_again() -> None:
    world = LimitWorld()
    share = world.add(limit("concurrent", window_ms=0), 3, 8)
    measure = found(matcher_of(world)).entry[0]
    assert measure.told(world.wall_ms).remaining == 3
    share.left = 5
    told = measure.told(world.wall_ms)
    assert (told.remaining, told.reset_ms) == (5, 0)


def test_what_clients_were_told_counts_on_when_a_share_sleeps_and_when_definitions_change() -> None:
    world = LimitWorld()
    share = world.add(limit(window_ms=10_000), 3, 100)
    matcher = matcher_of(world)
    measure = found(matcher).entry[0]
    assert measure.told(world.wall_ms).remaining == 3
    window = share.window
    share.window, share.left = -1, 0
    assert measure.told(world.wall_ms).remaining == 0
    share.window, share.left, share.pool = window, 20, 0
    assert measure.told(world.wall_ms).remaining == 0
    world.add(limit("tokens"), 5)
    again = found(matcher).entry[0]
    assert again is measure
    assert again.told(world.wall_ms).remaining == 0


def test_a_share_that_sleeps_does_not_end_a_long_window() -> None:
    world = LimitWorld()
    share = world.add(limit(), 30, 100)
    measure = found(matcher_of(world)).entry[0]
    assert measure.told(world.wall_ms).remaining == 30
    window = share.window
    share.window, share.left = -1, 0
    measure.told(world.wall_ms)
    share.window, share.left = window, 50
    assert measure.told(world.wall_ms).remaining == 30


def test_a_limit_that_was_raised_has_more_at_once() -> None:
    world = LimitWorld()
    share = world.add(limit(), 3, 100)
    measure = found(matcher_of(world)).entry[0]
    assert measure.told(world.wall_ms).remaining == 3
    share.amount, share.left = 300, 203
    assert measure.told(world.wall_ms).remaining == 203
    share.amount, share.left = 250, 240
    assert measure.told(world.wall_ms).remaining == 203
