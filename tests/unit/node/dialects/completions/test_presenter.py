"""Completions, printed: whole answers and frames, echoes, and the old shape of log probabilities."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types import Completion

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Finish,
    PromptEcho,
    TokenLogprob,
    TopLogprob,
    Usage,
)
from smg_node.dialects.completions.dialect import CompletionsDialect
from smg_node.dialects.options import ReaderOptions
from support.answers.grammatical_streams import streams
from support.answers.sse_client import read_frames

BEGIN = Begin("1", "m", 5, 3)
FIRST = TokenLogprob(1, "Say", b"Say", None, ())
SECOND = TokenLogprob(
    2, ":", b":", -0.5, (TopLogprob(2, ":", b":", -0.5), TopLogprob(3, "!", b"!", -1.5))
)
THIRD = TokenLogprob(4, " hi", b" hi", -2.0, (TopLogprob(5, " ho", b" ho", -0.1),))


def spoken(echo: PromptEcho | None = None, logprobs: tuple[TokenLogprob, ...] = ()) -> list[Event]:
    return [
        BEGIN,
        *([] if echo is None else [echo]),
        BlockStart(0, 0, "text"),
        Delta(0, 0, " hi", 1, logprobs, (4,)),
        BlockEnd(0, 0, "text", " hi"),
        Finish(0, "length"),
        Usage(3, 1, 0),
        End(),
    ]


def presented(
    events: list[Event], **parameters: Any
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    dialect = CompletionsDialect(ReaderOptions())
    body = {"model": "m", "prompt": "Say:", **parameters}
    reading = dialect.read({**body, "stream": True})
    streamed = read_frames(dialect.presenter(reading).frames(events))
    assert streamed.done
    collector = Collector(reading.request.choices)
    collector.feed(events)
    return streamed.chunks, json.loads(dialect.presenter(reading).answer(collector.answer()))


def test_an_answer_has_every_field_clients_read() -> None:
    chunks, answer = presented(spoken())
    assert answer["object"] == "text_completion"
    assert answer["choices"] == [
        {"index": 0, "text": " hi", "logprobs": None, "finish_reason": "length"}
    ]
    assert (answer["id"], answer["created"], answer["model"]) == ("cmpl-1", 5, "m")
    assert answer["usage"]["total_tokens"] == 4
    assert [chunk["choices"][0] for chunk in chunks] == [
        {"index": 0, "text": " hi", "logprobs": None, "finish_reason": None},
        {"index": 0, "text": "", "logprobs": None, "finish_reason": "length"},
    ]
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}


def test_an_echo_stands_before_the_answer() -> None:
    chunks, answer = presented(spoken(PromptEcho(0, "Say:", (1, 2))), echo=True)
    assert answer["choices"][0]["text"] == "Say: hi"
    assert [chunk["choices"][0]["text"] for chunk in chunks] == ["Say:", " hi", ""]


def test_an_echo_nobody_asked_for_is_not_shown() -> None:
    chunks, answer = presented(
        spoken(PromptEcho(0, "Say:", (1, 2), (FIRST, SECOND)), (THIRD,)), logprobs=1
    )
    assert answer["choices"][0]["text"] == " hi"
    assert answer["choices"][0]["logprobs"]["tokens"] == [" hi"]
    assert [chunk["choices"][0]["text"] for chunk in chunks] == [" hi", ""]


def test_log_probabilities_have_the_old_shape_with_offsets_into_the_whole_text() -> None:
    events = spoken(PromptEcho(0, "Say:", (1, 2), (FIRST, SECOND)), (THIRD,))
    chunks, answer = presented(events, echo=True, logprobs=2)
    assert answer["choices"][0]["logprobs"] == {
        "tokens": ["Say", ":", " hi"],
        "token_logprobs": [None, -0.5, -2.0],
        "top_logprobs": [None, {":": -0.5, "!": -1.5}, {" ho": -0.1, " hi": -2.0}],
        "text_offset": [0, 3, 4],
    }
    assert [chunk["choices"][0]["logprobs"] for chunk in chunks] == [
        {
            "tokens": ["Say", ":"],
            "token_logprobs": [None, -0.5],
            "top_logprobs": [None, {":": -0.5, "!": -1.5}],
            "text_offset": [0, 3],
        },
        {
            "tokens": [" hi"],
            "token_logprobs": [-2.0],
            "top_logprobs": [{" ho": -0.1, " hi": -2.0}],
            "text_offset": [4],
        },
        None,
    ]


def test_offsets_count_from_the_echo_even_where_its_tokens_are_not_shown() -> None:
    bos = TokenLogprob(0, "<s>", b"<s>", None, ())
    for known in ((), (bos, FIRST, SECOND)):
        chunks, answer = presented(
            spoken(PromptEcho(0, "Say:", (1, 2), known), (THIRD,)), echo=True, logprobs=1
        )
        assert answer["choices"][0]["logprobs"]["text_offset"][-1] == 4
        assert chunks[1]["choices"][0]["logprobs"]["text_offset"] == [4]


def test_offsets_are_places_in_the_text_that_is_returned() -> None:
    def row(text: str, raw: bytes | None = None) -> TokenLogprob:
        return TokenLogprob(9, text, text.encode() if raw is None else raw, -0.5, ())

    # A token that is not shown, a first word without its space, and a character of three tokens.
    prompt = (
        row("<s>"),
        row(" Say"),
        row("\ufffd", b"\xe2"),
        row("\ufffd", b"\x82\xac"),
        row(" it"),
    )
    said = (row(" é"), row("<|x|>"), row("!"), row("</s>"))
    events: list[Event] = [
        BEGIN,
        PromptEcho(0, "Say€ it", (1, 2, 3, 4, 5), prompt),
        BlockStart(0, 0, "text"),
        Delta(0, 0, " ", 1, said[:1], (4,)),
        Delta(0, 0, "é!", 3, said[1:3], (5, 6)),
        Delta(0, 0, "", 1, said[3:], (7,)),
        BlockEnd(0, 0, "text", " é!"),
        Finish(0, "stop"),
        Usage(5, 4, 0),
        End(),
    ]
    chunks, answer = presented(events, echo=True, logprobs=0)
    offsets = [0, 0, 3, 3, 4, 7, 9, 9, 10]
    assert answer["choices"][0]["logprobs"]["text_offset"] == offsets
    streamed = [chunk["choices"][0]["logprobs"] for chunk in chunks]
    assert [at for rows in streamed if rows for at in rows["text_offset"]] == offsets


def test_the_first_token_of_a_prompt_has_no_probability_whatever_an_engine_says() -> None:
    events = spoken(PromptEcho(0, ": hi", (2, 4), (SECOND, THIRD)), (THIRD,))
    _, answer = presented(events, echo=True, logprobs=2)
    rows = answer["choices"][0]["logprobs"]
    assert rows["token_logprobs"] == [None, -2.0, -2.0]
    assert rows["top_logprobs"][0] is None


def test_a_drawn_part_of_a_character_does_not_hide_a_better_one() -> None:
    best = TopLogprob(8, "\ufffd", b"\xe2", -0.25)
    drawn = TokenLogprob(9, "\ufffd", b"\xf0", -2.0, (best, TopLogprob(9, "\ufffd", b"\xf0", -2.0)))
    chunks, answer = presented(spoken(None, (drawn,)), logprobs=2)
    [told] = answer["choices"][0]["logprobs"]["top_logprobs"]
    assert told == {"\ufffd": -0.25, "bytes:\\xf0": -2.0}
    assert chunks[0]["choices"][0]["logprobs"]["top_logprobs"] == [told]


def test_ids_of_prompt_and_answer_are_returned_when_asked_for() -> None:
    chunks, answer = presented(spoken(PromptEcho(0, "", (1, 2))), return_token_ids=True)
    choice = answer["choices"][0]
    assert (choice["token_ids"], choice["prompt_token_ids"]) == ([4], [1, 2])
    assert chunks[0]["choices"][0]["prompt_token_ids"] == [1, 2]
    assert chunks[1]["choices"][0]["token_ids"] == [4]


def test_prompts_and_answers_are_numbered_through() -> None:
    events: list[Event] = [BEGIN]
    for choice in (3, 0, 2, 1):
        events += [
            BlockStart(choice, 0, "text"),
            Delta(choice, 0, str(choice), 1),
            BlockEnd(choice, 0, "text", str(choice)),
            Finish(choice, "stop"),
        ]
    events += [Usage(3, 4, 0), End()]
    chunks, answer = presented(events, prompt=["a", "b"], n=2)
    assert [choice["text"] for choice in answer["choices"]] == ["0", "1", "2", "3"]
    assert [c["choices"][0]["index"] for c in chunks] == [3, 3, 0, 0, 2, 2, 1, 1]


def test_usage_is_streamed_when_asked_for() -> None:
    options = {"include_usage": True}
    chunks, answer = presented(spoken(), stream_options=options)
    assert [chunk["usage"] for chunk in chunks] == [None, None, answer["usage"]]
    options["continuous_usage_stats"] = True
    chunks, _ = presented(spoken(), stream_options=options)
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == [1, 1, 1]


def test_prompt_log_probabilities_are_shown_by_their_own_name_only() -> None:
    dialect = CompletionsDialect(ReaderOptions())
    events = spoken(PromptEcho(0, "", (1, 2), (FIRST, SECOND)), (THIRD,))
    for parameters, shown in (
        ({"prompt_logprobs": 1}, True),
        ({"echo": True, "logprobs": 1}, False),
    ):
        reading = dialect.read({"model": "m", "prompt": "Say:", **parameters})
        collector = Collector(1)
        collector.feed(events)
        answer = json.loads(dialect.presenter(reading).answer(collector.answer()))
        assert ("prompt_logprobs" in answer["choices"][0]) is shown


@given(st.data())
@settings(max_examples=40)
def test_the_official_sdk_validates_whatever_we_print(data: st.DataObject) -> None:
    logprobs = data.draw(st.none() | st.integers(0, 5))
    events = data.draw(streams(choices=2, kinds=("text",), logprobs=logprobs is not None))
    events = [
        Finish(e.choice, "stop") if isinstance(e, Finish) and e.reason == "tool_calls" else e
        for e in events
    ]
    options = {"include_usage": True}
    chunks, answer = presented(events, n=2, logprobs=logprobs, stream_options=options)
    Completion.model_validate(answer)
    for chunk in chunks:
        choice = chunk["choices"][0] if chunk["choices"] else None
        if choice is not None and choice["finish_reason"] is None:
            # The SDK's type for a chunk is the one for an answer, which has always finished.
            choice["finish_reason"] = "stop"
        Completion.model_validate(chunk)
