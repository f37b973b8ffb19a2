"""What a client's stream is judged as, and what is an excuse."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.gameday.clients.stream_check import Hearing
from smg_chaos.gameday.whole.clients.stream_traffic import is_truthful, judged
from smg_chaos.gameday.whole.excuses import Excuses

TEXT = "one two three"


def event(**fields: Any) -> bytes:
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def said(text: str) -> bytes:
    return event(choices=[{"index": 0, "delta": {"content": text}}])


END = event(choices=[{"index": 0, "delta": {}, "finish_reason": "length"}])
USAGE = event(choices=[], usage={"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4})
DONE = b"data: [DONE]\n\n"
ERROR = event(error={"code": "worker_lost"})


def heard(*parts: bytes, broken: str = "", status: int = 200) -> Hearing:
    hearing = Hearing(0.0, status=status)
    for part in parts:
        hearing.feed(part, 1.0)
    hearing.broken = broken
    return hearing


RIGHT = heard(said(TEXT), END, USAGE, DONE)


@pytest.mark.parametrize(
    ("hearing", "hurt", "verdict"),
    [
        (heard(said("one "), said("two three"), END, USAGE, DONE), False, "exact"),
        (heard(said("one "), broken="reset"), True, "excused"),
        (heard(said("one "), broken="reset"), False, "lost"),
        (heard(said("one "), ERROR), False, "lost"),
        (heard(broken="reset"), True, "excused"),
        # Hurt or not, nothing that is wrong may be said.
        (heard(said("one twice"), broken="reset"), True, "wrong"),
        (heard(said("one "), END, ERROR), True, "wrong"),
        (heard(said("one "), END, USAGE, DONE), True, "wrong"),
        (heard(said(TEXT), said(TEXT), END, USAGE, DONE), True, "wrong"),
        (heard(said(TEXT), END, DONE), True, "wrong"),
    ],
)
def test_a_stream_is_judged_by_all_it_said(hearing: Hearing, hurt: bool, verdict: str) -> None:
    assert judged(hearing, RIGHT, hurt=hurt, crowded=False)[0] == verdict


@pytest.mark.parametrize("status", [429, 503])
def test_only_a_crowd_excuses_that_nobody_took_it(status: int) -> None:
    hearing = Hearing(0.0)
    hearing.refused(status, b"{}")
    assert judged(hearing, RIGHT, hurt=True, crowded=False)[0] == "refused"
    assert judged(hearing, RIGHT, hurt=True, crowded=True)[0] == "turned away"


@given(st.integers(0, len(TEXT)))
def test_every_beginning_is_true_and_nothing_else_is(length: int) -> None:
    assert is_truthful(heard(said(TEXT[:length]), broken="reset"), RIGHT)
    assert not is_truthful(heard(said(TEXT[:length] + "!"), broken="reset"), RIGHT)


@pytest.mark.parametrize(
    ("from_s", "until_s", "covered"),
    [(0, 9.9, False), (0, 10, True), (12, 13, True), (20, 30, True), (20.1, 30, False)],
)
def test_an_excuse_covers_what_touches_its_time(
    from_s: float, until_s: float, covered: bool
) -> None:
    excuses = Excuses()
    excuses.begin("n1", 10.0)
    assert excuses.cover("n1", from_s, until_s) is (until_s >= 10.0)
    excuses.end("n1", 20.0)
    assert excuses.cover("n1", from_s, until_s) is covered
    assert not excuses.cover("n2", from_s, until_s)


def test_who_is_hurt_again_is_excused_again() -> None:
    excuses = Excuses()
    for begun_s in (10.0, 30.0):
        excuses.begin("n1", begun_s)
        excuses.end("n1", begun_s + 5)
    assert excuses.cover("n1", 32, 33)
    assert not excuses.cover("n1", 20, 25)
