"""Requests of the load generator: HTTP bodies as bytes, prepared as far as possible."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from smg_chaos.bench.load.corpus import Corpus
from smg_chaos.bench.load.job import Api, Flow, Job, Prompt

_SYSTEM: Final = b"You are a helpful assistant. Answer in one or two sentences."
_QUESTION: Final = (
    b" is my number. Tell me what you know about rivers, harbours and old ships, please."
)
_LONG: Final = b"Here is a document. Summarise it.\\n\\n"
TURNS: Final = 16
_PATHS: Final[Mapping[Api, str]] = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "interactions": "/v1/interactions",
}


class Requests(Protocol):
    """Source of requests."""

    def next(self, lane: int) -> bytes:
        """Return the next request of a connection, head and body."""
        ...


@dataclass(frozen=True, slots=True)
class Envelope:
    """Everything of a request except its messages; `instructed` where the system's words are not one of them.
    `question` is around the text of one that a user asks, where that is no message.
    """

    head: bytes
    before: bytes
    after: bytes
    instructed: bool = False
    question: tuple[bytes, bytes] = (b'{"role":"user","content":"', b'"}')

    def around(self, messages: bytes) -> bytes:
        """Return the whole request."""
        length = len(self.before) + len(messages) + len(self.after)
        return b"%b%d\r\n\r\n%b%b%b" % (self.head, length, self.before, messages, self.after)


def envelope_of(job: Job, flow: Flow) -> Envelope:
    """Return the envelope for a flow's requests."""
    key = f"authorization: Bearer {job.key}\r\n" if job.key else ""
    path = _PATHS[flow.api]
    key += "anthropic-version: 2023-06-01\r\n" if flow.api == "messages" else ""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: {job.host}:{job.port}\r\n"
        "accept: */*\r\nuser-agent: smg-chaos-bench\r\ncontent-type: application/json\r\n"
        f"{key}content-length: "
    )
    after = f'],"max_tokens":{flow.tokens}'
    model = msgspec.json.encode(flow.model or job.model)
    if flow.api in ("responses", "interactions"):
        return _stored_envelope(head.encode(), model, flow)
    if flow.api == "messages":
        after += ',"stream":true' if flow.stream else ""
        before = b'{"model":%b,"system":"%b","messages":[' % (model, _SYSTEM)
        return Envelope(head.encode(), before, after.encode() + b"}", instructed=True)
    if flow.stream:
        after += ',"stream":true,"stream_options":{"include_usage":true}'
    return Envelope(head.encode(), b'{"model":%b,"messages":[' % model, after.encode() + b"}")


def _stored_envelope(head: bytes, model: bytes, flow: Flow) -> Envelope:
    """Return the envelope of an API that keeps its answers; the question is one text."""
    before = b'{"model":%b,"' % model
    after = b',"stream":true' if flow.stream else b""
    if flow.api == "responses":
        before += b'instructions":"%b","input":' % _SYSTEM
        after += b',"max_output_tokens":%d}' % flow.tokens
    else:
        before += b'system_instruction":"%b","input":' % _SYSTEM
        after += b',"generation_config":{"max_output_tokens":%d}}' % flow.tokens
    return Envelope(head, before, after, instructed=True, question=(b'"', b'"'))


def _message(role: bytes, escaped: bytes) -> bytes:
    return b'{"role":"%b","content":"%b"}' % (role, escaped)


class Numbered:
    """One user message a request; `write` makes its text, in JSON spelling, from its number."""

    def __init__(self, envelope: Envelope, first: int, write: Callable[[int], bytes]) -> None:
        self._envelope = envelope
        self._number = first
        self._write = write
        self._system = b"" if envelope.instructed else _message(b"system", _SYSTEM) + b","

    def next(self, lane: int) -> bytes:
        """Return a request that was never made before."""
        number, self._number = self._number, self._number + 1
        before, after = self._envelope.question
        return self._envelope.around(self._system + before + self._write(number) + after)


class Conversations:
    """Chats of 16 turns: each request carries all turns before it; each connection has its own."""

    def __init__(self, envelope: Envelope, prompt: Prompt) -> None:
        self._envelope = envelope
        self._number = prompt.first
        self._said = _message(b"assistant", msgspec.json.encode(prompt.said)[1:-1])
        self._open: dict[int, list[bytes]] = {}

    def next(self, lane: int) -> bytes:
        """Return the next turn of the connection's chat, or the first one of a new chat."""
        turns = self._open.get(lane)
        if turns is None or len(turns) >= 2 * TURNS:
            self._number += 1
            turns = self._open[lane] = [_message(b"system", b"%010d. " % self._number + _SYSTEM)]
        else:
            turns.append(self._said)
        asked = len(turns) // 2
        turns.append(_message(b"user", b"%d" % asked + _QUESTION))
        return self._envelope.around(b",".join(turns))


def short_text(number: int) -> bytes:
    """Return a short question, different for each number."""
    return b"%010d" % number + _QUESTION


def requests_of(job: Job, flow: Flow, corpus: Callable[[], Corpus]) -> Requests:
    """Return the request source of a flow; `corpus` is called only where documents are wanted."""
    envelope, prompt = envelope_of(job, flow), flow.prompt
    if prompt.kind in ("picture", "known picture"):
        # They bring a library for pictures.
        from smg_chaos.bench.load.pictures import Pictured

        return Pictured(envelope, prompt)
    if prompt.kind == "turns":
        return Conversations(envelope, prompt)
    return Numbered(envelope, prompt.first, writer_of(prompt, corpus))


def writer_of(prompt: Prompt, corpus: Callable[[], Corpus]) -> Callable[[int], bytes]:
    """Return the function that makes the text of a numbered prompt, in JSON spelling."""
    if prompt.kind == "short":
        return short_text
    sizes, document = prompt.sizes, corpus().document
    if prompt.kind == "cycled":
        kept = [_LONG + document(place, size) for place, size in enumerate(sizes)]
        return lambda number: kept[number % len(kept)]
    if prompt.kind == "tail":
        start = _LONG + document(0, sizes[0])
        return lambda number: start + short_text(number)
    return lambda number: b"%010d. " % number + _LONG + document(number, sizes[0])
