"""HTTP engine with an OpenAI API, for gateways that are proxies to one (litellm): its answers are
prepared bytes.

It generates the same text as the simulated gRPC engine, and costs a few microseconds per request.
It does not imitate a real server: prompts are not tokenised (a prompt counts a token per four
bytes), only `max_tokens`, `stream` and `stream_options` are understood. One timer wheel of 1 ms
paces all streams.
"""

import asyncio
import sys
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Final, cast

import msgspec
import uvloop

_TICK_S: Final = 0.001
_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
_STREAM_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_MODELS: Final = _HEAD + b'27\r\n\r\n{"object":"list","data":[]}'
_REQUEST_MAX: Final = 64 * 1024 * 1024
_START: Final = (
    b'{"id":"chatcmpl-engine","object":"chat.completion.chunk","created":1700000000,"model":'
)


class Said(msgspec.Struct, frozen=True):
    """Start parameters of the engine: the text of every token, and the seconds between two."""

    model: str
    pieces: tuple[str, ...]
    step_s: float = 0.0


class _Options(msgspec.Struct):
    include_usage: bool = False


class _Asked(msgspec.Struct):
    max_tokens: int = 16
    max_completion_tokens: int | None = None
    stream: bool = False
    stream_options: _Options | None = None


def _chunk(event: bytes) -> bytes:
    return b"%x\r\ndata: %b\n\n\r\n" % (len(event) + 8, event)


class Words:
    """Prepared bytes: everything the engine may send, made once."""

    def __init__(self, said: Said) -> None:
        self._start = _START + msgspec.json.encode(said.model)
        self._model = msgspec.json.encode(said.model)
        self._pieces = [msgspec.json.encode(piece) for piece in said.pieces]
        self.limit = len(said.pieces)
        self.first = self._choice(b'{"role":"assistant","content":""}', b"null")
        self.tokens = [self._choice(b'{"content":%b}' % one, b"null") for one in self._pieces]
        self.ended = self._choice(b"{}", b'"length"')
        self.done = _chunk(b"[DONE]")[:-2] + b"\r\n0\r\n\r\n"
        self.burst = lru_cache(64)(self._burst)
        self.whole = lru_cache(64)(self._whole)

    def _choice(self, delta: bytes, finish: bytes) -> bytes:
        choice = b'{"index":0,"delta":%b,"finish_reason":%b}' % (delta, finish)
        return _chunk(b'%b,"choices":[%b]}' % (self._start, choice))

    def usage(self, prompt: int, tokens: int) -> bytes:
        """Return the last event but one."""
        counts = _usage(prompt, tokens)
        return _chunk(b'%b,"choices":[],"usage":%b}' % (self._start, counts))

    def _burst(self, tokens: int) -> bytes:
        return b"".join([_STREAM_HEAD, self.first, *self.tokens[:tokens], self.ended])

    def _whole(self, tokens: int) -> bytes:
        text = b"".join(piece[1:-1] for piece in self._pieces[:tokens])
        return (
            b'{"id":"chatcmpl-engine","object":"chat.completion","created":1700000000,"model":%b,'
            b'"choices":[{"index":0,"message":{"role":"assistant","content":"%b"},'
            b'"finish_reason":"length"}],"usage":' % (self._model, text)
        )

    def answer(self, prompt: int, tokens: int) -> bytes:
        """Return a whole answer, head and body."""
        body = self.whole(tokens) + _usage(prompt, tokens) + b"}"
        return b"%b%d\r\n\r\n%b" % (_HEAD, len(body), body)


def _usage(prompt: int, tokens: int) -> bytes:
    return b'{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}' % (
        prompt,
        tokens,
        prompt + tokens,
    )


