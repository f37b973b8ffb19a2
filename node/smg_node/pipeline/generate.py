"""The whole story of a generation, in order: model, prompt, worker, engine, events.

One generation is one or more *legs*, each one engine call: a prompt with all its answers where the
engine can do several, else one answer each. Legs run side by side and are told as one stream.

Whoever reads the events owns the generation. When the reader stops (a lost client, a deadline), the
engine's calls are cancelled and the slots are free before `aclose` returns. A stop string that only
this node matched cancels the engine's call too; when the engine is about to end by itself it is given
a moment to do so, because cancelling costs it more.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from smg_node.core.context import RequestContext
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.events import Event, Fail, Usage
from smg_node.core.ids import IdSource
from smg_node.core.outcome import Outcome, OutcomeKind
from smg_node.core.ports import Clock
from smg_node.core.request import GenerateRequest
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import EngineRequest
from smg_node.engines.status import CLOSED_CODE
from smg_node.fleet.model import ServedModel
from smg_node.pipeline.merge import merged
from smg_node.pipeline.place import Hold, Placer
from smg_node.pipeline.plan import Leg, Plan, plan
from smg_node.pipeline.prepare import Prepared, Preparer
from smg_node.pipeline.story import Story
from smg_node.routing.keys import KEY_BYTES_MAX
from smg_node.routing.policy import Asked
from smg_node.telemetry import scope

LEGS_AT_ONCE: Final = 16
"""Engine calls of one request at a time; a request may have 128 and must not take the fleet alone."""
ATTEMPTS_MAX: Final = 3
"""Workers that one leg is tried on, where each is removed before it said anything."""
ENGINE_ENDS_S: Final = 0.25
"""How long an engine that should be ending by itself is waited for before its call is cancelled."""


@dataclass(frozen=True, slots=True)
class GenerationParts:
    """What every generation needs; built once."""

    placer: Placer
    preparer: Preparer
    ids: IdSource
    clock: Clock
    on_outcome: Callable[[Outcome], None]


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

    def __init__(
        self,
        parts: GenerationParts,
        dialect: str,
        request: GenerateRequest,
        context: RequestContext,
    ) -> None:
        self.worker = ""
        self.attempts = 0
        self.ignored = request.ignored
        self._parts = parts
        self._dialect = dialect
        self._request = request
        self._context = context
        self._model = ""
        self._story: Story | None = None
        self._first_token_s: float | None = None
        self._failure: SmgError | None = None
        self._answered: set[int] = set()
        """The first choice of each leg of which something was heard: it cannot begin again elsewhere."""

    async def events(self) -> AsyncGenerator[Sequence[Event], None]:
        """Yield the events of this generation; never raises SmgError."""
        hold: Hold | None = None
        try:
            with scope.child("prepare"):
                model = await self._find_model()
                await self._parts.preparer.constraint(self._request.sampling.constraint)
                prepared = await self._parts.preparer.prompts(self._request, model)
                hold = await self._hold(model, prepared)
                planned = self._plan(prepared, model, hold)
            async with aclosing(self._legs(planned, model, hold)) as batches:
                async for out in batches:
                    yield out
            ending: list[Event] = []
            planned.story.end(ending)
            yield ending
        except SmgError as error:
            self._failure = error
            yield self._failed(error)
        finally:
            if hold is not None:
                hold.release()
            self._report()

    async def _find_model(self) -> ServedModel:
        placer, deadline_s = self._parts.placer, self._context.deadline_s
        model = await placer.model(self._request.model, deadline_s=deadline_s)
        self._model = model.name
        return model

    async def _hold(self, model: ServedModel, prepared: Sequence[Prepared]) -> Hold:
        tokens = sum(len(prompt.ids) for prompt in prepared)
        return await self._place(model, prepared[0].ids, prepared[0].text, tokens=tokens)

    async def _place(
        self,
        model: ServedModel,
        ids: Sequence[int],
        text: str = "",
        *,
        tokens: int,
        like: Hold | None = None,
    ) -> Hold:
        context = self._context
        hold = await self._parts.placer.hold(
            model,
            Asked(
                model=model.name,
                key=checked_key(self._request.routing_key),
                caller=context.caller,
                client=context.client,
                ids=ids,
                text=text,
            ),
            deadline_s=context.deadline_s,
            target=context.target_worker,
            like=like,
            tokens=tokens,
        )
        self.worker = hold.worker.id
        self.attempts = max(self.attempts, 1)
        return hold

    def _plan(self, prepared: Sequence[Prepared], model: ServedModel, hold: Hold) -> Plan:
        planned = plan(
            self._request,
            prepared,
            model,
            hold,
            generation_id=self._parts.ids.new(""),
            created_s=self._parts.clock.now_ms() // 1000,
        )
        self._story = planned.story
        self.ignored = (*self.ignored, *planned.ignored)
        return planned

    # ── Legs ─────────────────────────────────────────────────────────────────

    async def _legs(
        self, planned: Plan, model: ServedModel, hold: Hold
    ) -> AsyncGenerator[Sequence[Event], None]:
        if len(planned.legs) == 1:
            batches = self._leg(planned.legs[0], model, hold, planned.story)
        else:
            # The first worker only served to plan; every leg is placed on its own, on one like it.
            hold.release()
            sources = [self._placed(leg, model, planned.story, hold) for leg in planned.legs]
            batches = merged(sources, at_once=LEGS_AT_ONCE)
        async with aclosing(batches) as told:
            async for out in told:
                yield out

    def _placed(
        self, leg: Leg, model: ServedModel, story: Story, like: Hold
    ) -> Callable[[], AsyncGenerator[Sequence[Event], None]]:
        async def run() -> AsyncGenerator[Sequence[Event], None]:
            hold = await self._place(model, leg.ids, tokens=len(leg.ids), like=like)
            try:
                async with aclosing(self._leg(leg, model, hold, story)) as batches:
                    async for out in batches:
                        yield out
            finally:
                hold.release()

        return run

    async def _leg(
        self, leg: Leg, model: ServedModel, hold: Hold, story: Story
    ) -> AsyncGenerator[Sequence[Event], None]:
        """Yield the events of one leg: from another worker if this one is removed before its first word."""
        held = hold
        try:
            for attempt in range(1, ATTEMPTS_MAX + 1):
                self.attempts = max(self.attempts, attempt)
                try:
                    async with aclosing(self._call(leg, held, story)) as batches:
                        async for out in batches:
                            yield out
                    return
                except SmgError as error:
                    moves = error.code == CLOSED_CODE and leg.first not in self._answered
                    if not moves or self._context.target_worker or attempt == ATTEMPTS_MAX:
                        raise
                another = await self._place(model, leg.ids, tokens=len(leg.ids), like=held)
                if held is not hold:
                    held.release()
                held = another
        finally:
            if held is not hold:
                held.release()

    async def _call(
        self, leg: Leg, hold: Hold, story: Story
    ) -> AsyncGenerator[Sequence[Event], None]:
        """Yield the events of one engine call."""
        with scope.child("engine") as span:
            request = self._engine_request(leg, span.headers())
            try:
                async with aclosing(hold.engine.generate(request)) as batches:
                    async for out in self._told(batches, leg, hold, story):
                        yield out
            except SmgError as error:
                hold.note(error)
                raise
        if not story.over(leg.first, leg.count):
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "the engine ended without finishing")

    async def _told(
        self,
        batches: AsyncGenerator[Sequence[Chunk], None],
        leg: Leg,
        hold: Hold,
        story: Story,
    ) -> AsyncGenerator[Sequence[Event], None]:
        """Yield what the chunks of one engine call mean, until its choices are over."""
        unfinished = leg.count
        beyond = _vocabulary_end(hold)
        async for chunks in batches:
            out: list[Event] = []
            self._answered.add(leg.first)
            for chunk in chunks:
                _check_chunk(chunk, leg, beyond)
                unfinished -= chunk.finish is not None
                story.feed(leg.first + chunk.choice, chunk, out)
            if self._first_token_s is None and story.generated():
                self._first_token_s = self._parts.clock.monotonic_s()
            if out:
                yield out
            if unfinished and story.over(leg.first, leg.count):
                if _engine_ends(leg, hold, story):
                    await _await_end(batches)
                return

    def _engine_request(self, leg: Leg, trace_headers: Mapping[str, str]) -> EngineRequest:
        left_s = self._context.deadline_s - self._parts.clock.monotonic_s()
        if left_s <= 0:
            raise SmgError(
                ErrorKind.UPSTREAM_TIMEOUT, "the request's time was up before it was sent"
            )
        upstream = self._context.upstream_headers
        return EngineRequest(
            request_id=self._parts.ids.new("eng-"),
            ids=leg.ids,
            sampling=leg.sampling,
            stream=True,
            timeout_s=left_s,
            headers={**upstream, **trace_headers} if trace_headers else upstream,
        )

    # ── The end ──────────────────────────────────────────────────────────────

    def _failed(self, error: SmgError) -> list[Event]:
        out: list[Event] = []
        if self._story is None:
            out.append(Fail(error))
        else:
            self._story.fail(error, out)
        return out

    def _report(self) -> None:
        usage = self._story.usage() if self._story is not None else Usage(0, 0, 0)
        kind, code, status = self._verdict()
        self._parts.on_outcome(
            Outcome(
                dialect=self._dialect,
                model=self._model,
                worker=self.worker,
                kind=kind,
                error_code=code,
                status=status,
                streamed=self._request.stream,
                prompt_tokens=usage.prompt_tokens,
                cached_tokens=usage.cached_tokens,
                completion_tokens=usage.completion_tokens,
                received_s=self._context.received_s,
                first_token_s=self._first_token_s,
                ended_s=self._parts.clock.monotonic_s(),
            )
        )

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


def _vocabulary_end(hold: Hold) -> int:
    """Return the first id that this engine cannot mean.

    A model may have more rows than its tokenizer has tokens; those print nothing, as everywhere.
    """
    assert hold.worker.model is not None
    return max(hold.worker.model.tokenizer.vocabulary, hold.card.vocabulary or 0)


def _check_chunk(chunk: Chunk, leg: Leg, beyond: int) -> None:
    if chunk.finish == "abort":
        raise SmgError(ErrorKind.UPSTREAM_FAILED, "the engine gave up on the answer")
    if not 0 <= chunk.choice < leg.count:
        raise SmgError(
            ErrorKind.UPSTREAM_FAILED, f"the engine sent answer {chunk.choice} of {leg.count}"
        )
    if chunk.ids and max(chunk.ids) >= beyond:
        raise SmgError(
            ErrorKind.UPSTREAM_FAILED,
            f"the engine sent token id {max(chunk.ids)}, and its vocabulary ends before {beyond}",
        )


def _engine_ends(leg: Leg, hold: Hold, story: Story) -> bool:
    """Whether the engine is about to end this call by itself, so that nobody needs to cancel it.

    It knows end-of-text, stop ids and the length; stop strings only if its contract has them.
    """
    return hold.engine.abilities.stop_strings or not story.cut_by_string(leg.first, leg.count)


async def _await_end(batches: AsyncIterator[Sequence[Chunk]]) -> None:
    """Read on until the engine ends its call, for a moment at most; what it still says is not wanted."""
    try:
        async with asyncio.timeout(ENGINE_ENDS_S):
            async for _ in batches:
                pass
    except (TimeoutError, SmgError):
        return
