"""Records of made-up limit trials: answers and arrivals by milliseconds, in windows of ten seconds."""

from collections.abc import Iterable
from typing import Final

from smg_chaos.gameday.limits.claims.admissions import Admissions
from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN, Answer, Arrival
from smg_chaos.gameday.limits.story import Record

WINDOW_US: Final = 10_000_000
FIRST: Final = 170_000_000
"""The window in which all of it begins, at millisecond 0."""
BEGIN_US: Final = FIRST * WINDOW_US
LIMIT: Final = 60


def answer(
    serial: int,
    sent_ms: int,
    got_ms: int,
    remaining: int = 0,
    *,
    status: int = 200,
    node: int = 0,
    limit: int = LIMIT,
    made_ms: int | None = None,
    retry_ms: int = UNKNOWN,
    rounded_ms: int = 0,
    reason: str = "",
    follows: int = UNKNOWN,
) -> Answer:
    """Return an answer that names the end of the window in which it was made (when it was sent)."""
    reset_ms = 10_000 - (sent_ms if made_ms is None else made_ms) % 10_000
    return Answer(
        serial,
        node,
        BEGIN_US + sent_ms * 1000,
        BEGIN_US + got_ms * 1000,
        status,
        limit=limit,
        remaining=remaining,
        reset_ms=reset_ms,
        state="exact",
        retry_ms=retry_ms,
        rounded_ms=rounded_ms,
        reason=reason,
        follows=follows,
    )


def arrival(serial: int, came_ms: int) -> Arrival:
    """Return the arrival of a request at an engine."""
    came_us = BEGIN_US + came_ms * 1000
    return Arrival(serial, came_us, came_us + 10, 1, 20, 2)


def recorded(answers: Iterable[Answer], came_ms: Iterable[tuple[int, int]]) -> Record:
    """Return a record of answers, and of which serial number came to an engine when."""
    return Record(list(answers), {serial: arrival(serial, at_ms) for serial, at_ms in came_ms})


def admitted_at(times_ms: Iterable[int], *, node: int = 0, first_serial: int = 1000) -> Record:
    """Return a record of requests that were sent at these times, and at an engine 1 ms later."""
    asked = list(enumerate(times_ms, first_serial))
    answers = [answer(serial, at_ms, at_ms + 2, node=node) for serial, at_ms in asked]
    return recorded(answers, [(serial, at_ms + 1) for serial, at_ms in asked])


def admissions_of(*records: Record) -> Admissions:
    """Return what was admitted in these records together."""
    answers = [one for record in records for one in record.answers]
    arrivals = {serial: it for record in records for serial, it in record.arrivals.items()}
    return Admissions(Record(answers, arrivals), WINDOW_US)
