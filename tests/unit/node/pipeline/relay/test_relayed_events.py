"""A relayed stream is whole when its finish reasons say so, at any cut of its bytes."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.dialects.sse_reader import EVENT_MAX_BYTES
from smg_node.pipeline.relay.relayed_events import DONE, KEPT_MAX_BYTES, RelayedEvents


def event(value: object, end: bytes = b"\n\n") -> bytes:
    return b"data: " + json.dumps(value).encode() + end


def choice(index: int = 0, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"index": index, "finish_reason": finish, **(more or {"delta": {}})}


def chunk(*choices: dict[str, Any], end: bytes = b"\n\n") -> bytes:
    return event({"model": "m", "choices": list(choices)}, end)


ROLE = chunk(choice(delta={"role": "assistant", "content": ""}))
WORD = chunk(choice(delta={"content": "a"}))
STOP = chunk(choice(finish="stop"))
SECOND = chunk(choice(1, delta={"content": "b"}))
SECOND_STOP = chunk(choice(1, "length"))
USED = event({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}})
TEXT = chunk(choice(text="a", logprobs=None))
TEXT_STOP = chunk(choice(text="", finish="length"))
CALL = chunk(choice(delta={"tool_calls": [{"index": 0, "function": {"name": "f"}}]}))
ERROR = event({"error": {"message": "cuda", "code": 500}})
FLAT = event({"object": "error", "message": "cuda", "code": 500})
ENDED = "the worker ended its answer before the end of it"
SAID_DONE = "the worker said that its answer was over before the end of it"
GAVE_UP = "the worker gave up in the middle of its answer"
NO_JSON = "the worker's answer is no JSON"


def read(pieces: Sequence[bytes], answers: int = 1) -> tuple[bytes, str | None]:
    """Return what passes of a stream that ends cleanly, and what is wrong with it."""
    events = RelayedEvents(answers)
    passed = b"".join([events.feed(piece) for piece in pieces])
    passed += events.finish()
    failure = events.failure
    assert events.done is (failure is None)
    if failure is None:
        return passed, None
    return passed, failure.message


WHOLE: list[tuple[str, tuple[bytes, ...], int]] = [
    ("the usual", (ROLE, WORD, WORD, STOP, DONE), 1),
    ("usage", (ROLE, WORD, STOP, USED, DONE), 1),
    ("no word", (ROLE, STOP, DONE), 1),
    ("two answers", (WORD, SECOND, STOP, SECOND_STOP, USED, DONE), 2),
    ("a worker that gives one for two", (WORD, STOP, DONE), 2),
    (
        "one chunk for two",
        (chunk(choice(0, "stop", text="a"), choice(1, "stop", text="b")), DONE),
        2,
    ),
    ("completions", (TEXT, TEXT, TEXT_STOP, DONE), 1),
    ("a call", (ROLE, CALL, chunk(choice(finish="tool_calls")), DONE), 1),
    ("words after the finish", (WORD, STOP, WORD, DONE), 1),
    ("comments", (WORD, b": ping\n\n", STOP, b":\n\n", DONE), 1),
    (
        "other ends of lines",
        (chunk(choice(delta={"content": "a"}), end=b"\r\n\r\n"), STOP, DONE),
        1,
    ),
    ("returns", (chunk(choice(delta={"content": "a"}), end=b"\r\r"), STOP, DONE), 1),
    ("names", (b"event: x\nid: 5\n" + WORD, STOP, DONE), 1),
    ("no blank", (WORD.replace(b"data: ", b"data:"), STOP, b"data:[DONE]\n\n"), 1),
    ("lines", (b'data: {"choices":\ndata: [{"index":0,"finish_reason":"stop"}]}\n\n', DONE), 1),
    ("odd values", (chunk({"index": None, "delta": {"content": "a"}}), STOP, DONE), 1),
    ("no index", (chunk({"delta": {"content": "a"}, "finish_reason": ""}), STOP, DONE), 1),
    ("nothing of choices", (WORD, event({"usage": {}}), event({"choices": None}), STOP, DONE), 1),
    ("an error that is none", (WORD, event({"choices": [], "error": None}), STOP, DONE), 1),
]


@pytest.mark.parametrize(
    ("pieces", "answers"), [one[1:] for one in WHOLE], ids=[one[0] for one in WHOLE]
)
def test_finished_choices_and_the_end_are_a_whole_answer_with_done_or_without(
    pieces: tuple[bytes, ...], answers: int
) -> None:
    assert read(pieces, answers) == (b"".join(pieces), None)
    if answers == 1 or pieces[-2] != STOP:
        assert read(pieces[:-1], answers) == (b"".join(pieces[:-1]) + DONE, None)


CUT: list[tuple[str, tuple[bytes, ...], int, tuple[bytes, ...], str]] = [
    ("nothing", (), 1, (), ENDED),
    ("comments only", (b": ping\n\n",), 1, (), ENDED),
    ("a role", (ROLE,), 1, (), ENDED),
    ("a word", (ROLE, WORD), 1, (ROLE, WORD), ENDED),
    ("done without a word", (DONE,), 1, (), SAID_DONE),
    ("done without a finish", (ROLE, WORD, DONE), 1, (ROLE, WORD), SAID_DONE),
    ("usage without a finish", (WORD, USED), 1, (WORD, USED), ENDED),
    ("one of two", (WORD, SECOND, STOP), 2, (WORD, SECOND, STOP), ENDED),
    ("one of two, and done", (WORD, SECOND, STOP, DONE), 2, (WORD, SECOND, STOP), SAID_DONE),
    ("the second never began", (WORD, STOP), 2, (WORD, STOP), ENDED),
    ("more than asked for", (WORD, STOP, SECOND), 1, (WORD, STOP, SECOND), ENDED),
    ("an error", (ROLE, WORD, ERROR, DONE), 1, (ROLE, WORD), "cuda"),
    ("an error at once", (ERROR, DONE), 1, (), "cuda"),
    ("an error after the role", (ROLE, ERROR, DONE), 1, (), "cuda"),
    ("a flat error", (WORD, FLAT, DONE), 1, (WORD,), "cuda"),
    ("an error of text", (WORD, event({"error": "cuda"}), DONE), 1, (WORD,), "cuda"),
    ("an error after the end", (WORD, STOP, ERROR, DONE), 1, (WORD, STOP), "cuda"),
    ("a named error", (WORD, b"event: error\n" + event({"message": "cuda"})), 1, (WORD,), "cuda"),
    ("a named error of text", (WORD, b"event: error\ndata: oh\n\n"), 1, (WORD,), ""),
    ("given up", (WORD, chunk(choice(finish="abort")), DONE), 1, (WORD,), GAVE_UP),
    ("given up at once", (chunk(choice(finish="error")), DONE), 1, (), GAVE_UP),
    ("no JSON", (WORD, b"data: {\n\n", STOP, DONE), 1, (WORD,), NO_JSON),
    ("no JSON at once", (b"data: hi\n\n",), 1, (), NO_JSON),
    (
        "no object",
        (WORD, event([1])),
        1,
        (WORD,),
        "the worker's answer has something else where choices belong",
    ),
    ("half an event", (WORD, STOP, b'data: {"choices"'), 1, (WORD, STOP), NO_JSON),
    (
        "a strange choice",
        (WORD, chunk(choice(99_999))),
        1,
        (WORD,),
        "the worker's answer has a choice 99999",
    ),
]


@pytest.mark.parametrize(
    ("pieces", "answers", "passed", "why"), [one[1:] for one in CUT], ids=[one[0] for one in CUT]
)
def test_whatever_else_is_the_workers_failure_and_nothing_passes_after_it(
    pieces: tuple[bytes, ...], answers: int, passed: tuple[bytes, ...], why: str
) -> None:
    assert read(pieces, answers) == (b"".join(passed), why)


ALL = [(one[1], one[2]) for one in WHOLE] + [(one[1], one[2]) for one in CUT]


@given(st.sampled_from(ALL), st.booleans(), st.lists(st.integers(0, 10_000), max_size=12))
def test_no_cut_of_the_bytes_changes_anything(
    stream: tuple[tuple[bytes, ...], int], done: bool, at: list[int]
) -> None:
    pieces, answers = stream
    data = b"".join(pieces if done else pieces[:-1])
    edges = sorted({0, len(data), *(one % (len(data) + 1) for one in at)})
    assert read([data[a:b] for a, b in pairwise(edges)], answers) == read([data], answers)


@pytest.mark.parametrize(("pieces", "answers"), ALL)
def test_nor_does_every_byte_for_itself(pieces: tuple[bytes, ...], answers: int) -> None:
    data = b"".join(pieces)
    assert read([bytes((one,)) for one in data], answers) == read([data], answers)


@pytest.mark.parametrize("missing", [1, 2, 3, 8, 14])
def test_the_last_event_may_lack_its_end(missing: int) -> None:
    data = WORD + STOP + DONE
    assert read([data[:-missing]]) == ((WORD + STOP, NO_JSON) if missing == 3 else (data, None))


def test_only_the_first_word_is_the_beginning_of_an_answer() -> None:
    events = RelayedEvents(1)
    assert events.feed(b": hello\n\n" + ROLE) == b""
    assert not events.begun
    assert events.feed(WORD[:9]) == b""
    assert events.feed(WORD[9:]) == ROLE + WORD
    assert events.begun
    assert events.feed(b": hello\n\n") == b": hello\n\n"
    assert events.feed(STOP + DONE + b"data: more\n\n") == STOP + DONE
    assert events.feed(ERROR) == b""
    assert events.finish() == b""
    assert (events.done, events.failure) == (True, None)


def test_what_comes_before_the_first_word_is_not_kept_for_ever() -> None:
    events = RelayedEvents(1)
    passed, sent = b"", 0
    while not passed:
        passed = events.feed(ROLE)
        sent += 1
    assert passed == ROLE * sent
    assert KEPT_MAX_BYTES < len(passed) <= KEPT_MAX_BYTES + 2 * len(ROLE)


def test_an_event_without_an_end_is_not_kept_for_ever() -> None:
    events = RelayedEvents(1)
    events.feed(WORD)
    for _ in range(EVENT_MAX_BYTES // 1_000_000 + 1):
        events.feed(b"x" * 1_000_000)
    assert isinstance(events.failure, SmgError)
    assert "an event of more than" in events.failure.message


@given(
    st.lists(
        st.binary(max_size=40) | st.sampled_from([WORD, STOP, DONE, ERROR, b"\n\n"]), max_size=8
    )
)
def test_any_bytes_pass_or_fail(pieces: list[bytes]) -> None:
    passed, _ = read(pieces)
    assert len(passed) <= sum(map(len, pieces)) + len(DONE) + 2
