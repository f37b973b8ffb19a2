"""What a stand-in says: decided by words of the user, cut by stop strings and lengths."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.vendor.answers.answer import Draft
from smg_chaos.vendor.answers.composer import compose
from smg_chaos.vendor.answers.conversation import Conversation, Tool
from smg_chaos.vendor.answers.token_counts import pieces_of, slices_of, text_tokens

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [Tool("weather", CITY), Tool("clock", {"type": "object"})]


def said(text: str, script: tuple[str, ...] = (), **fields: Any) -> Draft:
    return compose(Conversation(model="m", said=text, turns=1, **fields), script)


def called(text: str, **fields: Any) -> list[tuple[str, Any]]:
    fields.setdefault("tools", TOOLS)
    return [(call.name, call.arguments) for call in said(text, **fields).calls]


@pytest.mark.parametrize(
    ("text", "fields", "answer", "ending"),
    [
        ("hello", {}, "You said: hello (turns=1)", "stop"),
        (
            "hello",
            {"tools": TOOLS, "images": 2},
            "You said: hello (turns=1 tools=2 images=2)",
            "stop",
        ),
        ("hello", {"system": "be kind"}, "You said: hello (turns=1 system=7)", "stop"),
        ("hello", {"script": ("as", " written")}, "as written", "stop"),
        ("words=4", {}, "so on on on", "stop"),
        ("refuse", {}, "I will not help with that.", "refusal"),
        ("filter", {}, "I must", "filter"),
        ("mute", {}, "", "stop"),
        ("hello", {"results": ["a", "b"]}, "The results are: a; b", "stop"),
        ("hello", {"answer_max": 2}, "You said:", "length"),
        ("hello", {"stops": ["lo", "said"]}, "You ", "stop_sequence"),
        ("city=Oslo", {"schema": CITY}, '{"city":"Oslo"}', "stop"),
        ("hello", {"wants_json": True}, "{}", "stop"),
    ],
)
def test_words_and_wishes_decide_the_text(text: str, fields: Any, answer: str, ending: str) -> None:
    draft = said(text, fields.pop("script", ()), **fields)
    assert ("".join(draft.text), draft.ending) == (answer, ending)


@pytest.mark.parametrize(
    ("text", "fields", "calls"),
    [
        ("what is the weather", {}, [("weather", {"city": "text"})]),
        ("call clock city=Rome", {}, [("clock", {})]),
        ("call all city=Rome", {}, [("weather", {"city": "Rome"}), ("clock", {})]),
        ("call all", {"parallel": False}, [("weather", {"city": "text"})]),
        ("call it", {}, [("weather", {"city": "text"})]),
        ("hello", {"choice": "any"}, [("weather", {"city": "text"})]),
        ("hello", {"choice": "named", "named": "clock"}, [("clock", {})]),
        ("call all", {"choice": "none"}, []),
        ("call all", {"tools": []}, []),
        ("hello", {}, []),
        ("weather", {"rounds": 1, "results": ["r"]}, []),
        ("weather rounds=2", {"rounds": 1, "results": ["r"]}, [("weather", {"city": "text"})]),
    ],
)
def test_tools_are_called_when_they_are_offered_and_asked_for(
    text: str, fields: Any, calls: Any
) -> None:
    assert called(text, **fields) == calls


def test_a_call_comes_alone_unless_something_is_to_be_said_as_well() -> None:
    assert said("call clock", tools=TOOLS).text == ()
    both = said("say it and call clock", tools=TOOLS)
    assert (bool(both.text), len(both.calls)) == (True, 1)


def test_a_thought_is_about_the_question_and_then_about_the_results() -> None:
    assert "".join(said("why", thinks=True).thought) == "I think about: why"
    assert "".join(said("why", thinks=True, results=["42"]).thought) == "I think about: 42"
    assert said("why").thought == ()
    assert said("redact", thinks=True).redacted


@pytest.mark.parametrize(
    ("most", "thought", "text", "calls"),
    [(1, 1, 0, 0), (5, 5, 0, 0), (6, 5, 1, 0), (11, 5, 6, 0), (12, 5, 6, 1), (20, 5, 6, 1)],
)
def test_a_length_cuts_the_thought_first_and_never_a_call(
    most: int, thought: int, text: int, calls: int
) -> None:
    draft = said("say clock", thinks=True, tools=TOOLS, answer_max=most)
    assert (len(draft.thought), len(draft.text), len(draft.calls)) == (thought, text, calls)
    assert draft.ending == ("calls" if calls else "length")


@given(st.text(max_size=200))
def test_pieces_are_the_text_and_none_is_empty(text: str) -> None:
    pieces = pieces_of(text)
    assert "".join(pieces) == text
    assert all(pieces)


@given(st.text(max_size=200))
def test_slices_are_the_text(text: str) -> None:
    assert "".join(slices_of(text)) == text


@pytest.mark.parametrize(("text", "tokens"), [(b"", 3), (b"a", 4), (b"abcd", 4), (b"abcde", 5)])
def test_four_bytes_of_a_prompt_are_a_token(text: bytes, tokens: int) -> None:
    assert text_tokens(text) == tokens


def test_what_is_said_follows_from_the_request_alone() -> None:
    assert said("call all city=Rome", tools=TOOLS) == said("call all city=Rome", tools=TOOLS)
