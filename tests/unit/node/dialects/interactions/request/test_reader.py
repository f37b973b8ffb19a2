"""Bodies of interactions: what each parameter becomes, and what is refused at which place."""

import base64
import json
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, Turn
from smg_node.dialects.interactions.events.shown_steps import steps_of
from smg_node.dialects.interactions.request.interaction_request import InteractionRequest
from smg_node.dialects.responses.request.generate_request import generate_request
from support.answers.interactions import SEALS, interaction_ask


def turns_of(ask: InteractionRequest) -> tuple[Turn, ...]:
    prompt = generate_request(ask, ask.items).prompts[0]
    assert isinstance(prompt, ChatPrompt)
    return prompt.turns


HI = {"type": "text", "text": "hi"}
FUNCTION = {"type": "function", "name": "look_up", "parameters": {"type": "object"}}
CALL = {"type": "function_call", "id": "c1", "name": "look_up", "arguments": {"q": "x"}}
IMAGE = {"type": "image", "data": "AA==", "mime_type": "image/jpeg", "resolution": "low"}
KEPT = {"type": "google_search_call", "id": "g1", "arguments": {"queries": ["q"]}}


@pytest.mark.parametrize(
    "given",
    [
        "hi",
        HI,
        [HI],
        [{"type": "user_input", "content": [HI]}],
        {"type": "user_input", "content": "hi"},
    ],
)
def test_all_forms_of_one_text_are_one_question(given: Any) -> None:
    ask = interaction_ask(input=given)
    assert [(turn.role, turn.content) for turn in turns_of(ask)] == [("user", "hi")]
    assert steps_of(ask.items) == [{"type": "user_input", "content": [HI]}]


STEPS: list[dict[str, Any]] = [
    {"type": "user_input", "content": [HI, IMAGE]},
    {"type": "user_input", "content": [{"type": "document", "uri": "https://x.test/a.pdf"}]},
    {"type": "user_input", "content": [{"type": "audio", "data": "AA==", "mime_type": "audio/wav"}]},
    {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "hm"}]},
    {"type": "thought", "signature": "c2ln"},
    {"type": "model_output", "content": [{"type": "text", "text": "so", "annotations": [{"a": 1}]}]},
    CALL,
    {"type": "function_result", "call_id": "c1", "name": "look_up", "result": {"n": 1}, "is_error": False},
    {"type": "function_result", "call_id": "c1", "result": "plain"},
    {"type": "function_result", "call_id": "c1", "result": [HI, IMAGE]},
    KEPT,
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_shown_as_it_came(step: dict[str, Any]) -> None:
    shown = steps_of(interaction_ask(input=[step]).items)
    assert json.loads(json.dumps(shown, default=lambda raw: json.loads(bytes(raw)))) == [step]


def test_steps_that_no_prompt_shows_are_named() -> None:
    ask = interaction_ask(input=[KEPT, {"type": "user_input", "content": "hi"}])
    assert generate_request(ask, ask.items).ignored == ("input[0]",)
    assert len(turns_of(ask)) == 1


def test_a_thought_without_its_text_is_complete_by_its_signature() -> None:
    sealed = base64.b64encode(SEALS.seal("hm", tenant="acme", model="m").encode()).decode()
    steps = [
        {"type": "user_input", "content": "hi"},
        {"type": "thought", "signature": sealed},
        CALL,
        {"type": "function_result", "call_id": "c1", "result": "1"},
    ]
    ask = interaction_ask(input=steps)
    assert [turn.reasoning for turn in turns_of(ask)] == [None, "hm", None]
    assert steps_of(ask.items)[1] == {"type": "thought", "signature": sealed}


@pytest.mark.parametrize("signature", ["", "bm90IG91cnM=", "é", "###"])
def test_a_thought_that_nothing_carries_is_left_out(signature: str) -> None:
    ask = interaction_ask(input=[{"type": "thought", "signature": signature}, CALL])
    assert [turn.reasoning for turn in turns_of(ask)] == [None]


