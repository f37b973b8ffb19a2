"""A generation told to a receiver: within the wake-ups of its engines, at its pace, and with its mistakes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import Begin, End, Event, Fail
from smg_node.core.generation.request import Sampling, TextPrompt
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import EngineRequest
from smg_node.fleet.health.circuit_breaker import State
from support.engines.fake_engine import FakeEngine, says
from support.engines.generation_bench import bench

WORDS = "hello there"


async def endless(_request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
    while True:
        yield [Chunk(0, (97,))]
        await asyncio.sleep(0)


class Receiver:
    """Takes events, and is behind after each batch if it is slow; waits until it is let go."""

    def __init__(self, *, slow: bool = False) -> None:
        self.slow = slow
        self.batches: list[Sequence[Event]] = []
        self.waits = 0
        self.free = asyncio.Event()

    @property
    def events(self) -> list[Event]:
        return [event for batch in self.batches for event in batch]

    def receive(self, events: Sequence[Event]) -> bool:
        self.batches.append(events)
        return self.slow

    async def ready(self) -> None:
        self.waits += 1
        await self.free.wait()


async def test_what_is_told_is_what_would_be_read(tmp_path: Path) -> None:
    async with bench(tmp_path, a=FakeEngine(says(WORDS))) as it:
        read = await it.events()
        heard = Receiver()
        await it.start().tell(heard.receive)
        assert [type(event) for event in heard.events] == [type(event) for event in read]
        assert heard.events[1:] == read[1:]
        assert isinstance(heard.events[0], Begin)
        assert it.idle()
        assert [outcome.kind for outcome in it.outcomes] == ["ok", "ok"]


@pytest.mark.parametrize("answers", [1, 3])
async def test_nothing_more_is_asked_for_while_the_receiver_is_behind(
    tmp_path: Path, answers: int
) -> None:
    engine = FakeEngine(endless)
    async with bench(tmp_path, a=engine) as it:
        heard = Receiver(slow=True)
        run = it.start(Sampling(n=answers, seed=1))
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            task = group.create_task(run.tell(heard.receive, heard.ready))
            for _ in range(200):
                await asyncio.sleep(0)
            # Each call may hand out what it has; then all of them wait.
            assert 1 <= len(heard.batches) <= answers
            assert heard.waits == 1, "they wait one after the other"
            heard.slow = False
            heard.free.set()
            before = len(heard.batches)
            while len(heard.batches) < before + 20 * answers:  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0)
            task.cancel()
        assert it.idle()
        assert engine.open == 0


@pytest.mark.parametrize(
    "mistake",
    [
        ConnectionResetError("the client is gone"),
        ValueError("a mistake of ours"),
        invalid("of a presenter"),
        SmgError(ErrorKind.UPSTREAM_FAILED, "looks like an engine's, and is not"),
    ],
)
@pytest.mark.parametrize("prompts", [1, 3])
async def test_what_a_receiver_raises_ends_its_run_and_is_no_fault_of_the_engine(
    tmp_path: Path, mistake: Exception, prompts: int
) -> None:
    engine = FakeEngine(endless)
    async with bench(tmp_path, a=engine) as it:
        batches = 0

        def receive(_events: Sequence[Event]) -> None:
            nonlocal batches
            batches += 1
            if batches == 3:
                raise mistake

        asked = tuple(TextPrompt(f"p{at}", add_special_tokens=False) for at in range(prompts))
        run = it.start(prompts=asked)
        with pytest.raises(type(mistake)) as raised:
            await run.tell(receive)
        assert raised.value is mistake
        assert batches == 3, "nothing is said to one who has failed"
        assert len(engine.requests) == prompts, "nothing was tried again"
        assert it.idle()
        assert (engine.open, engine.cancelled) == (0, prompts)
        (outcome,) = it.outcomes
        assert outcome.kind == "client_gone"
        assert it.fleet.workers()[0].breaker.state(0.0) is State.CLOSED


async def test_a_receiver_that_fails_at_the_very_end_is_not_told_of_it(tmp_path: Path) -> None:
    async with bench(tmp_path, a=FakeEngine(says(WORDS))) as it:
        heard: list[Event] = []

        def receive(events: Sequence[Event]) -> None:
            heard.extend(events)
            if isinstance(events[-1], End):
                raise invalid("too late")

        with pytest.raises(SmgError, match="too late"):
            await it.start().tell(receive)
        assert not any(isinstance(event, Fail) for event in heard)
        assert it.outcomes[0].kind == "ok"


async def test_what_waiting_for_the_receiver_raises_ends_the_run(tmp_path: Path) -> None:
    engine = FakeEngine(endless)
    async with bench(tmp_path, a=engine) as it:

        async def gone() -> None:
            raise ConnectionResetError("the client is gone")

        with pytest.raises(ConnectionResetError):
            await it.start().tell(lambda _events: True, gone)
        assert it.idle()
        assert engine.open == 0


async def test_a_cancelled_run_lets_go_at_once_also_while_nothing_is_said(tmp_path: Path) -> None:
    async def silent(_request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, (97,))]
        await asyncio.Event().wait()

    engine = FakeEngine(silent)
    async with bench(tmp_path, a=engine) as it:
        heard = Receiver()
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            task = group.create_task(it.start().tell(heard.receive))
            while not heard.batches:  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0)
            task.cancel()
        assert it.idle()
        assert engine.open == 0
        assert it.outcomes[0].kind == "client_gone"


async def test_a_failure_is_told_and_not_raised(tmp_path: Path) -> None:
    async with bench(tmp_path, a=FakeEngine(says(WORDS))) as it:
        heard = Receiver()
        await it.start(model="nobody").tell(heard.receive)
        assert [type(event) for event in heard.events] == [Fail]


async def test_a_told_stream_keeps_the_grammar_with_answers_side_by_side(tmp_path: Path) -> None:
    engines = {"a": FakeEngine(says(WORDS)), "b": FakeEngine(says(WORDS))}
    async with bench(tmp_path, **engines) as it:
        grammar = Grammar(4)
        await it.start(Sampling(n=4, seed=1)).tell(grammar.feed)
        assert grammar.over
