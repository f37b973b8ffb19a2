"""The rate of encoders: expected, then measured, shared by workers that are alike, and never out of bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.fleet.load.encoder_rate import (
    ENCODED_MIN,
    ENCODER_RATE_MAX,
    ENCODER_RATE_MIN,
    encoder_rates,
    note_encoded,
)
from smg_node.fleet.load.prefill_rate import HALF_LIFE_S, Measured


def measured(tokens: int, seconds: float, times: int = 1, known: float = 20_000.0) -> Measured:
    found: Measured | None = None
    for _ in range(times):
        found = note_encoded(found, tokens, seconds, known=known, now_s=100.0)
    assert found is not None
    return found


def test_nothing_measured_is_as_expected() -> None:
    assert encoder_rates([None, None], expected=20_000.0, now_s=0.0) == [20_000.0, 20_000.0]


def test_a_slow_encoder_is_found_out_and_its_like_are_expected_to_be_as_slow() -> None:
    slow = measured(4_000, 0.8, times=10)
    mine, other = encoder_rates([slow, None], expected=20_000.0, now_s=100.0)
    assert 5_000 < mine < 8_000
    assert mine < other < 10_000


def test_what_was_measured_long_ago_counts_for_less() -> None:
    slow = measured(4_000, 0.8, times=10)
    (now,) = encoder_rates([slow], expected=20_000.0, now_s=100.0)
    (later,) = encoder_rates([slow], expected=20_000.0, now_s=100.0 + 10 * HALF_LIFE_S)
    assert now < later < 20_000.0


def test_a_few_tokens_measure_nothing() -> None:
    assert note_encoded(None, ENCODED_MIN - 1, 5.0, known=1.0, now_s=0.0) is None


def test_one_measurement_moves_it_fourfold_at_most() -> None:
    odd = measured(1_000, 3_600.0)
    assert odd.seconds == pytest.approx(4 * 1_000 / 20_000)
    quick = measured(1_000, -1.0)
    assert quick.seconds == pytest.approx(1_000 / 20_000 / 4)


@given(
    st.lists(
        st.none() | st.tuples(st.integers(0, 10**9), st.floats(-10.0, 1e6)), min_size=1, max_size=5
    ),
    st.floats(200.0, 2_000_000.0),
)
def test_rates_are_within_bounds_whatever_was_measured(
    seen: list[tuple[int, float] | None], expected: float
) -> None:
    found = [
        None if one is None else note_encoded(None, *one, known=expected, now_s=5.0) for one in seen
    ]
    for rate in encoder_rates(found, expected=expected, now_s=9.0):
        assert ENCODER_RATE_MIN <= rate <= ENCODER_RATE_MAX
