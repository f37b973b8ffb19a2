"""Anthropic's official clients as judges of the stand-ins that speak Messages: Anthropic, Foundry, Vertex, mantle."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anthropic
import pytest

from smg_chaos.vendor.vendor import Vendor
from support.providers.stand_ins import KEY, StandIn, stand_in

pytestmark: Final = pytest.mark.conformance

MODEL: Final = "claude-haiku-4-5"
TOOLS: Final[Any] = [
    {
        "name": "weather",
        "input_schema": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
    {"name": "clock", "input_schema": {"type": "object", "properties": {}}},
]
THINKS: Final[Any] = {"type": "enabled", "budget_tokens": 1_024}
HELLO: Final = "You said: hello (turns=1)"


def user(text: Any) -> Any:
    return [{"role": "user", "content": text}]


def _client(kind: str, where: StandIn) -> Any:
    common: Any = {"max_retries": 0}
    if kind == "vertex_anthropic":
        return anthropic.AsyncAnthropicVertex(
            region="eu", project_id="p", access_token=KEY, base_url=f"{where.url}/v1", **common
        )
    if kind == "foundry":
        return anthropic.AsyncAnthropicFoundry(api_key=KEY, base_url=where.base, **common)
    base = f"{where.url}/anthropic" if kind == "mantle" else where.base
    return anthropic.AsyncAnthropic(api_key=KEY, base_url=base, **common)


@asynccontextmanager
async def asking(kind: str, **settings: Any) -> AsyncIterator[tuple[Any, Vendor]]:
    """A client of a stand-in, which does not try again."""
    async with stand_in(kind, **settings) as (where, vendor), _client(kind, where) as client:
        yield client, vendor


KINDS: Final = (
    ("anthropic", MODEL),
    ("foundry", MODEL),
    ("vertex_anthropic", MODEL),
    ("mantle", "anthropic.claude-sonnet-5"),
)


@pytest.mark.parametrize(("kind", "model"), KINDS)
async def test_a_message_says_the_same_streamed_and_whole(kind: str, model: str) -> None:
    async with asking(kind) as (client, _):
        asked: Any = {"model": model, "max_tokens": 100, "messages": user("hello")}
        whole = await client.messages.create(**asked)
        assert [block.text for block in whole.content] == [HELLO]
        assert (whole.stop_reason, whole.usage.output_tokens) == ("end_turn", 4)
        stream = await client.messages.create(stream=True, **asked)
        events = [event async for event in stream]
        text = "".join(event.delta.text for event in events if event.type == "content_block_delta")
        assert text == HELLO
        assert events[-1].type == "message_stop"
        deltas = [event for event in events if event.type == "message_delta"]
        assert (deltas[0].delta.stop_reason, deltas[0].usage.output_tokens) == ("end_turn", 4)


@pytest.mark.parametrize("kind", ["anthropic", "vertex_anthropic"])
async def test_signed_thoughts_go_around_a_call_unchanged(kind: str) -> None:
    async with asking(kind) as (client, _):
        asked: Any = {"model": MODEL, "max_tokens": 2_000, "tools": TOOLS, "thinking": THINKS}
        messages = user("call all city=Paris")
        async with client.messages.stream(messages=messages, **asked) as stream:
            answer = await stream.get_final_message()
        assert [block.type for block in answer.content] == ["thinking", "tool_use", "tool_use"]
        assert [block.input for block in answer.content[1:]] == [{"city": "Paris"}, {}]
        blocks = [block.model_dump(exclude_none=True) for block in answer.content]
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": f"result {at}"}
            for at, block in enumerate(blocks[1:])
        ]
        messages += [
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": results},
        ]
        after = await client.messages.create(messages=messages, **asked)
        assert after.content[1].text == "The results are: result 0; result 1"

        for change, words in (
            (
                {"thinking": "I thought of something else"},
                "Invalid `signature` in `thinking` block",
            ),
            ({"signature": "AAAA"}, "Invalid `signature` in `thinking` block"),
        ):
            changed = json.loads(json.dumps(messages))
            changed[1]["content"][0] |= change
            with pytest.raises(anthropic.BadRequestError, match=words):
                await client.messages.create(messages=changed, **asked)
        lost = json.loads(json.dumps(messages))
        del lost[1]["content"][0]
        with pytest.raises(anthropic.BadRequestError, match="Expected `thinking`"):
            await client.messages.create(messages=lost, **asked)


async def test_new_models_sign_thoughts_without_a_text() -> None:
    async with asking("anthropic") as (client, _):
        whole = await client.messages.create(
            model="claude-sonnet-5",
            max_tokens=100,
            thinking={"type": "adaptive"},
            messages=user("hello"),
        )
        thought = whole.content[0]
        assert (thought.type, thought.thinking) == ("thinking", "")
        assert thought.signature
        redacted = await client.messages.create(
            model=MODEL, max_tokens=2_000, thinking=THINKS, messages=user("redact it")
        )
        assert redacted.content[0].type == "redacted_thinking"


async def test_marks_are_written_once_and_read_afterwards() -> None:
    async with asking("anthropic", cache_min_tokens=100) as (client, _):
        system: Any = [
            {
                "type": "text",
                "text": "long " * 200,
                "cache_control": {"type": "ephemeral", "ttl": "1h"},
            }
        ]
        asked: Any = {"model": MODEL, "max_tokens": 10, "system": system}
        first = (await client.messages.create(messages=user("hello"), **asked)).usage
        second = (await client.messages.create(messages=user("again"), **asked)).usage
        written = first.cache_creation_input_tokens
        assert written > 250
        assert first.cache_creation.ephemeral_1h_input_tokens == written
        assert (second.cache_read_input_tokens, second.cache_creation_input_tokens) == (written, 0)
        assert first.input_tokens == second.input_tokens


async def test_counting_and_listing() -> None:
    async with asking("anthropic") as (client, _):
        counted = await client.messages.count_tokens(model=MODEL, messages=user("hello"))
        whole = await client.messages.create(model=MODEL, max_tokens=9, messages=user("hello"))
        assert counted.input_tokens == whole.usage.input_tokens
        names = [model.id async for model in client.models.list()]
        assert names == ["claude-sonnet-5", "claude-opus-4-6", "claude-haiku-4-5"]
    async with asking("vertex_anthropic") as (client, _):
        counted = await client.messages.count_tokens(model=MODEL, messages=user("hello"))
        assert counted.input_tokens == whole.usage.input_tokens


@pytest.mark.parametrize(
    ("fault", "kind", "status"),
    [
        ("status:reason=overloaded", anthropic.APIStatusError, 529),
        ("status:reason=rate,retry_after=2", anthropic.RateLimitError, 429),
        ("status:reason=no-model", anthropic.NotFoundError, 404),
        ("status:reason=unauthorized", anthropic.AuthenticationError, 401),
    ],
)
async def test_refusals_are_the_errors_of_the_client(
    fault: str, kind: type[anthropic.APIStatusError], status: int
) -> None:
    async with asking("anthropic", faults=(fault,)) as (client, _):
        with pytest.raises(kind) as raised:
            await client.messages.create(model=MODEL, max_tokens=9, messages=user("hello"))
        assert raised.value.status_code == status


async def test_an_error_inside_the_stream_is_raised_there() -> None:
    async with asking("anthropic", faults=("error:after=4,reason=overloaded",)) as (client, _):
        stream = await client.messages.create(
            model=MODEL, max_tokens=9, messages=user("hello"), stream=True
        )
        with pytest.raises(anthropic.APIStatusError, match="on purpose"):
            async for _ in stream:
                pass
