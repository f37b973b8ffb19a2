"""Which trials are played, in which order, and what cannot be."""

import pytest

from smg_chaos.gameday.limits.trials.short_asking import told_remaining
from smg_chaos.gameday.limits.trials.trial_list import TRIALS, chosen
from support.mesh.limit_records import BEGIN_US, LIMIT, WINDOW_US, answer, recorded


def test_trials_are_played_in_their_own_order_and_once() -> None:
    assert chosen(["one-client", "paced", "one-client"]) == ["paced", "one-client"]
    assert chosen(["burst", "all"]) == list(TRIALS)
    assert chosen([]) == []


@pytest.mark.parametrize(
    ("names", "window_s", "why"),
    [
        (["bursts"], 0, "no trial of limits is called 'bursts'; there are paced, burst, "),
        (["burst"], 9, "windows of trials last 10 s or more, not 9"),
    ],
)
def test_what_cannot_be_played_is_named(names: list[str], window_s: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        chosen(names, window_s)
    assert chosen(["burst"], 10) == ["burst"]


def test_what_remains_is_told_second_by_second_beside_what_did() -> None:
    answers = [
        answer(1, 1_000, 1_010, LIMIT - 1),
        answer(2, 2_000, 2_010, 15),
        answer(3, 11_000, 11_010, LIMIT - 1),
    ]
    record = recorded(
        answers, [(number, 1_000 * at + 5) for number, at in ((1, 1), (2, 2), (3, 11))]
    )
    assert told_remaining(record, BEGIN_US, WINDOW_US, LIMIT) == ["59", "15 (of 58)", "|", "59"]
    later = told_remaining(record, BEGIN_US + 2_000_000, WINDOW_US, LIMIT)
    assert later == ["15 (of 58)", "|", "59"]
