"""Google's official client as judge of the stand-ins of Gemini: by its own door and by Vertex."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from google.genai import Client, errors, types
from google.genai.client import AsyncClient
from google.oauth2.credentials import Credentials

from smg_chaos.vendor.vendor import Vendor
from support.providers.stand_ins import KEY, stand_in

pytestmark: Final = [
    pytest.mark.conformance,
    # The client derives a class from one of aiohttp's, which aiohttp would rather not have.
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]

MODEL: Final = "gemini-3-flash"
HELLO: Final = "You said: hello (turns=1)"
SCHEMA: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
TOOLS: Final[Any] = [
    types.Tool(
        function_declarations=[
            types.FunctionDeclaration(name=name, parameters_json_schema=SCHEMA)
            for name in ("weather", "sunset")
        ]
    )
]


@asynccontextmanager
async def asking(kind: str, **settings: Any) -> AsyncIterator[tuple[AsyncClient, Vendor]]:
    """A client of a stand-in, which does not try again."""
    async with stand_in(kind, **settings) as (where, vendor):
        options = types.HttpOptions(base_url=where.url)
        given: Any = {"api_key": KEY}
        if kind == "vertex":
            given = {
                "vertexai": True,
                "project": "p",
                "location": "global",
                "credentials": Credentials(token=KEY),  # type: ignore[no-untyped-call]  # as it is there
            }
        async with Client(http_options=options, **given).aio as client:
            yield client, vendor
        # Its connections end one turn of the loop later than it says.
        await asyncio.sleep(0)


@pytest.mark.parametrize("kind", ["gemini", "vertex"])
async def test_contents_say_the_same_streamed_and_whole(kind: str) -> None:
    async with asking(kind) as (client, _):
        whole = await client.models.generate_content(model=MODEL, contents="hello")
        assert whole.text == HELLO
        usage = whole.usage_metadata
        assert usage is not None
        assert (usage.candidates_token_count, usage.thoughts_token_count) == (4, 4)
        assert usage.total_token_count == (usage.prompt_token_count or 0) + 8
        stream = await client.models.generate_content_stream(model=MODEL, contents="hello")
        chunks = [chunk async for chunk in stream]
        assert "".join(chunk.text or "" for chunk in chunks) == HELLO
        last = chunks[-1].candidates
        assert last is not None
        assert last[0].finish_reason == types.FinishReason.STOP
        counted = await client.models.count_tokens(model=MODEL, contents="hello")
        assert counted.total_tokens == usage.prompt_token_count


async def test_thoughts_are_shown_on_request_and_the_text_is_signed() -> None:
    async with asking("gemini") as (client, _):
        config = types.GenerateContentConfig(
            thinking_config=types.ThinkingConfig(include_thoughts=True)
        )
        stream = await client.models.generate_content_stream(
            model=MODEL, contents="hello", config=config
        )
        parts = [
            part
            async for chunk in stream
            for candidate in chunk.candidates or ()
            for part in (candidate.content and candidate.content.parts) or ()
        ]
        assert "".join(part.text or "" for part in parts if part.thought) == "I think about: hello"
        assert (parts[-1].text, bool(parts[-1].thought_signature)) == ("", True)


@pytest.mark.parametrize("kind", ["gemini", "vertex"])
async def test_the_first_of_parallel_calls_is_signed_and_has_to_come_back(kind: str) -> None:
    async with asking(kind) as (client, _):
        config = types.GenerateContentConfig(
            tools=TOOLS,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        whole = await client.models.generate_content(
            model=MODEL, contents="call all city=Paris", config=config
        )
        assert whole.candidates is not None
        content = whole.candidates[0].content
        assert content is not None
        assert content.parts is not None
        assert [bool(part.thought_signature) for part in content.parts] == [True, False]
        results = [
            types.Part.from_function_response(name=call.name or "", response={"output": call.name})
            for call in whole.function_calls or ()
        ]
        said: Any = [types.UserContent("call all city=Paris"), content]
        answered = types.Content(role="user", parts=results)
        after = await client.models.generate_content(
            model=MODEL, contents=[*said, answered], config=config
        )
        assert after.text == "The results are: weather; sunset"

        swapped = types.Content(role="user", parts=results[:1])
        with pytest.raises(errors.ClientError, match="number of function response parts"):
            await client.models.generate_content(
                model=MODEL, contents=[*said, swapped], config=config
            )
        content.parts[0].thought_signature = None
        with pytest.raises(errors.ClientError, match="missing a thought_signature"):
            await client.models.generate_content(
                model=MODEL, contents=[*said, answered], config=config
            )
        content.parts[0].thought_signature = b"skip_thought_signature_validator"
        with pytest.raises(errors.ClientError, match="Thought signature is not valid"):
            await client.models.generate_content(
                model=MODEL, contents=[*said, answered], config=config
            )


async def test_a_schema_shapes_the_answer_and_a_block_is_an_answer_without_candidates() -> None:
    async with asking("gemini") as (client, _):
        config = types.GenerateContentConfig(
            response_mime_type="application/json", response_json_schema=SCHEMA
        )
        whole = await client.models.generate_content(
            model=MODEL, contents="city=Oslo", config=config
        )
        assert json.loads(whole.text or "") == {"city": "Oslo"}
        blocked = await client.models.generate_content(model=MODEL, contents="refuse it")
        assert blocked.candidates is None
        assert blocked.prompt_feedback is not None
        assert blocked.prompt_feedback.block_reason == types.BlockedReason.PROHIBITED_CONTENT
        filtered = await client.models.generate_content(model=MODEL, contents="filter it")
        assert filtered.candidates is not None
        assert filtered.candidates[0].finish_reason == types.FinishReason.SAFETY


@pytest.mark.parametrize(
    ("fault", "status", "name"),
    [
        ("status:reason=rate,retry_after=45.8", 429, "RESOURCE_EXHAUSTED"),
        ("status:reason=overloaded", 503, "UNAVAILABLE"),
        ("status:reason=no-model", 404, "NOT_FOUND"),
    ],
)
async def test_refusals_are_the_errors_of_the_client(fault: str, status: int, name: str) -> None:
    async with asking("gemini", faults=(fault,)) as (client, _):
        with pytest.raises(errors.APIError) as raised:
            await client.models.generate_content(model=MODEL, contents="hello")
        assert (raised.value.code, raised.value.status) == (status, name)


async def test_a_wrong_key_is_an_invalid_argument() -> None:
    async with asking("gemini", keys=("another",)) as (client, _):
        with pytest.raises(errors.ClientError, match="API key not valid") as raised:
            await client.models.generate_content(model=MODEL, contents="hello")
        assert raised.value.code == 400
