"""The engine calls of a generation, leg by leg, until every answer is over.

    place ──▶ call ──▶ over
      ▲        │ broke
      │        ▼
      └── tried again, or gone on with: `attempts` decides, `continue_on` says with what

A leg holds one worker at a time, and the old call is cancelled before the next one is placed, so nothing late can
get in. Where the answers of one call go on apart, each becomes a leg of its own and they run side by side.

Its task sleeps while a call is under way. What an engine says is told within the wake-up that brought it, all the
way to the client; the task is woken only at the end, and where somebody has to be waited for.
"""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from smg_node.core.context import RequestContext
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.events import Event
from smg_node.core.ids import IdSource
from smg_node.core.journey import Broke, Journey, Why
from smg_node.core.ports import Clock, Rng
from smg_node.engines.chunk import Chunk
from smg_node.engines.chunk_stream import ChunkStream
from smg_node.engines.engine import EngineRequest
from smg_node.engines.status import DEADLINE_CODE
from smg_node.fleet.model import ServedModel
from smg_node.fleet.worker import Worker
from smg_node.packing.cut_through import ANY_CACHED, CutThrough
from smg_node.pipeline.alike import can_take
from smg_node.pipeline.attempts import Attempts, Broken, GiveUp
from smg_node.pipeline.call import Call
from smg_node.pipeline.continue_on import CannotGoOnError, remarks, rest_of
from smg_node.pipeline.decide import Wish
from smg_node.pipeline.hold import Hold
from smg_node.pipeline.merge import side_by_side
from smg_node.pipeline.place import Placer
from smg_node.pipeline.plan import Leg
from smg_node.pipeline.story import Story
from smg_node.pipeline.telling import Telling
from smg_node.telemetry import scope


class Progress(msgspec.Struct):
    """What is told of a generation beside its events: the worker in use, calls per leg, answers gone on with."""

    worker: str = ""
    attempts: int = 0
    continuations: int = 0
    first_token_s: float | None = None


class Ground(msgspec.Struct, eq=False):
    """What all legs of one generation stand on; nobody changes it. `checked` is the call whose worker they were checked for.

    `wish` is what their calls want of a worker, but for what differs between them.
    """

    placer: Placer
    ids: IdSource
    clock: Clock
    rng: Rng
    context: RequestContext
    model: ServedModel
    checked: Hold
    story: Story
    wish: Wish
    progress: Progress
    journey: Journey
    telling: Telling
    traced: bool = False
    """Whether somebody wants its spans."""


class _After(msgspec.Struct, frozen=True):
    """A call broke; these legs finish its answers, none if they are complete. `out` ends those that are."""

    legs: Sequence[Leg]
    pause_s: float
    out: list[Event]


