"""Vendors' answers in generateContent become events: texts, thoughts, calls, signatures, ends, usage."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import (
    Delta,
    Fail,
    Finish,
    TokenLogprob,
    TopLogprob,
    Usage,
)
from support.providers.generate_content import (
    PROMPT,
    USED,
    answer,
    blocks_in,
    call,
    candidate,
    failure_in,
    finish_in,
    heard,
    made_id,
    piece,
    sse,
    text,
    thought,
    usage_in,
)
from support.tools.example_counts import example_count

RAN: dict[str, Any] = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
SHOWED: dict[str, Any] = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
SEARCHED: dict[str, Any] = {"toolCall": {"id": "t1", "toolType": "X"}, "thoughtSignature": "Zm9v"}
FOUND: dict[str, Any] = {"toolResponse": {"id": "t1"}, "thoughtSignature": "YmFy"}


@pytest.mark.parametrize(
    ("parts", "blocks"),
    [
        ([text("Hel"), text("lo")], [("text", "Hello")]),
        ([thought("hm"), text("Hi")], [("reasoning", "hm"), ("text", "Hi")]),
        ([text("a"), thought("b"), text("c")], [("text", "a"), ("reasoning", "b"), ("text", "c")]),
        ([text("Hi"), text("", thoughtSignature="S")], [("text", "Hi", "S")]),
        ([text("Hi", thoughtSignature="S")], [("text", "Hi", "S")]),
        ([text("a", thoughtSignature="S"), text("b")], [("text", "a", "S"), ("text", "b")]),
        ([thought("hm", thoughtSignature="S"), text("b")], [("reasoning", "hm", "S"), ("text", "b")]),
        ([{"thoughtSignature": "S"}], [("text", "", "S")]),
        ([thought("hm"), text("", thoughtSignature="S")], [("reasoning", "hm"), ("text", "", "S")]),
        ([{"thought": True, "thoughtSignature": "S"}], [("reasoning", "", "S")]),
        ([text("")], []),
        ([], []),
        ([text("a"), RAN, SHOWED, text("b")], [("text", "a"), ("text", "b")]),
        ([SEARCHED, FOUND, text("b")], [("text", "b")]),
        ([text("a"), {"inlineData": {"mimeType": "image/png", "data": "AA=="}}], [("text", "a")]),
        ([{"somethingNew": {}}, text("a", somethingElse=1)], [("text", "a")]),
    ],
)  # fmt: skip
def test_parts_become_blocks(parts: list[dict[str, Any]], blocks: list[tuple[str, ...]]) -> None:
    assert blocks_in(heard([sse(answer(*parts), answer(finish="STOP"))])) == blocks
    assert blocks_in(heard([json.dumps(answer(*parts, finish="STOP")).encode()], whole=True)) == blocks  # fmt: skip


def test_calls_come_whole_each_with_an_id_of_its_own_and_its_signature() -> None:
    calls = [call("f", {"a": 1.0}, "S"), call("g", None), call("f", {"ü": [True]}, id="x1")]
    events = heard([sse(answer(*calls, finish="STOP"))])
    assert blocks_in(events) == [
        ("call", '{"a":1.0}', "f", made_id(0), "S"),
        ("call", "{}", "g", made_id(1)),
        ("call", '{"ü":[true]}', "f", "x1"),
    ]
    assert finish_in(events) == "tool_calls"


def test_an_id_that_was_there_before_or_is_too_long_is_replaced() -> None:
    calls = [call(id="call_0"), call(id="x" * 65), call(id="y"), call(id="y")]
    events = heard([sse(answer(*calls, finish="STOP"))], taken={"call_0", made_id(0)})
    assert [block[3] for block in blocks_in(events)] == [made_id(1), made_id(2), "y", made_id(3)]


def test_a_call_whose_arguments_come_in_pieces_is_one_call() -> None:
    path = "$.where.city"
    more = {"jsonPath": path, "willContinue": True}
    events = heard(
        [
            sse(
                answer({**piece("f", willContinue=True), "thoughtSignature": "S"}),
                answer(piece(pieces=[{**more, "stringValue": "Pa"}], willContinue=True)),
                answer(piece(pieces=[{**more, "stringValue": "ri"}], willContinue=True)),
                answer(
                    piece(
                        pieces=[
                            {"jsonPath": path, "stringValue": "s"},
                            {"jsonPath": "$.days[0]", "numberValue": 2},
                            {"jsonPath": "$['a b']", "nullValue": "NULL_VALUE"},
                        ],
                        willContinue=True,
                    )
                ),
                answer(piece()),
                answer(call("g"), finish="STOP"),
            )
        ]
    )
    assert blocks_in(events) == [
        ("call", '{"where":{"city":"Paris"},"days":[2],"a b":null}', "f", made_id(0), "S"),
        ("call", "{}", "g", made_id(1)),
    ]


@pytest.mark.parametrize("last", [text("x"), call("g"), None])
def test_a_call_that_is_not_said_to_be_over_is_over_when_something_else_comes(
    last: dict[str, Any] | None,
) -> None:
    begun = answer(piece("f", [{"jsonPath": "$.a", "boolValue": True}], willContinue=True))
    events = heard([sse(begun, answer(*[last] if last else [], finish="STOP"))])
    assert blocks_in(events)[0] == ("call", '{"a":true}', "f", made_id(0))
    assert finish_in(events) == "tool_calls"


@pytest.mark.parametrize(
    ("reason", "finish", "with_call"),
    [
        ("STOP", "stop", "tool_calls"),
        ("MAX_TOKENS", "length", "length"),
        ("CONTINUATION", "length", "length"),
        ("SAFETY", "content_filter", "content_filter"),
        ("RECITATION", "content_filter", "content_filter"),
        ("BLOCKLIST", "content_filter", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter", "content_filter"),
        ("SPII", "content_filter", "content_filter"),
        ("MODEL_ARMOR", "content_filter", "content_filter"),
        ("IMAGE_SAFETY", "content_filter", "content_filter"),
        ("OTHER", "content_filter", "content_filter"),
        ("SOMETHING_NEW", "stop", "tool_calls"),
    ],
)
def test_reasons_to_end(reason: str, finish: str, with_call: str) -> None:
    assert finish_in(heard([sse(answer(text("a"), finish=reason))])) == finish
    assert finish_in(heard([sse(answer(text("a"), call(), finish=reason))])) == with_call


@pytest.mark.parametrize(
    "reason",
    [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
    ],
)
def test_an_answer_that_the_model_garbled_is_none(reason: str) -> None:
    events = heard([sse(answer(finish=reason, usageMetadata=USED))])
    assert len(events) == 1
    assert failure_in(events).code == reason.lower()


@pytest.mark.parametrize(
    "body",
    [
        {"candidates": [{"finishReason": "MAX_TOKENS", "index": 0}]},
        {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]},
        {"candidates": [{"content": {}, "finishReason": "MAX_TOKENS"}]},
    ],
)
def test_an_answer_that_went_into_thinking_is_an_empty_one(body: dict[str, Any]) -> None:
    used = {"promptTokenCount": 3, "totalTokenCount": 12, "thoughtsTokenCount": 9}
    for events in (
        heard([sse({**body, "usageMetadata": used})]),
        heard([json.dumps({**body, "usageMetadata": used}).encode()], whole=True),
    ):
        assert events[1:3] == [Finish(0, "length"), Usage(3, 9, 0, 9)]


@pytest.mark.parametrize(
    "more", [{}, {"candidates": []}, {"usageMetadata": {"promptTokenCount": 4}}]
)
def test_a_prompt_that_is_refused_has_an_empty_answer(more: dict[str, Any]) -> None:
    body = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **more}
    for events in (heard([sse(body)]), heard([json.dumps(body).encode()], whole=True)):
        assert blocks_in(events) == []
        assert finish_in(events) == "content_filter"


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ([], Usage(PROMPT, 1, 0)),
        ([{"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}], Usage(5, 2, 0)),
        (
            [{"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 3,
              "toolUsePromptTokenCount": 4, "cachedContentTokenCount": 2, "totalTokenCount": 14}],
            Usage(9, 5, 2, 3),
        ),
        ([{"promptTokenCount": 5, "totalTokenCount": 9}, {"candidatesTokenCount": 3}], Usage(5, 4, 0)),
        ([{"promptTokenCount": 5, "candidatesTokenCount": 1}, {"promptTokenCount": 5, "candidatesTokenCount": 8}], Usage(5, 8, 0)),
        ([{"candidatesTokenCount": 2, "totalTokenCount": 99}], Usage(PROMPT, 2, 0)),
        ([{"promptTokenCount": -1, "candidatesTokenCount": True, "cachedContentTokenCount": "9"}], Usage(PROMPT, 1, 0)),
        ([{"promptTokenCount": 5, "cachedContentTokenCount": 50}], Usage(5, 0, 5)),
    ],
)  # fmt: skip
def test_usage_counts_thoughts_and_tools(told: list[dict[str, Any]], usage: Usage) -> None:
    first, *rest = told or [{}]
    events = [answer(text("a"), usageMetadata=first)]
    last = answer(finish="STOP", **({"usageMetadata": rest[0]} if rest else {}))
    assert usage_in(heard([sse(*events, last)])) == usage


def test_log_probabilities_go_with_the_text() -> None:
    top = {"token": "H", "tokenId": 4, "logProbability": -0.5}
    rows = {"chosenCandidates": [top, {"token": "i"}], "topCandidates": [{"candidates": [top]}]}
    said = candidate(thought("hm"), text("Hi"), finish="STOP", logprobsResult=rows)
    [delta] = [
        event
        for event in heard([sse({"candidates": [said]})])
        if isinstance(event, Delta) and event.text == "Hi"
    ]
    assert delta.logprobs == (
        TokenLogprob(4, "H", b"H", -0.5, (TopLogprob(4, "H", b"H", -0.5),)),
        TokenLogprob(0, "i", b"i", -9999.0, ()),
    )


def test_candidates_that_nobody_asked_for_are_passed_over() -> None:
    others = [candidate(text("x"), finish="SAFETY", index=1), candidate(index=-1)]
    events = heard(
        [
            sse(
                {"candidates": [*others, candidate(text("a"))]},
                {"candidates": [candidate(text("b"), finish="STOP"), *others]},
            )
        ]
    )
    assert blocks_in(events) == [("text", "ab")]
    assert finish_in(events) == "stop"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}', "503 UNAVAILABLE busy"),
        (b'[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]', "429 RESOURCE_EXHAUSTED slow"),
        (b'{"error":{"code":400,"message":"no"}}', "400  no"),
        (b"<html></html>", "the vendor's answer is no JSON"),
        (b"7", "the vendor's answer is no object of JSON"),
        (b'{"candidates":7}', "the vendor's answer has something else where a list of objects belongs"),
        (b'{"candidates":[{"content":{"parts":[{"text":7}]}}]}', "the vendor's answer has something else where text belongs"),
        (b'{"candidates":[{"content":{"parts":[{"functionCall":{"args":{}}}]}}]}', "the vendor called a function without its name"),
        (b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":[]}}]}}]}', "the vendor's answer has something else where an object belongs"),
        (b'{"candidates":[{"index":1,"finishReason":"STOP"}]}', "the vendor ended its answer without a reason"),
        (b"{}", "the vendor ended its answer without a reason"),
        (b'{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}', "the vendor ended its answer without a reason"),
        (b'{"candidates":[{"finishReason":"FINISH_REASON_UNSPECIFIED"}]}', "the vendor ended its answer without a reason"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_said_to_be_none(body: bytes, says: str) -> None:
    assert failure_in(heard([body], whole=True)).message == says
    assert failure_in(heard([b"data: " + body + b"\n\n"])).message == says


def test_an_error_after_the_first_words_ends_them() -> None:
    events = heard([sse(answer(text("a")), {"error": {"code": 500, "message": "oh"}})])
    assert blocks_in(events) == [("text", "a")]
    assert failure_in(events).message == "500  oh"


# ── However it comes ─────────────────────────────────────────────────────────

WORDS = st.text(st.characters(codec="utf-8"), max_size=5)
SIGNATURES = st.sampled_from([{}, {}, {"thoughtSignature": "c2ln"}])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
PARTS = st.one_of(
    st.builds(lambda said, more: text(said, **more), WORDS, SIGNATURES),
    st.builds(lambda said, more: thought(said, **more), WORDS, SIGNATURES),
    st.builds(
        lambda args, more: {**call("f", args), **more},
        st.dictionaries(WORDS, VALUES, max_size=2),
        SIGNATURES,
    ),
    st.sampled_from([RAN, SEARCHED]),
)
ANSWERS = st.lists(st.lists(PARTS, max_size=3), max_size=4)


@settings(max_examples=example_count(150))
@given(st.data(), ANSWERS)
def test_however_an_answer_is_cut_or_sent_it_says_the_same(
    data: st.DataObject, said: list[list[dict[str, Any]]]
) -> None:
    last = answer(finish="STOP", usageMetadata=USED)
    stream = [*(answer(*parts) for parts in said), last]
    raw = sse(*stream)
    events = heard([raw])
    places = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    pieces = [raw[a:b] for a, b in zip([0, *places], [*places, len(raw)], strict=True)]
    assert heard(pieces) == events
    assert heard([raw[at : at + 1] for at in range(len(raw))]) == events
    parts = [part for each in said for part in each]
    for body in (stream, {**answer(*parts, finish="STOP"), "usageMetadata": USED}):
        whole = heard([json.dumps(body, indent=2).encode()], whole=True)
        assert blocks_in(whole) == blocks_in(events)
        assert [one for one in whole if isinstance(one, Finish | Usage)] == [
            one for one in events if isinstance(one, Finish | Usage)
        ]


GARBAGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS | PARTS,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            [
                "candidates", "content", "parts", "text", "thought", "functionCall", "name", "args", "partialArgs",
                "jsonPath", "stringValue", "numberValue", "willContinue", "finishReason", "index", "error", "code",
                "promptFeedback", "blockReason", "usageMetadata", "promptTokenCount", "logprobsResult",
                "chosenCandidates", "topCandidates", "token", "thoughtSignature",
            ]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=example_count(300))
@given(st.lists(GARBAGE, max_size=3))
def test_garbage_is_an_answer_or_an_error_and_always_in_order(values: list[Any]) -> None:
    raw = b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values)
    events = heard([raw])
    assert isinstance(events[-1], Fail) or any(isinstance(event, Finish) for event in events)
    for value in values:
        assert heard([json.dumps(value).encode()], whole=True)


@settings(max_examples=example_count(150))
@given(st.lists(st.binary(max_size=20), max_size=4))
def test_bytes_of_any_kind_are_an_error(pieces: list[bytes]) -> None:
    assert isinstance(heard(pieces)[-1], Fail)
    assert isinstance(heard(pieces, whole=True)[-1], Fail)
