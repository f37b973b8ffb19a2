"""Figures from made-up logs: a log that is right meets every target, and each wrong one misses the one that is its own."""

from random import Random

import pytest

from smg_chaos.gameday.limits.budget import Crowd, budget_figures
from smg_chaos.gameday.limits.clients.client_messages import Reply
from smg_chaos.gameday.limits.clients.header_checks import Headers
from smg_chaos.gameday.limits.clients.trial_records import Answer, Arrival
from smg_chaos.gameday.limits.engines import Speech
from smg_chaos.gameday.limits.judge import Allowance, Amount
from smg_chaos.gameday.limits.report import (
    SMEAR_US,
    excess,
    failures,
    headed,
    loaded,
    repeated,
    smear_needed_us,
    unused,
    within,
    worst_unused,
)
from smg_chaos.gameday.limits.story import Chapter, Hurt, Record
from smg_chaos.statistics import Figure

SECOND_US = 1_000_000
LIMIT = 40
FIRST, WINDOWS = 1_700_000_000, 20
ALLOWANCE = Allowance(SECOND_US, [Amount(LIMIT, 0)])
CHAPTER = Chapter("even", FIRST * SECOND_US, (FIRST + WINDOWS) * SECOND_US)


def gateway(
    admits: dict[int, int], *, begins_us: int = 12_000, delay_us: int = 8_000, offered: int = 400
) -> Record:
    """Return what a gateway leaves that admits the first so many of each window (40 where not said).

    Clients begin to ask `begins_us` after the border of each.
    """
    rng, serial = Random(5), 0
    answers: list[Answer] = []
    arrivals: dict[int, Arrival] = {}
    for window in range(FIRST, FIRST + WINDOWS):
        border_us = window * SECOND_US
        for number in range(offered):
            serial += 1
            sent_us = border_us + begins_us + number * (SECOND_US - begins_us) // offered
            if number < admits.get(window - FIRST, LIMIT):
                came_us = sent_us + rng.randrange(1, delay_us)
                arrivals[serial] = Arrival(serial, came_us, came_us + 5_000, 1, 20, 2)
                answers.append(Answer(serial, number % 5, sent_us, came_us + 9_000, 200))
            else:
                answers.append(Answer(serial, number % 5, sent_us, sent_us + 900, 429))
    return Record(sorted(answers, key=lambda one: one.sent_us), arrivals)


def test_a_gateway_that_is_exact_meets_every_target() -> None:
    record = gateway({})
    figures = [
        within("even", record, ALLOWANCE),
        excess("even", record, ALLOWANCE),
        unused("even", CHAPTER, record, ALLOWANCE, 1.0),
        worst_unused("even", record, ALLOWANCE, CHAPTER.windows(SECOND_US), 1.0),
        failures("even", record, Hurt(), lambda line: None),
    ]
    assert [figure for figure in figures if not figure.is_met] == []
    assert figures[0].value == 1.0
    assert figures[1].says.endswith("every charge fits within 0 ms")


@pytest.mark.parametrize("too_many", [1, 5, 360])
def test_one_window_too_full_is_an_excess_of_just_that(too_many: int) -> None:
    record = gateway({7: LIMIT + too_many, 3: 0, 9: 0})
    figure = excess("even", record, ALLOWANCE)
    assert (figure.value, figure.is_met) == (too_many, False)
    share = within("even", record, ALLOWANCE)
    assert share.value is not None
    assert share.value > 1
    assert not share.is_met


def test_a_gateway_that_doubles_the_limit_is_told_so() -> None:
    figure = within("even", gateway(dict.fromkeys(range(WINDOWS), 80)), ALLOWANCE)
    assert figure.value == pytest.approx(2.0, abs=0.06)


def test_a_tick_that_is_late_is_no_excess_and_its_lateness_is_told() -> None:
    early_us = (FIRST + 3) * SECOND_US + 4_000
    answer, arrival = (
        Answer(999_999, 0, early_us, 0, 200),
        Arrival(999_999, early_us + 2_000, 0, 1, 9, 2),
    )
    full, spare = gateway({}), gateway({2: LIMIT - 1})
    # It may have been charged to the second before, if there was room.
    crowded = Record([*full.answers, answer], {**full.arrivals, 999_999: arrival})
    eased = Record([*spare.answers, answer], {**spare.arrivals, 999_999: arrival})
    assert excess("even", crowded, ALLOWANCE).value == 1
    assert excess("even", eased, ALLOWANCE).value == 0
    needed_us = smear_needed_us(eased, ALLOWANCE)
    assert needed_us is not None
    assert 4_000 <= needed_us <= 5_000 < SMEAR_US
    assert smear_needed_us(full, ALLOWANCE) == 0
    assert smear_needed_us(full, Allowance(SECOND_US, [Amount(1, 0)])) is None


