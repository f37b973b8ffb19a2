"""The routes that read what a model printed: answers in the shapes of other gateways, mistakes in our envelope."""

import json
from typing import Any

import pytest

from support.http.http_node import node
from support.http.raw_http import ask

CALLS = "/parse/function_call"
REASONING = "/parse/reasoning"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find_museum",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "max": {"type": "integer"}},
            },
        },
    }
]
TAGGED = (
    "<tool_call>\n<function=find_museum>\n<parameter=city>\n042\n</parameter>\n"
    "<parameter=max>\n3\n</parameter>\n</function>\n</tool_call>"
)


async def asked(path: str, **body: Any) -> dict[str, Any]:
    async with node() as served:
        response = await ask(served.port, "POST", path, body)
    assert response.status == 200, response.body
    answer: dict[str, Any] = response.json()
    assert answer["success"] is True
    return answer


async def test_calls_are_found_and_the_rest_is_returned() -> None:
    body = '{"name": "find_museum", "arguments": {"city": "Gh\\u00e9nt"}}'
    text = f"I look.\n<tool_call>\n{body}\n</tool_call>\n<tool_call>{body}</tool_call> Done."
    answer = await asked(CALLS, text=text, tool_call_parser="hermes", tools=TOOLS)
    assert answer["remaining_text"] == "I look.\n Done."
    first, second = answer["tool_calls"]
    assert first["id"] != second["id"]
    assert first["type"] == "function"
    assert first["function"] == {"name": "find_museum", "arguments": '{"city": "Gh\\u00e9nt"}'}
    assert second["function"] == first["function"]


@pytest.mark.parametrize(
    ("tools", "arguments"),
    [(TOOLS, {"city": "042", "max": 3}), ([], {"city": "042", "max": 3})],
)
async def test_tagged_values_have_the_types_of_the_tools(
    tools: list[Any], arguments: dict[str, Any]
) -> None:
    answer = await asked(CALLS, text=TAGGED, tool_call_parser="qwen3_coder", tools=tools)
    (call,) = answer["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == arguments
    assert answer["remaining_text"] == ""


async def test_a_format_that_is_both_shows_its_thoughts_too() -> None:
    text = (
        "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>commentary"
        ' to=functions.find_museum <|constrain|>json<|message|>{"city":"Ghent"}<|call|>'
    )
    answer = await asked(CALLS, text=text, tool_call_parser="gpt-oss", tools=TOOLS)
    assert answer["reasoning_text"] == "Easy."
    assert [call["function"]["arguments"] for call in answer["tool_calls"]] == ['{"city":"Ghent"}']


@pytest.mark.parametrize(
    ("parser", "prompt", "text", "thought", "rest"),
    [
        ("deepseek_r1", "", "<think>a < b</think>c", "a < b", "c"),
        ("deepseek_r1", "<think>\n", "a</think>b<tool_call>{}", "a", "b<tool_call>{}"),
        ("think+trim", "<think>\n", "a\n</think>\n\nb", "a", "b"),
        ("qwen3", "", "no thought", "", "no thought"),
        ("plain", "", "<think>x</think>", "", "<think>x</think>"),
        # A closer without an opener: the prompt, which is not there, had opened the thought.
        ("deepseek_r1", "", "why</think>so", "why", "so"),
        ("deepseek-r1", "", "\n</think>\n\nso", "\n", "\n\nso"),
        ("deepseek_r1", "", "</think>so", "", "so"),
        ("deepseek_r1", "Hi", "why</think>so</think>x", "why", "so</think>x"),
        ("deepseek_r1", "<think></think>", "why</think>so", "", "why</think>so"),
        ("deepseek_r1", "", "why <think>a</think>so", "", "why <think>aso"),
        ("qwen3", "", "why</think>so", "why", "so"),
        ("glm45", "", "why</think>so", "why", "so"),
        ("think+trim", "", "why\n</think>\n\nso", "why", "so"),
        ("kimi", "", "why◁/think▷so", "why", "so"),
        ("mistral", "", "why[/THINK]so", "why", "so"),
        ("seed_oss", "", "why</seed:think>so", "why", "so"),
        ("minimax_m3", "", "why</mm:think>so", "why", "so"),
        ("apertus", "", "why<|inner_suffix|>so", "why", "so"),
        ("kimi_k3", "", "why<|close|>think<|sep|><|open|>response<|sep|>so", "why", "so"),
        ("gpt_oss", "", "<|channel|>final<|message|>so", "", "so"),
        # And one that was cut off before its closer, where every server takes it for a thought.
        ("deepseek_r1", "", "why", "why", ""),
        ("qwen3-thinking", "", "why", "why", ""),
    ],
)
async def test_thoughts_are_told_from_the_rest(
    parser: str, prompt: str, text: str, thought: str, rest: str
) -> None:
    answer = await asked(REASONING, text=text, reasoning_parser=parser, prompt=prompt)
    assert (answer["reasoning_text"], answer["normal_text"]) == (thought, rest)


async def test_a_long_text_is_read_in_slices_as_in_one_go() -> None:
    word = "<tool_call> is no call, "
    answer = await asked(CALLS, text=word * 5_000, tool_call_parser="hermes")
    assert answer["remaining_text"] == word * 5_000
    assert answer["tool_calls"] == []


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (CALLS, {"text": "a", "tool_call_parser": "hermess"}, "tool_call_parser"),
        (CALLS, {"text": "a"}, "tool_call_parser"),
        (CALLS, {"tool_call_parser": "hermes"}, "text"),
        (CALLS, {"text": 1, "tool_call_parser": "hermes"}, "text"),
        (REASONING, {"text": "a", "reasoning_parser": "thinkk"}, "reasoning_parser"),
        (REASONING, {"text": "a", "reasoning_parser": "think+trimm"}, "reasoning_parser"),
    ],
)
async def test_mistakes_are_told(path: str, body: dict[str, Any], param: str) -> None:
    async with node() as served:
        response = await ask(served.port, "POST", path, body)
    assert response.status == 400
    assert response.error()["param"] == param
