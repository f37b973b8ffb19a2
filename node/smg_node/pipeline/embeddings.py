"""Embeddings by engines over gRPC: one call for each input, a few in parallel.

A call that breaks is retried on another worker like the first call of a generation, until its
request has its vectors. Engines that cannot embed are not chosen; where none can, the request is
refused.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from smg_node.admission.ticket import Ticket
from smg_node.core.context_limit import prompt_too_long
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.generation.outcome import Outcome, OutcomeKind
from smg_node.core.generation.request import Prompt
from smg_node.core.journey import Broke, Journey
from smg_node.core.request_context import RequestContext
from smg_node.engines.engine import Embedded, EmbedRequest
from smg_node.engines.http.status_mapping import not_implemented
from smg_node.engines.transport.grpc_status import DEADLINE_CODE
from smg_node.fleet.models.served_model import ServedModel
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.generation.leg_runner import given_up
from smg_node.pipeline.placement.placer import PlacementRequest
from smg_node.pipeline.prompt.preparation import Prepared, Preparer, token_count
from smg_node.pipeline.relay.relay_context import RelayParts
from smg_node.pipeline.reservation import Reservation
from smg_node.pipeline.retry import Again, Attempts, Broken, GiveUp

AT_ONCE_MAX: Final = 16
"""Engine calls of one request at a time; it may have 2,048 inputs and must not take the fleet alone."""
DIALECT: Final = "embeddings"


@dataclass(frozen=True, slots=True)
class Vectors:
    """One vector for each input: 32-bit floats, little-endian. `model` is the model's own name."""

    model: str
    vectors: Sequence[bytes]
    prompt_tokens: int


class Embedder:
    """Starts embedding runs."""

    def __init__(self, parts: RelayParts, preparer: Preparer) -> None:
        self._parts = parts
        self._preparer = preparer

    def takes(self, model: str) -> bool:
        """Whether engines serve that model, or one behind a route of that name."""
        return self._parts.placer.own.served(model) is not None

    def start(
        self,
        model: str,
        prompts: Sequence[Prompt],
        context: RequestContext,
        *,
        dimensions: int | None = None,
    ) -> "EmbedRun":
        """Return a run that has not begun, for vectors of so many `dimensions`; None: all they have."""
        return EmbedRun(self._parts, self._preparer, model, prompts, context, dimensions)


