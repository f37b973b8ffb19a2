"""Thoughts and calls that real engines print, through a real node; the official SDK is the judge."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from support.http.chat_client import port_of
from support.http.raw_http import ask
from support.processes.mlx_engine import MlxEngines
from support.processes.node import RunningNode, running_node

pytestmark = pytest.mark.integration

MODELS = ("tool", "two-tools", "think", "coder", "channels")
CONFIG = """
models:
  coder:
    tool_parser: qwen3_coder
    reasoning_parser: qwen3+trim
  channels:
    reasoning_parser: gpt-oss
    tool_parser: gpt-oss
"""
STRING = {"type": "string"}
SCHEMAS: dict[str, dict[str, Any]] = {
    "get_weather": {"city": STRING, "unit": STRING},
    "get_time": {"zone": STRING},
    "get_tide": {"port": STRING, "hours": {"type": "integer"}, "code": STRING},
    "list_rooms": {"floor": {"type": "integer"}},
}
FUNCTIONS = [
    {"name": name, "parameters": {"type": "object", "properties": properties}}
    for name, properties in SCHEMAS.items()
]
TOOLS: Any = [{"type": "function", "function": function} for function in FUNCTIONS]
HELLO: Any = [{"role": "user", "content": "Do what you can."}]

# What each model says: its thought, its text, its calls.
SAID: dict[str, tuple[str, str | None, list[tuple[str, str]]]] = {
    "tool": ("", "Let me look.\n", [("get_weather", '{"city": "Paris", "unit": "celsius"}')]),
    "two-tools": (
        "",
        None,
        [("get_weather", '{"city": "Oslo"}'), ("get_time", '{"zone": "Europe/Oslo"}')],
    ),
    "think": ("\nSix times seven; that is easy.\n", "\n\nThe answer is 42.", []),
    "coder": (
        "Tides are needed, for two days.",
        "Looking them up.\n",
        [("get_tide", '{"port":"Brest <b>é</b>","hours":48,"code":"007"}')],
    ),
    "channels": ("Rooms first.", None, [("list_rooms", '{"floor": 2}')]),
}


@pytest.fixture(scope="module")
def node(
    mlx_engines: MlxEngines, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningNode]:
    folder = tmp_path_factory.mktemp("node")
    config = folder / "smg.yaml"
    config.write_text(CONFIG)
    workers = [f"grpc://{mlx_engines.saying(name).address}?model={name}" for name in MODELS]
    with running_node(folder, workers=workers, flags=("--config", str(config))) as running:
        yield running


@pytest.fixture
def client(node: RunningNode) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=120) as client:
        yield client


def whole(answer: ChatCompletion) -> tuple[str, str | None, list[tuple[str, str]]]:
    message = answer.choices[0].message
    calls = [
        (call.function.name, call.function.arguments)
        for call in message.tool_calls or []
        if call.type == "function"
    ]
    return getattr(message, "reasoning_content", ""), message.content, calls


def streamed(chunks: list[ChatCompletionChunk]) -> tuple[str, str | None, list[tuple[str, str]]]:
    """Return what a stream says; its calls must be told in order, each opened once and then filled."""
    thought = text = ""
    calls: list[list[str]] = []
    for chunk in chunks:
        for choice in chunk.choices:
            thought += getattr(choice.delta, "reasoning_content", "") or ""
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                assert call.function is not None
                if call.index == len(calls):
                    assert call.id is not None
                    assert call.id.startswith("call_")
                    assert call.type == "function"
                    assert call.function.arguments == ""
                    calls.append([call.function.name or "", ""])
                assert call.index == len(calls) - 1
                calls[-1][1] += call.function.arguments or ""
    return thought, text or None, [(name, arguments) for name, arguments in calls]


@pytest.mark.parametrize("model", MODELS)
def test_thoughts_and_calls_are_told_apart(client: OpenAI, model: str) -> None:
    answer = client.chat.completions.create(model=model, messages=HELLO, tools=TOOLS)
    assert whole(answer) == SAID[model]
    calls = SAID[model][2]
    assert answer.choices[0].finish_reason == ("tool_calls" if calls else "stop")
    ids = [call.id for call in answer.choices[0].message.tool_calls or []]
    assert len(set(ids)) == len(calls)
    assert all(one.startswith("call_") for one in ids)
    for _, arguments in calls:
        assert json.loads(arguments)


@pytest.mark.parametrize("model", MODELS)
def test_streams_say_the_same(client: OpenAI, model: str) -> None:
    chunks = list(
        client.chat.completions.create(
            model=model,
            messages=HELLO,
            tools=TOOLS,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    thought, text, calls = SAID[model]
    assert streamed(chunks) == (thought, text, calls)
    reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert [reason for reason in reasons if reason] == ["tool_calls" if calls else "stop"]
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.completion_tokens_details is not None
    tokens = usage.completion_tokens_details.reasoning_tokens or 0
    assert bool(tokens) is bool(thought)
    assert tokens < usage.completion_tokens


def test_without_tools_markup_of_calls_is_text(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="tool", messages=HELLO)
    content = answer.choices[0].message.content
    assert content is not None
    assert content.endswith('"celsius"}}\n</tool_call>')
    assert answer.choices[0].finish_reason == "stop"


def test_one_call_is_all_there_is_where_calls_are_not_parallel(client: OpenAI) -> None:
    for stream in (False, True):
        asked = client.chat.completions.create(
            model="two-tools",
            messages=HELLO,
            tools=TOOLS,
            parallel_tool_calls=False,
            stream=stream,
        )
        said = whole(asked) if isinstance(asked, ChatCompletion) else streamed(list(asked))
        assert said == ("", None, SAID["two-tools"][2][:1])


def test_a_stop_string_inside_a_call_cuts_it_there(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tool", messages=HELLO, tools=TOOLS, stop=[', "unit"']
    )
    assert whole(answer) == ("", "Let me look.\n", [("get_weather", '{"city": "Paris"')])
    assert answer.choices[0].finish_reason == "stop"


def test_length_beats_calls(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tool", messages=HELLO, tools=TOOLS, max_tokens=25
    )
    assert answer.choices[0].finish_reason == "length"


@pytest.mark.parametrize("model", MODELS)
def test_responses_have_an_item_for_each(client: OpenAI, model: str) -> None:
    tools: Any = [{"type": "function", "strict": False, **function} for function in FUNCTIONS]
    thought, text, calls = SAID[model]
    kinds = (
        ["reasoning"] * bool(thought) + ["message"] * bool(text) + ["function_call"] * len(calls)
    )
    answer = client.responses.create(model=model, input="Do it.", tools=tools, store=False)
    assert [item.type for item in answer.output] == kinds
    assert answer.output_text == (text or "")
    asked = [(item.name, item.arguments) for item in answer.output if item.type == "function_call"]
    assert asked == calls
    assert answer.usage is not None
    assert bool(answer.usage.output_tokens_details.reasoning_tokens) is bool(thought)
    events = list(
        client.responses.create(model=model, input="Do it.", tools=tools, store=False, stream=True)
    )
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert [item.type for item in done] == kinds
    thoughts = [event.delta for event in events if event.type == "response.reasoning_text.delta"]
    assert "".join(thoughts) == thought
    arguments = [
        event.arguments for event in events if event.type == "response.function_call_arguments.done"
    ]
    assert arguments == [text for _, text in calls]


async def test_the_parsers_answer_for_themselves(node: RunningNode) -> None:
    body = {"text": "<think>a</think>b", "reasoning_parser": "deepseek_r1"}
    response = await ask(port_of(node.url), "POST", "/parse/reasoning", body)
    assert response.json() == {"normal_text": "b", "reasoning_text": "a", "success": True}
