"""Answers of workers that speak Chat Completions: chunks in, events out, whatever the chunks look like."""

import json
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Begin, BlockStart, Delta, End, Event
from smg_node.dialects import sse_reader as event_lines
from smg_node.dialects.sse_reader import EventLines
from smg_node.dialects.worker_errors import WorkerError, error_of
from support.answers.chat_chunks import (
    BEGIN,
    DONE,
    PROMPT,
    blocks,
    call,
    calls,
    chunk,
    event,
    failure_of,
    finish_of,
    read,
    reader_of,
    usage_of,
    used,
)

ROLE = chunk(role="assistant", content="")


def test_text_thoughts_and_calls_become_blocks_in_their_order() -> None:
    told = read(
        [
            ROLE,
            chunk(reasoning_content="I must "),
            chunk(reasoning_content="look."),
            chunk(content="Let me "),
            chunk(content="see."),
            calls(call(0, name="weather", call_id="call_a")),
            calls(call(0, '{"city":')),
            calls(call(0, '"Paris"}')),
            calls(call(1, '{"city":"Rome"}', name="weather", call_id="call_b")),
            chunk("tool_calls"),
            used(9, 4, prompt_tokens_details={"cached_tokens": 6}, reasoning_tokens=2),
            DONE,
        ]
    )
    assert blocks(told) == [
        "reasoning I must look.",
        "text Let me see.",
        'call weather({"city":"Paris"})',
        'call weather({"city":"Rome"})',
    ]
    assert told[0] is BEGIN
    assert [one.call_id for one in told if isinstance(one, BlockStart)][2:] == ["call_a", "call_b"]
    assert finish_of(told).reason == "tool_calls"
    usage = usage_of(told)
    assert (usage.prompt_tokens, usage.completion_tokens) == (9, 4)
    assert (usage.cached_tokens, usage.reasoning_tokens) == (6, 2)
    assert type(told[-1]) is End


def test_pieces_of_text_and_arguments_are_told_as_they_come() -> None:
    reader, out = reader_of(), list[Event]()
    reader.feed(ROLE, out)
    assert out == []
    reader.feed(chunk(content="a"), out)
    assert [type(one) for one in out] == [Begin, BlockStart, Delta]
    for piece in ('{"a"', ":1}"):
        del out[:]
        reader.feed(calls(call(0, piece, name="f")), out)
        [delta] = [one for one in out if isinstance(one, Delta)]
        assert delta.text == piece


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("content_filter", "content_filter"),
        ("eos_token", "stop"),
    ],
)
def test_why_an_answer_ended_is_told_in_our_words(said: str, meant: str) -> None:
    assert finish_of(read([chunk(content="a"), chunk(said), DONE])).reason == meant


@pytest.mark.parametrize("said", ["abort", "error", 7, ["stop"]])
def test_an_answer_that_was_given_up_is_no_answer(said: Any) -> None:
    assert "gave up" in failure_of(read([chunk(content="a"), chunk(said), DONE]))


@pytest.mark.parametrize(
    ("more", "matched"),
    [
        ({"stop_reason": "END"}, "END"),
        ({"matched_stop": 7}, 7),
        ({"stop_reason": None}, None),
        ({"matched_stop": True}, None),
    ],
)
def test_what_ended_an_answer_is_told_where_the_worker_says_it(more: Any, matched: Any) -> None:
    last = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", **more}]})
    assert finish_of(read([chunk(content="a"), last])).matched == matched


def test_both_names_of_thoughts_are_known_and_said_twice_they_count_once() -> None:
    told = read([chunk(reasoning="hm"), chunk(reasoning="!", reasoning_content="!"), chunk("stop")])
    assert blocks(told) == ["reasoning hm!"]


def test_a_refusal_is_kept_apart_from_text() -> None:
    assert blocks(read([chunk(refusal="I "), chunk(refusal="won't."), chunk("stop")])) == [
        "refusal I won't."
    ]


def test_content_in_parts_is_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert blocks(read([chunk(content=parts), chunk("stop")])) == ["text ab"]


def test_an_answer_of_no_words_begins_and_ends() -> None:
    told = read([ROLE, chunk("stop"), DONE])
    assert told[0] is BEGIN
    assert blocks(told) == []


# ── Calls ────────────────────────────────────────────────────────────────────


def test_calls_that_are_told_at_once_are_told_one_after_the_other() -> None:
    told = read(
        [
            calls(call(0, name="a"), call(1, name="b")),
            calls(call(1, '{"y"')),
            calls(call(0, '{"x"')),
            calls(call(0, ":1}")),
            calls(call(1, ":2}")),
            chunk("tool_calls"),
        ]
    )
    assert blocks(told) == ['call a({"x":1})', 'call b({"y":2})']


