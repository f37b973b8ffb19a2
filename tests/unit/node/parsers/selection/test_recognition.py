import re
from typing import Any

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.parsers.selection.model_formats import Printing
from smg_node.parsers.selection.model_names import NAMES, formats_of_name, normal_name
from smg_node.parsers.selection.model_types import KINDS
from smg_node.parsers.selection.parser_labels import (
    parser_trouble,
    reasoning_of_label,
    tools_of_label,
)
from smg_node.parsers.selection.recognition import Clues, recognise
from smg_node.parsers.selection.registry import known_joint, known_thoughts, known_tools
from smg_node.parsers.selection.template_marks import MARKS
from support.models.family_templates import FAMILIES
from support.models.known_models import KINDS as KIND_ROWS
from support.models.known_models import MARKS as MARK_ROWS
from support.models.known_models import label_rows, name_rows


@pytest.mark.parametrize(("name", "reasoning", "tools"), name_rows())
def test_a_name_stands_for_its_formats(name: str, reasoning: str, tools: str) -> None:
    chosen = recognise(Clues((name,)))
    assert (chosen.reasoning, chosen.tools) == (reasoning, tools)


def test_every_pattern_of_a_name_is_reached_by_some_name() -> None:
    reached = {formats_of_name(name)[2] for name, _, _ in name_rows()}
    assert {pattern.pattern for pattern, _, _ in NAMES} <= reached


def test_a_name_is_taken_without_its_folders_and_with_one_kind_of_separator() -> None:
    assert normal_name("/models/Org/Kimi_K2::Thinking v1/") == "kimi-k2-thinking-v1"
    assert recognise(Clues(("local", "/models/glm-4.5"))).tools == "glm"


@pytest.mark.parametrize(("template", "tokens", "reasoning", "tools"), MARK_ROWS)
def test_the_marks_of_a_template_say_what_is_printed(
    template: str, tokens: str, reasoning: str, tools: str
) -> None:
    chosen = recognise(Clues(("m",), template, frozenset(tokens.split())))
    assert (chosen.reasoning, chosen.tools) == (reasoning, tools)
    for name, why in ((reasoning, chosen.why_reasoning), (tools, chosen.why_tools)):
        assert why.source in (
            ("chat template",) if name != "plain" else ("chat template", "nothing")
        )


@pytest.mark.parametrize(("kind", "reasoning", "tools"), KIND_ROWS)
def test_the_kind_of_a_model_says_what_is_printed(kind: str, reasoning: str, tools: str) -> None:
    chosen = recognise(Clues(("m",), config={"model_type": kind}))
    assert (chosen.reasoning, chosen.tools) == (reasoning, tools)


def test_every_kind_is_tried() -> None:
    assert [kind for kind, _, _ in KIND_ROWS] == list(KINDS)


@pytest.mark.parametrize(
    ("config", "tools"),
    [
        ({"architectures": ["GptOssForCausalLM"]}, "harmony"),
        ({"architectures": ["DeepseekV32ForCausalLM"]}, "dsml"),
        ({"model_type": "wrapper", "text_config": {"model_type": "qwen3_5"}}, "qwen_xml"),
        ({"model_type": "kimi_k25", "text_config": {"model_type": "deepseek_v3"}}, "kimi_k2"),
        ({"model_type": 5, "architectures": "GptOss", "text_config": []}, "plain"),
        ({"architectures": [None, {"a": 1}, "Unheard"]}, "plain"),
        ({}, "plain"),
    ],
)
def test_the_kind_is_found_wherever_a_configuration_names_it(
    config: dict[str, Any], tools: str
) -> None:
    assert recognise(Clues(("m",), config=config)).tools == tools


@pytest.mark.parametrize(
    ("clues", "reasoning"),
    [
        (Clues(("m",), "<think>", config={"model_type": "ernie4_5_moe"}), "ernie45"),
        (Clues(("m",), "", config={"model_type": "ernie4_5_moe"}), "plain"),
        (Clues(("m",), "<think>", config={"model_type": "hunyuan_v1_moe"}), "hunyuan_a13b"),
        (Clues(("granite-3.3-2b-instruct",), "<think></think> <response>"), "granite"),
        (Clues(("granite-4.2-8b",), "<think>"), "think"),
    ],
)
def test_a_family_that_puts_more_around_its_thoughts_is_not_taken_for_the_common_one(
    clues: Clues, reasoning: str
) -> None:
    assert recognise(clues).reasoning == reasoning


