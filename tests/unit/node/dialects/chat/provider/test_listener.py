"""Listener of vendors' chat answers: what each of them does otherwise, at every cut and whole."""

import json
from typing import Any

import pytest

from smg_node.core.generation.events import BlockEnd, Event, Finish, FinishReason, Usage
from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.dialects.worker_errors import WorkerError, error_of
from support.answers.chat_chunks import (
    DONE,
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


def whole(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> list[Event]:
    """Return the events of an answer that is not streamed."""
    reader, out = reader_of(**more), list[Event]()
    choice = {"index": 0, "message": message, "finish_reason": finish}
    reader.feed_whole(json.dumps({"choices": [choice]}).encode(), out)
    reader.end(out)
    return out


def state(events: list[Event]) -> list[tuple[str, str, tuple[Opaque, ...]]]:
    return [(one.kind, one.text, one.opaque) for one in events if isinstance(one, BlockEnd)]


def detail(**row: Any) -> Opaque:
    text = json.dumps(row, separators=(",", ":"))
    return Opaque("openrouter", "detail", text, row.get("id", ""))


# ── How answers end ──────────────────────────────────────────────────────────


def test_a_refusal_ends_as_one() -> None:
    told = [
        chunk(role="assistant", content="", refusal=None),
        chunk(refusal="I "),
        chunk(refusal="won't"),
    ]
    events = read([*told, chunk("stop"), DONE])
    assert (blocks(events), finish_of(events).reason) == (["refusal I won't"], "refusal")
    assert state(whole({"content": None, "refusal": "I won't"})) == [("refusal", "I won't", ())]


@pytest.mark.parametrize(
    ("reason", "matched", "expected"),
    [
        ("stop", None, "tool_calls"),
        ("stop", 7, "tool_calls"),
        ("stop", "END", "stop"),
        ("length", None, "length"),
        ("content_filter", None, "content_filter"),
        ("model_length", None, "length"),
    ],
)
def test_a_choice_that_stops_after_a_call_has_called(
    reason: str, matched: Any, expected: FinishReason
) -> None:
    last = {"index": 0, "delta": {}, "finish_reason": reason, "stop_reason": matched}
    events = read([calls(call(0, "{}", name="f", call_id="c")), event({"choices": [last]}), DONE])
    assert finish_of(events) == Finish(0, expected, matched)


@pytest.mark.parametrize("reason", ["", None])
def test_a_vendor_may_give_no_reason(reason: str | None) -> None:
    optional = ["finish_optional"]
    told = [chunk(content="Hi"), chunk(reason)]
    events = read([*told, DONE], quirks=optional)
    assert (blocks(events), finish_of(events).reason) == (["text Hi"], "stop")
    called = [calls(call(0, "{}", name="f", call_id="c")), DONE]
    assert finish_of(read(called, quirks=optional)).reason == "tool_calls"
    assert finish_of(whole({"content": "Hi"}, reason, quirks=optional)).reason == "stop"
    unfinished = "the worker ended its answer without a reason"
    assert failure_of(read(told, quirks=optional)) == unfinished
    assert failure_of(read([*told, DONE])) == unfinished
    assert failure_of(read([DONE], quirks=optional)) == unfinished


def test_usage_is_not_the_end() -> None:
    """Azure's first chunk has no choice, OpenAI's moderation comes behind the usage."""
    first = event({"choices": [], "id": "", "model": "", "created": 0, "prompt_filter_results": []})
    last = event({"choices": [], "moderation": {"input": {}}, "usage": None})
    events = read([first, chunk(content="Hi"), chunk("stop"), used(5, 3), last, DONE])
    assert (blocks(events), usage_of(events)) == (["text Hi"], Usage(5, 3, 0))


def test_the_last_usage_counts_also_beside_a_choice() -> None:
    early = {"choices": [{"index": 0, "delta": {"content": "Hi"}}], "usage": {"prompt_tokens": 5}}
    late = {"prompt_tokens": 5, "completion_tokens": 4}
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": late}
    assert usage_of(read([event(early), chunk("stop"), event(last), DONE])) == Usage(5, 4, 0)


def test_tokens_written_into_a_cache_are_told() -> None:
    details = {
        "cached_tokens": 2,
        "cache_write_tokens": 3,
        "cache_write_tokens_details": {"ttl_12h_tokens": 1},
    }
    events = read([chunk("stop", content="x"), used(9, 3, prompt_tokens_details=details)])
    assert usage_of(events) == Usage(9, 3, 2, 0, 3, 1)


# ── Errors in answers ────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "said",
    [
        {"error": {"message": "bad call", "code": "tool_use_failed", "status_code": 400}},
        {"error": {"message": "bad call", "code": "tool_use_failed"}, "status_code": 400},
        {"error": {"message": "bad call", "code": "tool_use_failed", "status": 400}},
    ],
)
def test_a_vendors_error_has_its_status_wherever_it_stands(said: dict[str, Any]) -> None:
    found = error_of(said)
    assert isinstance(found, WorkerError)
    assert (found.status, found.code, found.message) == (400, "tool_use_failed", "bad call")
    assert failure_of(read([chunk(content="x"), event(said)])) == "400 tool_use_failed: bad call"


# ── Thoughts ─────────────────────────────────────────────────────────────────


def test_content_in_parts_has_its_thought_apart() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Why"}]}
    said = {"type": "text", "text": "So"}
    events = read(
        [chunk(content=[thinking]), chunk(content=[said]), chunk(content="!"), chunk("stop")]
    )
    assert blocks(events) == ["reasoning Why", "text So!"]
    assert state(whole({"content": [thinking, said]})) == [
        ("reasoning", "Why", ()),
        ("text", "So", ()),
    ]


SIGNED = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}