class EmbedRun:
    """Run of one embedding request."""

    def __init__(
        self,
        parts: RelayParts,
        preparer: Preparer,
        model: str,
        prompts: Sequence[Prompt],
        context: RequestContext,
        dimensions: int | None = None,
    ) -> None:
        self.worker = ""
        """Id of the worker in use, "" until one was chosen."""
        self.attempts = 0
        """Engine calls, of the input that took the most."""
        self._parts = parts
        self._preparer = preparer
        self._asked = model
        self._model = ""
        self._prompts = prompts
        self._context = context
        self._dimensions = dimensions
        self._prompt_tokens = 0
        self._failure: SmgError | None = None
        self.ticket: Ticket | None = None
        """See `pipeline.run.Run`."""
        self._over = False

    async def vectors(self) -> Vectors:
        """Return the vectors of all inputs. SmgError cancels the calls in progress."""
        parts = self._parts
        journey = parts.journal.begin(
            self._context.request_id, DIALECT, self._asked, parts.clock.now_ms()
        )
        try:
            found = await self._embedded(journey)
            self._over = True
            return found
        except SmgError as error:
            self._failure = error
            raise
        finally:
            self._settle()
            self._report(journey)

    async def _embedded(self, journey: Journey) -> Vectors:
        parts, context = self._parts, self._context
        model = await parts.placer.model(self._asked, deadline_s=context.deadline_s)
        name = parts.placer.own.public(self._asked, model)
        journey.model = self._model = name
        parts.retries.of(model.name).asked(parts.clock.monotonic_s())
        if not any(embeds(worker) for worker in parts.fleet.serving(model)):
            raise not_implemented(f"no worker of {model.name!r} embeds")
        self._check_dimensions(model)
        if parts.admission is not None:
            self.ticket = parts.admission.ticket(context, name)
        if self.ticket is not None:
            await self.ticket.enter()
        prepared: list[Prepared] = []
        for prompt in self._prompts:
            if self._prompts[1:]:
                await self._preparer.pace(token_count(prompt))
            prepared.append(await self._prepared(prompt, model))
        if self.ticket is not None:
            self._prompt_tokens = sum(len(one.ids) for one in prepared)
            await self.ticket.reserve(self._prompt_tokens, 0)
        found: list[Embedded] = await self._each(prepared, model, journey)
        # Not every engine counts; what it was sent is what it worked off.
        self._prompt_tokens = sum(
            one.prompt_tokens or len(sent.ids) for one, sent in zip(found, prepared, strict=True)
        )
        return Vectors(name, [one.vector for one in found], self._prompt_tokens)

    def _check_dimensions(self, model: ServedModel) -> None:
        wanted = self._dimensions
        if wanted is None:
            return
        from smg_node.dialects.embeddings.dimensions import check_dimensions  # few ask for it

        for worker in self._parts.fleet.serving(model):
            if embeds(worker):
                card = worker.card
                check_dimensions(wanted, {**(card.server if card else {}), **worker.labels})

    async def _prepared(self, prompt: Prompt, model: ServedModel) -> Prepared:
        prepared = await self._preparer.prompt(prompt, model)
        cards = [w.card for w in self._parts.fleet.serving(model) if w.card and embeds(w)]
        if not prepared.ids:
            raise invalid("the input is empty: it has no tokens", prepared.where)
        _check_length(prepared, [model.context(card) for card in cards])
        # Any of them may get it, and an id beyond its vocabulary kills an engine.
        vocabulary = min((model.vocabulary(card) for card in cards), default=0)
        if vocabulary and max(prepared.ids) >= vocabulary:
            raise invalid(
                f"token id {max(prepared.ids)} is outside the vocabulary of {vocabulary} tokens",
                prepared.where,
            )
        return prepared

    async def _each(
        self, prepared: Sequence[Prepared], model: ServedModel, journey: Journey
    ) -> list[Embedded]:
        waiting = iter(enumerate(prepared))
        found: dict[int, Embedded] = {}

        async def some() -> None:
            for at, text in waiting:
                if len(prepared) > AT_ONCE_MAX:
                    await self._preparer.pace()
                one = await self._one(at, text, model, journey)
                # Each as it comes: all of a large request at once would hold up everybody else.
                found[at] = one if self._dimensions is None else _shortened(one, self._dimensions)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(AT_ONCE_MAX, len(prepared))):
                    group.create_task(some())
        except* SmgError as errors:
            raise _first(errors) from None
        return [found[at] for at in range(len(prepared))]

    async def _one(self, at: int, text: Prepared, model: ServedModel, journey: Journey) -> Embedded:
        parts, retries = self._parts, self._parts.retries
        attempts = Attempts(retries.options, retries.of(model.name))
        wish, broken = self._wish(at, text, model, journey), None
        while True:
            hold = await self._placed(model, wish, broken)
            self.worker, self.attempts = hold.worker.id, max(self.attempts, attempts.made)
            try:
                found = await hold.engine.embed(self._request(text))
                now_s = parts.clock.monotonic_s()
                hold.spoke(now_s)
                hold.ended(now_s)
                return found
            except SmgError as error:
                broken = error
                pause_s = self._broke(at, hold, error, attempts, journey)
            finally:
                hold.release(parts.clock.monotonic_s())
            await asyncio.sleep(pause_s)
            wish = msgspec.structs.replace(wish, avoid=attempts.avoid, why="retry")

    async def _placed(
        self, model: ServedModel, wish: PlacementRequest, broken: SmgError | None
    ) -> Reservation:
        """Return a reservation for the next call; raises the previous error if there is no worker."""
        try:
            return await self._parts.placer.hold(model, wish)
        except SmgError as error:
            if broken is None:
                raise
            raise given_up(broken, error.message) from error

    def _wish(
        self, at: int, text: Prepared, model: ServedModel, journey: Journey
    ) -> PlacementRequest:
        context = self._context
        return PlacementRequest(
            deadline_s=context.deadline_s,
            prompt_tokens=len(text.ids),
            caller=context.caller,
            client=context.client,
            priority=context.priority,
            target=context.target_worker,
            fits=lambda worker: worker.model is model and embeds(worker),
            choice=at,
            why="first" if at == 0 else "another",
            journey=journey,
            pair=False,
        )

    def _request(self, text: Prepared) -> EmbedRequest:
        left_s = self._left_s()
        if left_s <= 0:
            raise SmgError(
                ErrorKind.UPSTREAM_TIMEOUT,
                "the request's time was up before it was sent",
                code=DEADLINE_CODE,
            )
        return EmbedRequest(
            self._parts.ids.new("eng-"), text.ids, left_s, self._context.upstream_headers
        )

    def _left_s(self) -> float:
        return self._context.deadline_s - self._parts.clock.monotonic_s()

    def _broke(
        self, at: int, hold: Reservation, error: SmgError, attempts: Attempts, journey: Journey
    ) -> float:
        """Return the pause before the next attempt; raises the error where there is none."""
        parts = self._parts
        now_s = parts.clock.monotonic_s()
        alone = hold.alone and hold.worker.load.inflight == 1
        hold.failed(error, now_s)
        broken = Broken(hold.worker.id, error, False, alone, now_s - hold.began_s)
        then: Again | GiveUp = GiveUp("its client wanted this worker and no other")
        if self._context.target_worker is None:
            then = attempts.judge(broken, now_s=now_s, left_s=self._left_s(), rng=parts.rng)
        journey.add(
            Broke(
                at_ms=parts.clock.now_ms(),
                choice=at,
                worker=hold.worker.id,
                code=error.code,
                message=error.message,
                then="tried again" if isinstance(then, Again) else f"given up: {then.reason}",
            )
        )
        if isinstance(then, GiveUp):
            raise given_up(error, then.reason) from error
        return then.pause_s

    def _settle(self) -> None:
        if self.ticket is None:
            return
        if not self.attempts:
            self.ticket.void()
        else:
            self.ticket.settle(0 if self._failure is not None else self._prompt_tokens, 0, 0)

    def _report(self, journey: Journey) -> None:
        parts = self._parts
        kind, code, status = self._verdict()
        outcome = Outcome(
            dialect=DIALECT,
            model=self._model,
            worker=self.worker,
            kind=kind,
            error_code=code,
            status=status,
            streamed=False,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=0,
            completion_tokens=0,
            tenant=self._context.tenant,
            key_id=self._context.key_id,
            received_s=self._context.received_s,
            first_token_s=None,
            ended_s=parts.clock.monotonic_s(),
            attempts=self.attempts,
        )
        parts.journal.end(journey, outcome, parts.clock.now_ms())
        parts.on_outcome(outcome)

    def _verdict(self) -> tuple[OutcomeKind, str, int]:
        if self._failure is not None:
            kind: OutcomeKind = "refused" if self._failure.status < 500 else "failed"
            return kind, self._failure.code, self._failure.status
        return ("ok", "", 200) if self._over else ("client_gone", "client_gone", 499)


def _shortened(one: Embedded, dimensions: int) -> Embedded:
    from smg_node.dialects.embeddings.dimensions import shortened  # few ask for it

    return replace(one, vector=shortened(one.vector, dimensions))


def _check_length(prepared: Prepared, contexts: Sequence[int | None]) -> None:
    """Refuse an input that is longer than every engine takes, as far as all of them say how much that is."""
    known = [context for context in contexts if context is not None]
    if known and len(contexts) == len(known) and len(prepared.ids) > max(known):
        most = max(known)
        raise prompt_too_long(len(prepared.ids), most, prepared.where, context=most)


def embeds(worker: Worker) -> bool:
    """Whether a worker's engine embeds, as far as its contract says."""
    return worker.engine is not None and worker.engine.abilities.embeds


def _first(errors: BaseExceptionGroup[SmgError]) -> SmgError:
    """Return the cause among errors of parallel calls: the first that is not a mere cancellation."""
    for error in errors.exceptions:
        if isinstance(error, SmgError):
            return error
        if isinstance(error, BaseExceptionGroup):
            return _first(error)
    raise AssertionError("a group holds an error")
