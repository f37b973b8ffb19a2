"""The scenario of failover: what it asks, and what it makes of what was heard."""

from dataclasses import replace

import pytest

from smg_chaos.gameday.failover import Tally, is_clear, questions, stop_in
from smg_chaos.gameday.hearing import Hearing

TEXT = "A text of some length, which has an end."


def hearing(text: str = TEXT, *, gap_s: float = 0.1) -> Hearing:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    return Hearing(
        0.0,
        status=200,
        texts={0: text},
        tokens={0: []},
        finishes={0: ["length"]},
        usages=[usage],
        ends=1,
        gap_s=gap_s,
    )


def broken(text: str, *errors: str) -> Hearing:
    return replace(hearing(text), finishes={0: []}, usages=[], ends=0, errors=list(errors))


def test_every_stream_asks_something_of_its_own_in_four_kinds() -> None:
    asked = questions(8)
    assert len({one["messages"][0]["content"] for one in asked}) == 8
    assert [one.get("n", 1) for one in asked[:4]] == [1, 2, 1, 1]
    assert [one.get("logprobs", False) for one in asked[:4]] == [False, False, True, False]
    assert all(one["stream_options"] == {"include_usage": True} for one in asked)


@pytest.mark.parametrize(
    ("text", "stop"),
    [("abcdefghij", "ghij"), ("\ufffd" * 10 + "abcdefghij", "cdef"), ("\ufffd" * 10, ""), ("", "")],
)
def test_a_stop_string_is_plain_text_from_the_second_half(text: str, stop: str) -> None:
    assert stop_in(text + ("!" if stop == "ghij" else "")) == stop


def test_streams_that_are_right_meet_every_target() -> None:
    tally = Tally()
    tally.took(hearing(gap_s=0.4), hearing(), moved=True)
    tally.took(hearing(gap_s=9.0), hearing(), moved=False)
    wrong, silence = tally.figures("kill")
    assert (wrong.value, wrong.is_met, wrong.says) == (
        0,
        True,
        "of 2, 1 on the worker that was hurt",
    )
    assert (silence.value, silence.limit, silence.is_met) == (0.4, 1.0, True)


def test_one_wrong_stream_misses_the_target_and_what_it_lost_is_told() -> None:
    tally = Tally()
    tally.took(broken(TEXT[:30], "upstream_unavailable"), hearing(), moved=True)
    wrong, _ = tally.figures("stall")
    assert (wrong.value, wrong.is_met) == (1, False)
    assert wrong.says == "of 1, 1 on the worker that was hurt; 10 characters lost"
    assert tally.shown == [
        "on the worker that was hurt: ends with upstream_unavailable;"
        " choice 0: 10 of 40 characters are missing at the end"
    ]


def test_a_harm_that_met_no_stream_proves_nothing() -> None:
    tally = Tally()
    tally.took(hearing(), hearing(), moved=False)
    assert [figure.is_met for figure in tally.figures("removal")] == [True, False]


def test_a_clear_end_is_one_error_after_what_is_right() -> None:
    assert is_clear(broken(TEXT[:7], "upstream_unavailable"), hearing())
    assert is_clear(broken("", "503 nobody"), hearing())
    assert is_clear(broken(TEXT[:7] + "\ufffd", "upstream_unavailable"), hearing())
    assert not is_clear(broken(TEXT[:7] + "\ufffd" * 2, "upstream_unavailable"), hearing())
    assert not is_clear(broken(TEXT[:7]), hearing())
    assert not is_clear(broken(TEXT[:7], "one", "another"), hearing())
    assert not is_clear(broken("B text", "upstream_unavailable"), hearing())
    assert not is_clear(
        replace(broken(TEXT[:7], "one"), broken="the connection broke: reset"), hearing()
    )
    assert not is_clear(replace(broken(TEXT[:7], "one"), finishes={0: ["stop"]}), hearing())
