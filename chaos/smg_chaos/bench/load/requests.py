"""Requests of the load generator: HTTP bodies as bytes, prepared as far as possible."""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from smg_chaos.bench.load.corpus import Corpus
from smg_chaos.bench.load.envelopes import SYSTEM, Envelope, envelope_of
from smg_chaos.bench.load.job import Flow, Job, Prompt
from smg_chaos.bench.load.tools.tool_runs import ToolRuns

_QUESTION: Final = (
    b" is my number. Tell me what you know about rivers, harbours and old ships, please."
)
_LONG: Final = b"Here is a document. Summarise it.\\n\\n"
TURNS: Final = 16


class Requests(Protocol):
    """Source of requests."""

    def next(self, lane: int) -> bytes:
        """Return the next request of a connection, head and body."""
        ...


def _message(role: bytes, escaped: bytes) -> bytes:
    return b'{"role":"%b","content":"%b"}' % (role, escaped)


class Numbered:
    """One user message a request; `write` makes its text, in JSON spelling, from its number."""

    def __init__(self, envelope: Envelope, first: int, write: Callable[[int], bytes]) -> None:
        self._envelope = envelope
        self._number = first
        self._write = write
        self._system = b"" if envelope.instructed else _message(b"system", SYSTEM) + b","

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
            turns = self._open[lane] = [_message(b"system", b"%010d. " % self._number + SYSTEM)]
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
    if prompt.kind == "tool run":
        return ToolRuns(envelope, prompt.first)
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
