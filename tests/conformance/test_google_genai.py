"""Google's official client as judge: models, answers, streams, chats, functions, errors.

The node is in this process, and says what a script says; nothing else is played.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

import pytest
from google.genai import Client, errors, types
from google.genai.client import AsyncClient
from pydantic import BaseModel

from smg_node.core.context_limit import prompt_too_long
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockKind,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    Usage,
)
from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.core.generation.request import ChatPrompt, MediaPart, Turn, TurnBlock
from support.history.fake_runs import FakeRun, Script
from support.http.http_node import Node, node

pytestmark: Final = [
    pytest.mark.conformance,
    # The client derives a class from one of aiohttp's, which aiohttp would rather not have.
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]

Said = tuple[BlockKind, str]
CALL = '{"city":"Paris"}'


def saying(*answers: Sequence[Said]) -> Script:
    """Return a script that answers with these blocks, one answer after the other; the last one for ever."""
    left = list(answers)

    async def script(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        blocks = left.pop(0) if len(left) > 1 else left[0]
        yield [Begin("f" * 32, run.request.model, 1, 3)]
        for at, (kind, text) in enumerate(blocks):
            name, call_id = ("weather", f"call_{at}") if kind == "call" else ("", "")
            yield [BlockStart(0, at, kind, name, call_id)]
            for half in (text[: len(text) // 2], text[len(text) // 2 :]):
                yield [Delta(0, at, half, 1)]
            yield [BlockEnd(0, at, kind, text, name, call_id)]
        yield [Finish(0, "stop")]
        yield [Usage(3, 2 * len(blocks), 1, 2 if blocks[0][0] == "reasoning" else 0), End()]

    return script


@asynccontextmanager
async def asking(
    script: Script, version: str | None = None, **changes: Any
) -> AsyncIterator[tuple[Node, AsyncClient]]:
    """A node with that script, and a client of it that does not try again."""
    async with node(script, **changes) as served:
        options = types.HttpOptions(base_url=f"http://127.0.0.1:{served.port}", api_version=version)
        async with Client(api_key="k", http_options=options).aio as client:
            yield served, client


def turns_of(served: Node) -> tuple[Turn, ...]:
    """Return the turns of the last prompt."""
    (prompt,) = served.generations.runs[-1].request.prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt.turns


HELLO = saying([("text", "Hello, world")])


@pytest.mark.parametrize("version", [None, "v1", "v1beta", "v1alpha"])
@pytest.mark.parametrize("model", ["m", "org/big-model:x"])
async def test_an_answer_streamed_and_not(version: str | None, model: str) -> None:
    async with asking(HELLO, version) as (_, client):
        answer = await client.models.generate_content(model=model, contents="hi")
        stream = await client.models.generate_content_stream(model=model, contents="hi")
        chunks = [chunk async for chunk in stream]
    assert answer.text == "".join(chunk.text or "" for chunk in chunks) == "Hello, world"
    for last in (answer, chunks[-1]):
        assert last.candidates is not None
        assert last.candidates[0].finish_reason is types.FinishReason.STOP
        assert last.usage_metadata is not None
        assert last.usage_metadata.prompt_token_count == 3
        assert last.usage_metadata.candidates_token_count == 2
        assert last.usage_metadata.cached_content_token_count == 1
        assert last.usage_metadata.total_token_count == 5
        assert (last.model_version, last.response_id) == (model, "f" * 32)


async def test_thoughts_are_parts_of_their_own() -> None:
    config = types.GenerateContentConfig(
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=-1)
    )
    async with asking(saying([("reasoning", "hm"), ("text", "Yes")])) as (_, client):
        answer = await client.models.generate_content(model="m", contents="hi", config=config)
    assert answer.parts is not None
    assert [(part.thought, part.text) for part in answer.parts] == [(True, "hm"), (None, "Yes")]
    assert answer.text == "Yes"
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.thoughts_token_count == 2


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_chat_keeps_what_was_said_and_thought(streamed: bool) -> None:
    async with asking(saying([("reasoning", "hm"), ("text", "Yes, 😀")])) as (served, client):
        chat = client.chats.create(model="m")
        for question in ("one", "two", "three"):
            if streamed:
                async for _ in await chat.send_message_stream(question):
                    pass
            else:
                await chat.send_message(question)
        turns = turns_of(served)
    answer = Turn("assistant", "Yes, 😀", reasoning="hm")
    assert turns == (
        Turn("user", "one"),
        answer,
        Turn("user", "two"),
        answer,
        Turn("user", "three"),
    )


async def test_the_bytes_of_a_picture_are_those_that_were_given() -> None:
    # Their base64 has both digits by which its alphabets differ, and padding.
    given = b"\xfb\xff\xbf\xfb"
    async with asking(HELLO) as (served, client):
        shown = types.Part.from_bytes(data=given, mime_type="image/png")
        said = types.Content(role="user", parts=[shown, types.Part.from_text(text="what is it?")])
        await client.models.generate_content(model="m", contents=said)
        (turn,) = turns_of(served)
    picture = (turn.content or ())[0]
    assert isinstance(picture, MediaPart)
    assert picture.source == "data:image/png;base64,+/+/+w=="


SIGNED: tuple[tuple[Literal["text", "reasoning"], str, Opaque], ...] = (
    ("reasoning", "hm", Opaque("anthropic", SIGNATURE, "RXJr/+==")),
    ("text", "Yes", Opaque("google", SIGNATURE, "c2ln//4=")),
)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_chat_keeps_the_state_of_vendors_on_its_parts(streamed: bool) -> None:
    async def script(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [Begin("f" * 32, run.request.model, 1, 3)]
        for at, (kind, text, opaque) in enumerate(SIGNED):
            yield [BlockStart(0, at, kind), Delta(0, at, text, 1)]
            yield [BlockEnd(0, at, kind, text, opaque=(opaque,))]
        yield [Finish(0, "stop"), Usage(3, 2, 0), End()]

    async with asking(script) as (served, client):
        chat = client.chats.create(model="m")
        for question in ("one", "two"):
            if streamed:
                async for _ in await chat.send_message_stream(question):
                    pass
            else:
                await chat.send_message(question)
        answer = turns_of(served)[1]
    blocks = tuple(TurnBlock(kind, text, opaque=(opaque,)) for kind, text, opaque in SIGNED)
    assert answer == Turn("assistant", "Yes", reasoning="hm", blocks=blocks)


async def test_a_chat_keeps_its_turn_though_the_stream_fell_silent() -> None:
    async def slow(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        async for batch in HELLO(run):
            await asyncio.sleep(0.05)
            yield batch

    async with asking(slow, commit_after_s=0.01, keepalive_s=0.01) as (served, client):
        chat = client.chats.create(model="m")
        chunks = [chunk async for chunk in await chat.send_message_stream("one")]
        await chat.send_message("two")
        turns = turns_of(served)
    assert sum(1 for chunk in chunks if not chunk.text) > 1
    assert turns[1] == Turn("assistant", "Hello, world")


async def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"rain in {city}"


@pytest.mark.parametrize("streamed", [False, True])
async def test_functions_are_called_and_answered_by_the_client_itself(streamed: bool) -> None:
    script = saying(
        [("reasoning", "hm"), ("call", CALL), ("call", CALL)],
        [("reasoning", "so"), ("call", CALL)],
        [("text", "Take a coat.")],
    )
    config = types.GenerateContentConfig(tools=[weather])
    async with asking(script) as (served, client):
        chat = client.chats.create(model="m", config=config)
        if streamed:
            chunks = [chunk async for chunk in await chat.send_message_stream("Paris?")]
            said = chunks[-2].text
        else:
            said = (await chat.send_message("Paris?")).text
        turns = turns_of(served)
        (prompt,) = served.generations.runs[-1].request.prompts
    assert said is not None
    assert "Take a coat.".endswith(said)
    assert [turn.role for turn in turns] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
    ]
    assert [turn.reasoning for turn in turns if turn.role == "assistant"] == ["hm", "so"]
    assert [turn.content for turn in turns if turn.role == "tool"] == [
        '{"result":"rain in Paris"}'
    ] * 3
    ids = [call.call_id for turn in turns for call in turn.calls]
    assert [turn.answers_call for turn in turns if turn.role == "tool"] == ids
    assert isinstance(prompt, ChatPrompt)
    (tool,) = prompt.tools
    assert tool.parameters is not None
    assert (tool.name, tool.parameters["required"]) == ("weather", ["city"])


class Report(BaseModel):
    city: str
    degrees: int | None = None


@pytest.mark.parametrize("plain", [False, True])
async def test_an_answer_is_parsed_by_the_schema_it_was_asked_for_with(plain: bool) -> None:
    schema: dict[str, Any] = {"response_json_schema": Report.model_json_schema()} if plain else {"response_schema": Report}  # fmt: skip
    config = types.GenerateContentConfig(response_mime_type="application/json", **schema)
    async with asking(saying([("text", '{"city": "Paris", "degrees": 3}')])) as (served, client):
        answer = await client.models.generate_content(model="m", contents="hi", config=config)
        constraint = served.generations.runs[-1].request.sampling.constraint
    assert answer.parsed == (
        {"city": "Paris", "degrees": 3} if plain else Report(city="Paris", degrees=3)
    )
    assert constraint is not None
    assert constraint.kind == "json_schema"
    asked = json.loads(constraint.value)
    assert (asked["type"], list(asked["properties"])) == ("object", ["city", "degrees"])


@pytest.mark.parametrize("version", [None, "v1", "v1beta", "v1alpha"])
async def test_models_are_listed_in_pages_and_shown(version: str | None) -> None:
    async with asking(HELLO, version) as (_, client):
        names = [model.name async for model in await client.models.list(config={"page_size": 2})]
        one = await client.models.get(model="alias")
        count = await client.models.count_tokens(model="m", contents="hi")
    assert names == ["models/m", "models/alias", "models/org/big-model"]
    assert (one.name, one.input_token_limit) == ("models/alias", 4096)
    assert one.supported_actions is not None
    assert "generateContent" in one.supported_actions
    assert count.total_tokens == 4


Ask = Callable[[AsyncClient], Awaitable[object]]


async def _streamed(client: AsyncClient) -> object:
    return [chunk async for chunk in await client.models.generate_content_stream(model="m", contents="hi")]  # fmt: skip


async def _whole(client: AsyncClient) -> object:
    return await client.models.generate_content(model="m", contents="hi")


@pytest.mark.parametrize("ask", [_whole, _streamed])
@pytest.mark.parametrize(
    ("failure", "kind", "status"),
    [
        (SmgError(ErrorKind.NOT_FOUND, "no such model"), errors.ClientError, "NOT_FOUND"),
        (SmgError(ErrorKind.RATE_LIMITED, "slow"), errors.ClientError, "RESOURCE_EXHAUSTED"),
        (SmgError(ErrorKind.OVERLOADED, "full"), errors.ServerError, "UNAVAILABLE"),
        (SmgError(ErrorKind.UPSTREAM_FAILED, "cannot", status=501), errors.ClientError, "INVALID_ARGUMENT"),
        (prompt_too_long(12, 10, "contents"), errors.ClientError, "INVALID_ARGUMENT"),
    ],
)  # fmt: skip
async def test_a_failure_is_the_exception_its_users_expect(
    ask: Ask, failure: SmgError, kind: type[errors.APIError], status: str
) -> None:
    async def failing(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [Fail(failure)]

    async with asking(failing) as (_, client):
        with pytest.raises(kind) as caught:
            await ask(client)
    assert caught.value.status == status
    assert caught.value.message


async def test_a_failure_in_a_stream_is_raised_behind_what_was_said() -> None:
    async def broken(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [Begin("1", "m", 1, 3), BlockStart(0, 0, "text"), Delta(0, 0, "Hel", 1)]
        yield [Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died"))]

    said: list[str | None] = []

    async def hear(client: AsyncClient) -> None:
        stream = await client.models.generate_content_stream(model="m", contents="hi")
        async for chunk in stream:
            said.append(chunk.text)  # noqa: PERF401  what came before the failure is wanted as well

    async with asking(broken) as (_, client):
        with pytest.raises(errors.ServerError) as caught:
            await hear(client)
    assert said == ["Hel"]
    assert (caught.value.code, caught.value.message) == (502, "the engine died")


@pytest.mark.parametrize(
    ("failure", "attempts"),
    [
        (SmgError(ErrorKind.RATE_LIMITED, "slow", retry_after_s=0.0), 3),
        (SmgError(ErrorKind.OVERLOADED, "full", retry_after_s=0.0), 3),
        (SmgError(ErrorKind.UPSTREAM_FAILED, "cannot", status=501), 1),
        (SmgError(ErrorKind.NOT_FOUND, "no such model"), 1),
        (SmgError(ErrorKind.INVALID_REQUEST, "wrong"), 1),
    ],
)
async def test_only_what_may_pass_is_tried_again(failure: SmgError, attempts: int) -> None:
    async def failing(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [Fail(failure)]

    async with asking(failing) as (served, client):
        again = types.HttpRetryOptions(attempts=3, initial_delay=0.01, max_delay=0.01, jitter=0)
        config = types.GenerateContentConfig(http_options=types.HttpOptions(retry_options=again))
        with pytest.raises(errors.APIError):
            await client.models.generate_content(model="m", contents="hi", config=config)
        assert len(served.generations.runs) == attempts


async def test_the_clients_timeout_is_the_nodes_deadline() -> None:
    async with asking(HELLO, request_s=60.0) as (served, client):
        config = types.GenerateContentConfig(http_options=types.HttpOptions(timeout=7_000))
        await client.models.generate_content(model="m", contents="hi", config=config)
        (run,) = served.generations.runs
    assert run.context.deadline_s - run.context.received_s == pytest.approx(7.0)
