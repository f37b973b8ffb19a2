"""What a client heard, from bytes in any pieces, and how it is told from what is right."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.gameday.clients.stream_check import Hearing, problems

TEXT = "The quick brown fox jumps over the lazy dog, and then it does so once more."
USAGE = {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}


def frame(event: object) -> bytes:
    payload = event if isinstance(event, str) else json.dumps(event)
    return b"data: " + payload.encode() + b"\n\n"


def delta(text: str, *, choice: int = 0, finish: str | None = None, tokens: str = "") -> bytes:
    row: dict[str, Any] = {"index": choice, "delta": {"content": text}, "finish_reason": finish}
    row["logprobs"] = {"content": [{"token": one} for one in tokens]} if tokens else None
    return frame({"choices": [row]})


def heard(*frames: bytes) -> Hearing:
    hearing = Hearing(0.0)
    for number, one in enumerate(frames):
        hearing.feed(one, 1.0 + number)
    return hearing


def whole(text: str = TEXT, *, usage: dict[str, Any] | None = None) -> list[bytes]:
    pieces = [delta(text[at : at + 5], tokens="x") for at in range(0, len(text), 5)]
    usage_frame = frame({"choices": [], "usage": usage or USAGE})
    return [*pieces, delta("", finish="length"), usage_frame, frame("[DONE]")]


RIGHT = heard(*whole())


@given(st.lists(st.integers(0, 3000), max_size=6))
def test_a_stream_is_heard_alike_in_whatever_pieces_it_comes(cuts: list[int]) -> None:
    content = b": ping\n\n" + b"".join(whole())
    hearing = Hearing(0.0)
    edges = [0, *sorted(cuts), len(content)]
    for begin, end in pairwise(edges):
        hearing.feed(content[begin:end], 1.0)
    assert (hearing.texts, hearing.finishes, hearing.ends) == ({0: TEXT}, {0: ["length"]}, 1)
    assert (hearing.usages, hearing.errors) == ([USAGE], [])
    assert problems(hearing, RIGHT) == []


def test_the_longest_silence_counts_from_the_first_event_on() -> None:
    hearing = Hearing(0.0)
    for at_s in (5.0, 5.1, 7.1, 7.2):
        hearing.feed(delta("x"), at_s)
    assert hearing.gap_s == pytest.approx(2.0)
    assert hearing.spoken_s == 5.0
    assert (hearing.first_s, hearing.last_s) == (5.0, 7.2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TEXT[:30], "choice 0: 45 of 75 characters are missing at the end"),
        (TEXT[:30] + TEXT[20:], "choice 0: after 30 of 75 characters it says 10 again"),
        (TEXT[:30] + TEXT[35:], "choice 0: after 30 of 75 characters it leaves out 5"),
        (TEXT + " More.", "choice 0: after 75 of 75 characters comes more: ' More.'"),
        (TEXT[:70] + "what?", "choice 0: after 70 of 75 characters comes 'what?', not 'more.'"),
    ],
)
def test_what_is_lost_doubled_or_made_up_is_named(text: str, says: str) -> None:
    assert says in problems(heard(*whole(text)), RIGHT)


def test_each_thing_that_comes_once_must_come_once() -> None:
    frames = whole()
    cases = {
        "finished with {0: ['length', 'length']}": [*frames[:-2], *frames[-3:]],
        "usage is [{": [*frames[:-1], frames[-2], frames[-1]],
        "0 ends of the stream": frames[:-1],
        "ends with something after the end": [*frames, frames[-1]],
        "ends with choice 0 goes on after its end": [*frames[:-1], delta("x"), frames[-1]],
        "log probabilities of other tokens": [delta("", tokens="y"), *frames],
        "a choice that nobody asked for": [delta("", choice=1), *frames],
        "ends with no event": [frame("{"), *frames],
    }
    for says, said in cases.items():
        assert any(one.startswith(says) for one in problems(heard(*said), RIGHT)), says


def test_usage_that_is_counted_wrongly_is_seen_and_cached_tokens_are_not_compared() -> None:
    details: dict[str, Any] = {**USAGE, "prompt_tokens_details": {"cached_tokens": 2}}
    assert problems(heard(*whole(usage=details)), RIGHT) == []
    wrong = {**USAGE, "completion_tokens": 10}
    (found,) = problems(heard(*whole(usage=wrong)), RIGHT)
    assert found.startswith("usage is [{'prompt_tokens': 3, 'completion_tokens': 10")


def test_an_error_is_told_with_what_is_missing_and_an_end_must_not_be_made_up() -> None:
    error = frame({"error": {"code": "upstream_unavailable", "message": "gone"}})
    begun = [delta(TEXT[:10]), error]
    assert problems(heard(*begun), RIGHT) == [
        "ends with upstream_unavailable",
        "choice 0: 65 of 75 characters are missing at the end",
    ]
    made_up = [delta(TEXT[:10], finish="stop"), error]
    assert "an end is made up" in problems(heard(*made_up), RIGHT)


def test_a_refusal_and_a_broken_connection_are_problems() -> None:
    hearing = Hearing(0.0)
    hearing.refused(503, b"no worker \xff")
    assert problems(hearing, RIGHT)[0] == "ends with 503 no worker \ufffd"
    broken = replace(heard(*whole()), broken="the connection broke: reset")
    assert problems(broken, RIGHT) == ["the connection broke: reset"]


def test_an_event_without_an_end_is_given_up() -> None:
    hearing = Hearing(0.0)
    hearing.feed(b"data: " + b"x" * (1 << 20) + b"x", 1.0)
    assert hearing.errors == ["an event without an end"]