@pytest.mark.parametrize(("label", "reasoning", "tools"), label_rows())
def test_the_words_of_other_programs_are_understood(label: str, reasoning: str, tools: str) -> None:
    if reasoning != "-":
        assert reasoning_of_label(label) == reasoning
    if tools != "-":
        assert tools_of_label(label) == tools


def test_a_label_that_nobody_knows_says_nothing() -> None:
    for label in ("who-knows", ""):
        assert reasoning_of_label(label) == tools_of_label(label) == ""


def test_every_format_that_evidence_names_is_one_that_is_known() -> None:
    named = [(reasoning, tools) for _, reasoning, tools in NAMES]
    named += [(kind.reasoning, kind.tools) for kind in KINDS.values()]
    named += [(kind.thinking, "") for kind in KINDS.values()]
    named += [(row.reasoning, row.tools) for row in MARKS if not row.reasoning.startswith("if ")]
    thoughts = {*known_thoughts(), *known_joint(), ""}
    calls = {*known_tools(), *known_joint(), "plain", ""}
    assert {reasoning for reasoning, _ in named} <= thoughts
    assert {tools for _, tools in named} <= calls


@pytest.mark.parametrize(
    ("clues", "options"),
    [
        (Clues(("DeepSeek-R1",)), ""),
        (Clues(("DeepSeek-R1-0528-Qwen3-8B",), config={"model_type": "qwen3"}), ""),
        (Clues(("deepseek-v3.1",)), ""),
        (Clues(("qwen3-8b",)), "implicit interleaved"),
        (Clues(("mine",), '<think><tool_call> "arguments"', config={"model_type": "qwen3"}), "implicit interleaved"),
        (Clues(("qwen3.5-9b",)), "implicit"),
        (Clues(("qwen3-235b-a22b-instruct-2507",), config={"model_type": "qwen3_moe"}), ""),
        (Clues(("qwen3-coder-30b",), config={"model_type": "qwen3_moe"}), ""),
        (Clues(("glm-4.5-air",)), "implicit interleaved"),
        (Clues(("mine",), "[gMASK]<sop> /nothink"), "implicit interleaved"),
        (Clues(("glm-4.7",)), "implicit"),
        (Clues(("mine",), config={"model_type": "glm_moe_dsa"}), "implicit"),
        (Clues(("kimi-k2-thinking",)), "implicit"),
        (Clues(("kimi-k2.6",)), "implicit"),
        (Clues(("minimax-m2",)), "interleaved"),
        (Clues(("step3",)), "trim"),
        (Clues(("step-3.5-flash",)), "trim"),
        (Clues(("nvidia-nemotron-nano-9b-v2",)), "trim"),
        (Clues(("mine",), "<TOOLCALL>", config={"model_type": "nemotron_h"}), "trim"),
        (Clues(("nemotron-3-nano-30b",)), "implicit line trim"),
        (Clues(("granite-4.2-8b",)), "implicit line trim"),
        (Clues(("llama-3.3-nemotron-super-49b-v1.5",)), ""),
        (Clues(("laguna-xs.2",)), "implicit line"),
        (Clues(("mine",), config={"model_type": "laguna"}), "implicit line"),
        (Clues(("mimo-v2-flash",)), ""),
        (Clues(("hermes-4-70b",)), ""),
        (Clues(("hy3",), added_tokens={"<think:opensource>", "<tool_sep:opensource>"}), ":opensource"),
        (Clues(("qwen3-8b",), reasoning_parser="think+trim"), "trim"),
        (Clues(("qwen3-8b",), reasoning_parser="think+none"), ""),
        (Clues(("qwen3-8b",), reasoning_parser="deepseek_r1"), "implicit interleaved"),
        (Clues(("kimi-k1.5",)), ""),
    ],
)  # fmt: skip
def test_families_that_think_between_the_same_marks_differ_in_options(
    clues: Clues, options: str
) -> None:
    assert recognise(clues).options == frozenset(options.split())
    Printing(recognise(clues))


