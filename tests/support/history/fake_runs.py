"""Generations that follow a script, and remember how they were read."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from smg_node.admission.ticket import Ticket
from smg_node.core.generation.answer import Answer
from smg_node.core.generation.byte_sink import ByteSink
from smg_node.core.generation.events import Event
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.request_context import RequestContext
from smg_node.pipeline.generation.event_sink import Ready, Receive
from smg_node.pipeline.generation.run_interface import collected

Script = Callable[["FakeRun"], AsyncIterator[Sequence[Event]]]


@dataclass(eq=False)
class FakeRun:
    """A run that follows a script and remembers how it ended."""

    script: Script
    dialect: str
    request: GenerateRequest
    context: RequestContext
    worker: str = "w-1"
    attempts: int = 1
    ignored: tuple[str, ...] = ()
    ticket: Ticket | None = None
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    pulled: int = 0
    finished: bool = False
    entered: int = 0
    left: int = 0

    async def enter(self) -> None:
        self.entered += 1

    def leave(self) -> None:
        self.left += 1

    async def tell(
        self, receive: Receive, ready: Ready | None = None, _through: ByteSink | None = None
    ) -> None:
        async with aclosing(self.events()) as batches:
            async for batch in batches:
                if receive(batch) and ready is not None:
                    await ready()

    async def answer(self) -> Answer:
        return await collected(self, self.request.choices)

    async def events(self) -> AsyncGenerator[Sequence[Event], None]:
        try:
            async for batch in self.script(self):
                self.pulled += 1
                yield batch
            # Reached only if the reader lets the run come to its own end.
            self.finished = True
        finally:
            self.closed.set()


class FakeGenerations:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.runs: list[FakeRun] = []
        self.started = asyncio.Event()

    def start(self, dialect: str, request: GenerateRequest, context: RequestContext) -> FakeRun:
        run = FakeRun(self.script, dialect, request, context, ignored=request.ignored)
        self.runs.append(run)
        self.started.set()
        return run
