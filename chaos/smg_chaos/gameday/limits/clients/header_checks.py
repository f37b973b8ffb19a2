"""Header checks: are the nodes' rate limit headers consistent, as far as a client can know? Pure.

Answers overtake each other on different connections, so only those are compared of which one was
sent after the other had come: the remaining amount in the later one, of the same window, from the
same node, may not be larger. A window is known by its end, which the answer gives relative to its
own time. The time of an answer is unknown if it was long on its way, as from a node that was
stopped meanwhile: where its window could be one of two, it is not compared.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from operator import itemgetter

from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN, Answer

_ADMITTED = 200
_REFUSED = 429
_HELD = "held_elsewhere"
"""The reason of a refusal while there is something left, which other nodes hold."""
_SLACK_US = 100_000
"""So much later or earlier may a node say that a window ends."""


@dataclass
class Headers:
    """Results of the checks. `looked`: answers with such headers; the others count what is wrong
    with them.
    """

    looked: int = 0
    silent: int = 0
    """Answered requests without these headers."""
    negative: int = 0
    rising: int = 0
    left_at_refusal: int = 0
    unplaced: int = 0
    """Answers that may be of one window or of another: true as far as anybody knows."""
    states: dict[str, int] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        """How many answers have impossible headers."""
        return self.silent + self.negative + self.rising + self.left_at_refusal


def read_headers(
    answers: Iterable[Answer], window_us: int, surprised: Collection[tuple[int, int]] = ()
) -> Headers:
    """Return the results of checking these answers' headers, which are about windows of
    `window_us`.

    `surprised` has nodes and windows in which they restarted or were allowed more: there, more may
    be left.
    """
    found = Headers()
    rows: dict[tuple[int, int], list[Answer]] = {}
    for answer in answers:
        if answer.status not in (_ADMITTED, _REFUSED):
            continue
        if answer.remaining == UNKNOWN or answer.limit == UNKNOWN or answer.reset_ms == UNKNOWN:
            found.silent += 1
            _show(found, answer, "says nothing of what is left")
            continue
        found.looked += 1
        found.states[answer.state] = found.states.get(answer.state, 0) + 1
        if answer.remaining < 0:
            found.negative += 1
            _show(found, answer, f"says that {answer.remaining} are left")
        if answer.status == _REFUSED and answer.remaining > 0 and answer.reason != _HELD:
            found.left_at_refusal += 1
            _show(found, answer, f"refuses while {answer.remaining} are left")
        window = window_of(answer, window_us)
        if window is None:
            found.unplaced += 1
        elif (answer.node, window) not in surprised:
            rows.setdefault((answer.node, window), []).append(answer)
    for row in rows.values():
        for answer, before in risen(row):
            found.rising += 1
            _show(found, answer, f"says {answer.remaining} after {before}")
    return found


def window_of(answer: Answer, window_us: int) -> int | None:
    """Return the number of the window that ends at the answer's reset, if only one can."""
    reset_us = answer.reset_ms * 1000
    from_us, to_us = answer.sent_us + reset_us, answer.got_us + reset_us
    first, last = round(from_us / window_us), round(to_us / window_us)
    if first != last:
        # Long on its way; but windows end at whole ones, and one such moment may lie in between.
        first, last = -(-(from_us - _SLACK_US) // window_us), (to_us + _SLACK_US) // window_us
    return first - 1 if first == last else None


def risen(row: Iterable[Answer]) -> list[tuple[Answer, int]]:
    """Return the answers, of one node and window, with more left than an answer that came before
    they were asked for, and how much that one had left.
    """
    events = [event for one in row for event in ((one.sent_us, 1, one), (one.got_us, 0, one))]
    least: int | None = None
    known: dict[int, int | None] = {}
    found: list[tuple[Answer, int]] = []
    for _, sent, answer in sorted(events, key=itemgetter(0, 1)):
        if sent:
            known[answer.serial] = least
            continue
        before = known.get(answer.serial)
        if before is not None and answer.remaining > before:
            found.append((answer, before))
        least = answer.remaining if least is None else min(least, answer.remaining)
    return found


def _show(found: Headers, answer: Answer, what: str) -> None:
    if len(found.shown) < 20:
        found.shown.append(f"node {answer.node}, request {answer.serial}: {what}")
