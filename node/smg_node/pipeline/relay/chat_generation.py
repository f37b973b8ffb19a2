"""Chat generation: generations on HTTP workers: sent as chats, parsed back into events.

APIs that translate or store the answer cannot use a worker's bytes. The call itself is relayed like
any other, with the same workers, limits and retries; only here the answer is parsed, so it is also
retried on another worker until its client has seen some of it: one that neither streams nor polls, never. Log probabilities aside, no token is known.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from smg_node.admission.ticket import Ticket
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Answer
from smg_node.core.generation.byte_sink import ByteSink
from smg_node.core.generation.events import UNSAID, Begin, Event, Fail, Usage
from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.core.ids import IdSource
from smg_node.core.ports import Clock
from smg_node.core.request_context import RequestContext
from smg_node.dialects.chat.listener import ChunkReader
from smg_node.dialects.chat.writer import call_ids, chat_fields
from smg_node.dialects.worker_errors import WorkerError
from smg_node.engines.transport.grpc_status import CLOSED_CODE, DEADLINE_CODE, UNREACHABLE_CODE
from smg_node.fleet.models.served_model import RelayedModel
from smg_node.pipeline.generation.event_sink import Ready, Receive
from smg_node.pipeline.generation.run_interface import Generations, Run, collected
from smg_node.pipeline.placement.placer import Placer
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.relay_context import Asks, first_known
from smg_node.pipeline.relay.relay_request import APIS, relayable
from smg_node.pipeline.relay.relay_run import RelayRun
from smg_node.pipeline.relay.relays import Relays
from smg_node.pipeline.relay.worker_answers import failure_of
from smg_node.pipeline.retry import STALLED_CODE
from smg_node.pipeline.stream.call_constraint import forms_of

WHOLE_MAX_BYTES: Final = 16 * 1024 * 1024
"""An answer that is not streamed, though it was to be, may be so long."""
_CUT_CODES: Final = frozenset({UNREACHABLE_CODE, CLOSED_CODE, STALLED_CODE, DEADLINE_CODE})
"""Codes of a call that came to no end of its own: what its worker had finished before stays finished."""
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class _Parts:
    """Collaborators of all generations; built once. `engines` generates for models with gRPC
    engines.
    """

    engines: Generations
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
        self._parts = _Parts(engines, relays, calls.placer, preparer, calls.ids, calls.clock)

    def start(self, dialect: str, request: GenerateRequest, context: RequestContext) -> Run:
        """Return a run that has not begun."""
        return AnyRun(self._parts, dialect, request, context)


class AnyRun:
    """One generation that picks gRPC or HTTP workers when it begins; see `run_interface.Run`."""

    def __init__(
        self, parts: _Parts, dialect: str, request: GenerateRequest, context: RequestContext
    ) -> None:
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
            start = parts.engines.start
            try:
                model = await parts.placer.known(request.model, deadline_s=context.deadline_s)
                if isinstance(model, RelayedModel):
                    start = partial(ChatRun, parts)
            except SmgError:
                # Told, and counted, by who would have generated, who need not wait for it once more.
                context = msgspec.structs.replace(context, deadline_s=parts.clock.monotonic_s())
            self._run = start(dialect, request, context)
        return self._run


class ChatRun:
    """One generation by HTTP workers; see `run_interface.Run`."""

    def __init__(
        self, parts: _Parts, dialect: str, request: GenerateRequest, context: RequestContext
    ) -> None:
        self.ignored = request.ignored
        self._parts = parts
        self._dialect = dialect
        self._request = request
        self._context = context
        self._id = parts.ids.new("")
        self._run: RelayRun | None = None
        self._heard: AnswerCollector | None = None

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

    async def events(self) -> AsyncGenerator[Sequence[Event], None]:
        """Yield the events of this generation; never raises SmgError."""
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
        yield self._ending(failure)

    async def tell(
        self, receive: Receive, ready: Ready | None = None, through: ByteSink | None = None
    ) -> None:
        """See `Run`."""
        async with aclosing(self.events()) as batches:
            async for events in batches:
                if receive(events) and ready is not None:
                    await ready()

    async def answer(self) -> Answer:
        """See `Run`."""
        return await collected(self, self._request.choices)

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

    async def _written(self) -> RelayRun:
        """Return the call, written when it is first needed; INVALID_REQUEST for what no chat can
        carry.
        """
        if self._run is None:
            parts, request = self._parts, self._request
            await parts.preparer.constraint(request.sampling.constraint)
            for prompt in request.prompts:
                for form in forms_of(prompt) if isinstance(prompt, ChatPrompt) else ():
                    await parts.preparer.constraint(form)
            fields = chat_fields(request)
            asked = relayable(APIS["chat"], _encode(fields), fields)
            asks = Asks(
                self._dialect, request.stream, self._id, lambda: self._listen(asked.prompt_tokens)
            )
            key = request.routing_key or ""
            self._run = parts.relays.start(asked, {}, self._context, key, asks)
        return self._run

    def _listen(self, prompt_tokens: int) -> "AnswerCollector":
        """Return the listener of a call; the call before it gave no output."""
        request = self._request
        prompt = request.prompts[0]
        assert isinstance(prompt, ChatPrompt), "only turns are told as a chat"
        temperature, top_p = request.sampling.temperature, request.sampling.top_p
        begin = Begin(
            id=self._id,
            model=request.model,
            created_s=self._parts.clock.now_ms() // 1000,
            prompt_tokens=0,
            temperature=UNSAID if temperature is None else temperature,
            top_p=UNSAID if top_p is None else top_p,
        )
        reader = ChunkReader(begin, prompt_tokens=prompt_tokens, taken=call_ids(prompt))
        self._heard = AnswerCollector(reader, seen=request.stream or request.polled)
        return self._heard


class AnswerCollector:
    """Collects the events of one call.

    Where its client does not see them before they are whole, not `seen`, they are told at the end
    only: until then another worker may answer instead.
    """

    def __init__(self, reader: ChunkReader, *, seen: bool) -> None:
        self._reader = reader
        self._seen = seen
        self._out: list[Event] = []
        self._head: Head | None = None
        self._body = bytearray()
        self._ended = False

    def hear(self, piece: Head | bytes) -> bool:
        """Feed a piece; whether there are events to send."""
        if isinstance(piece, Head):
            self._head = piece
            return False
        head = self._head
        assert head is not None, "an answer begins with its head"
        if head.events:
            with _understood():
                self._reader.feed(piece, self._out)
            return self._seen and bool(self._out)
        self._body += piece
        if len(self._body) > WHOLE_MAX_BYTES:
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "the worker did not stream its answer")
        return False

    def over(self) -> None:
        """End the answer; UPSTREAM_FAILED if it is not complete."""
        head = self._head
        assert head is not None, "an answer begins with its head"
        with _understood():
            if not head.events:
                self._reader.feed_whole(bytes(self._body), self._out)
            self._reader.end(self._out)
        self._ended = True

    def take(self) -> list[Event]:
        """Return the events since the last call."""
        out, self._out = self._out, []
        return out

    def ending(self, failure: SmgError | None) -> list[Event]:
        """Return the last events of the generation, whose call ended with `failure` or with its
        end.
        """
        cut = failure is not None and failure.code in _CUT_CODES
        if not self._ended and cut and self._reader.finished:
            try:
                self._reader.end(self._out)
                self._ended = True
            except (SmgError, WorkerError):
                pass
        if not self._ended:
            assert failure is not None, "what ends well ends itself"
            self._reader.fail(failure, self._out)
        return self.take()


def _recounted(event: Event, cached: int) -> Event:
    if not isinstance(event, Usage):
        return event
    return msgspec.structs.replace(event, cached_tokens=min(cached, event.prompt_tokens))


@contextmanager
def _understood() -> Iterator[None]:
    """Map a worker's error text to its HTTP status, also in the middle of a stream."""
    try:
        yield
    except WorkerError as said:
        raise failure_of(said, None) from said
