import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.escrow.limit_model import Limit
from smg_mesh.escrow.spendable_share import Share
from smg_mesh.escrow.spending.check_interval import CALM_MS, enough_ms, pace_ms


def share(left: int, low: int = 0) -> Share:
    found = Share(Limit("k", "requests", 1_000_000, 60_000, mode="strict"))
    found.left, found.low = left, low
    return found


@pytest.mark.parametrize(("window_ms", "wanted"), [(1_000, 200), (1_001, 100), (86_400_000, 100)])
def test_short_windows_are_looked_at_half_as_often(window_ms: int, wanted: int) -> None:
    assert pace_ms(window_ms) == wanted


def test_nobody_who_wants_nothing_hurries() -> None:
    assert enough_ms(share(0), 0.0, 100) == 100


@given(
    left=st.integers(0, 10_000),
    low=st.integers(0, 500),
    demand=st.floats(0.01, 100_000),
    burst=st.integers(0, 16),
)
def test_at_twice_the_demand_and_a_crowd_it_is_not_low_before(
    left: int, low: int, demand: float, burst: int
) -> None:
    sure_ms = enough_ms(share(left, low), demand, 100)
    assert sure_ms <= 100
    if sure_ms >= CALM_MS:
        assert left - burst - 2 * demand * sure_ms / 1000 >= low - 1e-6
