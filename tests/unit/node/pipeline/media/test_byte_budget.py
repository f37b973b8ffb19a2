"""The memory that pictures under way may take: taken, refused, given back, whatever the order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.pipeline.media.byte_budget import ByteBudget


def test_a_request_that_would_never_fit_is_too_large_and_says_which_setting_that_is() -> None:
    budget = ByteBudget(100)
    budget.take(60)
    with pytest.raises(SmgError) as caught:
        budget.take(41, already=60)
    assert caught.value.kind is ErrorKind.TOO_LARGE
    assert caught.value.status == 413
    assert "101" in caught.value.message
    assert "media.inflight_bytes" in caught.value.message
    assert budget.taken == 60


def test_a_request_that_others_leave_no_room_for_is_told_when_to_try_again() -> None:
    budget = ByteBudget(100)
    budget.take(60)
    with pytest.raises(SmgError) as caught:
        budget.take(41)
    assert caught.value.status == 429
    assert caught.value.retry_after_s == 1.0
    budget.give(60)
    budget.take(41)
    assert budget.taken == 41


def test_what_has_begun_may_take_more_than_there_is_and_others_wait_for_it() -> None:
    budget = ByteBudget(100)
    budget.take(90)
    budget.add(50)
    with pytest.raises(SmgError):
        budget.take(1)
    budget.give(140)
    budget.take(100)


@given(st.lists(st.tuples(st.integers(0, 70), st.integers(0, 3)), max_size=60))
def test_what_is_taken_is_never_more_than_allowed_and_all_of_it_comes_back(
    steps: list[tuple[int, int]],
) -> None:
    budget, held = ByteBudget(100), [0, 0, 0, 0]
    for size, who in steps:
        if budget.taken + size <= 100:
            budget.take(size, held[who])
            held[who] += size
        else:
            with pytest.raises(SmgError):
                budget.take(size, held[who])
            budget.give(held[who])
            held[who] = 0
        assert budget.taken == sum(held) <= 100
    for size in held:
        budget.give(size)
    assert budget.taken == 0
