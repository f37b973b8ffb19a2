"""Turns become contents of a generateContent body: in the order that it insists on, with opaque state on its parts."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.opaque import REDACTED, SIGNATURE, Opaque
from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    MediaPart,
    TextPart,
    ToolCall,
    Turn,
    TurnBlock,
)
from smg_node.dialects.gemini.provider.contents_writer import NO_RESULT
from smg_node.dialects.gemini.signatures import STAND_IN
from support.providers.generate_content import signed
from support.providers.generate_content_wishes import MODELS, PIXEL, wish, wishes, written
from support.tools.example_counts import example_count

HI = Turn("user", "hi")
USER = {"role": "user", "parts": [{"text": "hi"}]}
CALLS = Turn("assistant", None, calls=(ToolCall("1", "f", '{"a":1}'), ToolCall("2", "f", "")))
NEW = "gemini-3-pro-preview"


def contents(*turns: Turn, model: str = "gemini-2.5-flash", **more: Any) -> list[dict[str, Any]]:
    told = written(wish(*turns, **more), model).fields["contents"]
    assert isinstance(told, list)
    return told


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def called(name: str = "f", signature: str = "", **args: Any) -> dict[str, Any]:
    told = {"functionCall": {"name": name, "args": args}}
    return {**told, "thoughtSignature": signature} if signature else told


def result(response: dict[str, Any], name: str = "f") -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": response}}


def told(said: str) -> dict[str, Any]:
    return {"text": said}


def gives(answers: str | None, content: Any, name: str | None = None) -> Turn:
    return Turn("tool", content, name=name, answers_call=answers)


# ── Contents ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("turns", "shown"),
    [
        ([HI], [USER]),
        ([HI, Turn("user", "you"), Turn("assistant", "a"), Turn("assistant", "b"), HI],
         [user(told("hi"), told("you")), model(told("a"), told("b")), USER]),
        ([HI, Turn("assistant", ""), Turn("user", None), HI], [user(told("hi"), told("hi"))]),
        ([Turn("user", (TextPart("a"), TextPart(""), TextPart("b")))], [user(told("a"), told("b"))]),
        ([HI, Turn("assistant", "t", reasoning="hm")], [USER, model(told("t"))]),
    ],
)  # fmt: skip
def test_users_and_model_alternate(turns: list[Turn], shown: list[dict[str, Any]]) -> None:
    assert contents(*turns) == shown


@pytest.mark.parametrize(
    ("turns", "shown"),
    [
        ([gives("2", "b"), gives("1", "a")], [user(result({"output": "a"}), result({"output": "b"}))]),
        ([gives("1", '{"x": [1]}'), gives("2", "{1")], [user(result({"x": [1]}), result({"output": "{1"}))]),
        ([gives("1", None)], [user(result({"output": ""}), result({"error": NO_RESULT}))]),
        ([HI, gives("2", "b")], [user(result({"error": NO_RESULT}), result({"output": "b"}), told("hi"))]),
        ([], [user(result({"error": NO_RESULT}), result({"error": NO_RESULT}))]),
        ([gives(None, "a", "f"), gives(None, "b", "f")], [user(result({"output": "a"}), result({"output": "b"}))]),
        ([gives("1", "a"), gives("2", "b"), gives("1", "c")],
         [user(result({"output": "a"}), result({"output": "b"}), told("Result of a call: c"))]),
        ([gives("9", "c", "g"), gives("1", "a"), gives("2", "b"), Turn("assistant", "t")],
         [user(result({"output": "a"}), result({"output": "b"}), told("Result of g: c")), model(told("t"))]),
        ([gives("1", "a"), gives("2", (TextPart("x"), TextPart("y"))), HI],
         [user(result({"output": "a"}), result({"output": "xy"}), told("hi"))]),
    ],
)  # fmt: skip
def test_every_call_has_its_result_right_behind_it(
    turns: list[Turn], shown: list[dict[str, Any]]
) -> None:
    calls = model(called(a=1), called())
    assert contents(HI, CALLS, *turns) == [USER, calls, *shown]


def test_a_message_that_is_to_be_continued_stays_the_last() -> None:
    assert contents(HI, CALLS, continue_final_message=True) == [USER, model(called(a=1), called())]


def test_what_a_result_shows_stands_in_it_or_behind_all_results() -> None:
    shown = gives("1", (TextPart("see"), MediaPart("image", PIXEL, "m")))
    data = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    old = contents(HI, CALLS, shown, gives("2", "b"))[2]
    assert old == user(result({"output": "see"}), result({"output": "b"}), data)
    new = contents(HI, CALLS, shown, gives("2", "b"), model=NEW)[2]["parts"][0]
    assert new == {
        "functionResponse": {"id": "1", "name": "f", "response": {"output": "see"}, "parts": [data]}
    }


def test_arguments_that_are_no_object_are_told_as_they_are() -> None:
    turn = Turn("assistant", None, calls=(ToolCall("1", "f", '{"a'),))
    assert contents(HI, turn)[1] == model(called(INVALID_JSON='{"a'))


@pytest.mark.parametrize(
    ("source", "part"),
    [
        (PIXEL, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}),
        ("data:;base64,AAAA", {"inlineData": {"mimeType": "text/plain", "data": "AAAA"}}),
        ("data:text/csv;charset=utf-8,a%2Cb", {"inlineData": {"mimeType": "text/csv", "data": "YSxi"}}),
        ("https://x/y.PDF?z=.png#p", {"fileData": {"fileUri": "https://x/y.PDF?z=.png#p", "mimeType": "application/pdf"}}),
        ("https://youtu.be/abc", {"fileData": {"fileUri": "https://youtu.be/abc"}}),
        ("gs://b/c.mp4", {"fileData": {"fileUri": "gs://b/c.mp4", "mimeType": "video/mp4"}}),
    ],
)  # fmt: skip
def test_media_are_data_or_files(source: str, part: dict[str, Any]) -> None:
    assert contents(Turn("user", (MediaPart("file", source, "m"),))) == [user(part)]


@pytest.mark.parametrize("source", ["", "data:image/png"])
def test_media_without_a_source_are_refused_with_their_path(source: str) -> None:
    with pytest.raises(SmgError) as caught:
        contents(Turn("user", (MediaPart("image", source, "messages[0].content[1]"),)))
    assert (caught.value.where, caught.value.code) == (
        "messages[0].content[1]",
        "unsupported_parameter",
    )


@pytest.mark.parametrize(
    ("turns", "stays", "fields"),
    [
        ([Turn("system", "s"), Turn("developer", "d"), HI], False,
         {"systemInstruction": {"parts": [told("s"), told("d")]}, "contents": [USER]}),
        ([HI, Turn("system", "s"), HI], False,
         {"systemInstruction": {"parts": [told("s")]}, "contents": [user(told("hi"), told("hi"))]}),
        ([Turn("system", "s"), HI, Turn("system", "t")], True,
         {"systemInstruction": {"parts": [told("s")]}, "contents": [user(told("hi"), told("t"))]}),
        ([Turn("system", "s")], False, {"contents": [user(told("s"))]}),
        ([Turn("user", "")], False, {"contents": [user(told(" "))]}),
    ],
)  # fmt: skip
def test_instructions_stand_apart_unless_they_have_their_place(
    turns: list[Turn],
    stays: bool,
    fields: dict[str, Any],
) -> None:
    found = written(wish(*turns, systems_stay=stays), "gemini-2.0-flash").fields
    assert found == fields


# ── Opaque state ─────────────────────────────────────────────────────────────

BLOCKS = (
    TurnBlock("reasoning", "hm", opaque=(signed("R"),)),
    TurnBlock("reasoning", "foreign", opaque=(Opaque("anthropic", SIGNATURE, "A"),)),
    TurnBlock("reasoning", "bare"),
    TurnBlock("reasoning", "", opaque=(Opaque("google", REDACTED, "X"), signed("Q"))),
    TurnBlock("text", "a", opaque=(signed("T"),)),
    TurnBlock("text", "b"),
    TurnBlock("text", "", opaque=(signed("E"),)),
    TurnBlock("call", "{}", "f", "1", (signed("C"),)),
    TurnBlock("call", "{}", "g", "2"),
)


def test_opaque_state_of_its_issuer_goes_back_on_the_part_it_stood_on() -> None:
    turn = Turn("assistant", "ab", calls=(ToolCall("1", "f", "{}"),), blocks=BLOCKS)
    assert contents(HI, turn, continue_final_message=True)[1] == model(
        {"text": "hm", "thought": True, "thoughtSignature": "R"},
        {"text": "", "thought": True, "thoughtSignature": "Q"},
        {"text": "a", "thoughtSignature": "T"},
        {"text": "b"},
        {"text": "", "thoughtSignature": "E"},
        called("f", "C"),
        called("g"),
    )


@pytest.mark.parametrize(
    ("name", "signatures"),
    [
        (NEW, [STAND_IN, None, STAND_IN]),
        ("publishers/google/models/gemini-3.5-flash", [STAND_IN, None, STAND_IN]),
        ("gemini-flash-latest", [STAND_IN, None, STAND_IN]),
        ("gemini-2.5-pro", [None, None, None]),
    ],
)
def test_the_first_call_of_a_step_has_a_stand_in_where_its_signature_is_lost(
    name: str, signatures: list[str | None]
) -> None:
    again = Turn("assistant", "so", calls=(ToolCall("3", "f", "{}"),))
    turns = [HI, CALLS, gives("1", "a"), gives("2", "b"), again, gives("3", "c")]
    parts = [part for content in contents(*turns, model=name) for part in content["parts"]]
    found = [part.get("thoughtSignature") for part in parts if "functionCall" in part]
    assert found == signatures


def test_ids_of_calls_are_told_to_models_that_have_some() -> None:
    def ids(name: str, **more: Any) -> list[str | None]:
        fields = written(wish(HI, CALLS, gives("1", "a"), gives("2", "b")), name, **more).fields
        parts = [part for content in fields["contents"][1:] for part in content["parts"]]
        return [next(iter(part.values())).get("id") for part in parts]

    assert ids(NEW) == ["1", "2", "1", "2"]
    assert ids(NEW, quirks=frozenset({"no_call_ids"})) == [None] * 4
    assert ids("gemini-2.5-flash") == [None] * 4


# ── Whatever is asked ────────────────────────────────────────────────────────


@settings(max_examples=example_count(200))
@given(wishes(), st.sampled_from(MODELS))
def test_contents_keep_the_order_that_this_api_insists_on(
    asked: GenerateRequest, name: str
) -> None:
    shown = written(asked, name).fields["contents"]
    [prompt] = asked.prompts
    assert isinstance(prompt, ChatPrompt)
    for before, content in zip([None, *shown], shown, strict=False):
        assert before is None or before["role"] != content["role"]
        assert content["parts"]
        names = [one["functionCall"]["name"] for one in (before or {"parts": []})["parts"] if "functionCall" in one]  # fmt: skip
        results = [one.get("functionResponse", {}).get("name") for one in content["parts"]]
        assert results[: len(names)] == names
        assert not any(results[len(names) :])
    if not prompt.continue_final_message:
        assert not any("functionCall" in part for part in shown[-1]["parts"])
