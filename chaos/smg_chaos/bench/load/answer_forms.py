"""Answer forms: how an API writes a streamed or whole answer, and how it is read. Pure.

`FORMS` has those that gateways are measured with: Chat Completions and Messages.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from smg_chaos.bench.load.job import Api


class WrongAnswerError(Exception):
    """An answer that differs from what the engine generated."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Contents of an answer as a client reads it."""

    text: str
    finish: str
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


def dechunked(body: bytes) -> bytes:
    """Return the content of a chunked body, or WrongAnswerError."""
    parts: list[bytes] = []
    at = 0
    while True:
        end = body.find(b"\r\n", at)
        if end < 0:
            raise WrongAnswerError("a chunked body ends in the middle")
        try:
            size = int(body[at:end].partition(b";")[0], 16)
        except ValueError:
            raise WrongAnswerError(f"no chunk size: {body[at : at + 20]!r}") from None
        at = end + 2
        if size == 0:
            return b"".join(parts)
        parts.append(body[at : at + size])
        if body[at + size : at + size + 2] != b"\r\n":
            raise WrongAnswerError("a chunk is not as long as it says")
        at += size + 2


def events(content: bytes) -> Iterator[bytes]:
    """Yield the payload of every server-sent event that has one."""
    for block in content.replace(b"\r\n", b"\n").split(b"\n\n"):
        lines = [line[5:].lstrip() for line in block.split(b"\n") if line.startswith(b"data:")]
        if lines:
            yield b"\n".join(lines)


def read_stream(content: bytes) -> Answer:
    """Return the answer in a streamed body, chunked framing removed; WrongAnswerError says what is
    wrong with it.
    """
    text: list[str] = []
    finish, usage, done = "", None, False
    for payload in events(content):
        if done:
            raise WrongAnswerError("events after [DONE]")
        if payload == b"[DONE]":
            done = True
            continue
        event = _object(payload)
        if "error" in event:
            raise WrongAnswerError(f"an error in the stream: {payload[:300]!r}")
        usage = event.get("usage") or usage
        for choice in event.get("choices") or ():
            text.append((choice.get("delta") or {}).get("content") or "")
            finish = choice.get("finish_reason") or finish
    if not done:
        raise WrongAnswerError("the stream does not end with [DONE]")
    return _answer("".join(text), finish, usage)


def read_whole(content: bytes) -> Answer:
    """Return the answer in a body that is not streamed; WrongAnswerError says what is wrong with
    it.
    """
    body = _object(content)
    try:
        choice = body["choices"][0]
        return _answer(choice["message"]["content"] or "", choice["finish_reason"], body["usage"])
    except (LookupError, TypeError) as error:
        raise WrongAnswerError(f"{error!r} in {content[:300]!r}") from None


def _object(content: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise WrongAnswerError(f"{error}: {content[:200]!r}") from None
    if not isinstance(value, dict):
        raise WrongAnswerError(f"no object: {content[:200]!r}")
    return value


def _answer(text: str, finish: str, usage: dict[str, Any] | None) -> Answer:
    if not usage:
        raise WrongAnswerError("no usage")
    counts = [usage.get(f"{what}_tokens") for what in ("prompt", "completion", "total")]
    if not all(isinstance(count, int) for count in counts):
        raise WrongAnswerError(f"usage is {usage}")
    return Answer(text, finish, *counts)  # type: ignore[arg-type]  # just checked: integers


def read_messages_stream(content: bytes) -> Answer:
    """Return the answer in a stream of the Messages API; WrongAnswerError says what is wrong with it."""
    text: list[str] = []
    stop, done = "", False
    usage: dict[str, Any] = {}
    for payload in events(content):
        if done:
            raise WrongAnswerError("events after message_stop")
        event = _object(payload)
        match event.get("type"):
            case "error":
                raise WrongAnswerError(f"an error in the stream: {payload[:300]!r}")
            case "message_start":
                usage |= event["message"]["usage"]
            case "content_block_delta":
                text.append(event["delta"].get("text") or "")
            case "message_delta":
                stop = event["delta"].get("stop_reason") or stop
                usage |= {name: said for name, said in event["usage"].items() if said is not None}
            case "message_stop":
                done = True
            case _:
                pass
    if not done:
        raise WrongAnswerError("the stream does not end with message_stop")
    return _message("".join(text), stop, usage)


def read_message(content: bytes) -> Answer:
    """Return the answer in a whole message; WrongAnswerError says what is wrong with it."""
    body = _object(content)
    try:
        text = "".join(block.get("text") or "" for block in body["content"])
        return _message(text, body["stop_reason"], body["usage"])
    except (LookupError, TypeError, AttributeError) as error:
        raise WrongAnswerError(f"{error!r} in {content[:300]!r}") from None


def _message(text: str, stop: str, usage: dict[str, Any]) -> Answer:
    prompts = [usage.get(name) or 0 for name in _PROMPT_PARTS]
    completion = usage.get("output_tokens")
    if not isinstance(completion, int) or not all(isinstance(one, int) for one in prompts):
        raise WrongAnswerError(f"usage is {usage}")
    finish = "length" if stop == "max_tokens" else stop
    return Answer(text, finish, sum(prompts), completion, sum(prompts) + completion)


_PROMPT_PARTS: Final = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(frozen=True, slots=True)
class Form:
    """Bytes by which answers are checked at a glance, and the readers of whole ones.

    `content` begins the text of a token, where it is not `no_content`. `completion` and `prompt` begin
    the counts, `length` tells that the limit was reached. `last` is the last line of a stream, but for bytes of
    `rest`.
    """

    content: bytes
    no_content: bytes
    completion: bytes
    prompt: bytes
    length: bytes
    last: bytes
    rest: bytes
    read_stream: Callable[[bytes], Answer]
    read_whole: Callable[[bytes], Answer]


FORMS: Final[Mapping[Api, Form]] = {
    "chat": Form(
        content=b'"content":"',
        no_content=b'"content":""',
        completion=b'"completion_tokens":',
        prompt=b'"prompt_tokens":',
        length=b'"finish_reason":"length"',
        last=b"data: [DONE]",
        rest=b"\r\n0",
        read_stream=read_stream,
        read_whole=read_whole,
    ),
    "messages": Form(
        content=b'"text":"',
        no_content=b'"text":""',
        completion=b'"output_tokens":',
        prompt=b'"input_tokens":',
        length=b'"stop_reason":"max_tokens"',
        last=b'data: {"type":"message_stop"',
        rest=b"}\r\n0",
        read_stream=read_messages_stream,
        read_whole=read_message,
    ),
}
