"""What nodes say is left: only what a client can know to be untrue is called wrong."""

import pytest

from smg_chaos.gameday.limits.clients.header_checks import read_headers
from smg_chaos.gameday.limits.clients.trial_records import Answer

SECOND_US = 1_000_000
NOW_US = 1_700_000_000 * SECOND_US


def answer(
    serial: int, sent_ms: int, got_ms: int, remaining: int, *, status: int = 200, node: int = 0
) -> Answer:
    """Return one that says when its window of a second ends, as of the middle of its way."""
    middle_ms = (sent_ms + got_ms) // 2
    sent_us, got_us = NOW_US + sent_ms * 1000, NOW_US + got_ms * 1000
    reset_ms = 1000 - middle_ms % 1000
    return Answer(serial, node, sent_us, got_us, status, "", 40, remaining, reset_ms, state="exact")


def test_what_falls_inside_a_window_and_rises_in_the_next_is_true() -> None:
    said = [answer(1, 100, 110, 30), answer(2, 200, 210, 30), answer(3, 300, 310, 0, status=429)]
    said.append(answer(4, 1100, 1110, 39))
    found = read_headers(said, SECOND_US)
    assert (found.looked, found.wrong, found.states) == (4, 0, {"exact": 4})


def test_more_than_was_heard_before_asking_cannot_be() -> None:
    found = read_headers([answer(1, 100, 110, 20), answer(2, 111, 120, 21)], SECOND_US)
    assert (found.rising, found.wrong) == (1, 1)
    assert "says 21 after 20" in found.shown[0]


def test_answers_that_overtook_each_other_prove_nothing() -> None:
    found = read_headers([answer(1, 100, 120, 20), answer(2, 105, 110, 19)], SECOND_US)
    assert found.wrong == 0
    found = read_headers([answer(1, 100, 110, 19), answer(2, 105, 120, 20)], SECOND_US)
    assert found.wrong == 0


def test_what_was_long_on_its_way_is_compared_only_if_its_window_is_sure() -> None:
    # A node that was stopped for seconds says what it would have said before, of a window nobody can be sure of.
    late = Answer(1, 0, NOW_US, NOW_US + 1_900_000, 429, "", 40, 0, 500, state="exact")
    found = read_headers([late, answer(2, 1950, 1960, 30), answer(3, 950, 960, 30)], SECOND_US)
    assert (found.looked, found.unplaced, found.wrong) == (3, 1, 0)
    # Most of a window on its way, and only one border lies in between.
    slow = Answer(1, 0, NOW_US, NOW_US + 700_000, 429, "", 40, 0, 600, state="exact")
    found = read_headers([slow, answer(2, 750, 760, 30)], SECOND_US)
    assert (found.unplaced, found.rising) == (0, 1)
    # Half a window on its way, and its end is still that of one window alone.
    slow = Answer(1, 0, NOW_US, NOW_US + 450_000, 429, "", 40, 0, 800, state="exact")
    found = read_headers([slow, answer(2, 460, 470, 30)], SECOND_US)
    assert (found.unplaced, found.rising) == (0, 1)


def test_nodes_are_compared_with_themselves_alone() -> None:
    said = [answer(1, 100, 110, 3), answer(2, 200, 210, 30, node=1)]
    assert read_headers(said, SECOND_US).wrong == 0


def test_a_new_life_may_say_more_in_the_window_in_which_it_began() -> None:
    said = [answer(1, 100, 110, 3), answer(2, 900, 910, 30)]
    assert read_headers(said, SECOND_US).rising == 1
    assert read_headers(said, SECOND_US, {(0, NOW_US // SECOND_US)}).wrong == 0


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (answer(1, 100, 110, -1), "silent"),
        (answer(1, 100, 110, -2), "negative"),
        (answer(1, 100, 110, 5, status=429), "left_at_refusal"),
        (Answer(1, 0, NOW_US, NOW_US + 9, 200), "silent"),
        (Answer(1, 0, NOW_US, NOW_US + 9, 429, "", 40, 0), "silent"),
    ],
)
def test_each_untruth_has_its_name(said: Answer, name: str) -> None:
    found = read_headers([said], SECOND_US)
    assert (getattr(found, name), found.wrong, len(found.shown)) == (1, 1, 1)


def test_what_failed_says_nothing_and_need_not() -> None:
    said = [Answer(1, 0, NOW_US, NOW_US + 9, 0, "lost"), Answer(2, 0, NOW_US, NOW_US + 9, 502)]
    found = read_headers(said, SECOND_US)
    assert (found.looked, found.wrong) == (0, 0)
