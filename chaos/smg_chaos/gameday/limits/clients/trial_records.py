"""Trial records: every answer, written by the clients, and every call, written by the engines.

Both name a request by its serial number, which travels as the request's `seed`: so a client's
request is matched with the calls at an engine, for any gateway in between. Times are wall-clock
microseconds.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from smg_chaos.engine.simulator.call_ledger import Line

UNKNOWN: Final = -1
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_MS_OF: Final = {"ms": 1.0, "s": 1e3, "m": 60e3, "h": 3600e3, "d": 86400e3}


class RecordError(ValueError):
    """An invalid record: the message says which, and why."""


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """Result of one request. `status` 0: no whole answer; `why` says what happened instead.

    `remaining`, `limit` and `reset_ms` are the values of the headers for requests, or for tokens
    where only those are limited; UNKNOWN where there is no header. `retry_ms` is how long a refused
    client was told to wait, `rounded_ms` how much of it may be rounding up, `reason` why it was
    refused. `follows` is the refused request that this one repeats.
    """

    serial: int
    node: int
    sent_us: int
    got_us: int
    status: int
    why: str = ""
    limit: int = UNKNOWN
    remaining: int = UNKNOWN
    reset_ms: int = UNKNOWN
    state: str = ""
    prompt_tokens: int = UNKNOWN
    answer_tokens: int = UNKNOWN
    finish: str = ""
    retry_ms: int = UNKNOWN
    rounded_ms: int = 0
    reason: str = ""
    follows: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request at the engines, all calls for it together. `ended_us` is UNKNOWN while one is going on."""

    serial: int
    came_us: int
    ended_us: int
    calls: int
    prompt_tokens: int
    made_tokens: int


def milliseconds(text: str) -> int:
    """Return the length of a duration written as in `1s`, `6m0s` or `120ms`; UNKNOWN if it is
    none.
    """
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return UNKNOWN
    return round(sum(float(number) * _MS_OF[unit] for number, unit in parts))


def write_answers(path: Path, answers: Sequence[Answer]) -> None:
    """Write a client's record as a whole."""
    path.write_bytes(msgspec.msgpack.encode(answers))


def read_answers(paths: Iterable[Path]) -> list[Answer]:
    """Return the answers of all clients, in the order of their sending; RecordError if one number is used twice."""
    answers: list[Answer] = []
    for path in paths:
        try:
            answers += msgspec.msgpack.decode(path.read_bytes(), type=list[Answer])
        except msgspec.DecodeError as error:
            raise RecordError(f"{path} is no record of answers: {error}") from error
    if len({answer.serial for answer in answers}) != len(answers):
        raise RecordError("two requests have the same number")
    return sorted(answers, key=lambda answer: (answer.sent_us, answer.serial))


def read_arrivals(paths: Iterable[Path]) -> dict[int, Arrival]:
    """Return the arrivals at the engines, by serial number; calls without one are not of these
    clients.

    The last line of an engine that was killed may be cut off; any other that is none is a
    RecordError.
    """
    found: dict[int, Arrival] = {}
    open_calls: dict[int, int] = {}
    for path in paths:
        lines = path.read_bytes().split(b"\n")
        whole = lines[:-1]
        for number, text in enumerate(whole, 1):
            try:
                line = msgspec.json.decode(text, type=Line)
            except msgspec.DecodeError as error:
                raise RecordError(f"{path}, line {number}: {error}") from error
            if line.seed >= 0:
                _take(line, found, open_calls)
    return found


def _take(line: Line, found: dict[int, Arrival], open_calls: dict[int, int]) -> None:
    known, serial = found.get(line.seed), line.seed
    if line.did == "came":
        open_calls[serial] = open_calls.get(serial, 0) + 1
        came_us = line.at_us if known is None else min(known.came_us, line.at_us)
        calls, made = (1, 0) if known is None else (known.calls + 1, known.made_tokens)
        # A call that goes on for another one carries what was said as a part of its prompt.
        prompt = line.prompt if known is None else min(known.prompt_tokens, line.prompt)
        found[serial] = Arrival(serial, came_us, UNKNOWN, calls, prompt, made)
        return
    if known is None:
        raise RecordError(f"request {serial} ended and never came")
    open_calls[serial] -= 1
    ended_us = UNKNOWN if open_calls[serial] else line.at_us
    made = known.made_tokens + line.made
    found[serial] = Arrival(serial, known.came_us, ended_us, known.calls, known.prompt_tokens, made)
