"""Generation requests become generateContent bodies: contents in their order, tools, config, thinking."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.opaque import REDACTED, SIGNATURE, Opaque
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    GenerateRequest,
    MediaPart,
    Sampling,
    TextPart,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
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


# ── Tools ────────────────────────────────────────────────────────────────────

TOOLS = (Tool("f", "Does.", {"type": "object"}, strict=True), Tool("g", strict=True))


@pytest.mark.parametrize(
    ("choice", "strict", "config"),
    [
        (ToolChoice(), False, None),
        (ToolChoice(), True, {"mode": "VALIDATED"}),
        (ToolChoice("none"), True, {"mode": "NONE"}),
        (ToolChoice("required"), True, {"mode": "ANY"}),
        (ToolChoice("required", allowed=("f",)), True, {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        (ToolChoice("named", "g"), True, {"mode": "ANY", "allowedFunctionNames": ["g"]}),
        (ToolChoice("auto", allowed=("g",)), False, {"mode": "VALIDATED", "allowedFunctionNames": ["g"]}),
    ],
)  # fmt: skip
def test_functions_and_which_of_them_may_be_called(
    choice: ToolChoice,
    strict: bool,
    config: dict[str, Any] | None,
) -> None:
    tools = TOOLS if strict else (TOOLS[0], Tool("g"))
    fields = written(wish(HI, tools=tools, choice=choice)).fields
    declared = {"name": "f", "description": "Does.", "parametersJsonSchema": {"type": "object"}}
    assert fields["tools"] == [{"functionDeclarations": [declared, {"name": "g"}]}]
    assert fields.get("toolConfig") == (config and {"functionCallingConfig": config})


def test_without_tools_nothing_is_said_of_calling() -> None:
    assert written(wish(HI, choice=ToolChoice("none")), "gemini-2.0-flash").fields == {
        "contents": [USER]
    }


def test_that_calls_come_alone_cannot_be_asked() -> None:
    asked = wish(HI, tools=TOOLS, choice=ToolChoice(parallel=False))
    assert written(asked).ignored == ("parallel_tool_calls",)


# ── Config ───────────────────────────────────────────────────────────────────


def config(
    sampling: Sampling, name: str = "gemini-2.0-flash", **more: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:
    told = written(wish(HI, sampling=sampling, **more), name)
    return told.fields.get("generationConfig", {}), told.ignored


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        (Sampling(), {}),
        (Sampling(max_tokens=5, temperature=0.0, top_p=0.5, top_k=3),
         {"temperature": 0.0, "topP": 0.5, "maxOutputTokens": 5, "topK": 3}),
        (Sampling(top_k=-1, frequency_penalty=0.5, presence_penalty=-1.0),
         {"presencePenalty": -1.0, "frequencyPenalty": 0.5}),
        (Sampling(n=3, stop=("a", "b"), logprobs=0),
         {"candidateCount": 3, "stopSequences": ["a", "b"], "responseLogprobs": True}),
        (Sampling(logprobs=4, seed=7), {"responseLogprobs": True, "logprobs": 4, "seed": 7}),
        (Sampling(seed=-1), {"seed": 2**31 - 1}),
        (Sampling(seed=2**40 + 5), {"seed": 5}),
        (Sampling(constraint=Constraint("json_object", "", "w")), {"responseMimeType": "application/json"}),
        (Sampling(constraint=Constraint("json_schema", '{"type":"string"}', "w")),
         {"responseMimeType": "application/json", "responseJsonSchema": {"type": "string"}}),
        (Sampling(constraint=Constraint("choice", '["a","b"]', "w")),
         {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["a", "b"]}}),
    ],
)  # fmt: skip
def test_how_the_answer_is_drawn(sampling: Sampling, said: dict[str, Any]) -> None:
    assert config(sampling) == (said, ())


def test_what_only_tunes_engines_is_named_as_the_client_spelled_it() -> None:
    sampling = Sampling(
        min_p=0.1,
        min_tokens=2,
        repetition_penalty=1.1,
        ignore_eos=True,
        logit_bias={1: 2.0},
        where={"min_p": "minP"},
    )
    assert config(sampling) == (
        {},
        ("min_tokens", "minP", "repetition_penalty", "ignore_eos", "logit_bias"),
    )
    named = wish(Turn("user", "hi", name="Ann"), kwargs={"a": 1})
    assert written(named, "gemini-2.0-flash").ignored == (
        "messages.name",
        "chat_template_kwargs",
    )


@pytest.mark.parametrize(
    ("sampling", "where"),
    [
        (Sampling(adapter="a", where={"adapter": "lora"}), "lora"),
        (Sampling(stop_token_ids=(1,)), "stop_token_ids"),
        (Sampling(prompt_logprobs=0), "prompt_logprobs"),
        (Sampling(constraint=Constraint("regex", "a+", "guided_regex")), "guided_regex"),
        (Sampling(constraint=Constraint("ebnf", "x", "ebnf")), "ebnf"),
        (Sampling(constraint=Constraint("structural_tag", "{}", "tag")), "tag"),
    ],
)
def test_what_would_make_another_answer_is_refused(sampling: Sampling, where: str) -> None:
    with pytest.raises(SmgError) as caught:
        config(sampling)
    assert (caught.value.where, caught.value.code) == (where, "unsupported_parameter")


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (GenerateRequest("m", (ChatPrompt((HI,)),), Sampling(), True, truncate_prompt_tokens=5),
         "truncate_prompt_tokens"),
        (wish(HI, template="x"), "chat_template"),
        (wish(HI, documents=({"text": "x"},)), "documents"),
    ],
)  # fmt: skip
def test_prompts_that_only_templates_can_take_are_refused(
    asked: GenerateRequest, where: str
) -> None:
    with pytest.raises(SmgError) as caught:
        written(asked)
    assert caught.value.where == where


def test_a_form_beside_tools_is_refused_by_models_that_take_one_of_them() -> None:
    sampling = Sampling(constraint=Constraint("json_object", "", "response_format"))
    with pytest.raises(SmgError) as caught:
        config(sampling, "gemini-2.5-pro", tools=TOOLS)
    assert caught.value.where == "response_format"
    for more in ({"tools": TOOLS, "choice": ToolChoice("none")}, {}):
        assert "responseMimeType" in config(sampling, "gemini-2.5-pro", **more)[0]
    assert "responseMimeType" in config(sampling, NEW, tools=TOOLS)[0]
    loose = Sampling(constraint=Constraint("json_object", "", "response_format", strict=False))
    said, ignored = config(loose, "gemini-2.0-flash", tools=TOOLS)
    assert (said, ignored) == ({}, ("response_format",))


SHOWN = {"includeThoughts": True}


@pytest.mark.parametrize(
    ("name", "thinking", "said"),
    [
        ("gemini-2.5-flash", Thinking(), SHOWN),
        ("gemini-2.5-flash", Thinking("none"), {"thinkingBudget": 0}),
        ("gemini-2.5-flash", Thinking(on=False, budget=99), {"thinkingBudget": 0}),
        ("gemini-2.5-flash", Thinking("low"), {"thinkingBudget": 1_024, **SHOWN}),
        ("gemini-2.5-flash", Thinking("medium"), {"thinkingBudget": 8_192, **SHOWN}),
        ("gemini-2.5-flash", Thinking("max"), {"thinkingBudget": 24_576, **SHOWN}),
        ("gemini-2.5-flash", Thinking("low", 9_000), {"thinkingBudget": 9_000, **SHOWN}),
        ("gemini-2.5-flash", Thinking(adaptive=True), {"thinkingBudget": -1, **SHOWN}),
        ("gemini-2.5-flash", Thinking(on=True), {"thinkingBudget": -1, **SHOWN}),
        ("gemini-2.5-pro", Thinking("none"), {"thinkingBudget": 128, **SHOWN}),
        ("gemini-2.5-pro", Thinking("max"), {"thinkingBudget": 32_768, **SHOWN}),
        ("gemini-2.5-flash-lite", Thinking(), None),
        ("gemini-2.5-flash-lite", Thinking(budget=1), {"thinkingBudget": 512, **SHOWN}),
        ("gemini-2.5-flash-image", Thinking("low"), None),
        ("gemini-2.0-flash", Thinking("high"), None),
        ("gemma-3-27b-it", Thinking("high"), None),
        (NEW, Thinking(), SHOWN),
        (NEW, Thinking("none"), {"thinkingLevel": "LOW", **SHOWN}),
        (NEW, Thinking("medium"), {"thinkingLevel": "MEDIUM", **SHOWN}),
        (NEW, Thinking("max"), {"thinkingLevel": "HIGH", **SHOWN}),
        (NEW, Thinking(adaptive=True), SHOWN),
        ("gemini-3.5-flash", Thinking(on=False), {"thinkingLevel": "MINIMAL", **SHOWN}),
        ("gemini-3.5-flash", Thinking(budget=512), {"thinkingLevel": "MINIMAL", **SHOWN}),
        ("gemini-3.5-flash", Thinking(budget=4_000), {"thinkingLevel": "LOW", **SHOWN}),
        ("gemini-3.5-flash", Thinking(budget=20_000), {"thinkingLevel": "HIGH", **SHOWN}),
        ("gemini-3.5-flash", Thinking("high", 1), {"thinkingLevel": "HIGH", **SHOWN}),
        ("projects/p/endpoints/77", Thinking(), None),
        ("projects/p/endpoints/77", Thinking("low"), {"thinkingLevel": "LOW", **SHOWN}),
    ],
)
def test_how_much_to_think(name: str, thinking: Thinking, said: dict[str, Any] | None) -> None:
    assert config(Sampling(), name, thinking=thinking)[0].get("thinkingConfig") == said


@pytest.mark.parametrize(
    ("quirk", "said"),
    [
        ("thinking_level", {"thinkingLevel": "LOW", **SHOWN}),
        ("thinking_budget", {"thinkingBudget": 1_024, **SHOWN}),
        ("no_thinking", None),
    ],
)
@pytest.mark.parametrize("name", [NEW, "gemini-2.5-flash"])
def test_a_quirk_says_otherwise(name: str, quirk: str, said: dict[str, Any] | None) -> None:
    asked = wish(HI, thinking=Thinking("low", where="effort"))
    told = written(asked, name, quirks=frozenset({quirk}))
    assert told.fields.get("generationConfig", {}).get("thinkingConfig") == said
    assert told.ignored == (("effort",) if said is None else ())


def test_fields_that_a_model_refuses_are_left_out_and_named() -> None:
    asked = wish(HI, thinking=Thinking("low"), sampling=Sampling(seed=1, top_k=2, stop=("x",)))
    told = written(asked, lacks=frozenset({"seed", "topK", "thinkingConfig", "other"}))
    assert told.fields["generationConfig"] == {"stopSequences": ["x"]}
    assert told.ignored == ("seed", "thinkingConfig", "topK")
    with pytest.raises(SmgError, match="this model takes no stopSequences"):
        written(asked, lacks=frozenset({"stopSequences"}))


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
