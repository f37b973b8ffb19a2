"""Bodies of generateContent: each parameter in both spellings, and what is wrong with them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import Constraint, Sampling, Thinking
from smg_node.dialects.gemini.view import GeminiView
from support.answers.gemini_bodies import (
    DIALECT,
    FUNCTIONS,
    HI,
    Around,
    around,
    parsed,
    request_of,
    snaked,
)
from support.tools.example_counts import example_count

WHERE = "generationConfig"


def config(**values: Any) -> dict[str, Any]:
    return {WHERE: values}


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        ("m:generateContent", "m", False),
        ("m:streamGenerateContent", "m", True),
        ("qwen/qwen3-8b:generateContent", "qwen/qwen3-8b", False),
        ("base:adapter:streamGenerateContent", "base:adapter", True),
    ],
)
def test_model_and_stream_stand_in_the_path(path: str, model: str, stream: bool) -> None:
    request = DIALECT.read({"contents": [HI]}, Around({"id": path})).request
    assert (request.model, request.stream) == (model, stream)


@pytest.mark.parametrize("path", ["", ":generateContent", "x" * 257 + ":generateContent"])
def test_a_path_without_a_model_is_refused(path: str) -> None:
    with pytest.raises(SmgError) as caught:
        DIALECT.read({"contents": [HI]}, Around({"id": path}))
    assert caught.value.where == "model"


@pytest.mark.parametrize(
    ("values", "field", "expected"),
    [
        ({"temperature": 0.5}, "temperature", 0.5),
        ({"topP": 0.9}, "top_p", 0.9),
        ({"topP": 0}, "top_k", 1),
        ({"topP": 0, "topK": 40}, "top_k", 1),
        ({"topK": 40, "topP": 0}, "top_k", 1),
        ({"topK": 40.0}, "top_k", 40),
        ({"topK": 0}, "top_k", -1),
        ({"candidateCount": 2}, "n", 2),
        ({"maxOutputTokens": 7}, "max_tokens", 7),
        ({"maxOutputTokens": 10**12}, "max_tokens", 2**31 - 1),
        ({"stopSequences": ["x", "y", "x"]}, "stop", ("x", "y")),
        ({"seed": -3}, "seed", -3),
        ({"presencePenalty": -2}, "presence_penalty", -2.0),
        ({"frequencyPenalty": 2}, "frequency_penalty", 2.0),
        ({"responseLogprobs": True}, "logprobs", 0),
        ({"responseLogprobs": True, "logprobs": 5}, "logprobs", 5),
        ({"responseLogprobs": False, "logprobs": 0}, "logprobs", None),
        ({"responseMimeType": "text/plain"}, "constraint", None),
        ({"responseModalities": ["TEXT"]}, "constraint", None),
    ],
)
def test_a_parameter_of_the_configuration_is_read(
    values: dict[str, Any], field: str, expected: Any
) -> None:
    for body in (config(**values), snaked(config(**values))):
        assert getattr(request_of(**body).sampling, field) == expected


def test_without_a_word_everything_is_the_models_own() -> None:
    request = request_of()
    assert request.sampling == Sampling()
    assert parsed({"contents": [HI]}).view == GeminiView("m")


OBJECT = {"type": "OBJECT", "properties": {"b": {"type": "STRING"}, "a": {"type": "STRING"}}}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"responseMimeType": "application/json"},
            Constraint("json_object", "", f"{WHERE}.responseMimeType", strict=False),
        ),
        (
            {
                "responseMimeType": "application/json",
                "responseSchema": {**OBJECT, "propertyOrdering": ["a", "b"]},
            },
            Constraint(
                "json_schema",
                '{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}',
                f"{WHERE}.responseSchema",
            ),
        ),
        (
            {"responseJsonSchema": {"type": "integer"}},
            Constraint("json_schema", '{"type":"integer"}', f"{WHERE}.responseJsonSchema"),
        ),
        (
            {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["x", "y"]}},
            Constraint("choice", '["x","y"]', f"{WHERE}.responseSchema"),
        ),
    ],
)  # fmt: skip
def test_the_form_of_the_answer_is_a_constraint(
    values: dict[str, Any], expected: Constraint
) -> None:
    assert request_of(**config(**values)).sampling.constraint == expected


@pytest.mark.parametrize(
    ("said", "expected", "shown"),
    [
        ({"includeThoughts": True}, Thinking(), True),
        ({"includeThoughts": False}, Thinking(), False),
        ({"thinkingBudget": -1}, Thinking(adaptive=True, where="here"), False),
        ({"thinkingBudget": 0}, Thinking(on=False, where="here"), False),
        ({"thinkingBudget": 512}, Thinking(on=True, budget=512, where="here"), False),
        ({"thinkingLevel": "HIGH"}, Thinking(effort="high", where="here"), False),
        ({"thinkingLevel": "minimal"}, Thinking(effort="minimal", where="here"), False),
        ({"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}, Thinking(), False),
    ],
)
def test_thinking_is_asked_for(said: dict[str, Any], expected: Thinking, shown: bool) -> None:
    where = f"{WHERE}.thinkingConfig"
    reading = parsed({"contents": [HI], **config(thinkingConfig=said)})
    (prompt,) = reading.request.prompts
    found = getattr(prompt, "thinking", None)
    assert found == (
        Thinking(
            expected.effort,
            expected.budget,
            adaptive=expected.adaptive,
            where=where,
            on=expected.on,
        )
        if expected.said
        else Thinking()
    )
    assert reading.view.thoughts is shown


@pytest.mark.parametrize(
    ("body", "where", "code"),
    [
        ({"tools": {}}, "tools", "invalid_type"),
        ({"tools": [{"googleSearch": {}}]}, "tools[0].googleSearch", "unsupported_tool"),
        ({"tools": [{"functionDeclarations": [{"name": "a b"}]}]}, "tools[0].functionDeclarations[0].name", "invalid_value"),
        ({"tools": [{"functionDeclarations": [{"name": "f"}, {"name": "f"}]}]}, "tools[0].functionDeclarations[1].name", "invalid_value"),
        ({"tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "THING"}}]}]}, "tools[0].functionDeclarations[0].parameters.type", "invalid_json_schema"),
        ({"tools": [{"functionDeclarations": [{"name": "f", "parameters": {}, "parametersJsonSchema": {}}]}]}, "tools[0].functionDeclarations[0].parametersJsonSchema", "invalid_value"),
        ({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, "toolConfig.functionCallingConfig.mode", "invalid_value"),
        ({"toolConfig": {"functionCallingConfig": {"mode": "SOME"}}}, "toolConfig.functionCallingConfig.mode", "invalid_value"),
        ({"tools": FUNCTIONS, "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["x"]}}}, "toolConfig.functionCallingConfig.allowedFunctionNames", "invalid_value"),
        ({"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_ONLY_HIGH"}]}, "safetySettings[0].threshold", "unsupported_parameter"),
        ({"safetySettings": {}}, "safetySettings", "invalid_type"),
        ({"cachedContent": "cachedContents/x"}, "cachedContent", "unsupported_parameter"),
        ({"systemInstruction": "be"}, "systemInstruction", "invalid_type"),
        ({"systemInstruction": {"parts": [{"inlineData": {}}]}}, "systemInstruction.parts[0].inlineData", "unsupported_parameter"),
        (config(temperature=2.1), f"{WHERE}.temperature", "invalid_value"),
        (config(temperature="x"), f"{WHERE}.temperature", "invalid_type"),
        (config(topP=1.1), f"{WHERE}.topP", "invalid_value"),
        (config(topK=-1), f"{WHERE}.topK", "invalid_value"),
        (config(candidateCount=17), f"{WHERE}.candidateCount", "invalid_value"),
        (config(maxOutputTokens=0), f"{WHERE}.maxOutputTokens", "invalid_value"),
        (config(stopSequences="x"), f"{WHERE}.stopSequences", "invalid_type"),
        (config(stopSequences=["x", ""]), f"{WHERE}.stopSequences[1]", "invalid_value"),
        (config(logprobs=5), f"{WHERE}.logprobs", "invalid_value"),
        (config(responseLogprobs=True, logprobs=21), f"{WHERE}.logprobs", "invalid_value"),
        (config(responseMimeType="image/png"), f"{WHERE}.responseMimeType", "unsupported_parameter"),
        (config(responseMimeType="text/plain", responseSchema={}), f"{WHERE}.responseSchema", "invalid_value"),
        (config(responseMimeType="text/x.enum"), f"{WHERE}.responseMimeType", "invalid_value"),
        (config(responseMimeType="text/x.enum", responseSchema={"enum": []}), f"{WHERE}.responseSchema", "invalid_value"),
        (config(responseSchema={}, responseJsonSchema={}), f"{WHERE}.responseJsonSchema", "invalid_value"),
        (config(responseSchema={"type": "OBJECT", "properties": []}), f"{WHERE}.responseSchema.properties", "invalid_json_schema"),
        (config(responseSchema="x"), f"{WHERE}.responseSchema", "invalid_type"),
        (config(responseModalities=["IMAGE"]), f"{WHERE}.responseModalities", "unsupported_parameter"),
        (config(speechConfig={}), f"{WHERE}.speechConfig", "unsupported_parameter"),
        (config(thinkingConfig={"thinkingBudget": -2}), f"{WHERE}.thinkingConfig.thinkingBudget", "invalid_value"),
        (config(thinkingConfig={"thinkingLevel": "MUCH"}), f"{WHERE}.thinkingConfig.thinkingLevel", "invalid_value"),
        (config(thinkingConfig={"includeThoughts": 1}), f"{WHERE}.thinkingConfig.includeThoughts", "invalid_type"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_place(body: dict[str, Any], where: str, code: str) -> None:
    with pytest.raises(SmgError) as caught:
        request_of(**body)
    assert (caught.value.where, caught.value.code) == (where, code)


@pytest.mark.parametrize(
    ("body", "ignored"),
    [
        ({"labels": {"a": "b"}}, ("labels",)),
        ({"store": True}, ("store",)),
        ({"store": False}, ()),
        ({"serviceTier": "flex"}, ("serviceTier",)),
        ({"model": "models/m"}, ()),
        ({"model": "models/other"}, ("model",)),
        ({"what": 1}, ("what",)),
        (config(mediaResolution="LOW", what=1), (f"{WHERE}.mediaResolution", f"{WHERE}.what")),
        ({"safetySettings": [{"category": "x", "threshold": "BLOCK_NONE"}, {"threshold": "off"}]}, ()),
    ],
)  # fmt: skip
def test_what_has_no_effect_is_named(body: dict[str, Any], ignored: tuple[str, ...]) -> None:
    assert request_of(**body).ignored == ignored


# ── Counting ─────────────────────────────────────────────────────────────────


def test_a_prompt_is_counted_as_it_would_be_sent() -> None:
    body = {"contents": [HI], "systemInstruction": {"parts": [{"text": "be"}]}, "tools": FUNCTIONS}
    sent = parsed(body).request.prompts
    assert parsed(body, "countTokens").request.prompts == sent
    inside = {"generateContentRequest": {"model": "models/m", **body}}
    (counted,) = parsed(inside, "countTokens").request.prompts
    assert counted == sent[0]


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, "contents"),
        ({"generateContentRequest": {}}, "generateContentRequest.contents"),
        ({"generateContentRequest": 1}, "generateContentRequest"),
        ({"generateContentRequest": {"contents": [HI]}, "contents": [HI]}, "contents"),
        ({"generateContentRequest": {"contents": [{"parts": [{"text": 1}]}]}}, "generateContentRequest.contents[0].parts[0].text"),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_refused(body: dict[str, Any], where: str) -> None:
    with pytest.raises(SmgError) as caught:
        parsed(body, "countTokens")
    assert caught.value.where == where


# ── Garbage ──────────────────────────────────────────────────────────────────

WHOLE: dict[str, Any] = {
    "contents": [
        HI,
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}, "id": "1"}, "thoughtSignature": "x"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "id": "1", "response": {"output": "x"}}}]},
        {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
    ],
    "systemInstruction": {"parts": [{"text": "be"}]},
    "tools": FUNCTIONS,
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["g"]}},
    "generationConfig": {
        "temperature": 1, "topP": 0.5, "topK": 3, "candidateCount": 1, "maxOutputTokens": 5,
        "stopSequences": ["x"], "seed": 1, "presencePenalty": 0, "frequencyPenalty": 0,
        "responseMimeType": "application/json", "responseSchema": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
        "responseLogprobs": True, "logprobs": 1, "responseModalities": ["TEXT"],
        "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1, "thinkingLevel": "LOW"},
    },
    "safetySettings": [{"category": "x", "threshold": "OFF", "method": "y"}],
    "labels": {"a": "b"}, "serviceTier": "flex", "store": False, "model": "m",
}  # fmt: skip


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside: Any = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [way, *(found for key, inner in inside for found in places(inner, (*way, key)))]


PLACES = places(WHOLE)[1:]
JUNK: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "x",
    "é\u2028",
    [],
    [None],
    [[]],
    {},
    {"x": 1},
    {"type": "OBJECT"},
)


def replaced(value: Any, way: tuple[Any, ...], junk: Any) -> Any:
    if not way:
        return junk
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[way[0]] = replaced(value[way[0]], way[1:], junk)
    return copied


@settings(max_examples=example_count(400), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(JUNK)), min_size=1, max_size=3),
    st.booleans(),
)
def test_any_value_at_any_place_is_taken_or_refused_in_googles_words(
    changes: list[tuple[tuple[Any, ...], Any]], snake: bool
) -> None:
    body = WHOLE
    for way, junk in changes:
        try:
            body = replaced(body, way, junk)
        except (KeyError, IndexError, TypeError):
            # An earlier change took this place away.
            continue
    body = snaked(body) if snake else body
    error = refusal_of(body)
    if error is not None:
        told = json.loads(DIALECT.error_body(error, "req_1"))["error"]
        assert (DIALECT.error_status(error), told["code"]) == (400, 400)
        assert told["status"] == "INVALID_ARGUMENT"
        (details,) = told["details"]
        assert details["fieldViolations"][0]["field"] == error.where


def refusal_of(body: dict[str, Any]) -> SmgError | None:
    try:
        DIALECT.read(body, around())
    except SmgError as error:
        return error
    return None


def test_the_whole_body_is_a_good_one() -> None:
    assert parsed(WHOLE).request.ignored == ("labels", "serviceTier")
    assert parsed(snaked(WHOLE)).request.ignored == ("labels", "service_tier")
