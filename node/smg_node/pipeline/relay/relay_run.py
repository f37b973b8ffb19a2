"""Relay run: passes a client's request to an HTTP worker, and its answer back as it comes.

Placement is that of generations: policies, breakers, queue, exclusion, retry budget, journey. But
only the beginning, the end and the usage of an answer are understood, so a call is retried until
its client has had a word, and never continued. An answer that is not streamed is held back until it
is whole or too large. A worker found to lack an API is not asked for it again while connected;
others are.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from smg_node.admission.limit_errors import LimitedError
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.journey import Journey
from smg_node.core.request_context import RequestContext
from smg_node.engines.engine import Prefilled
from smg_node.engines.http.http_engine import HttpEngine, RelayRequest
from smg_node.fleet.models.served_model import RelayedModel
from smg_node.pipeline.generation.generator import checked_key
from smg_node.pipeline.generation.leg_runner import given_up
from smg_node.pipeline.pairs.pair_reservation import PairReservation
from smg_node.pipeline.placement.placer import PlacementRequest
from smg_node.pipeline.relay.filters.answer_guard import guard_of
from smg_node.pipeline.relay.filters.answer_stops import ThoughtSeenError
from smg_node.pipeline.relay.pairs.pair_bodies import on_rank
from smg_node.pipeline.relay.pairs.relayed_call import relayed_call
from smg_node.pipeline.relay.relay_call import Head, MissingError, RelayCall, path_of, request_of
from smg_node.pipeline.relay.relay_context import (
    Asks,
    OwnCall,
    RelayParts,
    Tap,
    TargetAsked,
    first_known,
)
from smg_node.pipeline.relay.relay_eligibility import (
    check_somebody_can,
    nobody,
)
from smg_node.pipeline.relay.relay_metering import RelayMeter
from smg_node.pipeline.relay.relay_request import Relayable
from smg_node.pipeline.relay.response_filter import ResponseFilter, UsageReader
from smg_node.pipeline.relay.routes.target_filter import filtered
from smg_node.pipeline.relay.run_report import RunEnd, is_clients, note_broken, report
from smg_node.pipeline.reservation import Reservation
from smg_node.pipeline.retry import Attempts, Broken, GiveUp
from smg_node.telemetry.traces import request_scope as scope

if TYPE_CHECKING:
    from smg_node.pipeline.relay.routes.request_split import RequestSplit

__all__ = ["RelayParts", "RelayRun"]

MISSING_TRIES_MAX: Final = 16
"""How many workers without an API a request finds at most."""


class RelayRun:
    """One relayed request."""

    def __init__(
        self,
        parts: RelayParts,
        asked: Relayable,
        headers: Mapping[str, str],
        context: RequestContext,
        key: str,
        asks: Asks | None = None,
    ) -> None:
        self._worker = ""
        self._own: OwnCall | None = None
        """The call of own engines, where that is what is called."""
        self._story: Journey | None = None
        self.attempts = 0
        self._parts = parts
        self._asked = asked
        self._headers = headers
        self._context = context
        self._key = key
        self._asks = asks if asks is not None else Asks(asked.api.name, streamed=asked.streamed)
        self._admitted: RelayedModel | None = None
        self._model = ""
        self._usage = UsageReader()
        self.found: Prefilled | None = None
        """What the first worker of a pair said of the prompt; the second one's own cache is no saving."""
        self._first_s: float | None = None
        self._failure: SmgError | None = None
        self._broken: SmgError | None = None
        """What became of the last call."""
        self._over = False
        self._split: RequestSplit | None = None
        self._thinks = False
        """Whether the stop strings that a worker was told may have ended a thought."""
        self.meter = RelayMeter(parts, asked, context)

    @property
    def worker(self) -> str:
        """Id of the worker in use, "" until one was chosen."""
        own = self._own
        return self._worker if own is None else own.worker or self._worker

    async def answer(self) -> AsyncGenerator[Head | bytes, None]:
        """Yield the answer's head, then its body; closing it stops the worker. SmgError if it fails."""
        self._story = journey = self._journey()
        try:
            model = self._admitted or await self._admit()
            journey.model, tap = model.name, self._tap(model)
            async with aclosing(self._tried(model, journey)) as pieces:
                async for piece in pieces:
                    self.meter.passed(piece)
                    if tap is not None:
                        tap.hear(piece)
                    yield piece
            self._over = True
        except SmgError as error:
            self._failure = error
            raise
        finally:
            failed, called = self._failure is not None, self.attempts > 0
            self.meter.settle(self._usage, called=called, failed=failed, complete=self._over)
            self._report(journey)
        # What own engines tell past the bytes of an answer is not here to be compared.
        if tap is not None and not (self._own is not None and self._own.said):
            used = self.meter.used(self._usage, called=True, failed=False)
            tap.over(self.worker, self._first_s, used, self.meter.bills)

    # ── Before a call ────────────────────────────────────────────────────────

    def _tap(self, model: RelayedModel) -> Tap | None:
        parts, shadows = self._parts, self._parts.post.shadows
        if shadows is None:
            return None
        tap = shadows.tap(parts, self._asked, self._asks, self._context, model)
        if tap is not None:
            self._asks = tap.asks
        return tap

    async def enter(self) -> None:
        """Find the model and pass admission before anything is read; a refusal is raised and
        counted.
        """
        try:
            self._admitted = await self._admit()
        except SmgError as error:
            self._failure = error
            self.leave()
            self._report(self._journey())
            raise

    def leave(self) -> None:
        """Give back what `enter` reserved, if the answer was not read."""
        if self.meter.ticket is not None:
            self.meter.ticket.void()

    def _journey(self) -> Journey:
        asks, model, now_ms = self._asks, self._asked.model, self._parts.clock.now_ms()
        names = self._context.request_id, asks.dialect, self._model or model
        journey = self._parts.journal.begin(*names, now_ms)
        journey.answer = asks.answer
        return journey

    async def _admit(self) -> RelayedModel:
        parts, asked = self._parts, self._asked
        found = parts.fleet.relayed(asked.model)
        if found is None:
            known = await parts.placer.known(asked.model, deadline_s=self._context.deadline_s)
            if not isinstance(known, RelayedModel):
                raise nobody(asked)
            found = known
        self._model = found.name
        place = self._context, checked_key(self._key), found.name
        self._targets = filtered(parts, found, asked, *place)
        self._split = self._targets.split
        parts.retries.of(found.name).asked(parts.clock.monotonic_s())
        await self.meter.enter(found.name, self._targets)
        return found

    async def _placed(self, model: RelayedModel, wish: PlacementRequest) -> Reservation:
        parts, asked = self._parts, self._asked
        check_somebody_can(asked, self._targets.serving())
        try:
            self._targets.check()
            hold = await parts.placer.hold(model, wish)
        except SmgError as error:
            # What a vendor wants, and what a limit says, is told as it is.
            if self._broken is None or error.kind is ErrorKind.RATE_LIMITED:
                raise
            raise given_up(self._broken, error.message) from error
        self._worker = hold.worker.id
        return hold

    def _wish(self, journey: Journey) -> PlacementRequest:
        return self._targets.placement(journey, self._asks, self._parts.caches)

    # ── Calls ────────────────────────────────────────────────────────────────

    async def _tried(
        self, model: RelayedModel, journey: Journey
    ) -> AsyncGenerator[Head | bytes, None]:
        parts, retries = self._parts, self._parts.retries
        attempts = Attempts(retries.options, retries.of(model.name))
        wish, missing = self._wish(journey), 0
        while True:
            hold = await self._placed(model, wish)
            self.attempts = attempts.made
            said = False
            try:
                async with aclosing(self._called(hold, model, attempts.silences)) as pieces:
                    async for piece in pieces:
                        said = True
                        yield piece
                hold.ended(parts.clock.monotonic_s())
                return
            except MissingError as error:
                hold.ended(parts.clock.monotonic_s())
                missing += 1
                if missing >= MISSING_TRIES_MAX or wish.target is not None:
                    raise nobody(self._asked) from error
                continue
            except ThoughtSeenError as seen:
                hold.ended(parts.clock.monotonic_s())
                self._thinks = True
                if seen.thinks and isinstance(hold.engine, HttpEngine):
                    hold.engine.thinks = True
                continue
            except SmgError as error:
                own = self._own
                said = said or (own is not None and own.said)
                if is_clients(error) and not said:
                    hold.ended(parts.clock.monotonic_s())
                    raise
                if own is not None and own.would_wait(error):
                    self._targets.passed(hold.worker)
                    continue
                pause_s = self._broke(hold, error, attempts, journey, said=said)
            finally:
                hold.release(parts.clock.monotonic_s())
            if pause_s:
                await asyncio.sleep(pause_s)
            wish = msgspec.structs.replace(wish, avoid=attempts.avoid, why="retry")

    def _broke(
        self,
        hold: Reservation,
        error: SmgError,
        attempts: Attempts,
        journey: Journey,
        *,
        said: bool,
    ) -> float:
        """Return the pause before the next attempt; raises the error where there is none."""
        parts = self._parts
        now_s = parts.clock.monotonic_s()
        if isinstance(error, LimitedError) and error.provider and not said:
            # Nothing was sent: the provider's own limit has too little left. It says nothing of the vendor, and others are asked.
            if self._context.target_worker is not None:
                raise error
            self._targets.spent(error)
            note_broken(journey, hold.culprit.id, error, None, parts.clock.now_ms())
            return 0.0
        if not said and self._targets.has_other_key(hold.worker, error, self._asks.headers):
            note_broken(journey, hold.culprit.id, error, None, parts.clock.now_ms())
            return 0.0
        alone = hold.lonely
        # Own workers were judged where they were called.
        if self._own is None:
            hold.failed(error, now_s)
        self._targets.failed(error, hold.culprit.id)
        self._broken = error
        why: str | None = None
        pause_s = 0.0
        if said:
            why = "its client has a part of the answer"
        elif self._context.target_worker is not None:
            why = "its client wanted this worker and no other"
        elif self._own is not None and self._targets.is_last(hold.worker):
            why = ""  # All that its servers could do was tried there.
        else:
            broken = Broken(hold.culprit.id, error, False, alone, now_s - hold.began_s)
            then = attempts.judge(broken, now_s=now_s, left_s=self._left_s(), rng=parts.rng)
            if isinstance(then, GiveUp):
                why = then.reason
            elif not self.meter.may_call_again():
                why = "a limit on cost has too little left for another call"
            else:
                pause_s = then.pause_s
        note_broken(journey, hold.culprit.id, error, why, parts.clock.now_ms())
        if why is not None:
            raise given_up(error, why) from error
        return pause_s

    async def _called(
        self, hold: Reservation, model: RelayedModel, silences: int
    ) -> AsyncGenerator[Head | bytes, None]:
        """Yield one worker's answer; nothing is yielded while another worker may still answer."""
        engine = hold.engine
        assert isinstance(engine, HttpEngine), "workers of relayed models speak HTTP"
        if engine.vendor is not None or engine.own_model:
            async with aclosing(self._target_called(hold, engine, model, silences)) as told:
                async for piece in told:
                    yield piece
            return
        guard = guard_of(self._asked, engine, model, thinks=self._thinks)
        asked, listener = guard.asked, self._asks.listen(None)
        self.found = None
        with scope.child("engine") as span:
            request = self._request(span.headers(), silences)
            passage = ResponseFilter(engine.served_name, self._model)
            self._usage = passage.usage
            relayed = relayed_call(
                hold,
                asked,
                passage,
                now_s=self._parts.clock.monotonic_s(),
                spoke=partial(self._spoke, hold),
                prefilled=self._prefilled,
                parsed=listener is not None,
            )
            if isinstance(relayed, RelayCall):
                body = asked.body(engine.served_name, on_rank(hold.rank))
                request = replace(request, path=path_of(engine, asked.api), body=body)
            async with aclosing(guard.passed(relayed.pieces(request))) as pieces:
                async for piece in pieces:
                    if listener is None or listener.hear(piece):
                        yield piece
            if listener is not None:
                listener.over()

    async def _target_called(
        self, hold: Reservation, engine: HttpEngine, model: RelayedModel, silences: int
    ) -> AsyncGenerator[Head | bytes, None]:
        """Yield the answer of a vendor's model, or of own engines, as `_called` does."""
        # Imported with the first one: a node without routes has none of it.
        from smg_node.pipeline.relay.vendors.target_call import TargetCall

        assert self._story is not None, "an answer has a journey"
        said = self._asked, self._asks, self._context, self._story, self.meter
        asked = TargetAsked(self._parts, *said, self._key, model.name, self._headers)
        patient = self._targets.is_last(hold.worker)
        call = TargetCall(asked, hold, engine, partial(self._spoke, hold), patient=patient)
        self._usage, self._own = call.usage, call.own
        if call.own is None:
            await self.meter.take_back()
        with scope.child("engine"):
            request = replace(self._request({}, silences), headers={})
            async with aclosing(call.answer(request)) as pieces:
                async for piece in pieces:
                    yield piece

    def _prefilled(self, hold: PairReservation, passage: ResponseFilter, found: Prefilled) -> None:
        hold.prefilled(found)
        self.found = found
        if found.cached_tokens >= 0:
            passage.recount(found.cached_tokens)

    def _request(self, trace_headers: Mapping[str, str], silences: int) -> RelayRequest:
        headers = {**self._headers, **self._context.upstream_headers, **trace_headers}
        names = self._parts.ids.new("eng-"), self._context.request_id
        streamed, left_s = self._asked.streamed, self._left_s()
        return request_of(headers, names, streamed=streamed, left_s=left_s, silences=silences)

    def _spoke(self, hold: Reservation) -> None:
        parts = self._parts
        now_s = parts.clock.monotonic_s()
        if self._first_s is None and self._asked.api.generates:
            self._first_s = now_s
        hold.spoke(now_s)
        parts.placer.confirmed(hold, now_s)

    def _left_s(self) -> float:
        return self._context.deadline_s - self._parts.clock.monotonic_s()

    # ── The end ──────────────────────────────────────────────────────────────

    def _report(self, journey: Journey) -> None:
        parts, failed = self._parts, self._failure is not None
        used = self.meter.used(self._usage, called=self.attempts > 0, failed=failed)
        prompt_tokens, cached_tokens, completion_tokens = used
        end = RunEnd(
            asks=self._asks,
            context=self._context,
            model=self._model,
            worker=self.worker,
            failure=self._failure,
            over=self._over,
            used=(prompt_tokens, first_known(self.found, cached_tokens), completion_tokens),
            first_s=self._first_s,
            attempts=self.attempts,
            bills=self.meter.bills,
            split="" if self._split is None else f"{self._split.name}/{self._split.side}",
            own=self._own,
        )
        report(parts, journey, end)
