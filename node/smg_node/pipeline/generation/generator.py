"""Generator: runs a generation in order: model, admission, prompt, worker, engine calls, events.

One generation is one or more *legs*, each one engine call: a prompt with all its answers where the
engine can do several, else one answer each. Legs run in parallel and give one stream of events;
`leg_runner` decides what becomes of one whose call breaks.

The task that awaits a generation owns it. When it is cancelled (a lost client, a deadline), or its
receiver raises, the engine's calls are cancelled and the slots are free before that is over. A stop
string that only this node matched cancels the engine's call too; when the engine is about to end by
itself it is given a moment to do so, because cancelling costs it more.
"""

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from smg_node.admission.ticket import Ticket
from smg_node.core.errors import SmgError
from smg_node.core.generation.answer import Answer, Collector
from smg_node.core.generation.byte_sink import ByteSink
from smg_node.core.generation.events import Event, Fail, Usage
from smg_node.core.generation.outcome import Outcome, OutcomeKind
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.journey import Journey
from smg_node.core.ports import Rng
from smg_node.core.request_context import RequestContext
from smg_node.fleet.models.served_model import ServedModel
from smg_node.pipeline.generation.call_plan import Leg, Plan, plan
from smg_node.pipeline.generation.engine_call import Call
from smg_node.pipeline.generation.event_iterator import pulled
from smg_node.pipeline.generation.event_sink import (
    ENDED,
    CutShortError,
    EventSink,
    Ready,
    Receive,
    ReceiverError,
)
from smg_node.pipeline.generation.first_placement import checked_key, first_placement
from smg_node.pipeline.generation.generation_context import GenerationContext, GenerationParts
from smg_node.pipeline.generation.leg_runner import LegRun
from smg_node.pipeline.generation.limit_metering import MeteredEventSink, reserve, settle
from smg_node.pipeline.generation.parallel_calls import side_by_side
from smg_node.pipeline.placement.placer import PlacementRequest
from smg_node.pipeline.reservation import Reservation
from smg_node.pipeline.retry import Attempts
from smg_node.pipeline.stream.call_constraint import ConstraintCheck
from smg_node.pipeline.stream.generation_stream import GenerationStream
from smg_node.telemetry.traces import request_scope as scope

if TYPE_CHECKING:
    # Loaded with the first picture.
    from smg_node.pipeline.media.prompt_media import PromptMedia
    from smg_node.pipeline.prompt.preparation import Prepared

__all__ = ["GenerationParts", "GenerationRun", "Generator", "checked_key"]

_log = logging.getLogger("smg_node.pipeline")

_NOTHING_USED: Final = Usage(0, 0, 0)
_NO_ODDITIES: Final[Mapping[str, int]] = {}
SCORED: Final = "completions"
"""The dialect that scorers use: of its answers they count the rows."""
LEGS_AT_ONCE: Final = 16
"""Engine calls of one request at a time; a request may have 128 and must not take the fleet alone."""


class Generator:
    """Starts generations."""

    def __init__(self, parts: GenerationParts) -> None:
        self._parts = parts

    def start(
        self, dialect: str, request: GenerateRequest, context: RequestContext
    ) -> "GenerationRun":
        """Return a run that has not begun."""
        return GenerationRun(self._parts, context, dialect, request, request.ignored)


