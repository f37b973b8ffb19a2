"""So many looks in a row decide; anything else changes nothing."""

from hypothesis import given
from hypothesis import strategies as st

from smg_node.fleet.health.probe_counters import (
    EAGER_S,
    PAUSE_MAX_S,
    ProbeCounter,
    ReconnectBackoff,
)


@given(looks=st.lists(st.booleans(), max_size=60), down=st.integers(1, 4), up=st.integers(1, 4))
def test_a_tally_agrees_with_counting_the_last_run(looks: list[bool], down: int, up: int) -> None:
    tally = ProbeCounter(down, up)
    state, run = False, 0
    for good in looks:
        run = run + 1 if good != state else 0
        flips = run == (down if state else up)
        if flips:
            state, run = not state, 0
        assert (tally.good() if good else tally.bad()) == flips
        assert tally.up == state


def test_a_restarted_tally_starts_from_down() -> None:
    tally = ProbeCounter(1, 2)
    tally.good()
    tally.good()
    assert tally.up
    tally.restart()
    assert not tally.up
    assert not tally.good()
    assert tally.good()


def test_one_that_is_missing_for_long_is_looked_for_less_often() -> None:
    patience = ReconnectBackoff()
    assert patience.pause_s(1.0, 50.0) == 1.0
    assert patience.pause_s(1.0, 50.0 + EAGER_S - 1) == 1.0
    assert patience.pause_s(1.0, 50.0 + EAGER_S) == EAGER_S / 20
    assert patience.pause_s(8.0, 50.0 + EAGER_S) == 8.0
    assert patience.pause_s(1.0, 50.0 + 86_400) == PAUSE_MAX_S
    assert patience.pause_s(30.0, 50.0 + 86_400) == 30.0
    patience.found()
    assert patience.pause_s(1.0, 100_000.0) == 1.0
