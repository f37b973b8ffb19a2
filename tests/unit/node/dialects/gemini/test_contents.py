"""Contents to turns: neighbours, thoughts and their signatures, calls and results."""

import base64
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaPart, TextPart, ToolCall, Turn
from smg_node.dialects.gemini.signatures import signature_of
from smg_node.media.sources import InlineSource, decoded, source_of
from support.answers.gemini_bodies import HI, SEALS, prompt_of, request_of, turns_of


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def call(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"a": 1}, **more}}


def result(name: str = "f", response: Any = None, **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": response or {}, **more}}


def sealed(thought: str, tenant: str = "acme", name: str = "m") -> str:
    return signature_of(thought, SEALS, tenant=tenant, model=name)


def test_texts_are_turns_and_one_text_is_a_string() -> None:
    assert turns_of(user({"text": "a"}), model({"text": "b"}), {"parts": [{"text": "c"}, {"text": "d"}]}) == (
        Turn("user", "a"),
        Turn("assistant", "b"),
        Turn("user", (TextPart("c"), TextPart("d"))),
    )  # fmt: skip


@pytest.mark.parametrize("key", ["systemInstruction", "system_instruction"])
def test_an_instruction_comes_first(key: str) -> None:
    assert prompt_of(**{key: {"parts": [{"text": "be"}]}}).turns == (
        Turn("system", "be"),
        Turn("user", "hi"),
    )


def test_the_frames_of_a_stream_are_one_turn_again() -> None:
    frames = [model({"text": text}) for text in ("Hel", "lo", "")]
    assert turns_of(HI, *frames, HI)[1] == Turn("assistant", "Hello")


def test_a_turn_with_nothing_in_it_is_none() -> None:
    assert turns_of(HI, model({"text": ""}), model({"text": "x", "thought": True})) == (
        Turn("user", "hi"),
    )


@pytest.mark.parametrize("sent", ["+/+/+w==", "-_-_-w==", "+/+/+w", "-_-_-w", "+_-/-w="])
def test_inline_data_come_in_either_alphabet_with_or_without_padding(sent: str) -> None:
    (turn,) = turns_of(user({"inlineData": {"mimeType": "image/png", "data": sent}}))
    part = (turn.content or ())[0]
    assert isinstance(part, MediaPart)
    assert part.source == "data:image/png;base64,+/+/+w=="
    source = source_of(part, bytes_max=100)
    assert isinstance(source, InlineSource)
    assert decoded(source, part) == b"\xfb\xff\xbf\xfb"


@pytest.mark.parametrize("more", [0, 1, 2])
def test_large_inline_data_are_read_whole(more: int) -> None:
    data = b"\xfb\xff\xbf" * (1 << 18) + bytes(more)
    sent = base64.urlsafe_b64encode(data).decode().rstrip("=")
    (turn,) = turns_of(user({"inlineData": {"mimeType": "image/png", "data": sent}}))
    part = (turn.content or ())[0]
    assert isinstance(part, MediaPart)
    assert part.source.partition(",")[2] == base64.b64encode(data).decode()


def test_media_are_parts_of_a_question() -> None:
    turns = turns_of(
        user(
            {"text": "what?"},
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
            {"inline_data": {"mime_type": "application/pdf", "data": "BBBB"}},
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://x/y.mp4"}},
        )
    )
    assert turns[0].content == (
        TextPart("what?"),
        MediaPart("image", "data:image/png;base64,AAAA", "contents[0].parts[1].inlineData"),
        MediaPart("file", "data:application/pdf;base64,BBBB", "contents[0].parts[2].inline_data"),
        MediaPart("video", "https://x/y.mp4", "contents[0].parts[3].fileData"),
    )


# ── Calls and results ────────────────────────────────────────────────────────


def test_results_answer_calls_by_id() -> None:
    turns = turns_of(
        HI,
        model(call(id="one"), call(id="two")),
        user(result(id="two", response={"output": "2"}), result(id="one", response={"x": 1})),
    )
    assert turns[1].calls == (ToolCall("one", "f", '{"a":1}'), ToolCall("two", "f", '{"a":1}'))
    assert [(turn.role, turn.answers_call, turn.content) for turn in turns[2:]] == [
        ("tool", "two", "2"),
        ("tool", "one", '{"x":1}'),
    ]


def test_results_without_ids_answer_calls_by_name_and_order() -> None:
    turns = turns_of(
        HI,
        model(call("f"), call("g"), call("f")),
        user(result("f"), result("g"), result("f"), {"text": "so?"}),
    )
    ids = [made.call_id for made in turns[1].calls]
    assert len(set(ids)) == 3
    assert [turn.answers_call for turn in turns[2:5]] == ids
    assert turns[5] == Turn("user", "so?")


def test_a_client_may_give_its_own_ids_to_calls_that_had_none() -> None:
    turns = turns_of(HI, model(call("f")), user(result("f", id="mine")))
    assert turns[2].answers_call == turns[1].calls[0].call_id


def test_the_same_history_gets_the_same_ids() -> None:
    contents = [HI, model(call("f")), user(result("f"))]
    assert turns_of(*contents) == turns_of(*contents)


def test_a_result_that_answers_nothing_is_refused() -> None:
    with pytest.raises(SmgError) as caught:
        turns_of(HI, model(call("f")), user(result("f"), result("f")))
    assert caught.value.where == "contents[2].parts[1].functionResponse"


@pytest.mark.parametrize(
    ("response", "content"),
    [
        ({}, "{}"),
        ({"output": "text"}, "text"),
        ({"output": {"a": [1]}}, '{"a":[1]}'),
        ({"error": "bad"}, '{"error":"bad"}'),
        ({"output": "x", "more": 1}, '{"output":"x","more":1}'),
        ({"result": "x"}, '{"result":"x"}'),
    ],
)
def test_a_result_is_its_output_or_all_of_it(response: dict[str, Any], content: str) -> None:
    assert turns_of(HI, model(call()), user(result(response=response)))[2].content == content


def test_a_result_may_show_something() -> None:
    shown = [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]
    turn = turns_of(HI, model(call()), user(result(parts=shown)))[2]
    where = "contents[2].parts[0].functionResponse.parts[0].inlineData"
    assert turn.content == (
        TextPart("{}"),
        MediaPart("image", "data:image/png;base64,AAAA", where),
    )


# ── Thoughts ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("parts", "reasoning"),
    [
        ([{"text": "hm", "thought": True}, {"text": "x"}], "hm"),
        ([{"text": "h", "thought": True}, {"text": "m", "thought": True}, {"text": "x"}], "hm"),
        ([{"text": "x", "thoughtSignature": sealed("hm")}], "hm"),
        ([{"text": "x", "thought_signature": sealed("hm")}], "hm"),
        ([{"text": "x"}, {"thoughtSignature": sealed("hm")}], "hm"),
        # The text counts, whatever the signature says.
        ([{"text": "oh", "thought": True}, {"text": "x", "thoughtSignature": sealed("hm")}], "oh"),
        ([{**call(), "thoughtSignature": sealed("a")}, {**call(), "thoughtSignature": sealed("b")}], "a\n\nb"),
        ([{"text": "x", "thoughtSignature": sealed("hm", tenant="other")}], None),
        ([{"text": "x", "thoughtSignature": sealed("hm", name="other")}], None),
        ([{"text": "x", "thoughtSignature": "skip_thought_signature_validator"}], None),
        ([{"text": "x", "thoughtSignature": "é"}], None),
    ],
)  # fmt: skip
def test_a_thought_is_its_text_or_what_its_signature_carries(
    parts: list[dict[str, Any]], reasoning: str | None
) -> None:
    assert turns_of(HI, model(*parts))[1].reasoning == reasoning


