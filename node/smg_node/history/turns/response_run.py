"""Response run: one response from generation to commit; its terminal event comes after that.

    generation  →  presenter  →  batches of events  →  the reader
                      └─ at the end: commit, then the terminal event

The reader owns it, as with a generation: there is no task behind it. When the reader stops (a lost
client, a node that shuts down), the generation is cancelled, and what was finished is kept.
Listeners may receive the events too, or read the object as it is at this moment.

`told` is all of that. A response that outlives its reader is made by `runs/background_run`, in the
same steps: `open`, `generated`, `close`.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Begin, Event
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.ports import Clock
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.context.history_loading import LoadedHistory
from smg_node.history.errors import failure_of
from smg_node.history.ports import Keeper
from smg_node.history.turns.answer_presenter import AnswerPresenter
from smg_node.history.turns.response_reservation import ResponseReservation
from smg_node.history.turns.turn_record import turn_of
from smg_node.pipeline.generation.run_interface import Run
from smg_storage.errors import StoreError
from smg_storage.records import Access, Turn

if TYPE_CHECKING:
    from smg_node.history.context.logged_calls import LoggedCalls

_log = logging.getLogger("smg_node.history")

Listener = Callable[[Sequence[NumberedEvent]], None]


@dataclass(slots=True, eq=False, kw_only=True)
class ResponseRun:
    """One response in progress; `told` is read once, to its end or until its reader stops."""

    id: str
    access: Access
    hydrated: LoadedHistory
    teller: AnswerPresenter
    generation: Run
    wish: GenerateRequest
    keeper: Keeper
    clock: Clock
    created_us: int
    kept_us: int
    known: int
    """How many items there were before any were left out."""
    used: int
    """How many of them the model is shown."""
    stores: bool
    """Whether it is kept when it is over; deleting it meanwhile takes that back."""
    why_cut: Callable[[], SmgError | None] = lambda: None
    """Says why the node itself ends it, if it does."""
    live: dict[tuple[str, str], "ResponseRun"] = field(default_factory=dict)
    """Those under way that are going to be kept, by tenant and id; it is in there as long as it is one."""
    listeners: list[Listener] = field(default_factory=list)
    """Told of every batch before the reader is."""
    prompt_tokens: int = 0
    """The length of its prompt, once the generation has begun."""
    failure: SmgError | None = None
    """What it failed with, as soon as that is told."""
    over: bool = False
    """Whether the terminal event was told."""
    spooled: bool = False
    """Whether it waits on this node's disk for its store."""
    token: int = 0
    """That of the lease under which it is made, if there is one."""
    entry: ResponseReservation = field(default_factory=ResponseReservation)
    """What it took before it began."""
    conversation_kept_us: int = 0
    """For how long its conversation is kept from now on; 0 is for ever."""
    _begun: bool = False
    _published: bool = False
    _closed: bool = False
    _pending: Turn | None = None
    _turn: Turn | None = None
    _closing: list[NumberedEvent] = field(default_factory=list)

    async def told(self) -> AsyncGenerator[Sequence[NumberedEvent], None]:
        """Yield events as they come, the terminal one last, after the response was kept; never raises SmgError."""
        key = (self.access.tenant, self.id)
        if self.stores:
            self.live[key] = self
        try:
            async with aclosing(self.generated()) as batches:
                async for told in batches:
                    if told:
                        yield told
            await self._finish(self.outcome)
            yield self._closing
        except BaseException as stop:
            # Whatever stops it, its reader, the node or a mistake of ours, must not cost what was finished.
            if not self.over:
                await self._finish(self._stopped_by(stop))
            raise
        finally:
            self.live.pop(key, None)

    @property
    def complete(self) -> bool:
        """Whether its history is not longer than what was read."""
        return self.hydrated.complete

    @property
    def has_output(self) -> bool:
        """Whether anything of its answer is finished."""
        return bool(self.teller.output())

    @property
    def calls(self) -> "LoggedCalls | None":
        """The gate of its runs of tools; None where there are none."""
        serving = self.wish.serving
        # It was made when its history was loaded.
        return None if serving is None else cast("LoggedCalls | None", serving.gate)

    def body(self) -> bytes:
        """Return the whole response object as it is now."""
        return self.teller.response()

    @property
    def last_words(self) -> Sequence[NumberedEvent]:
        """The events that ended it, for a reader that was stopped before it got them."""
        return self._closing

    # ── Step by step ─────────────────────────────────────────────────────────

    def open(self) -> list[NumberedEvent]:
        """Return the first events of a response that is queued: `generated` continues from there."""
        assert not self._begun, "what has begun does not wait"
        self._published = True
        return self.teller.queue()

    @property
    def outcome(self) -> FinalStatus:
        """Final status, once the generation is over."""
        return self.teller.outcome or _nothing_said()

    async def generated(self) -> AsyncGenerator[Sequence[NumberedEvent], None]:
        """Yield the events of the generation, without those that end it."""
        self.entry.start()
        calls = self.calls
        async with aclosing(events_of(self.generation)) as batches:
            async for events in batches:
                self._look_at(events)
                told = [] if self._begun else self.teller.begin()
                self._begun = True
                told.extend(self.teller.tell(events))
                outcome = self.teller.outcome
                if outcome is not None and outcome.status == "failed":
                    # Its reader may still answer with the failure itself: nothing is told before that is clear.
                    self._closing = told
                    return
                self._tell(told)
                self._published = self._published or bool(told)
                yield told
                if calls is not None:
                    calls.heard(events)

    def _look_at(self, events: Sequence[Event]) -> None:
        first = events[0]
        if type(first) is Begin:
            self.prompt_tokens = first.prompt_tokens
            self.teller.drawn_with(first)
        self.entry.watch(events)

    def _tell(self, told: Sequence[NumberedEvent]) -> None:
        for listener in self.listeners:
            listener(told)

    # ── The end ──────────────────────────────────────────────────────────────

    def _stopped_by(self, stop: BaseException) -> FinalStatus:
        cut = self.why_cut()
        if cut is not None:
            return FinalStatus.failed(cut)
        gone = isinstance(stop, asyncio.CancelledError | GeneratorExit)
        return FinalStatus.cancelled() if gone else _nothing_said()

    async def _finish(self, outcome: FinalStatus) -> None:
        """Commit the turn and prepare the last events; a response that cannot be stored has failed.

        May be called again after an interruption: a commit under way is then done again, which is
        harmless.
        """
        if not self._closed:
            self.close(outcome)
        if self._pending is not None:
            failed = await self._keep(self._pending)
            self._pending = None
            if failed is not None:
                self.fail_instead(failed)
            self._turn = None if failed is not None or not self.stores else self._turn
        await self.entry.over(self._turn)
        self.over = True
        self._tell(self._closing)

    def fail_instead(self, failure: SmgError) -> None:
        """Make it fail, whatever its outcome was: no reader has seen the terminal event yet."""
        self.failure = failure
        ended = FinalStatus.failed(failure).at(self.clock.now_ms() // 1000)
        self._closing[-1] = self.teller.instead(ended)

    def close(self, outcome: FinalStatus) -> Turn | None:
        """Prepare the last events; return the turn to be stored, None if no client can ask for it
        later.
        """
        assert not self._closed, "it ends once"
        ended = outcome.at(self.clock.now_ms() // 1000)
        self._closed = True
        self.entry.ended(ended)
        self.failure = ended.error
        if not self._begun:
            self._closing.extend(self.teller.begin())
        self._closing.extend(self.teller.close(ended))
        if self._worth_keeping(ended):
            self._pending = turn_of(
                self.hydrated,
                response_id=self.id,
                ended=ended,
                response=self.teller.response(),
                output=self.teller.output(),
                created_us=self.created_us,
                completed_us=self.clock.now_ms() * 1000,
                kept_us=self.kept_us,
                token=self.token,
                idempotency=self.entry.key_for(ended),
                conversation_kept_us=self.conversation_kept_us,
            )
        self._turn = self._pending
        return self._pending

    def _worth_keeping(self, ended: FinalStatus) -> bool:
        """Whether a client can ask for it later: one that got an error, or never saw the id,
        cannot.
        """
        if not self.stores or not self._published:
            return False
        background = self.hydrated.ask.background
        return background or ended.status != "failed" or bool(self.teller.output())

    async def _keep(self, turn: Turn) -> SmgError | None:
        """Commit; return why that was not possible, None if it was."""
        try:
            kept = await self.keeper.commit(self.access, turn)
        except StoreError as error:
            _log.warning("a response was not kept: %s: %s", self.id, error.message)
            return failure_of(error)
        self.spooled = kept.spooled
        if not self.stores:
            await self._take_back()
        return None

    async def _take_back(self) -> None:
        """Delete it: it was deleted by a client while its commit was under way."""
        try:
            await self.keeper.store.delete_response(self.access, self.id)
        except StoreError as error:
            _log.warning("a deleted response is back: %s: %s", self.id, error.message)


def events_of(generation: Run) -> AsyncGenerator[Sequence[Event], None]:
    """Return the events of a generation as an async generator, which can be closed."""
    events = generation.events()
    assert isinstance(events, AsyncGenerator), "events of a run can be closed"
    return events


def _nothing_said() -> FinalStatus:
    return FinalStatus.failed(SmgError(ErrorKind.INTERNAL, "the generation ended without an end"))