class GenerationRun(GenerationContext, eq=False):
    """One generation; see `run_interface.Run`. It is the context of its own calls."""

    ticket: Ticket | None = None
    """What it showed when it entered."""
    _model: str = ""
    _hold: Reservation | None = None
    """What nobody else has let go of when it is over."""
    _media: "PromptMedia | None" = None
    """The pictures of its prompt."""
    _keeping: ConstraintCheck | None = None
    _failure: SmgError | None = None
    _silent: bool = False

    async def enter(self) -> None:
        """Find the model and pass admission, before events are read; a refusal is raised, and
        counted as its end.
        """
        parts = self.parts
        try:
            await self._let_in()
        except SmgError as error:
            self._failure = error
            self.leave()
            journey = parts.journal.begin(
                self.context.request_id, self.dialect, self.request.model, parts.clock.now_ms()
            )
            journey.model = self._model
            self._report(journey)
            raise

    def leave(self) -> None:
        """Give back what `enter` reserved, if the events were not read."""
        if self.ticket is not None:
            self.ticket.void()

    def events(self) -> AsyncGenerator[Sequence[Event], None]:
        """Yield the events of this generation; never raises SmgError."""
        return pulled(self.tell)

    async def answer(self) -> Answer:
        """Return the whole answer; see `run_interface.Run`."""
        self._silent = True
        heard: list[Event] = []
        await self.tell(heard.extend)
        story = self.story
        if story is not None and story.whole is not None and story.used is not None:
            return story.answer()
        collector = Collector(self.request.choices)
        collector.feed(heard)
        return collector.answer()

    async def tell(
        self, receive: Receive, ready: Ready | None = None, through: ByteSink | None = None
    ) -> None:
        """Send the events of this generation; see `run_interface.Run`."""
        parts, context = self.parts, self.context
        self.journey = journey = self.journey or parts.journal.begin(
            context.request_id,
            self.dialect,
            self.request.model,
            context.received_ms or parts.clock.now_ms(),
        )
        try:
            if scope.sampled():
                self.traced = True
                with scope.child("prepare"):
                    planned = await self._planned(journey, receive, ready, through)
            else:
                planned = await self._planned(journey, receive, ready, through)
            story, legs, hold = planned.story, planned.legs, self._hold
            assert hold is not None, "the first leg has a worker"
            try:
                if len(legs) > 1 or self.traced:
                    await self._tell_legs(legs)
                else:
                    leg = legs[0]
                    call = Call(self, leg, hold, story, leg.count, planned.beyond)
                    try:
                        await call.tell()
                        self._hold = None
                    except SmgError as error:
                        await self._leg(leg).take_over(call, error)
            except CutShortError:
                # The answers are over, whatever the engines would still have said.
                self._let_go()
            if story.whole is not None:
                story.close()
            else:
                ending: list[Event] = []
                story.end(ending)
                receive(ending)
        except ReceiverError as why:
            raise why.error from why.error.__cause__
        except SmgError as error:
            if self.story is not None and self.story.closed:
                # The receiver's own, at the end of everything.
                raise
            self._failure = error
            receive(self._failed(error))
        finally:
            if self._hold is not None:
                self._let_go()
            if self._media is not None:
                self._media.close()
            self._report(journey)
            # Receivers know who knows this run: all of it would wait for the garbage collector.
            self.telling = ENDED

    # ── The beginning ────────────────────────────────────────────────────────

    async def _planned(
        self, journey: Journey, receive: Receive, ready: Ready | None, through: ByteSink | None
    ) -> Plan:
        """Admit, prepare and place the request; return its calls, of which the first has a worker."""
        parts, context, request = self.parts, self.context, self.request
        model = self.served
        if model is None:
            # As `_let_in`, without a coroutine of its own.
            model = parts.placer.ready_model(request.model) or await self._found()
            ticket = self._knock(model)
            if ticket is not None and not ticket.enters():
                await ticket.enter()
            self.served = model
        journey.model = self._model
        ticket, preparer, placer = self.ticket, parts.preparer, parts.placer
        prepared = preparer.soon(request, model)
        if not isinstance(prepared, tuple):
            patient_until_s = context.deadline_s if context.patient else 0.0
            prepared = await (
                prepared or preparer.prepared(request, model, context.tenant, patient_until_s)
            )
        first = prepared[0]
        self._media = media = first.media
        if media is not None:
            await self._begun(media, first, model)
        wait = None if ticket is None else reserve(ticket, request, prepared, model, placer)
        if wait is not None:
            await wait
        self.wish = wish = first_placement(context, request, first, journey)
        if media is not None:
            self.wish = wish = await self._pictured(wish, media)
        hold = placer.soon(model, wish) or await self._placed(model, wish)
        self._hold = self.checked = hold
        self.worker, self.attempts = hold.worker.id, 1
        planned = plan(
            request,
            prepared,
            model,
            hold,
            generation_id=context.token or parts.ids.new(""),
            created_s=journey.began_ms // 1000,
            new_id=partial(_new_call_id, parts.rng),
            # Who may need more rights is looked at as it goes.
            silent=self._silent and (ticket is None or not ticket.watched),
            scored=self.dialect == SCORED,
        )
        if media is not None:
            await self._finished(media, hold, planned)
        self.story, self._keeping = story, keeping = planned.story, planned.keeping
        if planned.ignored:
            self.ignored = (*self.ignored, *planned.ignored)
        journey.answer = story.begin.id
        if ticket is not None and ticket.watched:
            self.telling = MeteredEventSink(receive, ready, keeping, through, ticket, story)
        elif story.whole is None:
            self.telling = EventSink(receive, ready, keeping, through)
        return planned

    async def _let_in(self) -> None:
        """Find the model, and pass admission."""
        model = self.parts.placer.ready_model(self.request.model) or await self._found()
        ticket = self._knock(model)
        if ticket is not None and not ticket.enters():
            await ticket.enter()
        self.served = model

    async def _found(self) -> ServedModel:
        context = self.context
        return await self.parts.placer.model(self.request.model, deadline_s=context.deadline_s)

    async def _placed(self, model: ServedModel, wish: PlacementRequest) -> Reservation:
        """Return a reservation that could not be had at once."""
        return await self.parts.placer.hold(model, wish)

    def _knock(self, model: ServedModel) -> Ticket | None:
        """Count a request to that model; return its admission ticket, None where no limit applies."""
        parts = self.parts
        self._model = name = model.name
        self.budget = parts.retries.asked(name, parts.clock.monotonic_s())
        if parts.admission is None:
            return None
        self.ticket = ticket = parts.admission.ticket(self.context, name)
        return ticket

    async def _begun(self, media: "PromptMedia", prepared: "Prepared", model: ServedModel) -> None:
        """Begin the work on pictures, if their prompt is not refused for its length."""
        from smg_node.pipeline.generation.picture_steps import check_length

        check_length(self.request, prepared, model)
        await media.begin()

    async def _pictured(self, wish: PlacementRequest, media: "PromptMedia") -> PlacementRequest:
        """Return the needs of a call with pictures, when those are made."""
        from smg_node.pipeline.generation.picture_steps import placement_with_pictures

        await media.worked()
        return placement_with_pictures(wish, media)

    async def _finished(self, media: "PromptMedia", hold: Reservation, planned: Plan) -> None:
        """Finish pictures for the reserved worker."""
        from smg_node.pipeline.generation.picture_steps import finish

        assert self.journey is not None, "it began with the generation"
        await finish(media, hold, planned.legs, self.journey, self.context.deadline_s)

    # ── Legs of their own ────────────────────────────────────────────────────

    def _leg(self, leg: Leg) -> LegRun:
        """Return the runner of a leg, which takes over the reserved worker."""
        assert self.budget is not None, "who has legs was let in"
        hold, self._hold = self._hold, None
        return LegRun(self, leg, Attempts(self.parts.retries.options, self.budget), hold=hold)

    async def _tell_legs(self, legs: Sequence[Leg]) -> None:
        if len(legs) == 1:
            await self._leg(legs[0]).tell()
            return
        # The first one has the worker.
        runs = [self._leg(leg) for leg in legs]
        await side_by_side([run.tell for run in runs], at_once=LEGS_AT_ONCE)

    def _let_go(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.release(self.parts.clock.monotonic_s())

    # ── The end ──────────────────────────────────────────────────────────────

    def _failed(self, error: SmgError) -> list[Event]:
        out: list[Event] = []
        if self.story is None:
            out.append(Fail(error))
        else:
            self.story.fail(error, out)
        return out

    def _report(self, journey: Journey) -> None:
        """Settle the limits, and tell all who want to know how it ended."""
        story, parts, context = self.story, self.parts, self.context
        if self.ticket is not None:
            settle(self.ticket, story, self._failure)
        ended_ms = parts.clock.now_ms()
        kind: OutcomeKind = "ok"
        code, status = "", 200
        usage = _NOTHING_USED if story is None else story.used or story.usage()
        if self._failure is not None or story is None or not story.closed:
            kind, code, status = self._verdict()
        # In the order of its fields: by name it takes half as long again.
        outcome = Outcome(
            self.dialect,
            self._model,
            self.worker,
            kind,
            code,
            status,
            self.request.stream,
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
            context.received_s,
            self.first_token_s,
            parts.clock.monotonic_s(),
            self.attempts,
            self.continuations,
            _NO_ODDITIES if story is None else self._oddities(story),
            context.tenant,
            context.key_id,
            ended_ms,
        )
        parts.journal.end(journey, outcome, ended_ms)
        if context.outcomes is None:
            parts.on_outcome(outcome)
        else:
            context.outcomes.append(outcome)

    def _oddities(self, story: GenerationStream) -> Mapping[str, int]:
        if story.whole is not None or (story.plain is not None and self._keeping is None):
            return _NO_ODDITIES
        notes = story.notes()
        if self._keeping is not None:
            notes = {**notes, **self._keeping.notes}
        if not notes:
            return notes
        model = self.served
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
        """Return the error status of a generation that did not end well."""
        if self._failure is not None:
            kind: OutcomeKind = "refused" if self._failure.status < 500 else "failed"
            return kind, self._failure.code, self._failure.status
        return "client_gone", "client_gone", 499


def _new_call_id(chance: Rng, _name: str, _ordinal: int) -> str:
    # No method of the run: its parts would keep it, and it them, until the collector looks.
    return f"call_{chance.getrandbits(96):024x}"