def test_settings_of_the_generation_are_those_of_the_request() -> None:
    ask = interaction_ask(
        system_instruction="be brief",
        tools=[FUNCTION],
        generation_config={
            "temperature": 0.5,
            "top_p": 0.9,
            "seed": 3,
            "max_output_tokens": 9,
            "stop_sequences": ["END"],
            "thinking_level": "low",
            "tool_choice": {"allowed_tools": {"mode": "any", "tools": ["look_up"]}},
        },
        labels={"team": "a"},
        service_tier="flex",
    )
    drawn = ask.sampling
    assert (drawn.temperature, drawn.top_p, drawn.seed) == (0.5, 0.9, 3)
    assert (drawn.max_tokens, drawn.stop) == (9, ("END",))
    assert drawn.path("max_tokens") == "generation_config.max_output_tokens"
    assert (ask.thinking.effort, ask.choice.mode, ask.choice.allowed) == (
        "low",
        "required",
        ("look_up",),
    )
    assert (ask.instructions, ask.metadata, ask.ignored) == (
        "be brief",
        {"team": "a"},
        ("service_tier",),
    )
    assert set(ask.echo) == {
        "system_instruction",
        "tools",
        "generation_config",
        "labels",
        "service_tier",
    }


def test_validated_calls_are_held_to_their_schemas() -> None:
    ask = interaction_ask(tools=[FUNCTION], generation_config={"tool_choice": "validated"})
    assert (ask.choice.mode, [tool.strict for tool in ask.tools]) == ("auto", [True])


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
TEXT_SCHEMA = json.dumps(SCHEMA, separators=(",", ":"))


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"type": "text", "mime_type": "application/json", "schema": SCHEMA}, ("json_schema", TEXT_SCHEMA)),
        ([{"type": "text", "mime_type": "application/json", "schema": SCHEMA}], ("json_schema", TEXT_SCHEMA)),
        (SCHEMA, ("json_schema", TEXT_SCHEMA)),
        ({"type": "text", "mime_type": "application/json"}, ("json_object", "")),
        ({"type": "text", "mime_type": "text/plain"}, None),
        ({"type": "text"}, None),
    ],
)  # fmt: skip
def test_a_response_format_becomes_a_constraint(form: Any, expected: Any) -> None:
    found = interaction_ask(response_format=form).sampling.constraint
    assert (None if found is None else (found.kind, found.value)) == expected


@pytest.mark.parametrize(
    ("body", "where", "code"),
    [
        ({"input": None}, "input", "missing_required_parameter"),
        ({"model": None}, "model", "missing_required_parameter"),
        ({"agent": "deep-research"}, "agent", "unsupported_parameter"),
        ({"environment": "e"}, "environment", "unsupported_parameter"),
        ({"input": [{"role": "user", "content": "hi"}]}, "input[0].role", "invalid_value"),
        ({"input": [{"type": "dream"}]}, "input[0].type", "unsupported_step_type"),
        ({"input": [{"type": "video", "uri": "x"}]}, "input[0].type", "unsupported_media"),
        ({"input": [{**CALL, "arguments": "{}"}]}, "input[0].arguments", "invalid_type"),
        ({"tools": [{"type": "google_search"}]}, "tools[0].type", "unsupported_tool"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name", "invalid_value"),
        ({"generation_config": {"tool_choice": "any"}}, "generation_config.tool_choice", "invalid_value"),
        ({"generation_config": {"image_config": {}}}, "generation_config.image_config", "unsupported_parameter"),
        ({"response_format": {"type": "image"}}, "response_format.type", "unsupported_parameter"),
        ({"response_modalities": ["audio"]}, "response_modalities[0]", "unsupported_parameter"),
        ({"labels": {"k": "v" * 64}}, "labels.k", "invalid_value"),
        ({"background": True, "store": False}, "background", "invalid_value"),
        ({"previous_interaction_id": "resp_1"}, "previous_interaction_id", "previous_interaction_not_found"),
        ({"previous_interaction_id": "v1_x"}, "previous_interaction_id", "previous_interaction_not_found"),
        ({"safety_settings": [{"threshold": "block_low_and_above"}]}, "safety_settings[0].threshold", "unsupported_parameter"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_at_its_place(body: Any, where: str, code: str) -> None:
    with pytest.raises(SmgError) as caught:
        interaction_ask(**body)
    assert (caught.value.where, caught.value.code, caught.value.status) == (where, code, 400)


def test_harmless_safety_settings_are_named_as_ignored() -> None:
    ask = interaction_ask(safety_settings=[{"threshold": "BLOCK_NONE"}], cached_content="c")
    assert ask.ignored == ("safety_settings", "cached_content")
