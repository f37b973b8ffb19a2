"""Fetch schedule: an issuer is asked as seldom as can be, and at once when it matters; on virtual time."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.tokens.fetch_schedule import (
    AGE_MAX_MS,
    AGE_MIN_MS,
    AGE_UNTOLD_MS,
    FRESH_MS,
    GAP_MAX_MS,
    QUIET_MS,
    RETRY_MAX_MS,
    STANDBY_HELD_MS,
    STANDBY_MS,
    FetchSchedule,
)

MINUTE = 60_000


def schedule(seed: int = 1) -> FetchSchedule:
    return FetchSchedule(Random(seed), 0)


def asked(one: FetchSchedule, now: int, *, is_new: bool = False) -> bool:
    """Let an unknown key be met; return whether the issuer was asked for it, which took no time."""
    if not one.may_ask(now):
        return False
    one.begin(now)
    one.bring(now, is_new=is_new, for_unknown=True)
    return True


def test_the_first_node_asks_at_once_and_the_others_stand_by() -> None:
    new = schedule()
    assert [new.due_ms(place) for place in (0, 1, 2)] == [0, STANDBY_MS, 2 * STANDBY_MS]
    new.hold(0, age_ms=0, max_age_ms=AGE_MIN_MS)
    first = new.due_ms(0)
    assert [new.due_ms(place) - first for place in (1, 2)] == [STANDBY_HELD_MS, 2 * STANDBY_HELD_MS]


@given(st.integers(-1, 10**12), st.integers(-(10**9), 10**12), st.integers(0, 2**32))
def test_keys_are_refreshed_between_four_minutes_and_72_after_they_were_fetched(
    max_age: int, age: int, seed: int
) -> None:
    one = FetchSchedule(Random(seed), 0)
    one.hold(10**13, age_ms=age, max_age_ms=max_age)
    after = one.due_ms(0) - (10**13 - max(0, age))
    told = AGE_UNTOLD_MS if max_age < 0 else min(max(max_age, AGE_MIN_MS), AGE_MAX_MS)
    assert 0.8 * told - 1 <= after <= 1.2 * told + 1


def test_an_unknown_key_is_a_reason_to_ask_at_once_unless_somebody_just_did() -> None:
    one = schedule()
    one.hold(100_000, age_ms=0, max_age_ms=AGE_MAX_MS)
    assert not one.may_ask(100_000 + FRESH_MS - 1)
    assert one.may_ask(100_000 + FRESH_MS)


def test_invented_keys_cause_ever_fewer_requests() -> None:
    one = schedule()
    times = [now for now in range(0, 5 * MINUTE, 100) if asked(one, now)]
    assert times == [0, 10_000, 30_000, 70_000, 130_000, 190_000, 250_000]


def test_a_new_key_makes_the_next_unknown_one_a_reason_again() -> None:
    one = schedule()
    assert [now for now in range(0, MINUTE, 100) if asked(one, now)] == [0, 10_000, 30_000]
    assert one.gap_ms == 40_000
    assert asked(one, 70_000, is_new=True)
    assert one.gap_ms == 0
    assert not asked(one, 70_000 + FRESH_MS - 1)
    assert asked(one, 70_000 + FRESH_MS)


def test_a_refresh_that_brings_nothing_new_is_no_penalty() -> None:
    one = schedule()
    one.begin(0)
    one.bring(0, is_new=False, for_unknown=False)
    assert one.gap_ms == 0


def test_after_a_quiet_while_an_unknown_key_is_a_reason_at_once() -> None:
    one = schedule()
    for now in range(0, 3 * MINUTE, 100):
        asked(one, now)
    assert one.gap_ms == GAP_MAX_MS
    assert asked(one, 3 * MINUTE + QUIET_MS)
    assert one.gap_ms == 10_000


def test_an_issuer_that_is_away_is_asked_ever_more_seldom_and_as_usual_once_it_is_back() -> None:
    one, now, waits = schedule(), 0, []
    for _ in range(8):
        one.begin(now)
        one.fail(now, for_unknown=False)
        waits.append(one.due_ms(0) - now)
        now = one.due_ms(0)
    assert waits == [2_000, 4_000, 8_000, 16_000, 32_000, *[RETRY_MAX_MS] * 3]
    one.hold(now, age_ms=0, max_age_ms=AGE_MIN_MS)
    assert one.due_ms(0) > now + AGE_MIN_MS // 2
    one.fail(now, for_unknown=False)
    assert one.due_ms(0) == now + 2_000


def test_keys_that_count_no_more_are_fetched_at_once() -> None:
    one = schedule()
    one.hold(0, age_ms=0, max_age_ms=AGE_MAX_MS)
    one.drop(5)
    assert one.due_ms(0) == 5
    one.fail(6, for_unknown=False)
    one.drop(7)
    assert one.due_ms(0) == 2_006


@given(
    st.lists(
        st.tuples(st.integers(0, 20_000), st.sampled_from(["want", "fail", "hold", "refresh"])),
        max_size=200,
    )
)
def test_however_it_is_used_unknown_keys_cause_at_most_seven_requests_a_minute(
    steps: list[tuple[int, str]],
) -> None:
    one, now, times = schedule(), 0, []
    for wait, what in steps:
        now += wait
        match what:
            case "want" if one.may_ask(now):
                one.begin(now)
                one.bring(now, is_new=False, for_unknown=True)
                times.append(now)
            case "fail" if one.may_ask(now):
                one.begin(now)
                one.fail(now, for_unknown=True)
                times.append(now)
            case "hold":
                one.hold(now, age_ms=0, max_age_ms=AGE_MIN_MS)
            case "refresh":
                one.begin(now)
                one.bring(now, is_new=False, for_unknown=False)
            case _:
                pass
    for at in times:
        assert sum(at <= other < at + MINUTE for other in times) <= 7
        assert one.due_ms(0) >= 0
