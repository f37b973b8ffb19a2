"""Answer check: compares every streamed or whole answer with the engine's script, since speed
without it is no result.

Two ways to one verdict. `Judge.quick` looks at the bytes the way a gateway usually writes them: it
costs a third of a microsecond per token and never accepts a wrong text, because it compares all of
it (garbage between the events is all it cannot see). Where it is not sure, `read_stream` and
`read_whole` parse everything, as one answer in sixteen is anyway.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

_SAMPLE: Final = 16
_TAIL: Final = 2000
CONTENT: Final = b'"content":"'
NO_CONTENT: Final = b'"content":""'
_COMPLETION: Final = b'"completion_tokens":'
_PROMPT: Final = b'"prompt_tokens":'
_LENGTH: Final = b'"finish_reason":"length"'


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


class Judge:
    """Checks answers to requests for `tokens` tokens. Without `text` any text is right."""

    def __init__(self, *, tokens: int, stream: bool, text: str | None) -> None:
        self._tokens = tokens
        self._stream = stream
        self._text = text
        self._count = b"%d" % tokens
        self._bytes = None if text is None else msgspec.json.encode(text)[1:-1]
        self._seen = 0
        self.careful = 0
        """Answers that were parsed completely."""

    def prompt_tokens(self, content: bytes, *, chunked: bool) -> int:
        """Return the prompt's tokens as the answer counts them; WrongAnswerError if it is not right."""
        self._seen += 1
        if self._seen % _SAMPLE != 1:
            tokens = self.quick(content)
            if tokens is not None:
                return tokens
        self.careful += 1
        return self._read(dechunked(content) if chunked else content).prompt_tokens

    def quick(self, content: bytes) -> int | None:
        """Return the prompt's tokens if the answer is right beyond doubt, else None."""
        if self._bytes is None:
            return None
        if self._stream:
            try:
                pieces = content.split(CONTENT)
                said = b"".join([piece[: piece.index(b'"')] for piece in pieces[1:]])
            except ValueError:
                return None
        else:
            _, _, rest = content.partition(CONTENT)
            said = rest[: len(self._bytes)]
            if rest[len(said) : len(said) + 1] != b'"':
                return None
        tail = content[-_TAIL:]
        if said != self._bytes or _LENGTH not in tail:
            return None
        if self._stream:
            _, done, after = tail.rpartition(b"data: [DONE]")
            if not done or after.strip(b"\r\n0") or b'"error"' in content:
                return None
        return self._counted(tail)

    def _counted(self, tail: bytes) -> int | None:
        at = tail.rfind(_COMPLETION)
        after = tail[at + len(_COMPLETION) : at + len(_COMPLETION) + 12]
        if at < 0 or not after.startswith((self._count + b",", self._count + b"}")):
            return None
        digits = tail[tail.rfind(_PROMPT) + len(_PROMPT) :][:12].partition(b",")[0].rstrip(b"}")
        return int(digits) if digits.isdigit() and int(digits) > 0 else None

    def _read(self, content: bytes) -> Answer:
        answer = read_stream(content) if self._stream else read_whole(content)
        if answer.total_tokens != answer.prompt_tokens + answer.completion_tokens:
            raise WrongAnswerError("usage does not add up")
        if answer.prompt_tokens < 1:
            raise WrongAnswerError("a prompt of no tokens")
        if self._text is None:
            if not answer.text or not 0 < answer.completion_tokens <= self._tokens:
                raise WrongAnswerError(f"{answer.completion_tokens} tokens for {self._tokens}")
            return answer
        if answer.text != self._text:
            raise WrongAnswerError(f"the text is {answer.text[:80]!r}, not {self._text[:80]!r}")
        if answer.completion_tokens != self._tokens or answer.finish != "length":
            why = f"{answer.completion_tokens} tokens, {answer.finish!r}; not {self._tokens}, 'length'"
            raise WrongAnswerError(why)
        return answer
