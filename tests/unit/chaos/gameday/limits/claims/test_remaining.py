"""Claims of what remains: true ones are true in every order of events, and what cannot be is found."""

from collections.abc import Iterator, Sequence

import msgspec
import pytest

from smg_chaos.gameday.limits.claims.remaining import check_remaining
from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN, Answer
from smg_chaos.gameday.limits.story import Record
from support.mesh.limit_records import (
    LIMIT,
    admissions_of,
    admitted_at,
    answer,
    recorded,
)

EARLIER = admitted_at(range(50, 1050, 50))
"""Twenty admitted before, one after the other."""


def orders(events: Sequence[tuple[str, ...]]) -> Iterator[list[str]]:
    """Yield every order of events in which those of each request stay in their own."""
    if not any(events):
        yield []
    for number, own in enumerate(events):
        if own:
            rest = [one if at != number else own[1:] for at, one in enumerate(events)]
            for tail in orders(rest):
                yield [f"{number}{own[0]}", *tail]


def lived(
    order: Sequence[str], nodes: Sequence[int], *, more: int = 0, step_ms: int = 10
) -> tuple[list[Answer], Record]:
    """Return what an exact cluster answers when it lives through an order of events: s(ent),
    c(harged), h(eaders made), g(ot). `more` is what its claims add to the truth.
    """
    at_ms = {event: 2_000 + number * step_ms for number, event in enumerate(order)}
    answers, came = [], []
    for number, node in enumerate(nodes):
        made = order.index(f"{number}h")
        charged = sum(event.endswith("c") for event in order[:made])
        remaining = LIMIT - len(EARLIER.answers) - charged + more
        sent_ms, got_ms = at_ms[f"{number}s"], at_ms[f"{number}g"]
        answers.append(answer(number, sent_ms, got_ms, remaining, node=node))
        # It comes to an engine a moment after its charge.
        came.append((number, at_ms[f"{number}c"] + step_ms // 2))
    return answers, recorded(answers, came)


@pytest.mark.parametrize("nodes", [(0, 0), (0, 1), (1, 1)])
def test_what_an_exact_cluster_says_is_true_in_every_order_of_two_requests(
    nodes: Sequence[int],
) -> None:
    looked = 0
    for order in orders([("s", "c", "h", "g")] * 2):
        answers, record = lived(order, nodes)
        found = check_remaining(answers, admissions_of(EARLIER, record), LIMIT)
        assert (found.off, found.worst) == (0, 0), order
        looked += found.looked
    assert looked == 2 * 70


@pytest.mark.parametrize("nodes", [(0, 0, 0), (0, 1, 2), (0, 0, 1)])
@pytest.mark.parametrize("more", [7, -7])
def test_what_is_off_by_more_than_can_be_is_found_in_every_order_of_three(
    nodes: Sequence[int], more: int
) -> None:
    # Three are allowed to be on their way, and a twentieth of sixty is three as well.
    for order in orders([("sc", "h", "g")] * 3):
        events = [part for event in order for part in (_split(event))]
        answers, record = lived(events, nodes)
        true = check_remaining(answers, admissions_of(EARLIER, record), LIMIT)
        assert (true.off, true.worst) == (0, 0), order
        answers, record = lived(events, nodes, more=more)
        found = check_remaining(answers, admissions_of(EARLIER, record), LIMIT)
        assert (found.off, len(found.shown)) == (3, 3), order


def _split(event: str) -> Iterator[str]:
    for part in event[1:]:
        yield event[0] + part


def test_a_twentieth_too_many_is_allowed_and_one_more_is_not() -> None:
    admissions = admissions_of(EARLIER, recorded([answer(1, 2000, 2010)], [(1, 2005)]))
    for claim, off, worst in ((39, 0, 0), (42, 0, 3), (43, 1, 4), (36, 0, 3), (35, 1, 4)):
        found = check_remaining([answer(1, 2000, 2010, claim)], admissions, LIMIT)
        assert (found.off, found.wrong, found.worst) == (off, off, worst), claim


def test_a_burst_that_is_told_the_whole_limit_again_and_again_is_not_believed() -> None:
    # All of them overlap, but each was charged before it was answered: only one can be the first.
    burst = [answer(number, 2000, 2500, 59) for number in range(30)]
    record = recorded(burst, [(number, 2400) for number in range(30)])
    found = check_remaining(burst, admissions_of(record), LIMIT)
    assert (found.off, found.worst) == (26, 29)
    honest = [answer(number, 2000, 2500, 59 - number) for number in range(30)]
    assert check_remaining(honest, admissions_of(record), LIMIT).off == 0
    late = [answer(number, 2000, 2500, 30) for number in range(30)]
    assert check_remaining(late, admissions_of(record), LIMIT).off == 0


def test_what_other_nodes_admitted_a_moment_ago_need_not_be_known() -> None:
    elsewhere = admitted_at([2000] * 20, node=1)
    for sent_ms, off in ((2100, 0), (2250, 0), (2260, 1)):
        asked = answer(1, sent_ms, sent_ms + 5, 59)
        record = recorded([asked], [(1, sent_ms + 2)])
        found = check_remaining([asked], admissions_of(elsewhere, record), LIMIT)
        assert found.off == off, sent_ms
        known = answer(1, sent_ms, sent_ms + 5, 39)
        record = recorded([known], [(1, sent_ms + 2)])
        assert check_remaining([known], admissions_of(elsewhere, record), LIMIT).off == 0


def test_a_refusal_that_says_nothing_is_left_while_half_is_there_is_off() -> None:
    refused = answer(1, 2000, 2010, 0, status=429)
    found = check_remaining([refused], admissions_of(EARLIER), LIMIT)
    assert (found.off, found.off_at_refusal, found.worst) == (1, 1, 40)
    assert "(429): says 0 where 40 to 40 remained" in found.shown[0]


def test_more_than_was_said_before_is_wrong_even_when_it_is_true() -> None:
    said = [answer(1, 2000, 2010, 36), answer(2, 3000, 3010, 38)]
    record = recorded(said, [(1, 2005), (2, 3005)])
    found = check_remaining(said, admissions_of(EARLIER, record), LIMIT)
    assert (found.rising, found.off, found.wrong) == (1, 0, 1)
    other_node = [said[0], answer(2, 3000, 3010, 38, node=1)]
    found = check_remaining(other_node, admissions_of(EARLIER, record), LIMIT)
    assert (found.rising, found.wrong) == (0, 0)
    next_window = [said[0], answer(2, 13_000, 13_010, 59)]
    record = recorded(next_window, [(1, 2005), (2, 13_005)])
    assert check_remaining(next_window, admissions_of(EARLIER, record), LIMIT).wrong == 0


def test_an_answer_counts_once_however_much_is_wrong_about_it() -> None:
    said = [answer(1, 2000, 2010, 15), answer(2, 3000, 3010, 55, limit=61)]
    record = recorded(said, [(1, 2005), (2, 3005)])
    found = check_remaining(said, admissions_of(EARLIER, record), LIMIT)
    assert (found.rising, found.off, found.other_limit, found.wrong) == (1, 2, 1, 2)


def test_answers_without_headers_and_of_no_window_are_wrong_and_failures_are_not_looked_at() -> (
    None
):
    bare = answer(1, 2000, 2010, UNKNOWN)
    astray = answer(2, 2000, 2010, 39, made_ms=5_000)
    failed = answer(3, 2000, 2010, UNKNOWN, status=503)
    found = check_remaining([bare, astray, failed], admissions_of(EARLIER), LIMIT)
    assert (found.looked, found.silent, found.misplaced, found.wrong) == (2, 1, 1, 2)


def test_a_reset_in_whole_seconds_is_rounded_up_and_still_of_its_window() -> None:
    rounded = msgspec.structs.replace(answer(1, 2300, 2310, 39), reset_ms=8_000)
    record = recorded([rounded], [(1, 2305)])
    assert check_remaining([rounded], admissions_of(EARLIER, record), LIMIT).wrong == 0
