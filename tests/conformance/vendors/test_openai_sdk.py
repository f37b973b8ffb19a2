"""OpenAI's official client as judge of the stand-ins that speak OpenAI's APIs: OpenAI, Azure, mantle, xAI, and others."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import openai
import pytest
from openai import AsyncAzureOpenAI, AsyncOpenAI

from smg_chaos.vendor.vendor import Vendor
from support.providers.stand_ins import KEY, stand_in

pytestmark: Final = pytest.mark.conformance

SCHEMA: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
FUNCTION: Final = {"name": "weather", "parameters": SCHEMA}
TOOLS: Final[Any] = [{"type": "function", "function": FUNCTION}]
FLAT_TOOLS: Final[Any] = [{"type": "function", **FUNCTION, "strict": False}]
HELLO: Final = "You said: hello (turns=1)"


def user(text: str) -> Any:
    return [{"role": "user", "content": text}]


@asynccontextmanager
async def asking(kind: str, **settings: Any) -> AsyncIterator[tuple[AsyncOpenAI, Vendor]]:
    """A client of a stand-in, which does not try again."""
    async with stand_in(kind, **settings) as (where, vendor):
        base = where.base
        if kind == "gemini":
            base = f"{where.url}/v1beta/openai"
        if kind == "mantle":
            base = f"{where.url}/openai/v1"
        async with AsyncOpenAI(base_url=base, api_key=KEY, max_retries=0) as client:
            yield client, vendor


VENDORS: Final = (
    ("openai", (), "gpt-4.1-mini"),
    ("mantle", (), "openai.gpt-oss-120b"),
    ("xai", (), "grok-4.5"),
    ("azure", (), "gpt-4.1-mini"),
    ("openai_like", ("groq",), "model-large"),
    ("openai_like", ("mistral",), "model-large"),
    ("openai_like", ("deepseek",), "model-large"),
    ("openai_like", ("openrouter",), "model-large"),
    ("openai_like", ("snowflake",), "model-large"),
    ("openai_like", ("zai",), "model-thinking"),
    ("gemini", (), "gemini-3-flash"),
)


@pytest.mark.parametrize(("kind", "quirks", "model"), VENDORS)
async def test_a_chat_says_the_same_streamed_and_whole(
    kind: str, quirks: tuple[str, ...], model: str
) -> None:
    async with asking(kind, quirks=quirks) as (client, vendor):
        if kind == "azure":
            vendor.credentials.add(KEY)
        whole = await client.chat.completions.create(model=model, messages=user("hello"))
        assert whole.choices[0].message.content == HELLO
        stream = await client.chat.completions.create(
            model=model, messages=user("hello"), stream=True
        )
        said = ""
        async for chunk in stream:
            for choice in chunk.choices:
                content = choice.delta.content
                said += content if isinstance(content, str) else ""
        assert said == HELLO


@pytest.mark.parametrize(
    "model", [row[2] for row in VENDORS if row[0] in ("openai", "xai")], ids=str
)
async def test_chat_calls_go_around(model: str) -> None:
    kind = "xai" if model.startswith("grok") else "openai"
    async with asking(kind) as (client, _):
        messages: Any = user("call weather city=Paris days=3")
        async with client.chat.completions.stream(
            model=model, messages=messages, tools=TOOLS
        ) as stream:
            async for _ in stream:
                pass
            answer = (await stream.get_final_completion()).choices[0]
        assert answer.finish_reason == "tool_calls"
        assert answer.message.tool_calls is not None
        [call] = answer.message.tool_calls
        assert json.loads(call.function.arguments) == {"city": "Paris", "days": 3}
        messages += [
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {
                            "name": call.function.name,
                            "arguments": call.function.arguments,
                        },
                    }
                ],
            },
            {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
        ]
        after = await client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
        assert after.choices[0].message.content == "The results are: sunny"
        messages[-1]["tool_call_id"] = "call_of_nobody"
        with pytest.raises(openai.BadRequestError) as raised:
            await client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
        assert "must be a response to a preceeding" in raised.value.response.text


async def test_a_named_choice_ends_with_stop_and_a_refusal_has_no_content() -> None:
    async with asking("openai") as (client, _):
        named: Any = {"type": "function", "function": {"name": "weather"}}
        whole = await client.chat.completions.create(
            model="gpt-4.1-mini", messages=user("hello"), tools=TOOLS, tool_choice=named
        )
        assert whole.choices[0].finish_reason == "stop"
        assert whole.choices[0].message.tool_calls is not None
        refused = await client.chat.completions.create(
            model="gpt-4.1-mini", messages=user("refuse this")
        )
        message = refused.choices[0].message
        assert (message.content, message.refusal) == (None, "I will not help with that.")


async def test_usage_is_counted_as_each_vendor_counts() -> None:
    async def usage(kind: str, model: str, *quirks: str) -> Any:
        async with asking(kind, quirks=quirks) as (client, _):
            whole = await client.chat.completions.create(model=model, messages=user("hello"))
            assert whole.usage is not None
            return whole.usage

    own = await usage("openai", "gpt-5.6")
    assert own.completion_tokens_details.reasoning_tokens == 4
    assert own.completion_tokens == 8
    apart = await usage("xai", "grok-4.5")
    assert (apart.completion_tokens, apart.completion_tokens_details.reasoning_tokens) == (4, 4)
    assert apart.total_tokens == apart.prompt_tokens + 8
    unsaid = await usage("gemini", "gemini-3-flash")
    assert unsaid.total_tokens - unsaid.prompt_tokens - unsaid.completion_tokens == 4


async def test_responses_with_encrypted_reasoning_go_around_a_call() -> None:
    async with asking("openai") as (client, _):
        asked: Any = {"model": "gpt-5.6", "tools": FLAT_TOOLS, "store": False}
        asked |= {
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "low", "summary": "auto"},
        }
        async with client.responses.stream(
            input="call weather city=Rome rounds=2", **asked
        ) as stream:
            types = [event.type async for event in stream]
            answer = await stream.get_final_response()
        assert types[-1] == "response.completed"
        assert [item.type for item in answer.output] == ["reasoning", "function_call"]
        items: Any = user("call weather city=Rome rounds=2")
        items += [item.model_dump(exclude_none=True) for item in answer.output]
        for item in items[1:]:
            item.pop("parsed_arguments", None)
        items.append(
            {
                "type": "function_call_output",
                "call_id": items[2]["call_id"],
                "output": "sunny",
            }
        )
        second = await client.responses.create(input=items, **asked)
        assert [item.type for item in second.output] == ["reasoning", "function_call"]

        changed = json.loads(json.dumps(items))
        changed[1]["encrypted_content"] = "A" + changed[1]["encrypted_content"][1:]
        with pytest.raises(openai.BadRequestError, match="could not be verified"):
            await client.responses.create(input=changed, **asked)
        with pytest.raises(openai.BadRequestError, match="without its required 'reasoning' item"):
            await client.responses.create(input=[items[0], *items[2:]], **asked)
        with pytest.raises(openai.BadRequestError, match="required following item"):
            await client.responses.create(input=items[:2], **asked)


async def test_a_stored_response_is_gone_on_from_and_deleted() -> None:
    async with asking("openai") as (client, _):
        first = await client.responses.create(model="gpt-4.1-mini", input="hello")
        assert first.output_text == HELLO
        second = await client.responses.create(
            model="gpt-4.1-mini", input="and then?", previous_response_id=first.id
        )
        assert second.output_text == "You said: and then? (turns=3)"
        assert (await client.responses.retrieve(first.id)).output_text == HELLO
        await client.responses.delete(first.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(first.id)


async def test_small_apis_answer() -> None:
    async with asking("openai") as (client, _):
        names = [model.id async for model in client.models.list()]
        assert names == ["gpt-5.6", "gpt-4.1-mini", "o4-mini", "text-embedding-3-small"]
        assert (await client.models.retrieve("gpt-5.6")).id == "gpt-5.6"
        rows = await client.embeddings.create(
            model="text-embedding-3-small", input=["a", "b", "a"], dimensions=8
        )
        assert rows.data[0].embedding == rows.data[2].embedding != rows.data[1].embedding
        text = await client.completions.create(
            model="gpt-4.1-mini", prompt="hello", max_tokens=2, stream=False
        )
        assert (text.choices[0].text, text.choices[0].finish_reason) == ("You said:", "length")


ERRORS: Final[Any] = (
    ("sk-wrong", {}, openai.AuthenticationError, "invalid_api_key"),
    (KEY, {"model": "gpt-9"}, openai.NotFoundError, "model_not_found"),
    (KEY, {"model": "gpt-5.6", "max_tokens": 5}, openai.BadRequestError, "unsupported_parameter"),
    (KEY, {"model": "gpt-5.6", "temperature": 0.2}, openai.BadRequestError, "unsupported_value"),
    (KEY, {"extra_body": {"top_k": 3}}, openai.BadRequestError, "unknown_parameter"),
)


@pytest.mark.parametrize(("key", "fields", "kind", "code"), ERRORS)
async def test_mistakes_are_the_errors_of_the_client(
    key: str, fields: Any, kind: type[openai.APIStatusError], code: str
) -> None:
    async with asking("openai") as (client, _):
        asked: Any = {"model": "gpt-4.1-mini", "messages": user("hello"), **fields}
        with pytest.raises(kind) as raised:
            await client.with_options(api_key=key).chat.completions.create(**asked)
        assert raised.value.code == code


async def test_a_rate_limit_is_told_before_and_with_the_refusal() -> None:
    async with asking("openai", requests_per_minute=1) as (client, _):
        asked: Any = {"model": "gpt-4.1-mini", "messages": user("hello")}
        raw = await client.chat.completions.with_raw_response.create(**asked)
        assert raw.headers["x-ratelimit-remaining-requests"] == "0"
        assert raw.headers["x-ratelimit-reset-requests"] == "1m0s"
        with pytest.raises(openai.RateLimitError) as raised:
            await client.chat.completions.create(**asked)
        assert 59_000 < int(raised.value.response.headers["retry-after-ms"]) <= 60_000


async def test_azure_by_deployment_begins_with_filter_results() -> None:
    async with (
        stand_in("azure_dated", tokens_per_minute=120_000) as (where, _),
        AsyncAzureOpenAI(
            azure_endpoint=where.url, api_key=KEY, api_version="2024-10-21", max_retries=0
        ) as client,
    ):
        asked: Any = {"model": "gpt-4.1-mini", "messages": user("hello")}
        chunks = [
            chunk async for chunk in await client.chat.completions.create(stream=True, **asked)
        ]
        first = chunks[0]
        assert (first.choices, first.id, first.model, first.created) == ([], "", "", 0)
        assert first.model_extra is not None
        assert first.model_extra["prompt_filter_results"][0]["prompt_index"] == 0
        raw = await client.chat.completions.with_raw_response.create(**asked)
        assert raw.headers["x-ratelimit-renewalperiod-tokens"] == "60"
        assert raw.headers["x-ratelimit-reset-tokens"].isdecimal()
        said = await client.responses.create(model="gpt-4.1-mini", input="hello")
        assert said.output_text == HELLO
        with pytest.raises(openai.BadRequestError) as raised:
            await client.chat.completions.create(model="gpt-4.1-mini", messages=user("filter it"))
        assert raised.value.code == "content_filter"
        with pytest.raises(openai.NotFoundError) as gone:
            await client.chat.completions.create(model="none", messages=user("hello"))
        assert gone.value.code == "DeploymentNotFound"
