"""A run that tells, read by one who asks."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.events import Delta, Event
from smg_node.pipeline.generation.event_iterator import AHEAD_MAX, pulled
from smg_node.pipeline.generation.event_sink import Ready, Receive


class Teller:
    """Tells numbered batches, waiting where it is asked to."""

    def __init__(self, count: int, *, fails: bool = False, bursts: int = 1) -> None:
        self.count = count
        self.fails = fails
        self.bursts = bursts
        self.told = 0
        self.over = False

    async def tell(self, receive: Receive, ready: Ready) -> None:
        try:
            while self.told < self.count:
                self.told += 1
                behind = receive([Delta(0, 0, str(self.told), 1)])
                if self.told % self.bursts == 0:
                    await asyncio.sleep(0)
                if behind:
                    await ready()
            if self.fails:
                raise ValueError("at the end")
        finally:
            self.over = True


def _text(batch: Sequence[Event]) -> str:
    (delta,) = batch
    assert isinstance(delta, Delta)
    return delta.text


@given(
    count=st.integers(0, 60),
    bursts=st.integers(1, 20),
    pauses=st.lists(st.integers(0, 3), max_size=60),
    fails=st.booleans(),
)
def test_all_is_read_in_order_and_never_far_behind(
    count: int, bursts: int, pauses: list[int], fails: bool
) -> None:
    teller = Teller(count, fails=fails, bursts=bursts)

    async def read() -> list[str]:
        seen: list[str] = []
        try:
            async for batch in pulled(teller.tell):
                seen.append(_text(batch))
                assert teller.told <= len(seen) + AHEAD_MAX
                for _ in range(pauses[len(seen) % len(pauses)] if pauses else 0):
                    await asyncio.sleep(0)
        except ValueError:
            assert fails
        else:
            assert not fails
        return seen

    assert asyncio.run(read()) == [str(at + 1) for at in range(count)]
    assert teller.over


async def test_closing_it_ends_the_run_before_that_is_over() -> None:
    teller = Teller(10**9)
    async with aclosing(pulled(teller.tell)) as batches:
        async for _ in batches:
            break
    assert teller.over


async def test_cancelling_its_reader_ends_the_run() -> None:
    over = asyncio.Event()

    async def silent(_receive: Receive, _ready: Ready) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            over.set()

    async def read() -> None:
        async for _ in pulled(silent):
            pytest.fail("nobody said anything")

    async with asyncio.TaskGroup() as group:
        reader = group.create_task(read())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        reader.cancel()
    assert reader.cancelled()
    assert over.is_set()
