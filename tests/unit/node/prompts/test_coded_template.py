"""Prompts that are made by code: for which models, and what they look like."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, Thinking, ToolCall, Turn
from smg_node.prompts.encoders.typescript import namespace, type_of
from support.models.coded_prompts import (
    FAMILIES,
    MUSEUM,
    NOW,
    ROOMS,
    coded,
    files,
    render,
    renderer,
)

# ── Which models ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_without_a_template_is_rendered_by_code_if_its_type_says_how(family: str) -> None:
    assert "Hi" in render(family, Turn("user", "Hi"))
    assert len({coded(each).template.digest for each in FAMILIES}) == len(FAMILIES)


def test_its_architecture_says_so_as_well() -> None:
    bundle = files(config_json=b'{"architectures": ["KimiK3ForConditionalGeneration"]}')
    assert (
        renderer(bundle).render(ChatPrompt((Turn("user", "Hi"),)), now=NOW).startswith("<|open|>")
    )


def test_a_template_of_its_own_is_taken() -> None:
    bundle = files(
        config_json=b'{"model_type": "gpt_oss"}',
        tokenizer_config_json=b'{"chat_template": "own: {{ messages[0].content }}"}',
    )
    assert renderer(bundle).render(ChatPrompt((Turn("user", "Hi"),)), now=NOW) == "own: Hi"


@pytest.mark.parametrize("config", [b'{"model_type": "llama"}', b"[]", b"{", b'{"model_type": 3}'])
def test_any_other_model_without_a_template_has_none(config: bytes) -> None:
    with pytest.raises(SmgError, match="no chat template"):
        renderer(files(config_json=config))


# ── What they look like ──────────────────────────────────────────────────────

CALLED = Turn(
    "assistant",
    None,
    reasoning="I look it up.",
    calls=(
        ToolCall("a", "find_museum", '{"city": "Ghent", "max": 2}'),
        ToolCall("b", "list_rooms", ""),
    ),
)
TALK = (
    Turn("system", "Be brief."),
    Turn("user", "Hi"),
    Turn("assistant", "Hello.", reasoning="A greeting."),
    Turn("user", "Museums?"),
    CALLED,
    Turn("tool", "none", answers_call="b"),
    Turn("tool", "two", answers_call="a"),
)


def test_harmony_has_a_header_for_everything_and_forgets_thoughts_before_the_last_answer() -> None:
    assert render("gpt_oss", *TALK, tools=(MUSEUM, ROOMS)) == (
        "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
        "Knowledge cutoff: 2024-06\nCurrent date: 2026-11-03\n\nReasoning: medium\n\n"
        "# Valid channels: analysis, commentary, final. Channel must be included for every message.\n"
        "Calls to these tools must go to the commentary channel: 'functions'.<|end|>"
        "<|start|>developer<|message|># Instructions\n\nBe brief.\n\n# Tools\n\n## functions\n\n"
        "namespace functions {\n\n// Finds one.\n// Never two.\ntype find_museum = (_: {\n"
        "// Where it is.\ncity: string,\nmax?: number, // default: 3\n}) => any;\n\n"
        "type list_rooms = () => any;\n\n} // namespace functions<|end|>"
        "<|start|>user<|message|>Hi<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Hello.<|end|>"
        "<|start|>user<|message|>Museums?<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>I look it up.<|end|>"
        "<|start|>assistant to=functions.find_museum<|channel|>commentary <|constrain|>json<|message|>"
        '{"city": "Ghent", "max": 2}<|call|>'
        "<|start|>functions.find_museum to=assistant<|channel|>commentary<|message|>two<|end|>"
        "<|start|>assistant to=functions.list_rooms<|channel|>commentary <|constrain|>json<|message|>"
        "{}<|call|>"
        "<|start|>functions.list_rooms to=assistant<|channel|>commentary<|message|>none<|end|>"
        "<|start|>assistant"
    )


def test_harmony_says_a_wanted_form_and_who_the_model_is_to_be() -> None:
    form = {"name": "list", "description": "What to buy.", "schema": {"type": "array"}}
    text = render(
        "gpt_oss",
        Turn("user", "Hi"),
        Turn("developer", "Now."),
        kwargs={
            "model_identity": "You are a clerk.",
            "response_format": {"type": "json_schema", "json_schema": form},
        },
    )
    assert text.startswith("<|start|>system<|message|>You are a clerk.\n")
    assert (
        "<|start|>developer<|message|># Response Formats\n\n## list\n\n// What to buy.\n"
        '{"type": "array"}<|end|>'
    ) in text
    assert "<|start|>developer<|message|># Instructions\n\nNow.<|end|>" in text


@pytest.mark.parametrize(
    ("effort", "line", "unheeded"),
    [(None, "medium", 0), ("minimal", "low", 0), ("xhigh", "high", 0), ("none", "low", 1)],
)
def test_harmony_is_told_how_much_to_think(effort: Any, line: str, unheeded: int) -> None:
    told: list[str] = []
    text = coded("gpt_oss").render(
        ChatPrompt((Turn("user", "Hi"),), thinking=Thinking(effort=effort)),
        now=NOW,
        warn=lambda what, _parameter="": told.append(what),
    )
    assert f"\nReasoning: {line}\n" in text
    assert len(told) == unheeded


def test_a_result_of_no_call_is_refused_in_harmony() -> None:
    with pytest.raises(SmgError, match="answers no call"):
        render("gpt_oss", Turn("user", "Hi"), Turn("tool", "3", answers_call="x"))


def test_kimi_k3_has_elements_and_numbers_results() -> None:
    text = render("kimi_k3", *TALK, tools=(ROOMS,), thinking=Thinking(effort="low"))
    assert text.startswith(
        '<|open|>message role="system" type="tool-declare"<|sep|># Tools\n'
        "Here are the available tools, described in JSONSchema.\n\n```json\n"
        '[{"function":{"name":"list_rooms","parameters":{"properties":{},"type":"object"}},'
        '"type":"function"}]\n```<|close|>message<|sep|><|end_of_msg|>'
        '<|open|>message role="system" type="thinking-effort"<|sep|>'
    )
    assert "`thinking_effort=low`.<|close|>message<|sep|><|end_of_msg|>" in text
    assert text.endswith(
        "<|open|>think<|sep|>I look it up.<|close|>think<|sep|>"
        "<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|>"
        '<|open|>call tool="find_museum" index="1"<|sep|>'
        '<|open|>argument key="city" type="string"<|sep|>Ghent<|close|>argument<|sep|>'
        '<|open|>argument key="max" type="number"<|sep|>2<|close|>argument<|sep|>'
        '<|close|>call<|sep|><|open|>call tool="list_rooms" index="2"<|sep|><|close|>call<|sep|>'
        "<|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>"
        '<|open|>message role="tool" tool="find_museum" index="1"<|sep|>two'
        "<|close|>message<|sep|><|end_of_msg|>"
        '<|open|>message role="tool" tool="list_rooms" index="2"<|sep|>none'
        "<|close|>message<|sep|><|end_of_msg|>"
        '<|open|>message role="assistant"<|sep|><|open|>think<|sep|>'
    )


def test_kimi_k3_is_told_of_wishes_at_the_end_and_not_to_think() -> None:
    schema = {"type": "object", "a": 1}
    text = render(
        "kimi_k3",
        Turn("user", "Hi", name='A"&'),
        thinking=Thinking(effort="none"),
        kwargs={
            "tool_choice": "required",
            "response_format": {"type": "json_schema", "json_schema": {"schema": schema}},
        },
    )
    assert text.startswith('<|open|>message role="user" name="A&quot;&amp;"<|sep|>Hi<|close|>')
    assert "You MUST call tools in the next message.<|close|>" in text
    assert '```json\n{"a":1,"type":"object"}\n```<|close|>message<|sep|><|end_of_msg|>' in text
    assert text.endswith('<|open|>message role="assistant"<|sep|><|open|>response<|sep|>')


def test_kimi_k3_refuses_an_effort_it_does_not_know() -> None:
    with pytest.raises(SmgError, match="thinking_effort can be low, high, max"):
        render("kimi_k3", Turn("user", "Hi"), kwargs={"thinking_effort": "medium"})


def test_inkling_names_author_and_kind_and_says_the_effort_before_the_first_word() -> None:
    assert render("inkling", *TALK, tools=(ROOMS,)) == (
        "<|message_system|>tool_declare<|content_xml|>"
        '[{"description":"","name":"list_rooms","parameters":{"properties":{},"type":"object"},'
        '"type":"function"}]<|end_message|>'
        "<|message_system|><|content_text|>Be brief.<|end_message|>"
        "<|message_system|><|content_text|>Thinking effort level: 0.9<|end_message|>"
        "<|message_user|><|content_text|>Hi<|end_message|>"
        "<|message_model|><|content_thinking|>A greeting.<|end_message|>"
        "<|message_model|><|content_text|>Hello.<|end_message|><|content_model_end_sampling|>"
        "<|message_user|><|content_text|>Museums?<|end_message|>"
        "<|message_model|><|content_thinking|>I look it up.<|end_message|>"
        "<|message_model|>find_museum<|content_invoke_tool_json|>"
        '{"name":"find_museum","args":{"city":"Ghent","max":2}}<|end_message|>'
        "<|message_model|>list_rooms<|content_invoke_tool_json|>"
        '{"name":"list_rooms","args":{}}<|end_message|><|content_model_end_sampling|>'
        "<|message_tool|>find_museum<|content_text|>two<|end_message|>"
        "<|message_tool|>list_rooms<|content_text|>none<|end_message|>"
        "<|message_model|>"
    )


@pytest.mark.parametrize(
    ("thinking", "level"),
    [
        (Thinking(effort="none"), "0.0"),
        (Thinking(effort="medium"), "0.7"),
        (Thinking(effort="max"), "0.99"),
        (Thinking(number=0.25), "0.25"),
    ],
)
def test_inkling_takes_an_effort_as_a_number(thinking: Thinking, level: str) -> None:
    text = render("inkling", Turn("user", "Hi"), thinking=thinking)
    assert f"Thinking effort level: {level}<|end_message|>" in text


@pytest.mark.parametrize("effort", [1, -0.1, True, "much"])
def test_inkling_refuses_any_other_effort(effort: Any) -> None:
    with pytest.raises(SmgError, match="reasoning_effort is a number from 0"):
        render("inkling", Turn("user", "Hi"), kwargs={"reasoning_effort": effort})


def test_deepseek_v32_puts_results_behind_the_call_and_forgets_old_thoughts() -> None:
    text = render("deepseek_v32", *TALK, tools=(ROOMS,), kwargs={"thinking": True})
    assert text.startswith("<｜begin▁of▁sentence｜>Be brief.\n\n## Tools\n\n")
    schema = '{"name": "list_rooms", "parameters": {"type": "object", "properties": {}}}'
    assert f"<functions>\n{schema}\n</functions>\n<｜User｜>Hi<｜Assistant｜></think>Hello." in text
    assert text.endswith(
        "<｜end▁of▁sentence｜><｜User｜>Museums?<｜Assistant｜><think>I look it up.</think>\n\n"
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="find_museum">\n'
        '<｜DSML｜parameter name="city" string="true">Ghent</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="max" string="false">2</｜DSML｜parameter>\n'
        '</｜DSML｜invoke>\n<｜DSML｜invoke name="list_rooms">\n\n</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls><｜end▁of▁sentence｜>\n\n<function_results>\n<result>two</result>\n"
        "<result>none</result>\n</function_results>\n\n<think>"
    )


def test_deepseek_v4_takes_results_for_the_users_words_and_keeps_thoughts_with_tools() -> None:
    text = render(
        "deepseek_v4",
        *TALK,
        Turn("user", "And?"),
        tools=(ROOMS,),
        thinking=Thinking(effort="max"),
    )
    assert text.startswith("<｜begin▁of▁sentence｜>Reasoning Effort: Absolute maximum")
    assert (
        "<｜User｜>Hi<｜Assistant｜><think>A greeting.</think>Hello.<｜end▁of▁sentence｜>" in text
    )
    assert text.endswith(
        "</｜DSML｜tool_calls><｜end▁of▁sentence｜><｜User｜><tool_result>two</tool_result>\n\n"
        "<tool_result>none</tool_result>\n\nAnd?<｜Assistant｜><think>"
    )
    plain = render("deepseek_v4", *TALK[:4], Turn("system", "Later."))
    assert plain == (
        "<｜begin▁of▁sentence｜>Be brief.\n\nLater.<｜User｜>Hi<｜Assistant｜></think>Hello."
        "<｜end▁of▁sentence｜><｜User｜>Museums?<｜Assistant｜></think>"
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_an_answer_can_be_continued_and_a_finished_conversation_asks_for_none(family: str) -> None:
    turns = (Turn("user", "Count"), Turn("assistant", "1, 2, "))
    asked = render(family, turns[0])
    more = render(family, *turns, add_generation_prompt=False, continue_final_message=True)
    assert more.endswith("1, 2, ")
    assert more.startswith(asked.removesuffix("<|open|>think<|sep|>"))
    closed = render(family, *turns, add_generation_prompt=False)
    assert closed.startswith(more)
    assert len(closed) > len(more)


# ── TypeScript ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer", "nullable": True}, "number | null"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
        ({"const": "x"}, '"x"'),
        ({"type": "array", "items": {"type": "number"}}, "number[]"),
        (
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "(string | null)[]",
        ),
        ({"type": "array"}, "any[]"),
        ({"type": "object"}, "object"),
        ({}, "any"),
        (True, "any"),
        ({"type": "file"}, "any"),
        (
            {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {}}}}},
            "{\na?: {\n    b?: any,\n    },\n}",
        ),
    ],
)
def test_a_schema_is_shown_as_a_type(schema: Any, expected: str) -> None:
    assert type_of(schema) == expected


def test_a_schema_without_end_has_one() -> None:
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    assert type_of(schema).startswith("any[]")


def test_a_namespace_without_functions_is_empty() -> None:
    assert namespace("functions", []) == (
        "## functions\n\nnamespace functions {\n\n} // namespace functions"
    )
