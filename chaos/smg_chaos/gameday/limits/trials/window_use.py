"""Use of a window by a trial's requests, counted at the engines. Pure."""

from collections.abc import Mapping, Sequence

from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN, Answer
from smg_chaos.gameday.limits.judge import Allowance
from smg_chaos.gameday.limits.story import Record


def asked_first(record: Record, node: int, from_us: int, until_us: int) -> list[Answer]:
    """Return the requests that a node was sent in a span of time and that repeat no other one."""
    return [
        answer
        for answer in record.answers
        if answer.node == node
        and answer.follows == UNKNOWN
        and from_us <= answer.sent_us < until_us
    ]


def admitted_soon(record: Record, asked: Sequence[Answer], within_us: int) -> int:
    """Return how many of these were at an engine so soon after they were sent, by themselves or when
    they came again.
    """
    returns = {one.follows: one for one in record.answers if one.follows != UNKNOWN}
    count = 0
    for answer in asked:
        one: Answer | None = answer
        while one is not None and one.serial not in record.arrivals:
            one = returns.get(one.serial)
        if one is not None:
            count += record.arrivals[one.serial].came_us <= answer.sent_us + within_us
    return count


def admitted_in(record: Record, allowance: Allowance) -> Mapping[int, int]:
    """Return how many requests were admitted in each window, each counted in the last one in which
    it may have been.
    """
    counts: dict[int, int] = {}
    for span in record.spans(allowance, 0):
        counts[span.last] = counts.get(span.last, 0) + 1
    return counts