def test_a_call_in_order_waits_for_nothing() -> None:
    reader, out = reader_of(), list[Event]()
    reader.feed(calls(call(0, "{}", name="a")), out)
    reader.feed(calls(call(1, "", name="b")), out)
    assert [one.name for one in out if isinstance(one, BlockStart)] == ["a", "b"]


def test_calls_without_numbers_are_told_apart_by_name_and_id() -> None:
    told = read(
        [
            calls(call(None, "{}", name="a", call_id="1")),
            calls(call(None, "", name="b", call_id="2")),
            calls(call(None, '{"b":2}')),
            calls(call(None, "{}", name="c")),
            chunk("stop"),
        ]
    )
    assert blocks(told) == ["call a({})", 'call b({"b":2})', "call c({})"]


def test_calls_of_one_number_are_told_apart_by_id() -> None:
    told = read(
        [
            calls(call(0, '{"a":1}', name="f", call_id="1")),
            calls(call(0, '{"a":2}', name="f", call_id="2")),
            chunk("tool_calls"),
        ]
    )
    assert blocks(told) == ['call f({"a":1})', 'call f({"a":2})']


def test_a_name_that_is_repeated_is_the_same_call() -> None:
    pieces = [calls(call(0, one, name="f", call_id="1")) for one in ("{", "}")]
    assert blocks(read([*pieces, chunk("tool_calls")])) == ["call f({})"]


def test_arguments_may_come_before_the_name_and_as_an_object() -> None:
    early = read([calls(call(0, '{"a"')), calls(call(0, ":1}", name="f")), chunk("stop")])
    assert blocks(early) == ['call f({"a":1})']
    whole = {"index": 0, "function": {"name": "f", "arguments": {"a": 1}}}
    assert blocks(read([calls(whole), chunk("stop")])) == ['call f({"a":1})']


def test_an_id_that_is_taken_or_no_name_at_all_is_made_here() -> None:
    told = read(
        [
            calls(call(0, "{}", name="a", call_id="call_0")),
            calls(call(1, "{}", name="b", call_id="x" * 65)),
            calls(call(2, "{}", name="c", call_id="call_1")),
            chunk("stop"),
        ],
        taken=["call_0"],
    )
    assert [one.call_id for one in told if isinstance(one, BlockStart)] == [
        "call_1_0",
        "call_1_1",
        "call_1",
    ]


def test_a_cut_call_is_told_as_far_as_it_came() -> None:
    told = read([calls(call(0, '{"ci', name="f")), calls(call(1, "{", name="g")), chunk("length")])
    assert blocks(told) == ['call f({"ci)', "call g({)"]
    assert finish_of(told).reason == "length"


def test_a_call_without_a_name_or_one_that_goes_on_when_it_is_over_is_an_error() -> None:
    assert "without its name" in failure_of(read([calls(call(0, "{}")), chunk("stop")]))
    late = [calls(call(0, "{}", name="f")), chunk(content="so"), calls(call(0, "x")), chunk("stop")]
    assert "was over" in failure_of(read(late))
    late[2] = calls(call(0, " \n"))
    assert blocks(read(late)) == ["call f({})", "text so"]


# ── Usage and log probabilities ──────────────────────────────────────────────


def test_usage_that_nobody_told_is_what_can_be_seen() -> None:
    usage = usage_of(read([chunk(content="a"), chunk(content="b"), chunk("stop"), DONE]))
    assert (usage.prompt_tokens, usage.completion_tokens) == (PROMPT, 2)


@pytest.mark.parametrize(
    "said", [{}, [], 5, {"prompt_tokens": "9"}, {"prompt_tokens": -1, "completion_tokens": True}]
)
def test_usage_that_says_nothing_is_none(said: Any) -> None:
    told = read([chunk(content="a"), chunk("stop"), event({"choices": [], "usage": said})])
    assert usage_of(told).prompt_tokens == PROMPT


def test_the_last_usage_counts() -> None:
    assert usage_of(read([used(1, 1), chunk("stop"), used(5, 9)])).completion_tokens == 9


def test_log_probabilities_go_with_the_text_they_belong_to() -> None:
    top = {"token": "b", "logprob": -3, "bytes": [98]}
    row = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [top]}
    odd = {"token": "é", "logprob": None, "bytes": [1000]}

    def with_rows(content: str, *rows: Any) -> bytes:
        choice = {"index": 0, "delta": {"content": content}, "logprobs": {"content": list(rows)}}
        return event({"choices": [choice]})

    told = read([with_rows("a", row), with_rows("", odd), chunk(content="b"), chunk("stop")])
    one, other, last = [each for each in told if isinstance(each, Delta)]
    assert (one.text, one.logprobs[0].raw, one.logprobs[0].logprob) == ("a", b"a", -0.5)
    assert one.logprobs[0].top[0].token == "b"
    assert (other.text, other.logprobs[0].raw, other.logprobs[0].logprob) == (
        "",
        "é".encode(),
        -9999.0,
    )
    assert last.logprobs == ()


