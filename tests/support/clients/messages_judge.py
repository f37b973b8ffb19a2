"""The official client of the Messages API as a judge: what it makes of bodies and streams, in its strict mode."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import httpx2
from anthropic import Anthropic, AsyncAnthropic
from anthropic.types import Message

Answering: TypeAlias = Callable[[httpx2.Request], httpx2.Response]
STREAM = {"content-type": "text/event-stream; charset=utf-8"}
WISH: dict[str, Any] = {
    "model": "m",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "Hi"}],
}
BASE = "http://node.test"


def replying(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Answering:
    """Return what answers every request with these bytes."""
    return lambda _request: httpx2.Response(
        status, headers={"content-type": "application/json", **(headers or {})}, content=body
    )


def client(answering: Answering, **options: Any) -> Anthropic:
    """Return a strict client of a server that answers so; it retries only if told to."""
    settings = {"max_retries": 0, **options}
    return Anthropic(
        api_key="sk-test",
        base_url=BASE,
        _strict_response_validation=True,
        http_client=httpx2.Client(transport=httpx2.MockTransport(answering)),
        **settings,
    )


def async_client(answering: Answering) -> AsyncAnthropic:
    """Return the same, asynchronous."""

    async def answered(request: httpx2.Request) -> httpx2.Response:
        return answering(request)

    return AsyncAnthropic(
        api_key="sk-test",
        base_url=BASE,
        max_retries=0,
        _strict_response_validation=True,
        http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(answered)),
    )


def read_whole(body: bytes) -> list[dict[str, Any]]:
    """Return the message as each interface of the client reads an unstreamed answer."""
    answering = replying(body)
    with client(answering) as one:
        found = [
            one.messages.create(**WISH).to_dict(),
            one.beta.messages.create(**WISH).to_dict(),
            one.messages.parse(**WISH).to_dict(),
        ]

    async def later() -> dict[str, Any]:
        async with async_client(answering) as one:
            message: Message = await one.messages.create(**WISH)
            return message.to_dict()

    return [*found, _run(later)]


def read_stream(frames: bytes) -> list[dict[str, Any]]:
    """Return the message as each interface of the client puts it together from a stream; the last one
    only reads the events.
    """
    answering = replying(frames, headers=STREAM)
    with client(answering) as one:
        with one.messages.stream(**WISH) as events:
            found = [events.get_final_message().to_dict()]
        with one.beta.messages.stream(**WISH) as events_too:
            found.append(events_too.get_final_message().to_dict())

    async def later() -> dict[str, Any]:
        async with async_client(answering) as one, one.messages.stream(**WISH) as events:
            return (await events.get_final_message()).to_dict()

    raw_events(frames)
    return [*found, _run(later)]


def read_beta_whole(body: bytes) -> dict[str, Any]:
    """Return the message as the client's beta interface reads an unstreamed answer."""
    with client(replying(body)) as one:
        found: dict[str, Any] = one.beta.messages.create(**WISH).to_dict()
        return found


def read_beta_stream(frames: bytes) -> dict[str, Any]:
    """Return the message as the client's beta interface puts it together from a stream, which it reads strictly."""
    with client(replying(frames, headers=STREAM)) as one:
        for event in one.beta.messages.create(**WISH, stream=True):
            assert event.type
        with one.beta.messages.stream(**WISH) as events:
            found: dict[str, Any] = events.get_final_message().to_dict()
            return found


def agreed_content(frames: bytes, body: bytes) -> list[dict[str, Any]]:
    """Return the content of an answer, which is the same to all interfaces, streamed and whole."""
    contents = [message["content"] for message in (*read_stream(frames), *read_whole(body))]
    assert all(each == contents[0] for each in contents)
    return [dict(block) for block in contents[0]]


def raw_events(frames: bytes) -> list[dict[str, Any]]:
    """Return the events of a stream as the client's lowest interface reads them."""
    with client(replying(frames, headers=STREAM)) as one:
        return [event.to_dict() for event in one.messages.create(**WISH, stream=True)]


def _run(work: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        return await work()

    with asyncio.Runner() as runner:
        return runner.run(run())
