"""An outlet tells a run's events to another run's receiver, and nothing of one that failed before its first word."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    Usage,
)
from smg_node.pipeline.generation.event_outlet import EventOutlet, Receiver
from smg_node.pipeline.generation.run_interface import Run

BROKEN = SmgError(ErrorKind.UPSTREAM_FAILED, "broken")
BEGIN = Begin("0" * 32, "m", 0, 1)
WORDS: Sequence[Event] = (BlockStart(0, 0, "text"), Delta(0, 0, "hi"))
REST: Sequence[Event] = (BlockEnd(0, 0, "text", "hi"), Finish(0, "stop"), Usage(1, 0, 1), End())


class Told:
    """A run that tells these batches."""

    ignored = ("seed",)

    def __init__(self, *batches: Sequence[Event]) -> None:
        self.batches = batches

    async def tell(self, receive: Any, ready: Any = None, through: Any = None) -> None:
        for batch in self.batches:
            receive(batch)

    async def answer(self) -> Any:
        last = self.batches[-1][-1]
        if isinstance(last, Fail):
            raise last.error
        return "the answer"


async def told(*batches: Sequence[Event], seen: bool) -> tuple[list[Event], EventOutlet, str]:
    heard: list[Event] = []
    outlet = EventOutlet(Receiver(heard.extend), seen=seen)
    try:
        await outlet.tell(cast("Run", Told(*batches)))
    except SmgError as error:
        return heard, outlet, error.message
    return heard, outlet, ""


@pytest.mark.parametrize("seen", [True, False])
async def test_a_whole_answer_is_told_to_its_end(seen: bool) -> None:
    heard, outlet, failed = await told([BEGIN, *WORDS], REST, seen=seen)
    assert heard == [BEGIN, *WORDS, *REST]
    assert (outlet.said, outlet.ended, failed) == (True, True, "")
    assert outlet.ignored == ("seed",)


@pytest.mark.parametrize("seen", [True, False])
async def test_a_failure_before_the_first_word_is_nobodys_yet(seen: bool) -> None:
    heard, outlet, failed = await told([Fail(BROKEN)], seen=seen)
    assert heard == []
    assert (outlet.said, outlet.ended, failed) == (False, False, "broken")


async def test_a_failure_behind_it_is_told_where_events_are_seen_as_they_come() -> None:
    heard, outlet, failed = await told([BEGIN, *WORDS], [Fail(BROKEN)], seen=True)
    assert heard == [BEGIN, *WORDS, Fail(BROKEN)]
    assert (outlet.said, outlet.ended, failed) == (True, True, "broken")


async def test_else_another_run_may_still_answer() -> None:
    heard, outlet, failed = await told([BEGIN, *WORDS], [Fail(BROKEN)], seen=False)
    assert heard == []
    assert (outlet.said, outlet.ended, failed) == (False, False, "broken")


async def test_an_answer_that_is_wanted_whole_is_kept() -> None:
    outlet = EventOutlet(Receiver(lambda batch: False, whole=True), seen=False)
    await outlet.tell(cast("Run", Told(REST)))
    assert outlet.answer is not None
    assert outlet.ended
    failed = EventOutlet(Receiver(lambda batch: False, whole=True), seen=False)
    with pytest.raises(SmgError, match="broken"):
        await failed.tell(cast("Run", Told([Fail(BROKEN)])))
    assert not failed.said