class Wheel:
    """Paces streams: one timer for all, in ticks of a millisecond."""

    def __init__(self, loop: asyncio.AbstractEventLoop, step_s: float) -> None:
        self._loop = loop
        self.step_s = step_s
        self._ticks: dict[int, list[_Stream]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def put(self, stream: "_Stream") -> None:
        """Schedule the stream's next token for its due time."""
        self._ticks.setdefault(round(stream.due_s / _TICK_S), []).append(stream)
        if self._timer is None:
            self._arm()

    def _arm(self) -> None:
        wait_s = max(0.0, min(self._ticks) * _TICK_S - perf_counter())
        self._timer = self._loop.call_later(wait_s, self._turn)

    def _turn(self) -> None:
        now = int(perf_counter() / _TICK_S)
        for tick in sorted(tick for tick in self._ticks if tick <= now):
            for stream in self._ticks.pop(tick):
                stream.step()
        # Only now: what a step puts back needs no timer of its own.
        self._timer = None
        if self._ticks:
            self._arm()


class _Stream:
    """A paced answer in progress."""

    def __init__(self, face: "Face", prompt: int, tokens: int, *, usage: bool) -> None:
        self._face = face
        self._prompt = prompt
        self._tokens = tokens
        self._usage = usage
        self._at = 0
        self.due_s = perf_counter()

    def step(self) -> None:
        """Send the next token; after the last one the end."""
        face, words = self._face, self._face.words
        start = _STREAM_HEAD + words.first if self._at == 0 else b""
        if self._at < self._tokens:
            face.write(start + words.tokens[self._at])
            self._at += 1
        if self._at < self._tokens:
            if face.is_open:
                self.due_s += face.wheel.step_s
                face.wheel.put(self)
            return
        usage = words.usage(self._prompt, self._tokens) if self._usage else b""
        face.write(words.ended + usage + words.done)
        face.ended()


class Face(asyncio.Protocol):
    """One client connection. Requests on it are answered one after the other."""

    def __init__(self, words: Words, wheel: Wheel) -> None:
        self.words = words
        self.wheel = wheel
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._busy = False

    @property
    def is_open(self) -> bool:
        """Whether the client is connected."""
        return self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the transport; streams end at their next token."""
        self._transport = None

    def write(self, content: bytes) -> None:
        """Send, if the client is connected."""
        if self._transport is not None:
            self._transport.write(content)

    def ended(self) -> None:
        """An answer has ended: the next request may be read."""
        self._busy = False
        self._read()

    def data_received(self, data: bytes) -> None:
        """Read what is complete."""
        self._buffer += data
        self._read()

    def _read(self) -> None:
        while not self._busy and self._transport is not None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _REQUEST_MAX:
                    self._transport.abort()
                return
            head = bytes(self._buffer[:end])
            length = _length(head)
            if length < 0 or length > _REQUEST_MAX:
                self._transport.abort()
                return
            if len(self._buffer) < end + 4 + length:
                return
            body = bytes(self._buffer[end + 4 : end + 4 + length])
            del self._buffer[: end + 4 + length]
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        if not head.startswith(b"POST"):
            self.write(_MODELS)
            return
        try:
            asked = msgspec.json.decode(body, type=_Asked)
        except msgspec.DecodeError:
            self.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
            return
        wanted = asked.max_completion_tokens or asked.max_tokens
        tokens, prompt = max(1, min(wanted, self.words.limit)), max(1, len(body) // 4)
        if not asked.stream:
            self.write(self.words.answer(prompt, tokens))
            return
        usage = asked.stream_options is not None and asked.stream_options.include_usage
        if self.wheel.step_s:
            self._busy = True
            _Stream(self, prompt, tokens, usage=usage).step()
            return
        counted = self.words.usage(prompt, tokens) if usage else b""
        self.write(self.words.burst(tokens) + counted + self.words.done)


def _length(head: bytes) -> int:
    """Return the length of the body, or -1 if the head does not give it in a known way."""
    lines = head.lower().split(b"\r\n")
    for line in lines:
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return int(value) if value.strip().isdigit() else -1
        if name == b"transfer-encoding":
            return -1
    return 0


async def serve(said: Said, port: int) -> None:
    """Listen on the port, print that, and serve until SIGTERM."""
    loop = asyncio.get_running_loop()
    words, wheel = Words(said), Wheel(loop, said.step_s)
    server = await loop.create_server(lambda: Face(words, wheel), "127.0.0.1", port, backlog=1024)
    print(f"listening on 127.0.0.1:{port}", flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Run: `python -m smg_chaos.bench.gateways.http_engine PORT FILE`, where FILE is a `Said` as JSON."""
    port, path = sys.argv[1:3]
    said = msgspec.json.decode(Path(path).read_bytes(), type=Said)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(said, int(port)))


if __name__ == "__main__":
    main()
