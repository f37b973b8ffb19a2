"""Leg runner: the engine calls of a generation, leg by leg, with retries and continuations.

    place ──▶ call ──▶ over
      ▲        │ broke
      │        ▼
      └── called again, or continued: `retry` decides, `continuation` makes the call

A leg holds one worker at a time, and the old call is cancelled before the next one is placed, so no
late chunk can get in. Where the answers of one call are continued separately, each becomes a leg of
its own and they run in parallel.

Nearly all generations are one call that ends well: they have no LegRun. It is made where there are
several legs, and where a call broke.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Event
from smg_node.core.journey import Broke, Why
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.generation.call_plan import Leg
from smg_node.pipeline.generation.continuation import CannotGoOnError, remarks, rest_of
from smg_node.pipeline.generation.engine_call import Call
from smg_node.pipeline.generation.generation_context import GenerationContext
from smg_node.pipeline.generation.leg_compatibility import can_take
from smg_node.pipeline.generation.parallel_calls import side_by_side
from smg_node.pipeline.prompt.request_bounds import request_bounds
from smg_node.pipeline.reservation import Reservation
from smg_node.pipeline.retry import Attempts, Broken, GiveUp
from smg_node.telemetry.traces import request_scope as scope


class _After(msgspec.Struct, frozen=True):
    """Decision after a broken call: these legs finish its answers, none if they are complete. `out`
    ends those that are.
    """

    legs: Sequence[Leg]
    pause_s: float
    out: list[Event]


class LegRun:
    """One leg, with all calls it takes."""

    def __init__(
        self,
        ground: GenerationContext,
        leg: Leg,
        attempts: Attempts,
        *,
        hold: Reservation | None = None,
        why: Why = "another",
        broken: SmgError | None = None,
    ) -> None:
        """Begin with `hold`, if there is one; `broken` is the error of the leg that this one
        continues.
        """
        assert ground.story is not None, "who has legs has a story"
        assert ground.served is not None, "of a model"
        assert ground.checked is not None, "that somebody serves"
        self._ground = ground
        self._story = ground.story
        self._model = ground.served
        self._checked = ground.checked
        self._leg = leg
        self._attempts = attempts
        self._hold = hold
        self._why: Why = why
        self._broken = broken

    async def tell(self) -> None:
        """Send the engines' events, until the answers of this leg are over."""
        ground = self._ground
        try:
            goes_on = True
            while goes_on:
                call = self._call_of(self._hold or await self._held())
                try:
                    if ground.traced:
                        with scope.child("engine") as span:
                            await call.tell(span.headers())
                    else:
                        await call.tell()
                    return
                except SmgError as error:
                    goes_on = await self._mend(call, error)
        finally:
            self._release()

    async def take_over(self, call: Call, error: SmgError) -> None:
        """Send what follows the first call, which is held for this leg and broke."""
        try:
            if await self._mend(call, error):
                await self.tell()
        finally:
            self._release()

    async def _mend(self, call: Call, error: SmgError) -> bool:
        """Decide on a call that broke; whether this leg goes on with another one."""
        after = self._broke(call, error)
        self._release()
        await self._go_on(after)
        return len(after.legs) == 1

    def _call_of(self, hold: Reservation) -> Call:
        ground, leg = self._ground, self._leg
        beyond = request_bounds(self._model, hold.card).beyond
        return Call(ground, leg, hold, self._story, leg.count, beyond, self._attempts)

    # ── Before a call ────────────────────────────────────────────────────────

    async def _held(self) -> Reservation:
        """Return a reservation for the next call; raises the previous error if there is none."""
        try:
            self._hold = hold = await self._place()
        except SmgError as error:
            if self._broken is None:
                raise
            raise given_up(self._broken, error.message) from error
        ground = self._ground
        ground.worker = hold.worker.id
        ground.attempts = max(ground.attempts, self._attempts.made)
        return hold

    async def _place(self) -> Reservation:
        ground, leg = self._ground, self._leg
        assert ground.wish is not None, "its first call had one"
        wish = msgspec.structs.replace(
            ground.wish,
            ids=leg.ids,
            prompt_tokens=None,
            fits=self._fits,
            avoid=self._attempts.avoid,
            choice=leg.first,
            why="target" if ground.wish.target is not None else self._why,
            # Its client has half an answer: nobody should wait less.
            priority="system" if leg.done else ground.wish.priority,
            patient=ground.wish.patient or bool(leg.done),
        )
        return await ground.parts.placer.hold(self._model, wish)

    def _fits(self, worker: Worker) -> bool:
        return can_take(worker, self._leg, self._model, self._checked)

    def _release(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.release(self._ground.parts.clock.monotonic_s())

    # ── After a call that broke ──────────────────────────────────────────────

    def _broke(self, call: Call, error: SmgError) -> _After:
        """Return what follows a broken call; raises the error where nothing does."""
        ground, leg, story, hold = self._ground, self._leg, self._story, call.hold
        now_s = ground.parts.clock.monotonic_s()
        alone = hold.lonely
        hold.failed(error, now_s)
        out: list[Event] = []
        story.conclude(leg.first, leg.count, out)
        if story.over(leg.first, leg.count):
            self._note(hold, error, "its answer was complete")
            return _After((), 0.0, out)
        broken = Broken(hold.culprit.id, error, call.said, alone, now_s - hold.began_s)
        try:
            if ground.context.target_worker is not None:
                raise CannotGoOnError("its client wanted this worker and no other")
            left_s = ground.context.deadline_s - now_s
            then = self._attempts.judge(broken, now_s=now_s, left_s=left_s, rng=ground.parts.rng)
            if isinstance(then, GiveUp):
                raise CannotGoOnError(then.reason)
            most = self._model.prompt_max(self._checked.card)
            legs = rest_of(leg, story, self._model.tokenizer, prompt_max=most)
        except CannotGoOnError as why:
            self._note(hold, error, f"given up: {why}" if str(why) else "given up")
            raise given_up(error, str(why)) from error
        self._broken, self._why = error, "continue" if legs[0].done else "retry"
        if call.said:
            ground.continuations += len(legs)
        self._note(hold, error, _words(leg, legs))
        return _After(legs, then.pause_s, out)

    async def _go_on(self, after: _After) -> None:
        """Run what follows: the one leg there is, or several in parallel."""
        telling = self._ground.telling
        if after.out and telling.say(after.out):
            await telling.ready()
        if after.pause_s and after.legs:
            await asyncio.sleep(after.pause_s)
        if len(after.legs) == 1:
            self._leg = after.legs[0]
        elif after.legs:
            runs = [
                LegRun(
                    self._ground, leg, self._attempts.fork(), why="continue", broken=self._broken
                ).tell
                for leg in after.legs
            ]
            await side_by_side(runs, at_once=len(runs))

    def _note(self, hold: Reservation, error: SmgError, then: str) -> None:
        ground, leg = self._ground, self._leg
        assert ground.journey is not None, "it began with the generation"
        ground.journey.add(
            Broke(
                at_ms=ground.parts.clock.now_ms(),
                choice=leg.first,
                worker=hold.culprit.id,
                code=error.code,
                message=error.message,
                emitted=self._story.emitted(leg.first, leg.count),
                then=then,
            )
        )


def given_up(error: SmgError, reason: str) -> SmgError:
    """Return `error` with the reason why it was not retried; it has the same code and status."""
    if not reason:
        return error
    return SmgError(
        error.kind,
        f"{error.message}; {reason}",
        where=error.where,
        code=error.code,
        status=error.status,
        retry_after_s=error.retry_after_s,
    )


def _words(leg: Leg, legs: Sequence[Leg]) -> str:
    """Return the log text of a call that is made again, or continued."""
    if legs[0].done == leg.done and len(legs) == 1:
        return "tried again"
    calls = "" if len(legs) == 1 else f" in {len(legs)} calls"
    remark = remarks(leg.sampling)
    return f"gone on with{calls}" + (f"; {remark}" if remark else "")