def test_details_of_a_thought_are_put_together_and_stand_on_it() -> None:
    rows = [{**SIGNED, "text": "W"}, {**SIGNED, "text": "hy"}, {**SIGNED, "signature": "c2ln"}]
    told = [
        chunk(reasoning="W", reasoning_details=rows[:1]),
        chunk(reasoning="hy", reasoning_details=rows[1:2]),
        chunk(reasoning_details=rows[2:]),
        chunk(content="So"),
        chunk("stop"),
    ]
    expected = [
        ("reasoning", "Why", (detail(**SIGNED, text="Why", signature="c2ln"),)),
        ("text", "So", ()),
    ]
    assert state(read(told)) == expected
    joined = {**SIGNED, "text": "Why", "signature": "c2ln"}
    message = {"content": "So", "reasoning": "Why", "reasoning_details": [joined]}
    assert state(whole(message)) == expected


def test_a_thought_may_be_in_its_details_alone() -> None:
    row = {"type": "reasoning.summary", "summary": "Why", "index": 0}
    told = [chunk(reasoning_details=[row]), chunk(content="So"), chunk("stop")]
    assert state(read(told)) == [("reasoning", "Why", ()), ("text", "So", ())]


def test_details_behind_a_call_wait_for_its_end() -> None:
    row = {"type": "reasoning.encrypted", "data": "ZW5j", "id": "c", "index": 0}
    told = [
        calls(call(0, '{"a":', name="f", call_id="c")),
        chunk(reasoning_details=[row]),
        calls(call(0, "1}")),
        chunk("tool_calls"),
    ]
    assert state(read(told)) == [("call", '{"a":1}', ()), ("reasoning", "", (detail(**row),))]


PROOF: dict[str, Any] = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
GOOGLES = (Opaque("google", SIGNATURE, "c2ln"),)


def test_a_signature_stands_on_its_call_or_text_and_an_empty_id_is_another() -> None:
    signed = {**call(0, "{}", name="f"), "id": "", **PROOF}
    other = {**call(1, "{}", name="g"), "id": ""}
    events = read([calls(signed), calls(other), chunk("stop")])
    assert state(events) == [("call", "{}", GOOGLES), ("call", "{}", ())]
    ids = [one.call_id for one in events if isinstance(one, BlockEnd)]
    assert ids == ["call_1_0", "call_1_1"]
    assert state(whole({"content": None, "tool_calls": [signed]})) == [("call", "{}", GOOGLES)]
    told = [chunk(content="Hi"), chunk(content="", **PROOF), chunk("stop")]
    assert state(read(told)) == [("text", "Hi", GOOGLES)]


@pytest.mark.parametrize(
    "told",
    [
        [
            chunk(reasoning="W", reasoning_details=[{**SIGNED, "text": "W"}]),
            chunk(reasoning_details=[{**SIGNED, "signature": "c2ln"}]),
            calls({**call(0, "{}", name="f", call_id="c"), **PROOF}),
            chunk("stop"),
            used(),
            DONE,
        ],
        [
            chunk(content=[{"type": "thinking", "thinking": "x"}]),
            chunk(refusal="no"),
            chunk("stop"),
        ],
    ],
)
def test_a_stream_means_the_same_at_every_cut(told: list[bytes]) -> None:
    joined = b"".join(told)
    expected = read([joined])
    assert read(bytes([one]) for one in joined) == expected
    for at in range(0, len(joined), 7):
        assert read([joined[:at], joined[at:]]) == expected
