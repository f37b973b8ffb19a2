"""Tool loops in front of vendors: what a vendor wants back comes back to it, and a loop may go on at another vendor.

The stand-ins refuse a turn whose signatures were lost or changed, as their vendors do.
"""

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import MessageParam
from google import genai
from google.genai import types

from support.processes.node import running_node
from support.processes.simulated_engines import running_simulated
from support.providers.stand_ins import KEY, KEY_ID, SECRET, running_stand_ins

pytestmark = pytest.mark.integration

AWS = {"credentials": {"kind": "aws", "access_key_id": KEY_ID, "secret_access_key": SECRET}}
# Kind of hosting: what else its definition says, and a model of it that thinks and signs.
VENDORS: dict[str, tuple[dict[str, Any], str]] = {
    "openai": ({"keys": [KEY]}, "gpt-5.6-sol"),
    "anthropic": ({"keys": [KEY]}, "claude-sonnet-5"),
    "gemini": ({"keys": [KEY]}, "gemini-3-flash"),
    "bedrock": ({**AWS, "region": "eu-central-1"}, "eu.anthropic.claude-sonnet-5"),
    "bedrock_invoke": ({**AWS, "region": "eu-central-1"}, "eu.anthropic.claude-sonnet-5"),
}
OWN = "own-engines"
CALLS = "Let me look."
# What own engines say each time: a thought that nobody signed, and a call.
SCRIPT = (
    "<think>\nWhat is the weather there?\n</think>\n"
    f'{CALLS}\n<tool_call>\n{{"name": "weather", "arguments": {{"city": "Paris"}}}}\n</tool_call>'
)
WISH = "weather city=Paris rounds=3"
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
ROUNDS_MAX = 6


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    scratch = tmp_path_factory.mktemp("loops")
    kinds = [word for kind in VENDORS for word in ("--kind", kind)]
    (scratch / "engine").mkdir()
    script = scratch / "engine" / "says.txt"
    script.write_text(SCRIPT)
    told = ("--model", "qwen3", "--script", str(script), "--itl-ms", "0")
    with (
        running_stand_ins(scratch, *kinds, "--model", "*") as (stands, _),
        running_simulated(scratch / "engine", *told) as engine,
    ):
        said = {
            kind.replace("_", "-"): {"kind": kind, "base": stand.base, **VENDORS[kind][0]}
            for kind, stand in zip(VENDORS, stands, strict=True)
        }
        routes: dict[str, Any] = {
            kind: {"targets": [f"{kind.replace('_', '-')}/{model}"]}
            for kind, (_, model) in VENDORS.items()
        }
        routes[OWN] = {"targets": ["engines/qwen3"]}
        file = scratch / "providers.json"
        file.write_text(json.dumps({"providers": said, "routes": routes}))
        flags = ("--providers", str(file), "--readiness.min-workers", str(len(VENDORS) + 1))
        worker = f"grpc://{engine.address}"
        with running_node(scratch / "node", workers=[worker], flags=flags) as node:
            node.process.wait_until(lambda: node.status("/readiness") == 200, "ready", 60)
            yield node.url


def models(*first: str, then: str) -> Iterator[str]:
    """Yield the model of each round: the first ones are asked one after the other, the last for all the rest."""
    yield from first
    while True:
        yield then


# ── A loop in each API: how many rounds called, and the last words ───────────


def chat_loop(url: str, asked: Iterator[str]) -> tuple[int, str]:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    function = {"name": "weather", "description": "Tells the weather.", "parameters": PARAMETERS}
    messages: list[Any] = [{"role": "user", "content": WISH}]
    tools: Any = [{"type": "function", "function": function}]
    for called, model in enumerate(asked):
        assert called < ROUNDS_MAX
        said = client.chat.completions.create(
            model=model,
            messages=messages,
            tools=tools,
            reasoning_effort="medium",
            max_completion_tokens=4000,
        )
        message = said.choices[0].message
        if not message.tool_calls:
            return called, message.content or ""
        assert said.choices[0].finish_reason == "tool_calls"
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            assert call.type == "function"
            assert json.loads(call.function.arguments) == {"city": "Paris"}
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "sunny"})
    raise AssertionError("models do not end")


