"""Use of windows, as the trials count it: at the engines, and once each."""

from smg_chaos.gameday.limits.judge import Allowance
from smg_chaos.gameday.limits.trials.window_use import admitted_in, admitted_soon, asked_first
from support.mesh.limit_records import BEGIN_US, FIRST, WINDOW_US, answer, recorded


def us(milliseconds: int) -> int:
    return BEGIN_US + milliseconds * 1000


def test_only_what_a_node_was_asked_first_and_then_counts() -> None:
    answers = [
        answer(1, 999, 1_500),
        answer(2, 1_000, 1_500),
        answer(3, 1_100, 1_500, node=1),
        answer(4, 1_100, 1_500, follows=2),
        answer(5, 1_999, 2_500, status=429),
        answer(6, 2_000, 2_500),
    ]
    asked = asked_first(recorded(answers, []), 0, us(1_000), us(2_000))
    assert [one.serial for one in asked] == [2, 5]


def test_admitted_soon_is_what_came_to_an_engine_soon_after_its_sending() -> None:
    asked = [answer(number, 1_000, 9_000) for number in range(4)]
    record = recorded(asked, [(0, 1_001), (1, 3_000), (2, 3_001)])
    assert admitted_soon(record, asked, 2_000_000) == 2


def test_who_comes_again_in_time_was_admitted_soon_and_who_comes_late_was_not() -> None:
    asked = [answer(number, 1_000, 1_010, status=429) for number in range(3)]
    again = [
        answer(10, 1_500, 1_510, status=429, follows=0),
        answer(11, 2_990, 3_000, follows=10),
        answer(12, 3_010, 3_020, follows=1),
    ]
    record = recorded([*asked, *again], [(11, 2_995), (12, 3_015)])
    assert admitted_soon(record, asked, 2_000_000) == 1
    assert admitted_soon(record, asked, 3_000_000) == 2


def test_each_admission_is_counted_in_one_window() -> None:
    answers = [
        answer(number, sent_ms, 15_000) for number, sent_ms in enumerate([500, 9_990, 12_000])
    ]
    record = recorded(answers, [(0, 501), (1, 10_100), (2, 12_001)])
    assert admitted_in(record, Allowance(WINDOW_US, [])) == {FIRST: 1, FIRST + 1: 2}
