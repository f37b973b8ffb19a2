"""Run interface: protocols of a generation in progress and of its factory."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from smg_node.admission.ticket import Ticket
from smg_node.core.generation.answer import Answer, Collector
from smg_node.core.generation.byte_sink import ByteSink
from smg_node.core.generation.events import Event
from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.core.request_context import RequestContext
from smg_node.pipeline.generation.event_sink import Ready, Receive

if TYPE_CHECKING:
    # Loaded with the first request that names tools of this node.
    from smg_node.core.generation.tool_serving import ToolServing

ShownPrompt: TypeAlias = Callable[
    [str, ChatPrompt, "ToolServing", RequestContext, str], Awaitable[ChatPrompt]
]
"""Of the name of an API's dialect, a prompt with what it asks of tools, and a model: the prompt that it would be shown."""


class Run(Protocol):
    """One generation in progress.

    Exactly one of `tell`, `events` and `answer` is used, once. `tell` calls its receiver with the
    events of each wake-up, at least one, in the order of `core/generation/event_grammar`, and
    within that wake-up; where the receiver says true, `ready` is awaited before anything more is
    asked for. A failure is a Fail event, also before Begin, and no SmgError but the receiver's own
    is ever raised. Cancelling the task in `tell`, or an error of the receiver, cancels the engine's
    calls at once and frees the slot. `events()` is the same for readers that pull; closing the
    iterator ends it. `worker` is the id of the worker in use, "" until one was chosen; `attempts`
    counts engine calls per answer at most; `ticket` has the limits it met, if any; `ignored` names
    the parameters without effect, complete from the first event on.
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
        """Engine calls of the leg that took the most."""
        ...

    async def enter(self) -> None:
        """Find the model and pass admission, before events are read; the errors of that are raised
        here then.

        A caller that entered and never reads has to `leave`.
        """
        ...

    def leave(self) -> None:
        """Give back what `enter` reserved, unless it is settled: harmless at any time after the
        events are closed.
        """
        ...

    @property
    def ticket(self) -> Ticket | None:
        """Admission ticket, None if no limit applies or it has not begun."""
        ...

    async def tell(
        self, receive: Receive, ready: Ready | None = None, through: ByteSink | None = None
    ) -> None:
        """Send the events of this generation, and return when there are no more.

        With `through`, plain texts that need no events may be sent to it as bytes.
        """
        ...

    async def answer(self) -> Answer:
        """Return the whole answer, without events; raises the generation's error."""
        ...

    def events(self) -> AsyncIterator[Sequence[Event]]:
        """Yield the events of this generation."""
        ...


async def collected(run: Run, choices: int) -> Answer:
    """Return the whole answer of a run that only has `tell`; see `Run.answer`."""
    collector = Collector(choices)
    await run.tell(collector.feed)
    return collector.answer()


class Generations(Protocol):
    """Starts generations."""

    def start(self, dialect: str, request: GenerateRequest, context: RequestContext) -> Run:
        """Return a run that has not begun; nothing happens before its events are read."""
        ...