def test_log_probabilities_of_a_thought_are_read_where_a_worker_lists_them() -> None:
    def with_rows(delta: Any, **lists: Any) -> bytes:
        return event({"choices": [{"index": 0, "delta": delta, "logprobs": lists}]})

    row = {"token": "a", "logprob": -0.5}
    other = {"token": "b", "logprob": -0.5}
    told = read(
        [
            with_rows({"reasoning_content": "a"}, content=[], reasoning_content=[row]),
            with_rows({"reasoning_content": "a"}, content=[row]),
            with_rows({"content": "b"}, content=[other]),
            chunk("stop"),
        ]
    )
    deltas = [each for each in told if isinstance(each, Delta)]
    said = [(each.text, [one.token for one in each.logprobs]) for each in deltas]
    assert said == [("a", ["a"]), ("a", ["a"]), ("b", ["b"])]


# ── What is wrong ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "odd",
    [
        b"data: nothing\n\n",
        b"data: [1]\n\n",
        b"data: \xff\n\n",
        b'data: {"choices": 5}\n\n',
        b'data: {"choices": [5]}\n\n',
        chunk(content=5),
        chunk(reasoning={"a": 1}),
        chunk(tool_calls={"index": 0}),
        chunk(tool_calls=[{"index": 0, "function": {"name": 5}}]),
    ],
)
def test_what_is_not_understood_is_an_error_after_what_came_before(odd: bytes) -> None:
    told = read([chunk(content="so"), odd, chunk("stop"), DONE])
    assert "worker" in failure_of(told)
    assert blocks(told) == ["text so"]


def test_what_is_nobodys_concern_is_left_out() -> None:
    pieces = [
        b": a comment\n\nevent: ping\nid: 7\nretry: 1\n\n",
        event({}),
        event({"choices": None, "usage": None}),
        chunk(content="other", index=1),
        chunk(content="a", audio=None, strange=[1]),
        chunk("stop"),
        DONE,
        b"data: and what comes after the end\n\n",
    ]
    assert blocks(read(pieces)) == ["text a"]


def test_an_answer_without_a_reason_is_cut_but_one_without_its_last_event_is_whole() -> None:
    assert "without a reason" in failure_of(read([chunk(content="a"), DONE]))
    assert "without a reason" in failure_of(read([]))
    reader, out = reader_of(), list[Event]()
    reader.feed(chunk(content="a"), out)
    assert not reader.finished
    reader.feed(chunk("stop"), out)
    assert reader.finished
    reader.end(out)
    assert type(out[-1]) is End


def test_a_last_event_that_nobody_ended_is_heard() -> None:
    assert finish_of(read([chunk(content="a"), chunk("stop").rstrip()])).reason == "stop"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"error": {"message": "no", "code": 400}}, (400, "no", "")),
        ({"error": {"message": "no", "code": "too_long"}}, (0, "no", "too_long")),
        ({"object": "error", "message": "no", "code": 503}, (503, "no", "")),
        ({"error": "no"}, (0, "no", "")),
        ({"error": {"message": {"a": 1}}}, (0, '{"a":1}', "")),
        ({"error": {"code": True}}, (0, "", "")),
        ({"detail": [1]}, (0, "[1]", "")),
        ({"error": {"message": "x" * 5000}}, (0, "x" * 2045 + "…", "")),
    ],
)
def test_errors_are_known_in_all_their_shapes(said: Any, error: tuple[int, str, str]) -> None:
    found = error_of(said)
    assert found is not None
    assert (found.status, found.message, found.code) == error
    reader, out = reader_of(), list[Event]()
    reader.feed(chunk(content="so"), out)
    with pytest.raises(WorkerError):
        reader.feed(event(said), out)


@pytest.mark.parametrize(
    "said", [{}, {"error": None}, {"error": {}}, 5, {"detail": "x", "choices": []}]
)
def test_what_says_no_error_is_none(said: Any) -> None:
    assert error_of(said) is None


def test_a_whole_answer_is_read_by_the_same_rules() -> None:
    message = {
        "content": "Hi",
        "reasoning_content": "hm",
        "tool_calls": [call(None, "{}", name="f")],
    }
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    reader, out = reader_of(), list[Event]()
    reader.feed_whole(json.dumps({"choices": [choice]}).encode(), out)
    reader.end(out)
    assert blocks(out) == ["reasoning hm", "text Hi", "call f({})"]


def test_an_event_beyond_belief_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_lines, "EVENT_MAX_BYTES", 100)
    for piece in (b"x" * 60, b"data: " + b"x" * 60 + b"\n"):
        lines = EventLines()
        lines.feed(piece)
        with pytest.raises(SmgError, match="more than 100 bytes"):
            lines.feed(piece)
    lines = EventLines()
    told = [one for _ in range(9) for one in lines.feed(b"data: " + b"x" * 50 + b"\n\n")]
    assert len(told) == 9
