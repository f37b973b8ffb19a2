"""Approval messages: what processes and nodes ask each other about runs that wait, and what they answer. Pure.

A question without an id is for all runs, one with an id for that run, one with `approve` answers it: said twice it
changes nothing. What is empty answers nothing at all.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from smg_node.http.ports.tool_approvals import WaitingRun

LIST_BYTES_MAX: Final = 600_000
"""A member's answer has 1,000,000 bytes at most."""
LISTED_CHARACTERS_MAX: Final = 500
"""Of arguments, where all runs are listed."""
SHOWN_CHARACTERS_MAX: Final = 64_000
"""Of arguments, where one run is shown: 256,000 bytes at most."""


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question. `reason` is what the operator says besides yes or no."""

    id: str = ""
    approve: bool | None = None
    reason: str = ""


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer. `done`: the run is answered by this question; `before`: by an earlier one.

    `left_out` counts runs that a list had no room for, `silent` are processes that were not heard.
    """

    runs: tuple[WaitingRun, ...] = ()
    left_out: int = 0
    done: bool = False
    before: bool = False
    silent: tuple[str, ...] = ()


_question: Final = msgspec.msgpack.Decoder(Question)
_reply: Final = msgspec.msgpack.Decoder(Reply)
pack: Final = msgspec.msgpack.Encoder().encode
NOTHING: Final = Reply()


def read_question(said: bytes) -> Question | None:
    """Return a question; None for what is none."""
    try:
        return _question.decode(said)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def read_reply(said: bytes) -> Reply | None:
    """Return an answer; None for what is none."""
    if not said:
        return NOTHING
    try:
        return _reply.decode(said)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def shortened(run: WaitingRun, characters_max: int) -> WaitingRun:
    """Return a run with so much of its arguments."""
    if len(run.arguments) <= characters_max:
        return run
    return replace(run, arguments=run.arguments[:characters_max], cut=True)


def listed(runs: Iterable[WaitingRun], left_out: int = 0) -> Reply:
    """Return a list of runs, the longest wait first, as far as they fit."""
    kept: list[WaitingRun] = []
    ordered = sorted(runs, key=lambda run: (run.since_ms, run.id))
    room = LIST_BYTES_MAX
    for run in ordered:
        shown = shortened(run, LISTED_CHARACTERS_MAX)
        room -= len(pack(shown))
        if room < 0:
            break
        kept.append(shown)
    return Reply(tuple(kept), left_out + len(ordered) - len(kept))


def merged(replies: Sequence[bytes], silent: Sequence[str]) -> bytes:
    """Return what several processes answer as one answer; `silent` were not heard."""
    read = [one for said in replies if (one := read_reply(said)) is not None]
    runs = [run for one in read for run in one.runs]
    if len(runs) > 1:
        told = listed(runs, sum(one.left_out for one in read))
    else:
        told = Reply(tuple(runs), sum(one.left_out for one in read))
    return pack(
        replace(
            told,
            done=any(one.done for one in read),
            before=any(one.before for one in read),
            silent=tuple(silent),
        )
    )
