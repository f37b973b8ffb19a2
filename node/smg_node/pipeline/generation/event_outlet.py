"""Event outlet: a run's events told to the receiver of another one, which may have a third tell them until the first word."""

from collections.abc import Sequence
from typing import NamedTuple

from smg_node.core.errors import SmgError
from smg_node.core.generation.answer import Answer
from smg_node.core.generation.byte_sink import ByteSink
from smg_node.core.generation.events import End, Event, Fail
from smg_node.pipeline.generation.event_sink import Ready, Receive
from smg_node.pipeline.generation.run_interface import Run


class Receiver(NamedTuple):
    """Where a run tells its events; see `run_interface.Run.tell`. `whole`: what is wanted is the answer."""

    receive: Receive
    ready: Ready | None = None
    through: ByteSink | None = None
    whole: bool = False


class EventOutlet:
    """Outlet of one run. Unless the events are `seen` as they come, they are told at the end only: until then another
    run may answer instead.
    """

    def __init__(self, receiver: Receiver, *, seen: bool) -> None:
        self.said = False
        self.ended = False
        """Whether the receiver has had the last event, or the answer is here."""
        self.answer: Answer | None = None
        """The answer, where it is wanted whole."""
        self._receiver = receiver
        self._seen = seen
        self._kept: list[Event] = []
        self._run: Run | None = None
        self._failure: SmgError | None = None

    @property
    def ignored(self) -> tuple[str, ...]:
        """Parameters without effect."""
        return () if self._run is None else self._run.ignored

    async def tell(self, run: Run) -> None:
        """Have a run tell its answer to its end. SmgError if it failed, told or not."""
        self._run, receiver = run, self._receiver
        if receiver.whole:
            self.answer = await run.answer()
            self.said = self.ended = True
            return
        through = receiver.through if self._seen else None
        await run.tell(self._hear, receiver.ready, through)
        if self._failure is not None:
            raise self._failure

    def _hear(self, batch: Sequence[Event]) -> bool | None:
        last = batch[-1]
        if isinstance(last, Fail):
            self._failure = last.error
            if not self.said:
                # Another one may answer instead.
                return False
        over = isinstance(last, Fail | End)
        if not (self._seen or over):
            self._kept += batch
            return False
        self.said, self.ended = True, over
        if self._kept:
            kept, self._kept = self._kept, []
            batch = [*kept, *batch]
        return self._receiver.receive(batch)
