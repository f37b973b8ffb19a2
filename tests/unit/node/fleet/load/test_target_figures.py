"""Figures of a target follow its answers: the median of the first token, seconds a token, the length of answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.fleet.load.target_figures import HALF_LIFE_S, SAMPLES_MAX, TargetFigures


def test_nothing_is_known_before_an_answer() -> None:
    figures = TargetFigures()
    assert (figures.first_s, figures.token_s, figures.answers) == (None, None, (0.0, 0.0))


def test_half_of_the_answers_began_sooner() -> None:
    figures = TargetFigures()
    for first_s in (0.2, 9.0, 0.3, 0.1, 0.4):
        figures.streamed(first_s, 1.0, 11, 0.0)
    assert figures.first_s == 0.3
    assert figures.token_s == pytest.approx(0.1)
    assert figures.answers == (5.0, 55.0)


def test_what_is_a_half_life_old_counts_half() -> None:
    figures = TargetFigures()
    figures.streamed(1.0, 10.0, 11, 0.0)
    figures.streamed(0.1, 1.0, 11, HALF_LIFE_S)
    assert figures.first_s == 0.1
    assert figures.token_s == pytest.approx((0.5 * 10 + 1) / (0.5 * 10 + 10))
    assert figures.answers == (1.5, 16.5)


def test_a_target_that_became_fast_is_soon_known_to_be() -> None:
    figures = TargetFigures()
    for _ in range(SAMPLES_MAX):
        figures.streamed(5.0, 5.0, 101, 0.0)
    for at in range(4):
        figures.streamed(0.5, 0.5, 101, 1500.0 + at)
    assert figures.first_s == 0.5
    assert figures.token_s is not None
    assert figures.token_s < 0.02


def test_an_answer_in_one_piece_says_how_long_it_took_in_all() -> None:
    figures = TargetFigures()
    figures.whole(2.0, 100, 0.0)
    assert (figures.first_s, figures.token_s) == (None, 0.02)
    both = TargetFigures()
    both.streamed(1.0, 0.0, 1, 0.0)
    both.whole(2.0, 100, 0.0)
    assert (both.first_s, both.token_s) == (1.0, 0.01)


def test_silence_counts_as_a_late_first_token() -> None:
    figures = TargetFigures()
    figures.silent(30.0, 0.0)
    assert figures.first_s == 30.0
    assert figures.answers == (0.0, 0.0)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("streamed", "whole", "silent")),
            st.floats(-1, 1e4),
            st.floats(-1, 1e4),
            st.integers(0, 10**6),
            st.floats(0, 1e6),
        ),
        max_size=100,
    )
)
def test_figures_are_numbers_whatever_clocks_say(
    news: list[tuple[str, float, float, int, float]],
) -> None:
    figures = TargetFigures()
    for what, first_s, rest_s, tokens, now_s in news:
        if what == "streamed":
            figures.streamed(first_s, rest_s, tokens, now_s)
        elif what == "whole":
            figures.whole(first_s, tokens, now_s)
        else:
            figures.silent(first_s, now_s)
    assert figures.first_s is None or 0 <= figures.first_s <= 1e4
    assert figures.token_s is None or figures.token_s > 0
    assert all(one >= 0 for one in figures.answers)
