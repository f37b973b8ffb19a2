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
from smg_node.pipeline.plan import Plan, plan
from smg_node.pipeline.prepare import Prepared, Preparer
from smg_node.pipeline.pulling import pulled
from smg_node.pipeline.story import Story
from smg_node.pipeline.telling import CutShortError, Ready, Receive, ReceiverError, Telling
from smg_node.routing.keys import KEY_BYTES_MAX
from smg_node.routing.retry import RetryBudgets
from smg_node.telemetry import scope

_log = logging.getLogger(__name__)

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

    __slots__ = (
        "_context",
        "_dialect",
        "_failure",
        "_keeping",
        "_model",
        "_parts",
        "_progress",
        "_request",
        "_served",
        "_story",
        "ignored",
        "ticket",
    )

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
        self.ticket: Ticket | None = None
        self._served: ServedModel | None = None
        self._model = ""
        self._progress = Progress()
        self._story: Story | None = None
        self._keeping: Keeping | None = None
        self._failure: SmgError | None = None

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
            model = await self._find_model()
            await self._admit(model)
            self._served = model
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

    async def tell(self, receive: Receive, ready: Ready | None = None) -> None:
        """Tell the events of this generation; see `pipeline.run.Run`."""
        parts, request = self._parts, self._request
        journey = parts.journal.begin(
            self._context.request_id, self._dialect, request.model, parts.clock.now_ms()
        )
        hold: Hold | None = None
        try:
            with scope.child("prepare"):
                model = self._served or await self._find_model()
                journey.model = model.name
                if self._served is None:
                    await self._admit(model)
                    self._served = model
                ticket = self.ticket
                await parts.preparer.constraints(request, model.printing)
                prepared = await parts.preparer.prompts(request, model)
                if ticket is not None:
                    await reserve(ticket, request, prepared, model, parts.placer)
                wish = self._wish(prepared, journey)
                hold = await parts.placer.hold(model, wish)
                self._progress.worker, self._progress.attempts = hold.worker.id, 1
                planned = self._planned(prepared, model, hold, journey)
                telling = self._telling(planned, receive, ready)
                legs = self._legs(planned, model, hold, wish, journey, telling)
            await self._told(legs)
            ending: list[Event] = []
            planned.story.end(ending)
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
            if hold is not None:
                hold.release(parts.clock.monotonic_s())
            if self.ticket is not None:
                settle(self.ticket, self._story, self._failure)
            self._report(journey)

    async def _told(self, legs: Sequence[LegRun]) -> None:
        try:
            if len(legs) == 1:
                await legs[0].tell()
            else:
                await side_by_side([leg.tell for leg in legs], at_once=LEGS_AT_ONCE)
        except CutShortError:
            # The answers are over, whatever the engines would still have said.
            return

    # ── The beginning ────────────────────────────────────────────────────────

    async def _find_model(self) -> ServedModel:
        parts = self._parts
        model = await parts.placer.model(self._request.model, deadline_s=self._context.deadline_s)
        self._model = model.name
        parts.retries.of(model.name).asked(parts.clock.monotonic_s())
        return model

    async def _admit(self, model: ServedModel) -> None:
        admission = self._parts.admission
        if admission is not None:
            self.ticket = ticket = admission.ticket(self._context, model.name)
            if ticket is not None:
                await ticket.enter()

    def _wish(self, prepared: Sequence[Prepared], journey: Journey) -> Wish:
        context, first = self._context, prepared[0]
        target = context.target_worker
        return Wish(
            deadline_s=context.deadline_s,
            ids=first.ids,
            text=first.text,
            key=checked_key(self._request.routing_key),
            caller=context.caller,
            client=context.client,
            adapter=self._request.sampling.adapter or "",
            priority=context.priority,
            target=target,
            why="first" if target is None else "target",
            journey=journey,
        )

    def _planned(
        self, prepared: Sequence[Prepared], model: ServedModel, hold: Hold, journey: Journey
    ) -> Plan:
        parts = self._parts
        planned = plan(
            self._request,
            prepared,
            model,
            hold,
            generation_id=parts.ids.new(""),
            created_s=parts.clock.now_ms() // 1000,
            new_id=self._new_call_id,
        )
        self._story, self._keeping = planned.story, planned.keeping
        if planned.ignored:
            self.ignored = (*self.ignored, *planned.ignored)
        journey.answer = planned.story.id
        return planned

    def _new_call_id(self, _name: str, _ordinal: int) -> str:
        return f"call_{self._parts.rng.getrandbits(96):024x}"

    def _telling(self, planned: Plan, receive: Receive, ready: Ready | None) -> Telling:
        ticket, keeping = self.ticket, planned.keeping
        if ticket is None or not ticket.metered:
            return Telling(receive, ready, keeping)
        return MeteredTelling(receive, ready, keeping, ticket=ticket, story=planned.story)

    def _legs(
        self,
        planned: Plan,
        model: ServedModel,
        hold: Hold,
        wish: Wish,
        journey: Journey,
        telling: Telling,
    ) -> list[LegRun]:
        """Return who tells the story; the first leg has a worker already."""
        parts = self._parts
        ground = Ground(
            parts.placer,
            parts.ids,
            parts.clock,
            parts.rng,
            self._context,
            model,
            hold,
            planned.story,
            wish,
            self._progress,
            journey,
            telling,
        )
        retries = parts.retries
        options, budget = retries.options, retries.of(model.name)
        first, *others = planned.legs
        return [
            LegRun(ground, first, Attempts(options, budget), hold=hold),
            *(LegRun(ground, leg, Attempts(options, budget)) for leg in others),
        ]

    # ── The end ──────────────────────────────────────────────────────────────

    def _failed(self, error: SmgError) -> list[Event]:
        out: list[Event] = []
        if self._story is None:
            out.append(Fail(error))
        else:
            self._story.fail(error, out)
        return out

    def _report(self, journey: Journey) -> None:
        usage = self._story.usage() if self._story is not None else Usage(0, 0, 0)
        kind, code, status = self._verdict()
        clock, progress = self._parts.clock, self._progress
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
            tenant=self._context.tenant,
            key_id=self._context.key_id,
            received_s=self._context.received_s,
            first_token_s=progress.first_token_s,
            ended_s=clock.monotonic_s(),
            attempts=progress.attempts,
            continuations=progress.continuations,
            oddities=self._oddities(),
        )
        self._parts.journal.end(journey, outcome, clock.now_ms())
        self._parts.on_outcome(outcome)

    def _oddities(self) -> Mapping[str, int]:
        notes = self._story.notes() if self._story is not None else {}
        if self._keeping is not None:
            notes = {**notes, **self._keeping.notes}
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
        if self._failure is not None:
            kind: OutcomeKind = "refused" if self._failure.status < 500 else "failed"
            return kind, self._failure.code, self._failure.status
        if self._story is not None and self._story.closed:
            return "ok", "", 200
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