def test_what_is_left_unused_is_told_of_all_windows_and_of_the_worst() -> None:
    record = gateway({4: 16, 5: 36})
    whole = unused("even", CHAPTER, record, ALLOWANCE, 1.0)
    assert whole.value == pytest.approx(100 * (24 + 4) / (LIMIT * (WINDOWS - 1)))
    worst = worst_unused("even", record, ALLOWANCE, (FIRST + 3, FIRST + 6), 60.0)
    assert worst.value == pytest.approx(60.0)
    assert worst.is_met
    assert worst.says == "1.00 0.40 0.90 1.00"
    assert worst_unused("even", record, ALLOWANCE, (5, 4), 60.0).value is None


def test_failures_are_counted_where_nobody_is_to_blame() -> None:
    said: list[str] = []
    record = Record([Answer(1, 0, 5, 6, 503), Answer(2, 1, 5, 6, 0, "lost")], {})
    hurt = Hurt({1: [(0, 10)]})
    figure = failures("even", record, hurt, said.append)
    assert (figure.value, figure.says) == (1, "1 503, 1 lost")
    assert said == ["even: request 1 at node 0: 503 "]


def test_a_request_that_came_twice_is_told_and_charged_once() -> None:
    record = Record([Answer(1, 0, 5, 6, 200)], {1: Arrival(1, 6, 7, 2, 20, 2)})
    assert repeated("even", record).value == 1
    assert len(record.spans(ALLOWANCE, 0)) == 1


def test_headers_and_the_load_generators_own_troubles_are_told() -> None:
    figure = headed("even", Headers(looked=9, rising=2, states={"exact": 9}), lambda line: None)
    assert (figure.value, figure.is_met) == (2, False)
    assert figure.says == "of 9, 2 rising; 9 exact"
    held, late, idle = loaded(
        [Reply("write", 10, 0, 0.01, 1.0), Reply("write", 5, 1, 0.03, 1.0)], 0.25
    )
    assert (held.value, held.is_met, held.says) == (1, False, "15 sent")
    assert (late.value, idle.value) == (0.03, 25.0)
    assert loaded([], 1.0) == []


# ── Tokens ──────────────────────────────────────────────────────────────────

CROWD = Crowd(4, 1.0, 100, 10_000_000, 1.0, Speech("any-length", 10.0))


def stream(
    serial: int, sent_s: float, got_s: float, said: int, made: int, finish: str = "stop"
) -> tuple[Answer, Arrival]:
    sent_us, got_us = round(sent_s * 1e6), round(got_s * 1e6)
    answer = Answer(
        serial, 0, sent_us, got_us, 200, prompt_tokens=10, answer_tokens=said, finish=finish
    )
    return answer, Arrival(serial, sent_us + 1000, got_us, 1, 10, made)


def told_of(*streams: tuple[Answer, Arrival]) -> dict[str, Figure]:
    record = Record(
        [answer for answer, _ in streams], {arrival.serial: arrival for _, arrival in streams}
    )
    return {figure.metric: figure for figure in budget_figures(record, CROWD, 0)}


def test_tokens_that_fit_into_the_windows_of_their_streams_are_no_excess() -> None:
    figures = told_of(
        stream(1, 11, 12, 30, 31), stream(2, 12, 18, 50, 50), stream(3, 18, 25, 60, 60, "length")
    )
    assert all(figure.is_met for figure in figures.values())
    assert figures["budget: tokens over the limit"].value == 0
    assert figures["budget: tokens made at the engines over it"].value == 1


def test_tokens_beyond_the_budget_are_counted() -> None:
    figures = told_of(stream(1, 11, 12, 30, 31), stream(2, 12, 18, 57, 57))
    assert figures["budget: tokens over the limit"].value == 7
    assert not figures["budget: tokens over the limit"].is_met


def test_a_stream_that_broke_off_counts_with_what_was_made_of_it() -> None:
    answer, arrival = stream(1, 11, 12, 0, 95)
    lost = Answer(1, 0, answer.sent_us, answer.got_us, 0, "the connection was lost")
    figures = told_of((lost, arrival))
    assert figures["budget: tokens over the limit"].value == 5


def test_a_stream_that_ends_as_none_should_is_unclear() -> None:
    figures = told_of(stream(1, 11, 12, 3, 3, "error"), stream(2, 11, 12, 3, 3, ""))
    assert figures["budget: streams that end unclear"].value == 2
