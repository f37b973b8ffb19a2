"""What a token costs between the engine's bytes and the client's, in counts that no busy machine changes.

Counted are calls of functions, ours and the interpreter's, and what is left allocated. Limits have slack: what stands
behind them is that nobody brings JSON, protobuf or an object per layer back into a path that is walked for every token
of every stream.
"""

import sys
from collections.abc import Callable, Sequence
from types import FrameType

import pytest
from smg_grpc_proto.generated import vllm_engine_pb2 as pb

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import Begin, Event
from smg_node.core.generation.request import Sampling
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import Contract
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.engines.grpc.stream_reader import StreamReader
from smg_node.native.token_ids import COMPILED
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.pipeline.stream.choice_stream import ChoiceStream
from smg_node.pipeline.stream.end_tokens import ends_of
from smg_node.pipeline.stream.generation_stream import GenerationStream
from smg_node.tokens.decoding.token_table import TokenTable
from support.models.bytewise_tokenizer import BytewiseTokenizer

WORDS = TokenTable([f" word{at}".encode() for at in range(512)], special_ids=frozenset())
PRINTING = Printing(Chosen("think", "hermes", frozenset({"implicit"})), ())
BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
TOKENS = 1024
AS_PYTHON = 18
"""Calls more that a message takes where its reader is not compiled; 13 measured."""


class Path:
    """One stream, from messages to frames or to an answer, with everything on that a real one has."""

    def __init__(self) -> None:
        sampling = Sampling(max_tokens=1 << 20)
        tokenizer = BytewiseTokenizer()
        stream = ChoiceStream(
            0,
            sampling=sampling,
            ends=ends_of(sampling, tokenizer, (511,)),
            tokenizer=tokenizer,
            detokenizer=WORDS.detokenizer(
                prompt_tail=(), skip_special_tokens=True, spaces_between_special_tokens=True
            ),
            parser=PRINTING.scanner(tools=(), calls=True, tail="", new_id=lambda name, at: name),
        )
        self.reader = StreamReader.of(sampling, WIRES[Contract.VLLM]())
        self.story = GenerationStream(
            Begin("0" * 32, "m", 1, 9), [stream], answers_per_prompt=1, tokenizer=tokenizer
        )
        dialect = ChatDialect(ReaderOptions())
        self.presenter = dialect.presenter(dialect.read(dict(BODY)))
        self.collector = Collector(1)

    def events(self, batch: Sequence[bytes]) -> list[Event]:
        chunks: list[Chunk] = []
        self.reader.take(batch, chunks)
        out: list[Event] = []
        for chunk in chunks:
            self.story.feed(0, chunk, out)
        return out

    def begin(self, batch: Sequence[bytes]) -> None:
        """Let the parser see the answer begin, and the presenter."""
        assert b"word" in self.presenter.frames(self.events(batch))

    def streamed(self, batch: Sequence[bytes]) -> None:
        assert self.presenter.frames(self.events(batch)).count(b"data: ") == len(batch)

    def collected(self, batch: Sequence[bytes]) -> None:
        self.collector.feed(self.events(batch))


def messages(count: int) -> list[bytes]:
    return [
        pb.GenerateResponse(
            chunk=pb.GenerateStreamChunk(token_ids=[at % 100 + 100], prompt_tokens=9)
        ).SerializeToString()
        for at in range(count)
    ]


def calls(play: Callable[[], object]) -> tuple[int, set[str]]:
    """How many functions `play` calls, and the names of those of C."""
    made, names = 0, set()

    def note(frame: FrameType, event: str, called: object) -> None:
        nonlocal made
        if event in ("call", "c_call"):
            made += 1
        if event == "c_call":
            names.add(getattr(called, "__qualname__", ""))

    sys.setprofile(note)
    try:
        play()
    finally:
        sys.setprofile(None)
    return made, names


@pytest.mark.parametrize("together", [1, 64])
def test_a_token_that_was_sent_leaves_nothing_behind(together: int) -> None:
    path = Path()
    sent = messages(4 * TOKENS + 1)
    path.begin(sent[:1])
    batches = [sent[at : at + together] for at in range(1, len(sent), together)]
    path.streamed(batches[0])
    before = sys.getallocatedblocks()
    for batch in batches[1:]:
        path.streamed(batch)
    # What it was is in its choice's text and ids: a place in a list and four bytes, neither a block of its own.
    assert sys.getallocatedblocks() - before < TOKENS / 4


# Measured: a token alone takes 29 calls, one of 64 together 4.4; collected, 22 and 0.3.
@pytest.mark.parametrize(
    ("way", "together", "most"),
    [("streamed", 1, 40), ("streamed", 64, 8), ("collected", 1, 32), ("collected", 64, 2)],
)
def test_a_token_takes_few_calls(way: str, together: int, most: int) -> None:
    path = Path()
    play: Callable[[Sequence[bytes]], None] = getattr(path, way)
    sent = messages(TOKENS + 1)
    path.begin(sent[:1])
    batches = [sent[at : at + together] for at in range(1, len(sent), together)]

    def all_of_it() -> None:
        for batch in batches:
            play(batch)

    made, names = calls(all_of_it)
    assert made / TOKENS <= most + (0 if COMPILED else AS_PYTHON)
    assert not [name for name in names if name.startswith(("JSONEncoder", "dumps"))]
    assert not [name for name in names if "FromString" in name or "ParseFromString" in name]