class LegRun:
    """One leg, and all calls it takes."""

    _call: Call
    _stream: ChunkStream
    # Where plain text may go past events: whether that is to be asked at all, and what does it in the call under way.
    _cuts = False
    _cut: CutThrough | None = None
    # Of the call under way: what it said that is wrong, whether it has spoken, and whether its receiver is behind.
    _mistake: SmgError | None = None
    _spoken = False
    _behind = False

    def __init__(
        self,
        ground: Ground,
        leg: Leg,
        attempts: Attempts,
        *,
        hold: Hold | None = None,
        why: Why = "another",
        broken: SmgError | None = None,
    ) -> None:
        """Begin with `hold`, if there is one; `broken` is what happened to a leg that this one goes on from."""
        self._ground = ground
        self._leg = leg
        self._attempts = attempts
        self._hold = hold
        self._why: Why = why
        self._broken = broken

    async def tell(self) -> None:
        """Tell what the engines say, until the answers of this leg are over."""
        ground = self._ground
        try:
            while True:
                hold = self._hold
                if hold is None:
                    hold = await self._held()
                self._call = call = Call(self._leg, hold, ground.story)
                try:
                    if ground.traced:
                        with scope.child("engine") as span:
                            await self._pour(hold.call(self._request(span.headers())), call)
                    else:
                        await self._pour(hold.call(self._request(None)), call)
                    call.check_end()
                    self._ended(hold)
                    return
                except SmgError as error:
                    after = self._broke(hold, call, error)
                self._spoken = self._behind = False
                self._mistake = None
                self._release()
                await self._go_on(after)
                if len(after.legs) != 1:
                    return
        finally:
            self._release()

    async def _pour(self, stream: ChunkStream, call: Call) -> None:
        """Have a call told until it is over, and let it go."""
        ground, leg = self._ground, self._leg
        self._stream = stream
        self._cuts = ground.telling.cuts and leg.count == 1 and ground.story.plain is not None
        try:
            over = False
            while not over:
                over = await stream.pour(self._take)
                if self._behind:
                    self._behind = False
                    await self._ground.telling.ready()
                if self._mistake is not None:
                    raise self._mistake
                if not over and call.over():
                    await call.let_end(stream)
                    return
        finally:
            # It knows us by what it calls: together they would stay until the collector comes.
            del self._stream
            await stream.aclose()

    def _take(self, chunks: Sequence[Chunk]) -> bool:
        """Tell what one wake-up brought; whether more is wanted at once."""
        call = self._call
        out: list[Event] = []
        try:
            call.feed(chunks, out)
        except SmgError as error:
            # What stood before the mistake is right, and has been taken for said.
            self._mistake = error
        else:
            if call.said and not self._spoken:
                self._spoken = True
                self._spoke(call)
        if out:
            self._behind = self._ground.telling.say(out)
        if self._cuts:
            self._cut_through()
        return not (self._behind or self._mistake is not None or call.over())

    def _cut_through(self) -> None:
        """Have plain text that comes next told in frames, if there is nothing more to it now."""
        ground, stream = self._ground, self._stream
        plain, reader, around = ground.story.plain, stream.plain, ground.telling.around()
        self._cut = None
        if self._spoken and not (plain is None or reader is None or around is None):
            # What an engine had cached of an answer's beginning is nobody's saving.
            cached = ANY_CACHED if self._leg.done else ground.story.cached
            self._cut = plain.cut_through(reader, around, cached, ground.telling.room())
        stream.pass_by(None if self._cut is None else self._pass)

    def _pass(self, batch: Sequence[bytes]) -> bool | None:
        """Tell messages of plain text in frames; None if they are something else."""
        cut, telling = self._cut, self._ground.telling
        assert cut is not None, "who passes by has been let"
        if telling.outdated:
            return None
        frames = cut.take(batch)
        if not frames:
            return None
        self._behind = telling.put(frames)
        return not self._behind

    # ── Before a call ────────────────────────────────────────────────────────

    async def _held(self) -> Hold:
        """Return a worker that holds the next call; what broke before if there is none."""
        try:
            self._hold = hold = await self._place()
        except SmgError as error:
            if self._broken is None:
                raise
            raise given_up(self._broken, error.message) from error
        progress = self._ground.progress
        progress.worker = hold.worker.id
        progress.attempts = max(progress.attempts, self._attempts.made)
        return hold

    async def _place(self) -> Hold:
        ground, leg = self._ground, self._leg
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
        )
        return await ground.placer.hold(ground.model, wish)

    def _fits(self, worker: Worker) -> bool:
        ground = self._ground
        return can_take(worker, self._leg, ground.model, ground.checked)

    def _request(self, trace_headers: Mapping[str, str] | None) -> EngineRequest:
        ground, leg = self._ground, self._leg
        left_s = ground.context.deadline_s - ground.clock.monotonic_s()
        if left_s <= 0:
            raise SmgError(
                ErrorKind.UPSTREAM_TIMEOUT,
                "the request's time was up before it was sent",
                code=DEADLINE_CODE,
            )
        upstream, attempts = ground.context.upstream_headers, self._attempts
        # The first call has the id of its answer, so that whoever reads an engine's log finds it.
        first = leg.first == 0 and attempts.made == 1
        request_id = f"eng-{ground.story.id}" if first else ground.ids.new("eng-")
        return EngineRequest(
            request_id,
            leg.ids,
            leg.sampling,
            True,
            left_s,
            {**upstream, **trace_headers} if trace_headers else upstream,
            silences=attempts.silences,
            packed=leg.packed,
        )

    def _left_s(self) -> float:
        return self._ground.context.deadline_s - self._ground.clock.monotonic_s()

    # ── During a call ────────────────────────────────────────────────────────

    def _spoke(self, call: Call) -> None:
        ground, hold = self._ground, self._hold
        assert hold is not None, "who speaks is held"
        now_s = ground.clock.monotonic_s()
        if ground.progress.first_token_s is None:
            ground.progress.first_token_s = now_s
        hold.spoke(now_s, call.cached_tokens)
        ground.placer.confirmed(hold, now_s)

    def _ended(self, hold: Hold) -> None:
        ground, leg = self._ground, self._leg
        now_s = ground.clock.monotonic_s()
        hold.ended(now_s)
        if leg.count == 1 and hold.unheard:
            said = ground.story.stream(leg.first).ids[leg.done :]
            ground.placer.answered(hold, said, now_s)

    def _release(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.release(self._ground.clock.monotonic_s())

    # ── After a call that broke ──────────────────────────────────────────────

    def _broke(self, hold: Hold, call: Call, error: SmgError) -> _After:
        """Say what follows; raises the error where nothing does."""
        ground, leg, story = self._ground, self._leg, self._ground.story
        now_s = ground.clock.monotonic_s()
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
            then = self._attempts.judge(broken, now_s=now_s, left_s=self._left_s(), rng=ground.rng)
            if isinstance(then, GiveUp):
                raise CannotGoOnError(then.reason)
            most = ground.model.prompt_max(ground.checked.card)
            legs = rest_of(leg, story, ground.model.tokenizer, prompt_max=most)
        except CannotGoOnError as why:
            self._note(hold, error, f"given up: {why}" if str(why) else "given up")
            raise given_up(error, str(why)) from error
        self._broken, self._why = error, "continue" if legs[0].done else "retry"
        if call.said:
            ground.progress.continuations += len(legs)
        self._note(hold, error, _words(leg, legs))
        return _After(legs, then.pause_s, out)

    async def _go_on(self, after: _After) -> None:
        """Take up what follows: the one leg there is, or several side by side."""
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

    def _note(self, hold: Hold, error: SmgError, then: str) -> None:
        ground, leg = self._ground, self._leg
        ground.journey.add(
            Broke(
                at_ms=ground.clock.now_ms(),
                choice=leg.first,
                worker=hold.culprit.id,
                code=error.code,
                message=error.message,
                emitted=ground.story.emitted(leg.first, leg.count),
                then=then,
            )
        )


def given_up(error: SmgError, reason: str) -> SmgError:
    """Return `error` with the reason why nothing was done about it; it has the same code and status."""
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
    """Return what an operator is told of a call that is made again, or gone on from."""
    if legs[0].done == leg.done and len(legs) == 1:
        return "tried again"
    calls = "" if len(legs) == 1 else f" in {len(legs)} calls"
    remark = remarks(leg.sampling)
    return f"gone on with{calls}" + (f"; {remark}" if remark else "")
