"""What one engine call says, fed to its generation: what is right of it and what is not."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind
from smg_node.core.generation.events import Delta, End, Event, Fail
from smg_node.engines.chunk import Chunk
from smg_node.engines.chunk_stream import ChunkStream, Pass, Take
from smg_node.engines.engine import EngineRequest
from smg_node.native.stream_messages import ChunkReader
from support.engines.fake_engine import FakeEngine, card
from support.engines.generation_bench import bench


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_what_came_before_an_id_beyond_the_vocabulary_is_told(
    tmp_path: Path, at: int
) -> None:
    ids = [104, 105, 106]
    ids[at] = 300

    async def babble(_request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, tuple(ids), apart=True)]

    engine = FakeEngine(babble)
    engine.model_card = card(vocabulary=300)
    async with bench(tmp_path, a=engine) as it:
        told = await it.events()
        assert isinstance(told[-1], Fail)
        assert told[-1].error.kind is ErrorKind.UPSTREAM_FAILED
        texts = [event.text for event in told if isinstance(event, Delta)]
        # It is gone on from there, with the same mistake each time.
        assert texts == list("hij"[:at]) * len(engine.requests)
        assert it.idle()


class LastWords:
    """A call whose last chunks come with its end, as those of a call that was aborted here."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = chunks
        self.closed = False
        self.plain: ChunkReader | None = None

    async def pour(self, take: Take) -> bool:
        take(self.chunks)
        return True

    def pass_by(self, first: Pass | None) -> None:
        assert first is None

    async def aclose(self) -> None:
        self.closed = True


class EndingEngine(FakeEngine):
    def __init__(self, chunks: Sequence[Chunk]) -> None:
        super().__init__()
        self.calls: list[LastWords] = []
        self.chunks = chunks

    def call(self, request: EngineRequest) -> ChunkStream:
        self.requests.append(request)
        self.calls.append(LastWords(self.chunks))
        return self.calls[-1]


async def test_a_mistake_that_comes_with_the_end_is_a_failure(tmp_path: Path) -> None:
    engine = EndingEngine([Chunk(0, (), finish="abort")])
    async with bench(tmp_path, a=engine) as it:
        error = await it.error()
        assert "gave up" in error.message
        assert all(call.closed for call in engine.calls)
        assert it.idle()


async def test_a_receiver_is_waited_for_after_last_words_too(tmp_path: Path) -> None:
    engine = EndingEngine([Chunk(0, (104, 256)), Chunk(0, (), finish="stop")])
    waited: list[int] = []
    told: list[Event] = []

    def receive(events: Sequence[Event]) -> bool:
        told.extend(events)
        return not waited

    async def ready() -> None:
        waited.append(len(told))

    async with bench(tmp_path, a=engine) as it:
        await it.start().tell(receive, ready)
        assert len(waited) == 1
        assert 0 < waited[0] < len(told)
        assert isinstance(told[-1], End)
        assert engine.calls[0].closed
        assert it.outcomes[0].kind == "ok"