@pytest.mark.parametrize("size", range(1, 9))
def test_a_signature_may_come_back_in_either_alphabet_and_without_padding(size: int) -> None:
    thought = "ÿþ?>" * size + "x" * size
    signature = sealed(thought)
    url_safe = signature.replace("+", "-").replace("/", "_")
    for spelled in (signature, url_safe, signature.rstrip("="), url_safe.rstrip("=")):
        (_, turn) = turns_of(HI, model({"text": "x", "thoughtSignature": spelled}))
        assert turn.reasoning == thought


# ── What is wrong ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("contents", "where"),
    [
        (None, "contents"),
        ([], "contents"),
        (7, "contents"),
        ([7], "contents[0]"),
        ([{"role": "user"}], "contents[0].parts"),
        ([{"role": "nobody", "parts": [{"text": "x"}]}], "contents[0].role"),
        ([{"role": 1, "parts": [{"text": "x"}]}], "contents[0].role"),
        ([user({})], "contents[0].parts[0]"),
        ([{"parts": [None]}], "contents[0].parts[0]"),
        ([user({"text": 1})], "contents[0].parts[0].text"),
        ([user({"text": "x", "functionCall": {"name": "f"}})], "contents[0].parts[0]"),
        ([user(call())], "contents[0].parts[0].functionCall"),
        ([model(result())], "contents[0].parts[0].functionResponse"),
        ([model({"functionCall": {}})], "contents[0].parts[0].functionCall.name"),
        ([model({"functionCall": {"name": "f", "args": "{}"}})], "contents[0].parts[0].functionCall.args"),
        ([model({"function_call": {"name": 1}})], "contents[0].parts[0].function_call.name"),
        ([model({"text": "x", "thought": "yes"})], "contents[0].parts[0].thought"),
        ([model({"text": "x", "thoughtSignature": 7})], "contents[0].parts[0].thoughtSignature"),
        ([user({"inlineData": {"mimeType": "image/png"}})], "contents[0].parts[0].inlineData.data"),
        ([user({"inlineData": {"data": "AAAA"}})], "contents[0].parts[0].inlineData.mimeType"),
        ([user({"fileData": {"fileUri": ""}})], "contents[0].parts[0].fileData.fileUri"),
        ([HI, model(call()), user(result(response=[1]))], "contents[2].parts[0].functionResponse.response"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_place(contents: Any, where: str) -> None:
    with pytest.raises(SmgError) as caught:
        prompt_of(contents=contents)
    assert (caught.value.status, caught.value.where) == (400, where)


def test_what_google_ran_itself_is_left_out_and_named() -> None:
    ran = {"executableCode": {"code": "1+1", "language": "PYTHON"}}
    request = request_of(contents=[HI, model(ran, {"text": "2"}), HI])
    assert request.ignored == ("contents[1].parts[0].executableCode",)
