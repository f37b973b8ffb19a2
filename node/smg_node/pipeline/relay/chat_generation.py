"""Chat generation: generations on HTTP workers: sent as chats, parsed back into events.

APIs that translate or store the answer cannot use a worker's bytes. The call itself is relayed like
any other, with the same workers, limits and retries; only here the answer is parsed, so it is also
retried on another worker until its client has seen some of it: one that neither streams nor polls, never. Log probabilities aside, no token is known.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from smg_node.admission.ticket import Ticket
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Answer, Collector
from smg_node.core.generation.byte_sink import ByteSink
from smg_node.core.generation.events import Event, Fail, Usage
from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.core.ids import IdSource
from smg_node.core.ports import Clock
from smg_node.core.request_context import RequestContext
from smg_node.dialects.chat.listener import ChunkReader
from smg_node.dialects.chat.writer import call_ids, chat_fields
from smg_node.dialects.provider_dialect import AnswerListener
from smg_node.fleet.models.served_model import RelayedModel
from smg_node.pipeline.generation.event_iterator import pulled
from smg_node.pipeline.generation.event_outlet import EventOutlet, Receiver
from smg_node.pipeline.generation.event_sink import Ready, Receive
from smg_node.pipeline.generation.run_interface import Generations, Run
from smg_node.pipeline.placement.placer import Placer
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.pipeline.relay.answer_collector import AnswerCollector, ListenAs, begin_of
from smg_node.pipeline.relay.relay_context import Asks, Translation, first_known
from smg_node.pipeline.relay.relay_request import APIS, OWN, Relayable, relayable
from smg_node.pipeline.relay.relays import Relays
from smg_node.pipeline.stream.call_constraint import forms_of

if TYPE_CHECKING:
    from smg_node.pipeline.relay.relay_run import RelayRun

_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class ChatParts:
    """Collaborators of generations by HTTP workers; built once."""

    relays: Relays
    placer: Placer
    preparer: Preparer
    ids: IdSource
    clock: Clock


class AnyGenerations:
    """Starts generations, over gRPC or HTTP."""

    def __init__(self, engines: Generations, relays: Relays, preparer: Preparer) -> None:
        """Use `engines` for models that have gRPC engines, and relay chats for the others."""
        calls = relays.parts
        self._engines = engines
        self._parts = ChatParts(relays, calls.placer, preparer, calls.ids, calls.clock)

    def start(self, dialect: str, request: GenerateRequest, context: RequestContext) -> Run:
        """Return a run that has not begun."""
        return AnyRun(self._engines, self._parts, dialect, request, context)


class AnyRun:
    """One generation that picks gRPC or HTTP workers when it begins; see `run_interface.Run`."""

    def __init__(
        self,
        engines: Generations,
        parts: ChatParts,
        dialect: str,
        request: GenerateRequest,
        context: RequestContext,
    ) -> None:
        self._engines = engines
        self._parts = parts
        self._asked = (dialect, request, context)
        self._run: Run | None = None

    @property
    def ignored(self) -> tuple[str, ...]:
        """Parameters without effect."""
        return self._asked[1].ignored if self._run is None else self._run.ignored

    @property
    def worker(self) -> str:
        """Id of the worker in use, "" until one was chosen."""
        return "" if self._run is None else self._run.worker

    @property
    def attempts(self) -> int:
        """Engine calls."""
        return 0 if self._run is None else self._run.attempts

    @property
    def ticket(self) -> Ticket | None:
        """Admission ticket."""
        return None if self._run is None else self._run.ticket

    async def enter(self) -> None:
        """See `Run`."""
        await (await self._chosen()).enter()

    def leave(self) -> None:
        """See `Run`."""
        if self._run is not None:
            self._run.leave()

    async def events(self) -> AsyncGenerator[Sequence[Event], None]:
        """Yield the events of this generation; never raises SmgError."""
        told = (await self._chosen()).events()
        assert isinstance(told, AsyncGenerator), "events of a run can be closed"
        async with aclosing(told) as batches:
            async for batch in batches:
                yield batch

    async def tell(
        self, receive: Receive, ready: Ready | None = None, through: ByteSink | None = None
    ) -> None:
        """See `Run`."""
        await (await self._chosen()).tell(receive, ready, through)

    async def answer(self) -> Answer:
        """See `Run`."""
        return await (await self._chosen()).answer()

    async def _chosen(self) -> Run:
        if self._run is None:
            parts, (dialect, request, context) = self._parts, self._asked
            start = self._engines.start
            try:
                if parts.relays.takes(request.model) or isinstance(
                    await parts.placer.known(request.model, deadline_s=context.deadline_s),
                    RelayedModel,
                ):
                    start = partial(ChatRun, parts)
            except SmgError:
                # Told, and counted, by who would have generated, who need not wait for it once more.
                context = msgspec.structs.replace(context, deadline_s=parts.clock.monotonic_s())
            self._run = start(dialect, request, context)
        return self._run


class ChatRun:
    """One generation by HTTP workers; see `run_interface.Run`."""

    def __init__(
        self,
        parts: ChatParts,
        dialect: str,
        request: GenerateRequest,
        context: RequestContext,
        answer_id: str = "",
    ) -> None:
        self._parts = parts
        self._dialect = dialect
        self._request = request
        self._context = context
        self._id = answer_id or parts.ids.new("")
        self._run: RelayRun | None = None
        self._heard: AnswerCollector | None = None
        self._receiver: Receiver | None = None
        self._outlet: EventOutlet | None = None
        """Where own engines behind a route tell their answer, once they are called."""

    @property
    def ignored(self) -> tuple[str, ...]:
        """Parameters without effect."""
        outlet = self._outlet
        return self._request.ignored if outlet is None else outlet.ignored or self._request.ignored

    @property
    def worker(self) -> str:
        """Id of the worker in use, "" until one was chosen."""
        return "" if self._run is None else self._run.worker

    @property
    def attempts(self) -> int:
        """Calls of workers."""
        return 0 if self._run is None else self._run.attempts

    @property
    def ticket(self) -> Ticket | None:
        """Admission ticket."""
        return None if self._run is None else self._run.meter.ticket

    async def enter(self) -> None:
        """See `Run`."""
        await (await self._written()).enter()

    def leave(self) -> None:
        """See `Run`."""
        if self._run is not None:
            self._run.leave()

    def events(self) -> AsyncGenerator[Sequence[Event], None]:
        """Yield the events of this generation; never raises SmgError."""
        if self._parts.relays.routed(self._request.model):
            return pulled(self.tell)
        return self._events()

    async def tell(
        self, receive: Receive, ready: Ready | None = None, through: ByteSink | None = None
    ) -> None:
        """See `Run`."""
        self._receiver = Receiver(receive, ready, through)
        async with aclosing(self._events()) as batches:
            async for events in batches:
                if receive(events) and ready is not None:
                    await ready()

    async def answer(self) -> Answer:
        """See `Run`."""
        collector = Collector(self._request.choices)
        self._receiver = Receiver(collector.feed, whole=True)
        async with aclosing(self._events()) as batches:
            async for events in batches:
                collector.feed(events)
        outlet = self._outlet
        whole = None if outlet is None else outlet.answer
        return collector.answer() if whole is None else whole

    async def _events(self) -> AsyncGenerator[Sequence[Event], None]:
        """Yield the events of this generation that its outlet has not had."""
        failure: SmgError | None = None
        try:
            run = await self._written()
            async with aclosing(run.answer()) as pieces:
                async for _ in pieces:
                    told = self._told()
                    if told:
                        yield told
        except SmgError as error:
            failure = error
        if self._outlet is None or not self._outlet.ended:
            yield self._ending(failure)

    def _told(self) -> list[Event]:
        return [] if self._heard is None else self._heard.take()

    def _ending(self, failure: SmgError | None) -> list[Event]:
        """Return the remaining events: a finished answer is whole, however the call ended
        afterwards.
        """
        heard = self._heard
        if heard is None:
            assert failure is not None, "somebody answered"
            return [Fail(failure)]
        run = self._run
        assert run is not None, "somebody was asked"
        # Of two workers the first one knows what was cached, and may say so after the second one's last word.
        cached = first_known(run.found, -1)
        told = heard.ending(failure)
        return told if cached < 0 else [_recounted(event, cached) for event in told]

    async def _written(self) -> "RelayRun":
        """Return the call, written when it is first needed; INVALID_REQUEST for what no chat can
        carry.
        """
        if self._run is None:
            parts, request = self._parts, self._request
            await parts.preparer.constraint(request.sampling.constraint)
            for prompt in request.prompts:
                for form in forms_of(prompt) if isinstance(prompt, ChatPrompt) else ():
                    await parts.preparer.constraint(form)
            asked = self._relayable()
            asks = Asks(
                self._dialect,
                request.stream,
                self._id,
                lambda listen_as: self._listen(asked.prompt_tokens, listen_as),
                lambda: Translation(request),
                outlet=self._opened,
            )
            key = request.routing_key or ""
            self._run = parts.relays.start(asked, {}, self._context, key, asks)
        return self._run

    def _opened(self, _translation: Translation) -> EventOutlet:
        receiver, request = self._receiver, self._request
        if receiver is None:
            raise SmgError(ErrorKind.OVERLOADED, "the route has changed meanwhile: ask again")
        self._outlet = EventOutlet(receiver, seen=request.stream or request.polled)
        return self._outlet

    def _relayable(self) -> Relayable:
        """Return the request as HTTP workers are sent it; as one for own engines alone where no chat can carry it."""
        request = self._request
        routed = self._parts.relays.routed(request.model)
        try:
            if not routed or isinstance(request.prompts[0], ChatPrompt):
                fields = chat_fields(request)
                return relayable(APIS["chat"], _encode(fields), fields)
        except SmgError:
            if not routed:
                raise
        return relayable(OWN, b"{}", {"model": request.model}, streamed=request.stream)

    def _listen(self, prompt_tokens: int, listen_as: ListenAs | None) -> AnswerCollector:
        """Return the listener of a call; the call before it gave no output."""
        request = self._request
        prompt = request.prompts[0]
        assert isinstance(prompt, ChatPrompt), "only turns are told as a chat"
        begin = begin_of(request, self._id, self._parts.clock.now_ms())
        taken = call_ids(prompt)
        if listen_as is None:
            reader: AnswerListener = ChunkReader(begin, prompt_tokens=prompt_tokens, taken=taken)
        else:
            reader = listen_as(begin, prompt_tokens, taken)
        self._heard = AnswerCollector(reader, seen=request.stream or request.polled)
        return self._heard


def _recounted(event: Event, cached: int) -> Event:
    if not isinstance(event, Usage):
        return event
    return msgspec.structs.replace(event, cached_tokens=min(cached, event.prompt_tokens))