def messages_loop(url: str, asked: Iterator[str]) -> tuple[int, str]:
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    messages: list[MessageParam] = [{"role": "user", "content": WISH}]
    for called, model in enumerate(asked):
        assert called < ROUNDS_MAX
        with client.messages.stream(
            model=model,
            max_tokens=4000,
            thinking={"type": "adaptive"},
            messages=messages,
            tools=[{"name": "weather", "input_schema": PARAMETERS}],
        ) as events:
            said = events.get_final_message()
        calls = [block for block in said.content if block.type == "tool_use"]
        if not calls:
            return called, "".join(block.text for block in said.content if block.type == "text")
        assert said.stop_reason == "tool_use"
        messages.append({"role": "assistant", "content": said.content})
        results: Any = [
            {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"} for call in calls
        ]
        assert [call.input for call in calls] == [{"city": "Paris"}]
        messages.append({"role": "user", "content": results})
    raise AssertionError("models do not end")


def responses_loop(url: str, asked: Iterator[str]) -> tuple[int, str]:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    items: list[Any] = [{"role": "user", "content": WISH}]
    tools: Any = [
        {"type": "function", "name": "weather", "parameters": PARAMETERS, "strict": False}
    ]
    for called, model in enumerate(asked):
        assert called < ROUNDS_MAX
        said = client.responses.create(
            model=model,
            input=items,
            store=False,
            reasoning={"effort": "medium"},
            include=["reasoning.encrypted_content"],
            tools=tools,
        )
        calls = [item for item in said.output if item.type == "function_call"]
        if not calls:
            return called, said.output_text
        items += [item.model_dump(exclude_none=True) for item in said.output]
        for call in calls:
            assert json.loads(call.arguments) == {"city": "Paris"}
            result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
            items.append(result)
    raise AssertionError("models do not end")


def contents_loop(url: str, asked: Iterator[str]) -> tuple[int, str]:
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=url))
    function = types.FunctionDeclaration(name="weather", parameters_json_schema=PARAMETERS)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[function])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        thinking_config=types.ThinkingConfig(include_thoughts=True),
    )
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=WISH)])]
    for called, model in enumerate(asked):
        assert called < ROUNDS_MAX
        said = client.models.generate_content(model=model, contents=contents, config=config)
        calls = said.function_calls or []
        if not calls:
            return called, said.text or ""
        assert said.candidates is not None
        contents.append(said.candidates[0].content)
        parts = []
        for call in calls:
            assert call.args == {"city": "Paris"}
            answer = types.FunctionResponse(
                id=call.id, name=call.name, response={"result": "sunny"}
            )
            parts.append(types.Part(function_response=answer))
        contents.append(types.Content(role="user", parts=parts))
    raise AssertionError("models do not end")


LOOPS = {
    "chat": chat_loop,
    "messages": messages_loop,
    "responses": responses_loop,
    "generate_content": contents_loop,
}


@pytest.mark.parametrize("api", LOOPS)
@pytest.mark.parametrize("kind", VENDORS)
def test_three_rounds_of_calls_end_with_an_answer(url: str, kind: str, api: str) -> None:
    called, text = LOOPS[api](url, models(then=kind))
    assert called == 3
    assert text


PAIRS = [(one, other) for one in VENDORS for other in VENDORS if one != other]


@pytest.mark.parametrize("api", LOOPS)
@pytest.mark.parametrize(("first", "then"), PAIRS)
def test_a_loop_goes_on_at_another_vendor(url: str, api: str, first: str, then: str) -> None:
    called, text = LOOPS[api](url, models(first, first, then=then))
    assert called == 3
    assert text


@pytest.mark.parametrize("api", LOOPS)
@pytest.mark.parametrize("kind", VENDORS)
@pytest.mark.parametrize("own_first", [True, False])
def test_a_loop_goes_back_and_forth_between_own_engines_and_a_vendor(
    url: str, api: str, kind: str, own_first: bool
) -> None:
    first = (OWN, kind, OWN) if own_first else (kind, OWN)
    called, text = LOOPS[api](url, models(*first, then=kind))
    assert called == 3
    assert text
    assert CALLS not in text
