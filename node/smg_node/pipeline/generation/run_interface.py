"""What a running generation is to those who start and read one."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from smg_node.admission.ticket import Ticket
from smg_node.core.generation.answer import Answer, Collector
from smg_node.core.generation.byte_sink import ByteSink
from smg_node.core.generation.events import Event
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.request_context import RequestContext
from smg_node.pipeline.generation.event_sink import Ready, Receive


class Run(Protocol):
    """One generation under way.

    It is told once, or read once, or answers once. `tell` calls its receiver with what each wake-up brought, at least one event, in
    the order of `core.grammar`, and within that wake-up; where the receiver says true, `ready` is awaited before
    anything more is asked for. A failure is a Fail event, also before Begin, and no SmgError but the receiver's own
    is ever raised. Cancelling the task that tells, or what the receiver raises, cancels the engine's calls at once
    and frees the slot. `events()` is the same for who would rather ask; closing the iterator is how it is ended.
    `worker` is the id of the worker in use, "" until one was chosen; `attempts` counts engine calls per answer at
    most; `ticket` tells of the limits it met, if any; `ignored` names the parameters without effect, complete from
    the first event on.
    """

    @property
    def ignored(self) -> tuple[str, ...]:
        """Parameters without effect."""
        ...

    @property
    def worker(self) -> str:
        """Id of the worker in use."""
        ...

    @property
    def attempts(self) -> int:
        """Engine calls, of the leg that took the most."""
        ...

    async def enter(self) -> None:
        """Find its model and be let in, before anybody reads; the errors of its beginning are raised here then.

        Who is in and never reads has to `leave`.
        """
        ...

    def leave(self) -> None:
        """Give back what entering took, unless it is settled: harmless at any time after the events are closed."""
        ...

    @property
    def ticket(self) -> Ticket | None:
        """What it showed when it entered, None if nothing limits it or it has not begun."""
        ...

    async def tell(
        self, receive: Receive, ready: Ready | None = None, through: ByteSink | None = None
    ) -> None:
        """Tell the events of this generation, and return when there are no more.

        Where there is a `through`, plain texts that need no events may be told to it in bytes.
        """
        ...

    async def answer(self) -> Answer:
        """Return the whole answer, which nobody is told before; raises what the generation failed with."""
        ...

    def events(self) -> AsyncIterator[Sequence[Event]]:
        """Yield the events of this generation."""
        ...


async def collected(run: Run, choices: int) -> Answer:
    """Return the whole answer of a run that can only tell; see `Run.answer`."""
    collector = Collector(choices)
    await run.tell(collector.feed)
    return collector.answer()


class Generations(Protocol):
    """Starts generations."""

    def start(self, dialect: str, request: GenerateRequest, context: RequestContext) -> Run:
        """Return a run that has not begun; nothing happens before its events are read."""
        ...
