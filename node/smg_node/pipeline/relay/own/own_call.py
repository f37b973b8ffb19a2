"""Own call: one call of a target of own engines: the model's servers are found, asked, and their answer told.

    gRPC engines       the request is read here, if it was not, and generated as any other; its events go to the client
                       at once, past the bytes of a relayed answer
    HTTP servers       they are sent the client's bytes in Chat and Completions, and asked in Chat for all other APIs

Until the client has had a word, another target may answer instead. Where others could be called, this one is not
waited for: its refusal then is no attempt.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.request_context import RequestContext
from smg_node.engines.http.http_engine import RelayRequest
from smg_node.engines.http.status_mapping import not_implemented
from smg_node.fleet.models.served_model import AnyModel, RelayedModel, ServedModel
from smg_node.pipeline.generation.generation_context import GenerationParts
from smg_node.pipeline.generation.run_interface import Run
from smg_node.pipeline.placement.decider import RETRY_AFTER_S
from smg_node.pipeline.relay.chat_generation import ChatParts, ChatRun
from smg_node.pipeline.relay.own.own_generation import OwnGeneration
from smg_node.pipeline.relay.own.own_relay import OwnRelays
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.relay_context import Outlet, TargetAsked
from smg_node.pipeline.relay.relay_request import APIS
from smg_node.pipeline.relay.response_filter import UsageReader

TOLD: Final = Head(200, "text/event-stream", {}, events=True, told=True)
WHOLE: Final = Head(200, "application/json", {}, whole=True)


class OwnEnginesCall:
    """One call of the target that stands for the model `name`; see `relay_context.OwnCall`."""

    def __init__(
        self,
        engines: GenerationParts,
        told: TargetAsked,
        name: str,
        spoke: Callable[[], None],
        *,
        patient: bool,
    ) -> None:
        self._engines = engines
        self.usage = UsageReader()
        self.first_s: float | None = None
        """When the first word came, on the monotonic clock."""
        self.continuations = 0
        self.oddities: Mapping[str, int] = {}
        self._told = told
        self._name = name
        self._spoke = spoke
        self._patient = patient
        self._run: Run | None = None
        self._relays: OwnRelays | None = None
        self._outlet: Outlet | None = None

    @property
    def worker(self) -> str:
        """Id of the server in use, "" until one was chosen."""
        relayed = None if self._relays is None else self._relays.run
        return (relayed or self._run or _NOBODY).worker

    @property
    def said(self) -> bool:
        """Whether the client has had a word past what `answer` yields."""
        return self._outlet is not None and self._outlet.said

    @property
    def streamed(self) -> bool:
        """Whether the answer came bit by bit."""
        return self._told.asked.streamed or self._told.asks.streamed

    def would_wait(self, error: SmgError) -> bool:
        """Whether it failed because a server would have had to be waited for, and none was called."""
        return not self._patient and not self.worker and error.kind is ErrorKind.OVERLOADED

    async def answer(self, request: RelayRequest) -> AsyncGenerator[Head | bytes, None]:
        """Yield the answer's head and body; a head that is `told` where the client has it already."""
        model = await self._model()
        relays = self._relayed_to(model) if isinstance(model, RelayedModel) else None
        # What is not called so is a dialect that these servers are not sent, and its events are asked for.
        passes = relays is not None and self._told.asked.api.name in APIS
        pieces = self._passed(relays) if relays is not None and passes else self._generated(model)
        async with aclosing(pieces) as told:
            async for piece in told:
                yield piece
        self._spoke()

    # ── Ways ─────────────────────────────────────────────────────────────────

    async def _passed(self, relays: OwnRelays) -> AsyncGenerator[Head | bytes, None]:
        """Yield what a server answers to the client's own bytes."""
        told = self._told
        run = relays.start(told.asked, told.headers, self._context(), told.key, told.asks)
        try:
            async with aclosing(run.answer()) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            self._book_relayed(relays)

    async def _generated(self, model: AnyModel) -> AsyncGenerator[Head | bytes, None]:
        """Have the events of an answer told to the client; yield the whole of one that is not streamed."""
        asks = self._told.asks
        if asks.translate is None or asks.outlet is None:
            raise not_implemented(
                f"own engines are not asked for {self._told.asked.api.paths[0]} by a route"
            )
        translation = asks.translate()
        wish = translation.wish
        if self._told.key and not wish.routing_key:
            wish = msgspec.structs.replace(wish, routing_key=self._told.key)
        self._outlet = outlet = asks.outlet(translation)
        if isinstance(model, ServedModel):
            self._run = run = self._generation(model, wish)
            try:
                whole = await outlet.tell(run)
            finally:
                self._book_generated(run)
        else:
            assert self._relays is not None, "it has HTTP servers"
            self._run = self._chat(self._relays, wish)
            try:
                whole = await outlet.tell(self._run)
            finally:
                self._book_relayed(self._relays)
        if whole is None:
            yield TOLD
            return
        yield WHOLE
        yield whole

    def _generation(self, model: ServedModel, wish: GenerateRequest) -> OwnGeneration:
        told = self._told
        run = OwnGeneration(self._engines, self._context(), told.asks.dialect, wish, wish.ignored)
        run.begun(model, told.model, told.story)
        run.ticket, run.patient = told.meter.hand_over(), self._patient
        return run

    def _chat(self, relays: OwnRelays, wish: GenerateRequest) -> Run:
        told, calls = self._told, self._told.parts
        parts = ChatParts(relays, calls.placer, self._engines.preparer, calls.ids, calls.clock)
        return ChatRun(parts, told.asks.dialect, wish, self._context(), told.asks.answer)

    # ── Beginning and end ────────────────────────────────────────────────────

    async def _model(self) -> AnyModel:
        """Return the model, its files read; OVERLOADED `no_worker_available` where none is registered for it."""
        told, placer, fleet = self._told, self._told.parts.placer, self._told.parts.fleet
        clock, deadline_s = told.parts.clock, told.context.deadline_s
        until_s = min(clock.monotonic_s() + placer.patience_s, deadline_s)
        while (found := placer.own.model(self._name)) is None:
            left_s = until_s - clock.monotonic_s()
            if not (self._patient and fleet.unknown_yet() and left_s > 0):
                raise SmgError(
                    ErrorKind.OVERLOADED,
                    f"no worker of this cluster serves {self._name!r} now",
                    code="no_worker_available",
                    retry_after_s=RETRY_AFTER_S,
                )
            fleet.doubt_unknown()
            await fleet.wait_changed(left_s)
        if isinstance(found, ServedModel) and found.unread is not None:
            await placer.read(found, deadline_s)
        return found

    def _relayed_to(self, model: RelayedModel) -> OwnRelays:
        told = self._told
        self._relays = OwnRelays(told.parts, model, told.model, told.story, patient=self._patient)
        return self._relays

    def _context(self) -> RequestContext:
        told = self._told
        token = told.asks.answer or told.context.token
        return msgspec.structs.replace(told.context, target_worker=None, token=token)

    def _book_generated(self, run: OwnGeneration) -> None:
        used, usage = run.usage, self.usage
        usage.prompt_tokens, usage.completion_tokens = used.prompt_tokens, used.completion_tokens
        usage.cached_tokens, usage.tells_cached = used.cached_tokens, True
        self.first_s, self.continuations = run.first_token_s, run.continuations
        self.oddities = run.oddities

    def _book_relayed(self, relays: OwnRelays) -> None:
        run, usage = relays.run, self.usage
        if run is None:
            return
        used = run.usage
        usage.prompt_tokens, usage.completion_tokens = used.prompt_tokens, used.completion_tokens
        usage.cached_tokens, usage.tells_cached = used.cached_tokens, used.tells_cached
        self.first_s = run.first_s


class _Nobody:
    worker = ""


_NOBODY: Final = _Nobody()
