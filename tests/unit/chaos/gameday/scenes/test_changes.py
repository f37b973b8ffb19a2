"""The scenario of change: how growth is told from a warm-up, and lies from what is still on its way."""

import pytest

from smg_chaos.gameday.scenes.changes import Doings, growth


def test_memory_that_grows_all_the_time_is_seen_and_a_warm_up_is_not() -> None:
    flat = [100.0, 110.0] + [120.0] * 48
    steep = [100.0 + number for number in range(50)]
    figure = growth("before", [flat, flat])
    assert (figure.value, figure.is_met, figure.says) == (
        0.0,
        True,
        "117.0, 120.0, 120.0, 120.0, 120.0 MB",
    )
    figure = growth("after", [flat, steep])
    assert figure.value == pytest.approx(30.0)
    assert not figure.is_met
    assert figure.metric == "memory grown per node, after"


@pytest.mark.parametrize("count", [10, 11, 14, 15, 150])
def test_as_few_samples_as_there_ever_are_tell_something(count: int) -> None:
    assert growth("before", [[float(number) for number in range(count)]]).value == pytest.approx(
        count - count // 5 - (count // 5), abs=1
    )


def test_a_lie_misses_the_target() -> None:
    doings = Doings(changes=5, lost_races=1, looks=7)
    assert [(figure.value, figure.is_met) for figure in doings.figures()] == [(5, True), (0, True)]
    doings.lies.append("n0 says that w is there")
    assert [figure.is_met for figure in doings.figures()] == [True, False]
