"""Chats with a node for tests: bodies to send, and streams read frame by frame on a raw connection."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from support.answers.sse_client import Streamed, read_frames
from support.http.raw_http import RawClient, Response, ask

CHAT = "/v1/chat/completions"
JSON = {"content-type": "application/json"}


def chat(model: str, **fields: Any) -> dict[str, Any]:
    """Return a Chat Completions body; `fields` are added to it."""
    return {"model": model, "messages": [{"role": "user", "content": "Hello?"}], **fields}


def content_of(answer: Response) -> str:
    """Return the text of an unstreamed chat that went well."""
    assert answer.status == 200, answer.body
    content = answer.json()["choices"][0]["message"]["content"]
    assert isinstance(content, str)
    return content


async def say(port: int, body: dict[str, Any]) -> Response:
    """Ask once, unstreamed or streamed to its end, on a connection of its own."""
    return await ask(port, "POST", CHAT, body, JSON)


@dataclass
class Stream:
    """A streamed chat under way on `client`."""

    client: RawClient
    status: int
    headers: dict[str, str]
    raw: bytes = b""
    pieces: list[str] = field(default_factory=list)

    async def more(self) -> bool:
        """Read the next chunk of the transfer; False at its clean end."""
        part = await self.client.chunk()
        self.raw += part
        return bool(part)

    async def until_text(self) -> None:
        """Read until there is some text."""
        while not self.text:
            assert await self.more(), f"the stream ended early: {self.raw!r}"

    async def to_end(self) -> Streamed:
        """Read to the clean end of the transfer."""
        while await self.more():
            pass
        return read_frames(self.raw)

    @property
    def text(self) -> str:
        """The text so far."""
        return text_of(read_frames(self.raw[: self.raw.rfind(b"\n\n") + 2]))


async def begin(client: RawClient, body: dict[str, Any]) -> Stream:
    """Send a streamed chat; return when its head has come."""
    await client.send("POST", CHAT, json.dumps({**body, "stream": True}).encode(), JSON)
    return Stream(client, *await client.head())


def text_of(streamed: Streamed) -> str:
    """Return the text of the first choice of a stream."""
    return "".join(
        choice["delta"].get("content", "")
        for chunk in streamed.chunks
        for choice in chunk.get("choices", ())
        if choice["index"] == 0
    )


def finishes_of(streamed: Streamed) -> list[str]:
    """Return the finish reasons of a stream, in order."""
    return [
        choice["finish_reason"]
        for chunk in streamed.chunks
        for choice in chunk.get("choices", ())
        if choice["finish_reason"] is not None
    ]


def error_of(streamed: Streamed) -> dict[str, Any]:
    """Return the error a stream ended with; it must be its last word, without `[DONE]` or a finish."""
    assert not streamed.done
    assert finishes_of(streamed) == []
    errors = [chunk["error"] for chunk in streamed.chunks if "error" in chunk]
    assert len(errors) == 1, streamed.chunks
    assert streamed.chunks[-1] == {"error": errors[0]}
    assert errors[0].keys() == {"message", "type", "param", "code"}
    assert isinstance(errors[0], dict)
    return errors[0]


def port_of(url: str) -> int:
    """Return the port of a node's URL."""
    return int(url.rpartition(":")[2])


async def becomes(true: Callable[[], object], within_s: float, what: str) -> float:
    """Wait until `true()`, which may block; return how long that took. AssertionError after `within_s`."""
    loop = asyncio.get_running_loop()
    since_s = loop.time()
    while not await asyncio.to_thread(true):
        assert loop.time() - since_s < within_s, f"not within {within_s} s: {what}"
        await asyncio.sleep(0.005)
    return loop.time() - since_s