def test_the_stronger_evidence_decides_each_part_by_itself() -> None:
    weak = Clues(("kimi-k2.6",))
    assert recognise(weak).why_reasoning.source == "name"
    kind = Clues(("kimi-k2.6",), config={"model_type": "qwen3_5"})
    assert (recognise(kind).tools, recognise(kind).why_tools.source) == (
        "qwen_xml",
        "configuration",
    )
    marks = Clues(("kimi-k2.6",), "<TOOLCALL>", config={"model_type": "qwen3_5"})
    assert (recognise(marks).tools, recognise(marks).why_tools.source) == (
        "nemotron_json",
        "chat template",
    )
    labelled = Clues(("kimi-k2.6",), "<TOOLCALL>", tool_label="glm47")
    chosen = recognise(labelled)
    assert (chosen.reasoning, chosen.why_reasoning.source) == ("think", "chat template")
    assert (chosen.tools, chosen.why_tools.source) == ("glm", "worker")
    said = Clues(("kimi-k2.6",), "<TOOLCALL>", tool_label="glm47", tool_parser="plain")
    assert (recognise(said).tools, recognise(said).why_tools.source) == ("plain", "settings")
    assert str(recognise(said).why_tools) == "settings: tool_parser: plain"


def test_a_template_may_fix_one_part_and_the_name_the_other() -> None:
    chosen = recognise(Clues(("olmo-3-32b-think",), "<function_calls>"))
    assert (chosen.reasoning, chosen.tools) == ("think", "olmo3")
    assert (chosen.why_reasoning.source, chosen.why_tools.source) == ("name", "chat template")


def test_a_worker_that_calls_it_otherwise_than_it_looks_is_believed_with_a_warning() -> None:
    template = '<think><tool_call>{"arguments"'
    agreed = recognise(Clues(("m",), template, reasoning_label="qwen3", tool_label="qwen25"))
    assert agreed.warnings == ()
    chosen = recognise(Clues(("m",), template, reasoning_label="deepseek_r1", tool_label="glm47"))
    assert (chosen.reasoning, chosen.tools) == ("think", "glm")
    assert chosen.warnings == (
        "the worker says 'tool_call_parser: glm47', so its calls are read as glm, but '<tool_call>' in the"
        " chat template, '\"arguments\"' in the chat template looks like hermes",
    )
    unknown = recognise(Clues(("m",), template, tool_label="made-up"))
    assert (unknown.tools, unknown.warnings) == ("hermes", ())


def test_a_format_that_is_both_stands_in_both_places_or_in_none() -> None:
    by_label = recognise(Clues(("m",), "<think>", tool_label="gpt-oss"))
    assert (by_label.reasoning, by_label.tools) == ("harmony", "harmony")
    said = recognise(Clues(("gpt-oss-20b",), tool_parser="hermes"))
    assert (said.reasoning, said.tools) == ("plain", "hermes")
    also = recognise(Clues(("gpt-oss-20b",), reasoning_parser="think"))
    assert (also.reasoning, also.tools) == ("think", "plain")
    both = recognise(Clues(("m",), reasoning_parser="harmony"))
    assert (both.reasoning, both.tools) == ("harmony", "harmony")
    clash = recognise(Clues(("m",), reasoning_parser="think", tool_parser="harmony"))
    Printing(clash)
    assert (clash.reasoning, clash.tools) == ("harmony", "harmony")


def test_an_operator_that_names_nothing_known_is_told_what_is_near() -> None:
    with pytest.raises(SmgError) as caught:
        recognise(Clues(("m",), tool_parser="hermess"))
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert parser_trouble("tool_parser", "hermess") == (
        "no tool parser is called 'hermess'; did you mean 'hermes'?"
    )
    assert "did you mean 'think'" in parser_trouble("reasoning_parser", "thinks")
    assert "option of a reasoning parser" in parser_trouble("reasoning_parser", "think+implict")
    for field, name in (
        ("tool_parser", "qwen3_coder"),
        ("tool_parser", "plain"),
        ("tool_parser", "harmony"),
        ("reasoning_parser", "think+implicit+line"),
        ("reasoning_parser", "deepseek-r1"),
        ("reasoning_parser", "plain"),
    ):
        assert parser_trouble(field, name) == ""


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_familys_template_is_enough_to_know_it(name: str) -> None:
    family = FAMILIES[name]
    tokens = frozenset(re.findall(r"<[^<>\s]{1,40}>|\[[A-Z_]+\]", family.template))
    chosen = recognise(Clues((), family.template, tokens))
    assert (chosen.reasoning, chosen.tools) == (family.reasoning, family.tools)
