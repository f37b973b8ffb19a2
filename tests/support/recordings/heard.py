"""Heard: what our listeners and judges make of a recorded answer, whole or in pieces of any size."""

import json
import random
from collections.abc import Iterator, Sequence
from typing import Final

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import Begin, Event
from smg_node.core.generation.opaque import ENCRYPTED, REDACTED, SIGNATURE
from smg_node.dialects.converse.chunk_frames import ChunkFrames
from smg_node.dialects.provider_dialect import EventJudge
from smg_node.dialects.sse_reader import EventLines
from smg_node.providers.provider_dialects import provider_dialect
from support.recordings.recorded_answer import RecordedAnswer
from support.recordings.truth import Tokens, Truth

BEGIN: Final = Begin("0123456789abcdef" * 2, "ours", 5, 30)
BYTEWISE_MAX: Final = 32_768
"""A longer stream is not fed byte by byte: what can be cut is in the short ones too."""
_STATE: Final = (SIGNATURE, REDACTED, ENCRYPTED)
_CONVERSE_MODEL: Final = "anthropic.claude"


def heard(answer: RecordedAnswer, pieces: Sequence[bytes]) -> list[Event]:
    """Return the events of an answer that comes in these pieces; they obey the grammar."""
    dialect = provider_dialect(answer.api, _CONVERSE_MODEL)
    listener = dialect.listen(BEGIN, prompt_tokens=30)
    out: list[Event] = []
    if not answer.streamed:
        listener.feed_whole(answer.body, out)
    elif answer.framed:
        frames = ChunkFrames()
        for piece in pieces:
            while told := frames.feed(piece):
                listener.feed(told, out)
                piece = b""
        listener.feed(frames.finish(), out)
    else:
        for piece in pieces:
            listener.feed(piece, out)
    listener.end(out)
    assert listener.finished
    grammar = Grammar(1)
    grammar.feed(out)
    assert grammar.over
    return out


def as_truth(events: Sequence[Event]) -> Truth:
    """Return what events say, in the form in which a vendor's own words are read."""
    collector = Collector(1)
    collector.feed(events)
    answer = collector.answer()
    [choice] = answer.choices
    assert choice.finish is not None
    texts: dict[str, str] = {"text": "", "reasoning": "", "refusal": ""}
    calls = []
    for block in choice.blocks:
        if block.kind == "call":
            calls.append((block.name, _arguments(block.text)))
        else:
            texts[block.kind] += block.text
    used = answer.usage
    tokens = Tokens(
        used.prompt_tokens,
        used.completion_tokens,
        used.cached_tokens,
        used.reasoning_tokens,
        used.cache_write_tokens,
        used.cache_write_long_tokens,
    )
    state = [one.data for block in choice.blocks for one in block.opaque if one.kind in _STATE]
    return Truth(
        texts["text"],
        texts["reasoning"],
        texts["refusal"],
        calls,
        choice.finish.reason,
        tokens,
        state=state,
    )


def _arguments(text: str) -> object:
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return text


def cuts(body: bytes, seed: int) -> Iterator[tuple[str, list[bytes]]]:
    """Yield ways to cut a stream: lines, pieces of chance, and bytes where it is short."""
    yield "lines", body.splitlines(keepends=True)
    rng, pieces, at = random.Random(seed), list[bytes](), 0
    while at < len(body):
        size = rng.choice((1, 2, 7, 64, 1_000, 30_000))
        pieces.append(body[at : at + size])
        at += size
    yield "chance", pieces
    if len(body) <= BYTEWISE_MAX:
        yield "bytes", [body[at : at + 1] for at in range(len(body))]


def judged(answer: RecordedAnswer) -> EventJudge:
    """Return the judge of an answer, which has seen all of it."""
    judge = provider_dialect(answer.api, _CONVERSE_MODEL).judge()
    if not answer.streamed:
        judge.whole(answer.body)
        return judge
    lines, body = EventLines(), answer.body
    if answer.framed:
        frames = ChunkFrames()
        body = frames.feed(body) + frames.finish()
    for data in (*lines.feed(body), *lines.finish()):
        judge.take(b"", data)
    judge.finish()
    return judge
