"""Answer forms: how an API writes a streamed or whole answer, and how it is read. Pure.

`FORMS` has those that gateways are measured with.
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


def read_response_stream(content: bytes) -> Answer:
    """Return the answer in a stream of the Responses API; WrongAnswerError says what is wrong with it."""
    text, last = _told(content, "type", "response.output_text.delta", lambda event: event["delta"])
    return _stored(text, last.get("response"), "")


def read_interaction_stream(content: bytes) -> Answer:
    """Return the answer in a stream of the Interactions API; WrongAnswerError says what is wrong with it."""
    text, last = _told(
        content, "event_type", "step.delta", lambda event: event["delta"].get("text", "")
    )
    return _stored(text, last.get("interaction"), "total_")


def _told(
    content: bytes, key: str, delta: str, text_of: Callable[[dict[str, Any]], str]
) -> tuple[str, dict[str, Any]]:
    """Return all text of a numbered stream, and its last event."""
    text: list[str] = []
    payloads = list(events(content))
    if not payloads or payloads.pop() != b"[DONE]":
        raise WrongAnswerError("the stream does not end with [DONE]")
    event: dict[str, Any] = {}
    for payload in payloads:
        event = _object(payload)
        if event.get(key) == "error":
            raise WrongAnswerError(f"an error in the stream: {payload[:300]!r}")
        if event.get(key) == delta:
            text.append(text_of(event))
    return "".join(text), event


def read_response(content: bytes) -> Answer:
    """Return the answer in a whole response; WrongAnswerError says what is wrong with it."""
    body = _object(content)
    try:
        parts = [part for item in body["output"] for part in item.get("content") or ()]
        return _stored("".join(part.get("text") or "" for part in parts), body, "")
    except (LookupError, TypeError, AttributeError) as error:
        raise WrongAnswerError(f"{error!r} in {content[:300]!r}") from None


def read_interaction(content: bytes) -> Answer:
    """Return the answer in a whole interaction; WrongAnswerError says what is wrong with it."""
    body = _object(content)
    try:
        parts = [part for step in body["steps"] for part in step.get("content") or ()]
        return _stored("".join(part.get("text") or "" for part in parts), body, "total_")
    except (LookupError, TypeError, AttributeError) as error:
        raise WrongAnswerError(f"{error!r} in {content[:300]!r}") from None


def _stored(text: str, shown: Any, prefix: str) -> Answer:
    """Return the answer that an object of an API says it is which keeps its answers."""
    usage = (shown or {}).get("usage") or {}
    names = (f"{prefix}input_tokens", f"{prefix}output_tokens", "total_tokens")
    prompt, completion, total = (usage.get(name) for name in names)
    if not (isinstance(prompt, int) and isinstance(completion, int) and isinstance(total, int)):
        raise WrongAnswerError(f"usage is {usage}")
    finish = "length" if shown["status"] == "incomplete" else str(shown["status"])
    return Answer(text, finish, prompt, completion, total)


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
    "responses": Form(
        content=b'"delta":"',
        no_content=b'"delta":""',
        completion=b'"output_tokens":',
        prompt=b'"input_tokens":',
        length=b'"status":"incomplete"',
        last=b"data: [DONE]",
        rest=b"\r\n0",
        read_stream=read_response_stream,
        read_whole=read_response,
    ),
    "interactions": Form(
        content=b'"text":"',
        no_content=b'"text":""',
        completion=b'"total_output_tokens":',
        prompt=b'"total_input_tokens":',
        length=b'"status":"incomplete"',
        last=b"data: [DONE]",
        rest=b"\r\n0",
        read_stream=read_interaction_stream,
        read_whole=read_interaction,
    ),
}
