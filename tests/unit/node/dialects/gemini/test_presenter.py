"""generateContent, printed: whole answers, events and arrays, byte for byte."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    FinishReason,
    TokenLogprob,
    TopLogprob,
    Usage,
)
from smg_node.dialects.gemini.presenter import KEEPALIVE
from smg_node.dialects.gemini.signatures import signature_of, thought_in
from support.answers.gemini_bodies import HI, SEALS, parsed, presenter_of
from support.answers.grammatical_streams import streams
from support.tools.example_counts import example_count

BEGIN = Begin("1", "m", 5, 3)
SEALED = signature_of("hm", SEALS, tenant="acme", model="m")
THOUGHT: list[Event] = [
    BlockStart(0, 0, "reasoning"),
    Delta(0, 0, "hm", 1),
    BlockEnd(0, 0, "reasoning", "hm"),
]
TEXT: list[Event] = [
    BlockStart(0, 1, "text"),
    Delta(0, 1, "Hi", 1),
    Delta(0, 1, "\u2028é", 1),
    BlockEnd(0, 1, "text", "Hi\u2028é"),
]
CALL: list[Event] = [
    BlockStart(0, 2, "call", "f", "call_1"),
    Delta(0, 2, '{"a":', 1),
    Delta(0, 2, "1}", 1),
    BlockEnd(0, 2, "call", '{"a":1}', "f", "call_1"),
]
OVER: list[Event] = [Finish(0, "stop"), Usage(3, 4, 2, 1), End()]
USAGE = {
    "promptTokenCount": 3,
    "candidatesTokenCount": 3,
    "totalTokenCount": 7,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 3}],
    "cachedContentTokenCount": 2,
    "thoughtsTokenCount": 1,
}
FOUND = {"modelVersion": "m", "responseId": "1"}


def content(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, **more, "index": 0}
    return {"candidates": [candidate], **FOUND}


def written(events: list[Event], *, alt: str = "sse", **config: Any) -> bytes:
    body = {"contents": [HI], "generationConfig": config}
    presenter = presenter_of(parsed(body, "streamGenerateContent", alt))
    return b"".join(presenter.frames([event]) for event in events)


def read(raw: bytes) -> list[dict[str, Any]]:
    """Return the frames of a stream of events as these clients read it: nothing but data lines."""
    assert raw.endswith(b"\r\n\r\n")
    frames = raw.split(b"\r\n\r\n")[:-1]
    assert all(frame.startswith(b"data: ") for frame in frames)
    assert all(len(frame.decode().splitlines()) == 1 for frame in frames)
    return [json.loads(frame.removeprefix(b"data: ")) for frame in frames]


def whole(events: list[Event], **config: Any) -> dict[str, Any]:
    reading = parsed({"contents": [HI], "generationConfig": config})
    collector = Collector(reading.request.choices)
    collector.feed(events)
    answer: dict[str, Any] = json.loads(presenter_of(reading).answer(collector.answer()))
    return answer


SHOWN: dict[str, Any] = {"thinkingConfig": {"includeThoughts": True}}


def test_a_stream_is_its_parts_and_its_last_frame_has_the_usage() -> None:
    assert read(written([BEGIN, *TEXT, *OVER])) == [
        content({"text": "Hi"}),
        content({"text": "\u2028é"}),
        {**content({"text": ""}, finishReason="STOP"), "usageMetadata": USAGE},
    ]


def test_the_bytes_of_a_frame() -> None:
    first, *_ = written([BEGIN, *TEXT, *OVER]).split(b"\r\n\r\n")
    assert first == (
        b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"index":0}],'
        b'"modelVersion":"m","responseId":"1"}'
    )


def test_a_thought_is_carried_by_the_call_it_led_to() -> None:
    frames = read(written([BEGIN, *THOUGHT, *TEXT, *CALL, *OVER]))
    called = {"functionCall": {"id": "call_1", "name": "f", "args": {"a": 1}}}
    assert frames[2:] == [
        content({**called, "thoughtSignature": SEALED}),
        {**content({"text": ""}, finishReason="STOP"), "usageMetadata": USAGE},
    ]


def test_without_a_call_a_thought_is_carried_by_the_end() -> None:
    *_, last = read(written([BEGIN, *THOUGHT, *TEXT, *OVER]))
    assert last["candidates"][0]["content"]["parts"] == [{"text": "", "thoughtSignature": SEALED}]
    assert thought_in(SEALED, SEALS, tenant="acme", model="m") == "hm"


def test_thoughts_are_shown_only_where_they_are_asked_for() -> None:
    events = [BEGIN, *THOUGHT, *TEXT, *OVER]
    assert read(written(events, **SHOWN))[0] == content({"thought": True, "text": "hm"})
    assert read(written(events))[0] == content({"text": "Hi"})
    parts = whole(events, **SHOWN)["candidates"][0]["content"]["parts"]
    assert parts == [
        {"thought": True, "text": "hm"},
        {"text": "Hi\u2028é", "thoughtSignature": SEALED},
    ]
    hidden = whole(events)["candidates"][0]["content"]["parts"]
    assert hidden == parts[1:]


def test_a_whole_answer() -> None:
    answer = whole([BEGIN, *TEXT, *CALL, *OVER])
    called = {"functionCall": {"id": "call_1", "name": "f", "args": {"a": 1}}}
    assert answer == {
        **content({"text": "Hi\u2028é"}, called, finishReason="STOP"),
        "usageMetadata": USAGE,
    }


def test_an_answer_without_a_word_still_has_a_part() -> None:
    assert whole([BEGIN, *OVER]) == {
        **content({"text": ""}, finishReason="STOP"),
        "usageMetadata": USAGE,
    }
    only_thought = whole([BEGIN, *THOUGHT, *OVER])["candidates"][0]["content"]["parts"]
    assert only_thought == [{"text": "", "thoughtSignature": SEALED}]


@pytest.mark.parametrize(
    ("arguments", "args"),
    [
        ("", {}),
        ('{"a":\n 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a":', {"INVALID_JSON": '{"a":'}),
        ("[1]", {"INVALID_JSON": "[1]"}),
    ],
)
def test_arguments_are_an_object_whatever_was_printed(arguments: str, args: Any) -> None:
    block = BlockEnd(0, 0, "call", arguments, "f", "call_1")
    events: list[Event] = [BEGIN, BlockStart(0, 0, "call", "f", "call_1"), block, *OVER]
    for frame in (read(written(events))[0], whole(events)):
        (part, *_) = frame["candidates"][0]["content"]["parts"]
        assert part["functionCall"]["args"] == args


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("stop", "STOP"),
        ("tool_calls", "STOP"),
        ("length", "MAX_TOKENS"),
        ("content_filter", "SAFETY"),
    ],
)
def test_why_an_answer_ended(reason: FinishReason, told: str) -> None:
    events = [BEGIN, *TEXT, Finish(0, reason), Usage(3, 4, 0), End()]
    assert read(written(events))[-1]["candidates"][0]["finishReason"] == told
    answer = whole(events)
    assert answer["candidates"][0]["finishReason"] == told
    assert set(answer["usageMetadata"]) == {
        "promptTokenCount",
        "candidatesTokenCount",
        "totalTokenCount",
        "promptTokensDetails",
    }


def test_a_failure_is_an_error_and_nothing_follows() -> None:
    fail = Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died"))
    error = {"error": {"code": 502, "message": "the engine died", "status": "UNAVAILABLE"}}
    assert read(written([BEGIN, *TEXT, fail]))[2:] == [error]
    assert json.loads(written([BEGIN, *TEXT, fail], alt=""))[2:] == [error]
    assert json.loads(written([fail], alt="")) == [error]


def test_without_alt_a_stream_is_one_array_that_grows() -> None:
    events = [BEGIN, *THOUGHT, *TEXT, *CALL, *OVER]
    raw = written(events, alt="", **SHOWN)
    assert json.loads(raw) == read(written(events, **SHOWN))
    assert raw.startswith(b'[\r\n{"candidates"')
    assert raw.endswith(b"}\r\n]")


def test_candidates_have_their_own_ends_and_the_last_one_the_usage() -> None:
    events: list[Event] = [
        BEGIN,
        *(BlockStart(choice, 0, "text") for choice in (0, 1)),
        Delta(1, 0, "b", 1),
        Delta(0, 0, "a", 1),
        *(BlockEnd(choice, 0, "text", "ab"[choice]) for choice in (0, 1)),
        Finish(1, "length"),
        Finish(0, "stop"),
        Usage(3, 2, 0),
        End(),
    ]
    frames = read(written(events, candidateCount=2))
    assert [frame["candidates"][0]["index"] for frame in frames] == [1, 0, 1, 0]
    assert ["usageMetadata" in frame for frame in frames] == [False, False, False, True]
    assert [frame["candidates"][0].get("finishReason") for frame in frames] == [
        None,
        None,
        "MAX_TOKENS",
        "STOP",
    ]


def test_log_probabilities_go_with_their_text() -> None:
    row = TokenLogprob(
        7, "Hi", b"Hi", -0.5, (TopLogprob(7, "Hi", b"Hi", -0.5), TopLogprob(8, "Ho", b"Ho", -1.5))
    )
    events: list[Event] = [
        BEGIN,
        BlockStart(0, 0, "text"),
        Delta(0, 0, "Hi", 1, (row,)),
        BlockEnd(0, 0, "text", "Hi"),
        *OVER,
    ]  # fmt: skip
    chosen = {"token": "Hi", "tokenId": 7, "logProbability": -0.5}
    other = {"token": "Ho", "tokenId": 8, "logProbability": -1.5}
    told = {"chosenCandidates": [chosen], "topCandidates": [{"candidates": [chosen, other]}]}
    config: dict[str, Any] = {"responseLogprobs": True, "logprobs": 2}
    assert read(written(events, **config))[0]["candidates"][0]["logprobsResult"] == told
    (candidate,) = whole(events, **config)["candidates"]
    assert (candidate["logprobsResult"], candidate["avgLogprobs"]) == (told, -0.5)


def test_plain_text_has_a_template_that_gives_the_same_bytes() -> None:
    for alt in ("sse", ""):
        presenter = presenter_of(parsed({"contents": [HI]}, "streamGenerateContent", alt))
        presenter.frames([BEGIN, BlockStart(0, 0, "text")])
        first = presenter.frames([Delta(0, 0, "a", 1)])
        around = presenter.around()
        assert around is not None
        made = around.head + around.text("b") + around.tail
        assert made == presenter.frames([Delta(0, 0, "b", 1)])
        assert (first == made.replace(b'"b"', b'"a"')) is (alt == "sse")
        presenter.frames([BlockEnd(0, 0, "text", "ab")])
        assert presenter.around() is None


def test_an_array_has_no_template_before_its_first_element() -> None:
    presenter = presenter_of(parsed({"contents": [HI]}, "streamGenerateContent"))
    presenter.frames([BEGIN, BlockStart(0, 0, "text")])
    assert presenter.around() is None


def test_the_keepalive_is_a_frame_with_a_part_that_says_nothing() -> None:
    (frame,) = read(KEEPALIVE)
    assert frame == {"candidates": content({"text": ""})["candidates"]}


def joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return parts with neighbouring texts of a kind as one, and without empty ones."""
    told: list[dict[str, Any]] = []
    for part in parts:
        alike = told and "text" in part and "text" in told[-1] and part.get("thought") == told[-1].get("thought")  # fmt: skip
        if alike and "thoughtSignature" not in told[-1]:
            told[-1] = {**told[-1], **part, "text": told[-1]["text"] + part["text"]}
        elif part.get("text") != "" or "thoughtSignature" in part:
            told.append(part)
    return told


