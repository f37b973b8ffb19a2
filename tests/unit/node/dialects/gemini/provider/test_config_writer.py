"""Tools, sampling, form and thinking of a request become those of a generateContent body, or are refused or named."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    GenerateRequest,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
    Turn,
)
from support.providers.generate_content_wishes import wish, written

HI = Turn("user", "hi")
USER = {"role": "user", "parts": [{"text": "hi"}]}
NEW = "gemini-3-pro-preview"


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
        (Sampling(stop=("a", "b"), logprobs=0),
         {"stopSequences": ["a", "b"], "responseLogprobs": True}),
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
        (Sampling(n=2, where={"n": "candidateCount"}), "candidateCount"),
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
