"""The whole story of a generation, in order: model, prompt, worker, engine, events.

One generation is one or more *legs*, each one engine call: a prompt with all its answers where the
engine can do several, else one answer each. Legs run side by side and are told as one stream; what becomes of
one whose call breaks is decided in `legs`.

Whoever awaits a generation owns it. When it is cancelled (a lost client, a deadline), or its receiver raises, the
engine's calls are cancelled and the slots are free before that is over. A stop string that only
this node matched cancels the engine's call too; when the engine is about to end by itself it is given
a moment to do so, because cancelling costs it more.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from smg_node.admission.door import Admission
from smg_node.admission.ticket import Ticket
from smg_node.core.answer import Answer, Collector
from smg_node.core.around import Through
from smg_node.core.context import RequestContext
from smg_node.core.errors import SmgError, invalid
from smg_node.core.events import Event, Fail, Usage
from smg_node.core.ids import IdSource
from smg_node.core.journey import Journey
from smg_node.core.outcome import Outcome, OutcomeKind
from smg_node.core.ports import Clock, Rng
from smg_node.core.request import GenerateRequest
from smg_node.fleet.model import ServedModel
from smg_node.pipeline.attempts import Attempts
from smg_node.pipeline.forcing import Keeping
from smg_node.pipeline.hold import Hold
from smg_node.pipeline.journal import Journal
from smg_node.pipeline.legs import Ground, LegRun, Progress
from smg_node.pipeline.merge import side_by_side
from smg_node.pipeline.metering import MeteredTelling, reserve, settle
from smg_node.pipeline.place import Placer, Wish
from smg_node.pipeline.plan import plan
from smg_node.pipeline.prepare import Prepared, Preparer
from smg_node.pipeline.pulling import pulled
from smg_node.pipeline.story import Story
from smg_node.pipeline.telling import (
    NOBODY_LISTENS,
    CutShortError,
    Ready,
    Receive,
    ReceiverError,
    Telling,
)
from smg_node.routing.keys import KEY_BYTES_MAX
from smg_node.routing.retry import RetryBudget, RetryBudgets
from smg_node.telemetry import scope

_log = logging.getLogger(__name__)

_NOTHING_USED: Final = Usage(0, 0, 0)
_WELL: Final[tuple[OutcomeKind, str, int]] = ("ok", "", 200)
_NO_ODDITIES: Final[Mapping[str, int]] = {}
LEGS_AT_ONCE: Final = 16
"""Engine calls of one request at a time; a request may have 128 and must not take the fleet alone."""


@dataclass(frozen=True, slots=True)
class GenerationParts:
    """What every generation needs; built once."""

    placer: Placer
    preparer: Preparer
    ids: IdSource
    clock: Clock
    rng: Rng
    retries: RetryBudgets
    journal: Journal
    on_outcome: Callable[[Outcome], None]
    admission: Admission | None = None
    """None where there are no limits."""


class Generator:
    """Starts generations."""

    def __init__(self, parts: GenerationParts) -> None:
        self._parts = parts

    def start(
        self, dialect: str, request: GenerateRequest, context: RequestContext
    ) -> "GenerationRun":
        """Return a run that has not begun."""
        return GenerationRun(self._parts, dialect, request, context)


class GenerationRun:
    """One generation; see `pipeline.run.Run`."""

    ticket: Ticket | None = None
    """What it showed when it entered."""

    # What it comes to on its way.
    _budget: RetryBudget
    _model = ""
    _served: ServedModel | None = None
    _hold: Hold | None = None
    _story: Story | None = None
    _keeping: Keeping | None = None
    _failure: SmgError | None = None
    _silent = False

    def __init__(
        self,
        parts: GenerationParts,
        dialect: str,
        request: GenerateRequest,
        context: RequestContext,
    ) -> None:
        self.ignored = request.ignored
        self._parts = parts
        self._dialect = dialect
        self._request = request
        self._context = context
        self._progress = Progress()

    @property
    def worker(self) -> str:
        """Id of the worker in use, "" until one was chosen."""
        return self._progress.worker

    @property
    def attempts(self) -> int:
        """Engine calls, of the leg that took the most."""
        return self._progress.attempts

    async def enter(self) -> None:
        """Find its model and be let in, before anybody reads; what refuses it is raised, and counted as its end."""
        parts = self._parts
        try:
            await self._let_in()
        except SmgError as error:
            self._failure = error
            self.leave()
            journey = parts.journal.begin(
                self._context.request_id, self._dialect, self._request.model, parts.clock.now_ms()
            )
            journey.model = self._model
            self._report(journey)
            raise

    def leave(self) -> None:
        """Give back what entering took, if nobody has read the events."""
        if self.ticket is not None:
            self.ticket.void()

    def events(self) -> AsyncGenerator[Sequence[Event], None]:
        """Yield the events of this generation; never raises SmgError."""
        return pulled(self.tell)

    async def answer(self) -> Answer:
        """Return the whole answer; see `pipeline.run.Run`."""
        self._silent = True
        heard: list[Event] = []
        await self.tell(heard.extend)
        story = self._story
        if story is not None and story.silent and story.closed and self._failure is None:
            return story.answer()
        collector = Collector(self._request.choices)
        collector.feed(heard)
        return collector.answer()

    async def tell(
        self, receive: Receive, ready: Ready | None = None, through: Through | None = None
    ) -> None:
        """Tell the events of this generation; see `pipeline.run.Run`."""
        parts, request, context = self._parts, self._request, self._context
        began_ms = context.received_ms or parts.clock.now_ms()
        journey = parts.journal.begin(context.request_id, self._dialect, request.model, began_ms)
        try:
            if scope.current().trace.sampled:
                with scope.child("prepare"):
                    legs = await self._legs(journey, receive, ready, through, traced=True)
            else:
                legs = await self._legs(journey, receive, ready, through)
            try:
                if len(legs) == 1:
                    # From here on it is the leg's.
                    self._hold = None
                    await legs[0].tell()
                else:
                    await side_by_side([leg.tell for leg in legs], at_once=LEGS_AT_ONCE)
            except CutShortError:
                # The answers are over, whatever the engines would still have said.
                pass
            story = self._story
            assert story is not None, "who has legs has a story"
            if story.silent:
                story.close()
            else:
                ending: list[Event] = []
                story.end(ending)
                receive(ending)
        except ReceiverError as why:
            raise why.error from why.error.__cause__
        except SmgError as error:
            if self._story is not None and self._story.closed:
                # The receiver's own, at the end of everything.
                raise
            self._failure = error
            receive(self._failed(error))
        finally:
            if self._hold is not None:
                self._hold.release(parts.clock.monotonic_s())
            if self.ticket is not None:
                settle(self.ticket, self._story, self._failure)
            self._report(journey)

    # ── The beginning ────────────────────────────────────────────────────────

    async def _legs(
        self,
        journey: Journey,
        receive: Receive,
        ready: Ready | None,
        through: Through | None,
        *,
        traced: bool = False,
    ) -> Sequence[LegRun]:
        """Let the request in, prepare and place it; return who tells its story, of whom the first has a worker."""
        parts, request = self._parts, self._request
        model = self._served or await self._let_in()
        journey.model = model.name
        ticket, preparer = self.ticket, parts.preparer
        prepared = preparer.soon(request, model) or await preparer.prepared(request, model)
        wait = None if ticket is None else reserve(ticket, request, prepared, model, parts.placer)
        if wait is not None:
            await wait
        wish = self._wish(prepared[0], journey)
        self._hold = hold = await parts.placer.hold(model, wish)
        self._progress.worker, self._progress.attempts = hold.worker.id, 1
        planned = plan(
            request,
            prepared,
            model,
            hold,
            generation_id=self._context.token or parts.ids.new(""),
            created_s=journey.began_ms // 1000,
            new_id=self._new_call_id,
            # Who may need more rights than he has is looked at as it goes.
            silent=self._silent and (ticket is None or not ticket.watched),
        )
        self._story, self._keeping = story, keeping = planned.story, planned.keeping
        if planned.ignored:
            self.ignored = (*self.ignored, *planned.ignored)
        journey.answer = story.id
        if ticket is not None and ticket.watched:
            telling: Telling = MeteredTelling(receive, ready, keeping, through, ticket, story)
        else:
            telling = NOBODY_LISTENS if story.silent else Telling(receive, ready, keeping, through)
        ground = Ground(
            parts.placer,
            parts.ids,
            parts.clock,
            parts.rng,
            self._context,
            model,
            hold,
            story,
            wish,
            self._progress,
            journey,
            telling,
            traced,
        )
        options, budget, legs = parts.retries.options, self._budget, planned.legs
        first = LegRun(ground, legs[0], Attempts(options, budget), hold=hold)
        if len(legs) == 1:
            return (first,)
        return [first, *[LegRun(ground, leg, Attempts(options, budget)) for leg in legs[1:]]]

    async def _let_in(self) -> ServedModel:
        """Find the model, and be let in."""
        parts, context = self._parts, self._context
        placer, wanted = parts.placer, self._request.model
        model = placer.ready_model(wanted)
        if model is None:
            model = await placer.model(wanted, deadline_s=context.deadline_s)
        self._model = name = model.name
        self._budget = budget = parts.retries.of(name)
        budget.asked(parts.clock.monotonic_s())
        if parts.admission is not None:
            self.ticket = ticket = parts.admission.ticket(context, name)
            if ticket is not None and not ticket.enters():
                await ticket.enter()
        self._served = model
        return model

    def _wish(self, first: Prepared, journey: Journey) -> Wish:
        context, request = self._context, self._request
        target = context.target_worker
        return Wish(
            context.deadline_s,
            first.ids,
            first.text,
            None,
            checked_key(request.routing_key) if request.routing_key else "",
            context.caller,
            context.client,
            request.sampling.adapter or "",
            context.priority,
            target,
            why="first" if target is None else "target",
            journey=journey,
        )

    def _new_call_id(self, _name: str, _ordinal: int) -> str:
        return f"call_{self._parts.rng.getrandbits(96):024x}"

    # ── The end ──────────────────────────────────────────────────────────────

    def _failed(self, error: SmgError) -> list[Event]:
        out: list[Event] = []
        if self._story is None:
            out.append(Fail(error))
        else:
            self._story.fail(error, out)
        return out

    def _report(self, journey: Journey) -> None:
        story, parts, progress = self._story, self._parts, self._progress
        context, ended_ms = self._context, parts.clock.now_ms()
        usage = _NOTHING_USED if story is None else story.used or story.usage()
        kind, code, status = _WELL
        if self._failure is not None or story is None or not story.closed:
            kind, code, status = self._verdict()
        outcome = Outcome(
            dialect=self._dialect,
            model=self._model,
            worker=progress.worker,
            kind=kind,
            error_code=code,
            status=status,
            streamed=self._request.stream,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
            tenant=context.tenant,
            key_id=context.key_id,
            received_s=context.received_s,
            first_token_s=progress.first_token_s,
            ended_s=parts.clock.monotonic_s(),
            attempts=progress.attempts,
            continuations=progress.continuations,
            oddities=_NO_ODDITIES if story is None or story.silent else self._oddities(story),
            ended_ms=ended_ms,
        )
        parts.journal.end(journey, outcome, ended_ms)
        parts.on_outcome(outcome)

    def _oddities(self, story: Story) -> Mapping[str, int]:
        notes = story.notes()
        if self._keeping is not None:
            notes = {**notes, **self._keeping.notes}
        if not notes:
            return notes
        model = self._served
        for what in notes:
            if model is not None and model.printing.first(what):
                _log.warning(
                    "an answer of model %r was not as expected (%s): thoughts are read as %s, calls as %s,"
                    " template %s; further ones are counted only",
                    model.name,
                    what,
                    model.printing.chosen.reasoning,
                    model.printing.chosen.tools,
                    model.renderer.template.digest[:12] if model.renderer is not None else "none",
                )
        return notes

    def _verdict(self) -> tuple[OutcomeKind, str, int]:
        """Return what became of a generation that did not end well."""
        if self._failure is not None:
            kind: OutcomeKind = "refused" if self._failure.status < 500 else "failed"
            return kind, self._failure.code, self._failure.status
        return "client_gone", "client_gone", 499


def checked_key(key: str | None) -> str:
    """Return a request's routing key, "" for none; INVALID_REQUEST for one that is too long to be one."""
    if not key:
        return ""
    size_bytes = len(key.encode("utf-8", "surrogatepass"))
    if size_bytes > KEY_BYTES_MAX:
        raise invalid(
            f"the routing key has {size_bytes} bytes; at most {KEY_BYTES_MAX} are allowed",
            code="routing_key_too_long",
        )
    return key
