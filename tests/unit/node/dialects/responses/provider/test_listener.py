"""Listener of responses: at every cut, whole, with garbage; what vendors do otherwise."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import Delta as Piece
from smg_node.core.generation.events import Event, TokenLogprob, Usage
from support.answers.vendor_responses import (
    USED,
    blocks_in,
    call,
    event,
    failure_in,
    finish_in,
    heard,
    refused,
    response,
    said,
    searched,
    stream,
    thought,
    usage_in,
    whole_of,
)

ANSWERS: list[tuple[list[dict[str, Any]], list[tuple[Any, ...]], str]] = [
    ([said("Hello")], [("text", "Hello")], "stop"),
    ([refused("I won't")], [("refusal", "I won't")], "refusal"),
    (
        [thought("Why", "Because", data="ZW5j"), said("So")],
        [("reasoning", "Why\n\nBecause", ("openai", "encrypted", "ZW5j", "rs_1")), ("text", "So")],
        "stop",
    ),
    (
        [thought(data="ZW5j"), call(arguments='{"a":1}')],
        [
            ("reasoning", "", ("openai", "encrypted", "ZW5j", "rs_1")),
            ("call", '{"a":1}', "f", "call_1"),
        ],
        "tool_calls",
    ),
    (
        [thought("One", data="MQ=="), thought("Two", data="Mg=="), said("x")],
        [
            ("reasoning", "One", ("openai", "encrypted", "MQ==", "rs_1")),
            ("reasoning", "Two", ("openai", "encrypted", "Mg==", "rs_1")),
            ("text", "x"),
        ],
        "stop",
    ),
    ([thought(content="raw")], [("reasoning", "raw")], "stop"),
    (
        [said("Wait", phase="commentary"), said("Done", phase="final_answer")],
        [
            ("text", "Wait", ("openai", "phase", "commentary", "")),
            ("text", "Done", ("openai", "phase", "final_answer", "")),
        ],
        "stop",
    ),
    ([searched(), said("found")], [("text", "found")], "stop"),
    (
        [call("f", "{}"), call("g", '{"x":[2]}', "call_2")],
        [("call", "{}", "f", "call_1"), ("call", '{"x":[2]}', "g", "call_2")],
        "tool_calls",
    ),
    ([], [], "stop"),
]


@pytest.mark.parametrize(("items", "blocks", "finish"), ANSWERS)
def test_a_stream_and_the_whole_answer_say_the_same(
    items: Any, blocks: list[tuple[Any, ...]], finish: str
) -> None:
    told = stream(*items)
    tools = (("web_search", 1),) if searched() in items else ()
    for events in (
        heard([told]),
        heard(bytes([one]) for one in told),
        heard([told.replace(b"\n", b"\r\n")]),
        whole_of(*items),
    ):
        assert blocks_in(events) == blocks
        assert finish_in(events) == finish
        assert usage_in(events) == Usage(9, 5, 4, 3, 2, 0, server_tools=tools)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(ANSWERS), st.integers(1, 9), st.data())
def test_a_stream_means_the_same_at_every_cut(
    answer: tuple[Any, Any, str], width: int, data: st.DataObject
) -> None:
    items, blocks, _ = answer
    told = stream(*items, width=width)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(told)), max_size=6)))
    pieces = [told[a:b] for a, b in zip([0, *cuts], [*cuts, len(told)], strict=True)]
    assert heard(pieces) == heard([told])
    assert blocks_in(heard(pieces)) == blocks


@pytest.mark.parametrize(("items", "blocks", "finish"), ANSWERS)
def test_what_deltas_left_out_is_taken_from_the_ends(
    items: Any, blocks: list[tuple[Any, ...]], finish: str
) -> None:
    done = b"".join(
        event("response.output_item.done", output_index=at, item=item)
        for at, item in enumerate(items)
    )
    end = event("response.completed", response=response(*items))
    for told in (done + end, end):
        events = heard([told])
        assert (blocks_in(events), finish_in(events)) == (blocks, finish)


def _datas(told: bytes) -> list[bytes]:
    return [part.partition(b"data: ")[2] for part in told.split(b"\n\n") if part]


@pytest.mark.parametrize(
    "frame",
    [
        lambda kind, data: b"data: " + data + b"\n\n",
        lambda kind, data: b"data: " + data + b"\nevent: " + kind + b"\n\n",
        lambda kind, data: b": ping\n\nevent: message\ndata:" + data + b"\n\n",
    ],
)
def test_an_event_is_known_by_its_data_alone(frame: Any) -> None:
    items = [thought("Why", data="ZW5j"), call(arguments='{"a":1}')]
    told = b"".join(
        frame(json.loads(data)["type"].encode(), data) for data in _datas(stream(*items))
    )
    assert heard([told, b"data: [DONE]\n\n"]) == heard([stream(*items)])


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ({"reason": "max_output_tokens"}, "length"),
        ({"reason": "content_filter"}, "content_filter"),
        ({"reason": "steered"}, "length"),
        (None, "length"),
    ],
)
def test_an_incomplete_answer_says_why(reason: Any, finish: str) -> None:
    told = stream(said("Hel"), status="incomplete", incomplete_details=reason)
    assert finish_in(heard([told])) == finish
    assert (
        finish_in(whole_of(said("Hel"), status="incomplete", incomplete_details=reason)) == finish
    )


def test_a_call_that_was_cut_is_told_as_far_as_it_came() -> None:
    half = call(arguments='{"a":')
    told = stream(half, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert blocks_in(heard([told])) == [("call", '{"a":', "f", "call_1")]


def test_an_id_that_is_taken_or_missing_is_another() -> None:
    told = stream(call(call_id="call_0"), call(call_id=""))
    ids = [one[3] for one in blocks_in(heard([told], taken=["call_0"]))]
    assert ids == [f"call_{'f' * 32}_0", f"call_{'f' * 32}_1"]


@pytest.mark.parametrize(
    ("model", "issuer", "expected"),
    [("gpt-x", "", "openai"), ("grok-4", "", "xai"), ("gpt-x", "mine", "mine"), ("", "", "openai")],
)
def test_state_is_of_whose_model_it_was(model: str, issuer: str, expected: str) -> None:
    body = json.dumps(response(thought(data="ZW5j"), said("x"), model=model)).encode()
    [first, _] = blocks_in(heard([body], whole=True, issuer=issuer))
    assert first[2] == (expected, "encrypted", "ZW5j", "rs_1")


def test_log_probabilities_stand_beside_their_text() -> None:
    row = {"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": []}
    place = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
    told = event("response.output_text.delta", **place, delta="Hi", logprobs=[row])
    told += event("response.completed", response=response(said("Hi")))
    rows = [one.logprobs for one in heard([told]) if isinstance(one, Piece)]
    assert rows == [(TokenLogprob(0, "Hi", b"Hi", -0.5, ()),)]


def test_the_answer_is_at_least_what_the_total_leaves() -> None:
    used = {**USED, "output_tokens": 3, "total_tokens": 51}
    told = usage_in(heard([stream(said("x"), usage=used)]))
    assert (told.prompt_tokens, told.completion_tokens) == (9, 42)


def test_an_answer_without_usage_is_estimated() -> None:
    assert usage_in(heard([stream(said("Hello!"), usage=None)])) == Usage(7, 2, 0)


# ── What is no answer ────────────────────────────────────────────────────────

_CREATED = event("response.created", response=response(status="in_progress"))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            event("error", code="rate_limit_exceeded", message="slow", param=None),
            "429 rate_limit_exceeded: slow",
        ),
        (
            event("error", error={"type": "invalid_request_error", "message": "no", "code": None}),
            "400 invalid_request_error: no",
        ),
        (
            event("error", error={"type": "too_many_requests", "code": "429", "message": "slow"}),
            "429 too_many_requests: slow",
        ),
        (event("error", message="?"), "500 : ?"),
        (
            event(
                "response.failed",
                response=response(
                    status="failed", error={"code": "server_error", "message": "broke"}
                ),
            ),
            "500 server_error: broke",
        ),
        (event("response.failed", response={}), "500 : "),
        (b'data: {"error": {"message": "bad", "status_code": 422}}\n\n', "422 : bad"),
        (b"data: <html>\n\n", "the worker's answer is no JSON"),
        (b"data: [1]\n\n", "the worker's answer is no object of JSON"),
        (b"", "the vendor's answer broke off before its end"),
        (b"data: [DONE]\n\n", "the vendor's answer broke off before its end"),
    ],
)
def test_what_is_no_answer_fails(told: bytes, expected: str) -> None:
    assert failure_in(heard([_CREATED + told])) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": {"message": "bad", "code": "x"}}, "500 x: bad"),
        (
            response(status="failed", error={"code": "invalid_prompt", "message": "no"}),
            "400 invalid_prompt: no",
        ),
        (response(status="cancelled"), "the vendor ended its answer before the end of it"),
        (response(status="queued"), "the vendor ended its answer before the end of it"),
        ({"object": "response"}, "the vendor's answer has no output"),
        ({"object": "error", "message": "bad", "code": 400}, "400 : bad"),
    ],
)
def test_a_whole_body_that_is_no_answer_fails(body: Any, expected: str) -> None:
    assert failure_in(heard([json.dumps(body).encode()], whole=True)) == expected


@given(st.integers(0, 2_000))
def test_half_an_answer_is_none(cut: int) -> None:
    told = stream(thought("Why"), said("Hello"))
    last = told.rindex(b"event: response.completed")
    assert failure_in(heard([told[: min(cut, last)]])) != ""


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_garbage_is_more_than_a_failure(data: st.DataObject) -> None:
    """Values are changed anywhere in a good answer; `heard` checks that nothing but known errors comes of it."""
    events = [
        json.loads(one) for one in _datas(stream(thought("Why", data="eA=="), call(), said("x")))
    ]
    odd: Any = (
        st.none() | st.integers(-2, 2) | st.text(max_size=3) | st.just([1]) | st.just({"a": 1})
    )
    for _ in range(data.draw(st.integers(1, 4))):
        target: Any = data.draw(st.sampled_from(events))
        while isinstance(target, dict) and target:
            key = data.draw(st.sampled_from(sorted(target)))
            inside = target[key]
            if isinstance(inside, dict) and data.draw(st.booleans()):
                target = inside
                continue
            target[key] = data.draw(odd)
            break
    told = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events)
    assert heard([told])


@given(st.binary(max_size=60), st.booleans())
def test_no_bytes_are_more_than_a_failure(junk: bytes, whole: bool) -> None:
    events: list[Event] = heard([junk], whole=whole)
    assert failure_in(events) != ""