@settings(max_examples=example_count(150), deadline=None)
@given(
    st.integers(1, 2).flatmap(lambda n: st.tuples(st.just(n), streams(choices=n))),
    st.booleans(),
    st.booleans(),
)
def test_a_stream_adds_up_to_the_whole_answer(
    told: tuple[int, list[Event]], shown: bool, array: bool
) -> None:
    choices, events = told
    config: dict[str, Any] = {"candidateCount": choices, **(SHOWN if shown else {})}
    raw = written(events, alt="" if array else "sse", **config)
    frames = json.loads(raw) if array else read(raw)
    answer = whole(events, **config)
    for index in range(choices):
        parts = [part for frame in frames for candidate in frame["candidates"] if candidate["index"] == index for part in candidate["content"]["parts"]]  # fmt: skip
        assert joined(parts) == joined(answer["candidates"][index]["content"]["parts"])
    assert frames[-1]["usageMetadata"] == answer["usageMetadata"]


@settings(max_examples=example_count(80), deadline=None)
@given(streams(failing=True), st.booleans())
def test_a_stream_that_fails_ends_with_its_error_wherever_that_is(
    events: list[Event], array: bool
) -> None:
    raw = written(events, alt="" if array else "sse")
    frames = json.loads(raw) if array else read(raw)
    failed = isinstance(events[-1], Fail)
    assert ["error" in frame for frame in frames] == [False] * (len(frames) - 1) + [failed]
