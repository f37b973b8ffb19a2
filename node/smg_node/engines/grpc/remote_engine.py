"""Remote engine: one engine endpoint behind a gRPC transport: its contract, its limits, all of its
calls.

A call whose answer is complete is given a moment to end by itself: resetting a stream that is about
to end looks like an attack to some servers and proxies, which count premature resets. Aborts that
no caller waits for belong to the transport; there are no tasks here.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

from msgspec import structs

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import Sampling
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.engines.chunk import Chunk
from smg_node.engines.chunk_stream import ChunkStream, pulled
from smg_node.engines.contracts.request_template import KINDS_MAX
from smg_node.engines.contracts.sampling_rules import with_defaults
from smg_node.engines.contracts.wire import (
    ABORT,
    EMBED,
    ENCODE,
    GENERATE,
    GET_LOADS,
    GET_MODEL_INFO,
    GET_SERVER_INFO,
    GET_TOKENIZER,
    HEALTH_CHECK,
    NOWHERE,
    SUBSCRIBE_KV_EVENTS,
    EncodeWire,
    Places,
    Wire,
    embed_wire,
)
from smg_node.engines.engine import Embedded, EmbedRequest, EngineRequest, ModelCard, Prefilled
from smg_node.engines.engine_options import EngineOptions, Observe, unobserved
from smg_node.engines.grpc.generate_call import RemoteCall
from smg_node.engines.grpc.health_check import HEALTH_CHECK as STANDARD_HEALTH_CHECK
from smg_node.engines.grpc.health_check import SERVING, health_request, health_status
from smg_node.engines.grpc.kv_event_reader import SUBSCRIPTION_S, KvReader, kv_error, kv_request
from smg_node.engines.grpc.prefill_reader import HandoverReader
from smg_node.engines.grpc.stream_reader import StreamReader, UnknownFinishError
from smg_node.engines.grpc.tokenizer_download import read_bundle
from smg_node.engines.kv_events import CURSOR_CODE, LOST_CODE, KvBatch
from smg_node.engines.load import Load
from smg_node.engines.tokenizer_archive import broken
from smg_node.engines.transport.grpc_status import closed_here, smg_error
from smg_node.engines.transport.message_pieces import Body
from smg_node.engines.transport.stream_timeouts import Limit, Watches, too_late
from smg_node.engines.transport.transport import (
    MessageStream,
    StatusCode,
    Transport,
    TransportError,
)

if TYPE_CHECKING:
    from smg_node.engines.grpc.media_call import MediaCalls

ABORT_TIMEOUT_S: Final = 5.0
DEADLINE_SLACK_S: Final = 0.1
"""The transport's own timer for the same deadline may be that much ahead of ours."""
REASONS_LOGGED_MAX: Final = 64
"""Unknown finish reasons are logged once each; an engine that invents them must not fill the log."""

_log = logging.getLogger("smg_node.engines")


class RemoteEngine:
    """One engine endpoint behind one contract; see `engine.Engine`."""

    def __init__(
        self,
        transport: Transport,
        wire: Wire,
        options: EngineOptions,
        *,
        on_event: Observe = unobserved,
    ) -> None:
        self.contract = wire.contract
        self.abilities = wire.abilities
        self._transport = transport
        self._wire = wire
        self._options = options
        self._on_event = on_event
        self._generate_path = self._path(GENERATE)
        self._running: dict[str, RemoteCall] = {}
        self._watches: Watches | None = None
        self._defaults: Mapping[str, float] = {}
        self._filled: dict[int, tuple[Sampling, Sampling]] = {}
        """Ways to draw as they were asked for, and with `_defaults`; the former is held, so that it stays itself."""
        self._bias_width: int | None = None
        self._media: MediaCalls | None = None
        self._reasons_logged, self._closed = set[str](), False

    @property
    def target(self) -> str:
        """The engine's host:port."""
        return self._transport.target

    async def serving(self, timeout_s: float) -> bool:
        """Whether the standard health service says SERVING for this contract's service.

        An engine without that service (TensorRT-LLM) is asked by its own HealthCheck.
        """
        request = health_request(self._wire.service)
        try:
            data = await self._transport.unary(STANDARD_HEALTH_CHECK, request, timeout_s=timeout_s)
        except TransportError as error:
            if error.status is StatusCode.UNIMPLEMENTED:
                return await self.healthy(timeout_s)
            if error.status is StatusCode.NOT_FOUND:
                return False
            self._raise(error)
        return health_status(data) == SERVING

    async def healthy(self, timeout_s: float) -> bool:
        """Whether the contract's own HealthCheck is content; may run a token through the engine."""
        return self._wire.healthy(await self._ask(HEALTH_CHECK, b"", timeout_s))

    async def card(self, timeout_s: float) -> ModelCard:
        """Return GetModelInfo and GetServerInfo, normalised. Remembered for later requests' defaults."""
        until_s = asyncio.get_running_loop().time() + timeout_s
        model = await self._ask(GET_MODEL_INFO, b"", timeout_s)
        left_s = max(until_s - asyncio.get_running_loop().time(), 0.001)
        try:
            server = await self._transport.unary(self._path(GET_SERVER_INFO), b"", timeout_s=left_s)
        except TransportError as error:
            if error.status is not StatusCode.UNIMPLEMENTED:
                self._raise(error)
            server = b""
        card = self._wire.card(model, server)
        self._defaults = card.sampling_defaults
        self._filled.clear()
        self.abilities = card.abilities or self._wire.abilities
        self._bias_width = self._wire.bias_width(model)
        if card.media is not None or self._media is not None:
            await self._pictures().meet(card.media)
        return card

    async def tokenizer(self, timeout_s: float) -> TokenizerBundle:
        """Fetch the tokenizer by GetTokenizer: SHA-256 checked, bounded, safely unzipped."""
        origin = f"{self.contract.value} at {self.target}"
        stream = self._start(GET_TOKENIZER, b"", timeout_s)
        try:
            return await read_bundle(
                stream, origin=origin, max_bytes=self._options.bundle_max_bytes
            )
        except TransportError as error:
            if error.status is StatusCode.UNIMPLEMENTED:
                raise broken(origin, "the engine has no GetTokenizer") from error
            self._raise(error)
        finally:
            stream.cancel()

    async def loads(self, timeout_s: float) -> Sequence[Load]:
        """Return the present load per rank; UPSTREAM_FAILED with status 501 where there is no RPC."""
        request = self._wire.loads_request()
        return self._wire.loads(await self._ask(GET_LOADS, request, timeout_s))

    async def kv_events(self, start: int) -> AsyncGenerator[Sequence[KvBatch], None]:
        """Stream the changes of its prefix cache; see `Engine.kv_events`."""
        if self._closed:
            raise closed_here()
        reader = KvReader()
        stream = self._start(SUBSCRIBE_KV_EVENTS, kv_request(start), SUBSCRIPTION_S)
        try:
            async for batch in stream:
                yield [reader.read(data) for data in batch]
        except TransportError as error:
            if self._closed:
                raise closed_here() from error
            why = kv_error(error)
            # The others are how engines say what they do not do.
            if why.status != 501 and why.code not in (CURSOR_CODE, LOST_CODE):
                self._count("engine_error", status=error.status.name)
            raise why from error
        finally:
            stream.cancel()

    def generate(self, request: EngineRequest) -> AsyncGenerator[Sequence[Chunk], None]:
        """Stream the answer; see `Engine.generate`."""
        return pulled(lambda: self.call(request))

    def call(self, request: EngineRequest) -> ChunkStream:
        """Begin a call; see `Engine.call`. One whose tensors go through shared memory begins when it is read."""
        reader = StreamReader.of(request.sampling, self._wire)
        stall_s = self._options.stall_s if request.stream else None
        return self._start_call(request, reader, stall_s)

    async def prefill(self, request: EngineRequest) -> Prefilled:
        """Work a prompt off for another engine; see `Engine.prefill`.

        From its first word on an engine may be silent until its partner has fetched the blocks.
        """
        assert request.stream, "only a stream shows that the engine lives"
        assert request.sampling.n == 1, "blocks are kept for one answer"
        reader = HandoverReader.of(request.sampling, self._wire)
        call = self._start_call(request, reader, None)
        try:
            await call.pour(lambda _chunks: True)
        finally:
            await call.aclose()
        return replace(reader.prefilled, shared=getattr(call, "shared", False))

    async def embed(self, request: EmbedRequest) -> Embedded:
        """Return the embedding of one text; see `Engine.embed`."""
        wire = embed_wire(self._wire)
        return wire.embedded(await self._work(self._path(EMBED), wire.embed(request), request))

    async def encode(self, request: EngineRequest) -> None:
        """Encode a picture for another engine; see `Encoder`. Without a service for it, a token is drawn after it."""
        wire = self._wire
        if isinstance(wire, EncodeWire):
            path = f"/{wire.encoder_service}/{ENCODE}"
            await self._pictures().encode(request, lambda data: self._work(path, data, request))
        else:
            await self.prefill(request)

    async def abort(self, request_id: str) -> None:
        """Drop a request: its stream here ends with `abort`, and the engine is told as well.

        Waits for the engine's word, not for the stream: one engine never ends an aborted stream.
        """
        running = self._running.get(request_id)
        if running is not None:
            running.abort()
        await self._ask(ABORT, self._wire.abort(request_id), ABORT_TIMEOUT_S)

    def retune(self, *, first_event_s: float, stall_s: float) -> None:
        """See `Engine.retune`."""
        self._options = replace(self._options, first_event_s=first_event_s, stall_s=stall_s)

    async def close(self) -> None:
        """Close all connections; running streams end with UPSTREAM_FAILED `worker_removed`."""
        self._closed = True
        await self._transport.close()

    def _path(self, method: str) -> str:
        return f"/{self._wire.service}/{method}"

    async def _ask(self, method: str, request: bytes, timeout_s: float) -> bytes:
        try:
            return await self._transport.unary(self._path(method), request, timeout_s=timeout_s)
        except TransportError as error:
            self._raise(error)

    async def _work(self, path: str, data: Body, request: EngineRequest | EmbedRequest) -> bytes:
        if self._closed:
            raise closed_here()
        try:
            return await self._transport.unary(
                path, data, timeout_s=request.timeout_s, headers=request.headers, work=True
            )
        except TransportError as error:
            if self._closed:
                raise closed_here() from error
            self._raise(error)

    def _start(self, method: str, data: bytes, timeout_s: float) -> MessageStream:
        try:
            return self._transport.stream(self._path(method), data, timeout_s=timeout_s)
        except TransportError as error:
            self._raise(error)

    def _pictures(self) -> "MediaCalls":
        if self._media is None:
            # With the first engine that takes pictures: a node that sees none loads none of it.
            from smg_node.engines.grpc.media_call import MediaCalls

            self._media = MediaCalls(self._wire, self._options, self.target)
        return self._media

    def _start_call(
        self, request: EngineRequest, reader: StreamReader, stall_s: float | None
    ) -> ChunkStream:
        if request.media is None:
            return self._begin(request, reader, stall_s)

        def begin(request: EngineRequest, places: Places) -> RemoteCall:
            return self._begin(request, reader, stall_s, places)

        return self._pictures().call(request, begin, reader.plain)

    def _begin(
        self,
        request: EngineRequest,
        reader: StreamReader,
        stall_s: float | None,
        places: Places = NOWHERE,
    ) -> RemoteCall:
        if self._closed:
            raise closed_here()
        assert request.request_id not in self._running, "a request id is used once"
        assert request.timeout_s > 0
        watches = self._watches
        if self._defaults:
            request = self._with_defaults(request)
        if request.media is None:
            data: Body = self._wire.generate(request, bias_width=self._bias_width)
        else:
            data = self._pictures().body(request, self._bias_width, places)
        if watches is None:
            self._watches = watches = Watches(asyncio.get_running_loop())
        try:
            stream = self._transport.stream(
                self._generate_path, data, timeout_s=request.timeout_s, headers=request.headers
            )
        except TransportError as error:
            self._raise(error)
        # An answer that is not streamed is silent until it is whole.
        first_event_s: float | None = None
        if request.stream:
            first_event_s = self._options.first_event_s
            if request.silences:
                first_event_s /= 1 + request.silences
        running = RemoteCall(
            self, request, stream, reader, watches, first_event_s=first_event_s, stall_s=stall_s
        )
        self._running[request.request_id] = running
        return running

    def _with_defaults(self, request: EngineRequest) -> EngineRequest:
        """Return `request` with the model's own defaults where it says nothing: the same for the same way to draw."""
        sampling = request.sampling
        known = self._filled.get(id(sampling))
        if known is not None and known[0] is sampling:
            filled = known[1]
        else:
            filled = with_defaults(sampling, self._defaults)
            # Schemas are large and seldom the same object: those are not held on to.
            if sampling.constraint is None and not sampling.logit_bias:
                if len(self._filled) >= KINDS_MAX:
                    self._filled.clear()
                self._filled[id(sampling)] = (sampling, filled)
        return request if filled is sampling else structs.replace(request, sampling=filled)

    def finish(self, running: RemoteCall) -> None:
        """Let go of a call, however it ended. Never waits."""
        self._running.pop(running.request_id, None)
        if running.abandoned:
            self._tell_to_stop(running.request_id)

    def _tell_to_stop(self, request_id: str) -> None:
        """Say Abort in addition to the reset, which a proxy before the engine may have swallowed."""
        if self._closed:
            return
        data = self._wire.abort(request_id)
        sent = self._transport.notify(self._path(ABORT), data, timeout_s=ABORT_TIMEOUT_S)
        self._count("engine_abort", sent="true" if sent else "false")

    def why(self, running: RemoteCall, error: TransportError) -> SmgError:
        """Count it, and return the error that callers of a stream broken at the transport get."""
        bitten = running.bitten
        if bitten is None and self._closed:
            return closed_here()
        if bitten is None:
            late = error.status is StatusCode.DEADLINE_EXCEEDED
            if late and running.past_deadline(slack_s=DEADLINE_SLACK_S):
                # The transport was quicker than the watch; the engine is told as well.
                bitten = Limit.DEADLINE
            else:
                running.ended = True
        if bitten is not None:
            self._count("engine_timeout", limit=bitten.value)
            return too_late(bitten, running.allowed_s(bitten))
        self._count("engine_error", status=error.status.name)
        return smg_error(error)

    def note_broken(self, error: SmgError) -> None:
        """Count a stream whose messages made no sense; log a new reason once."""
        if not isinstance(error, UnknownFinishError):
            self._count("engine_error", status=error.code)
            return
        self._count("engine_unknown_finish", reason=error.reason)
        logged = self._reasons_logged
        if error.reason not in logged and len(logged) < REASONS_LOGGED_MAX:
            logged.add(error.reason)
            _log.warning(
                "%s at %s ended an answer with the unknown reason %r",
                self.contract.value,
                self.target,
                error.reason,
            )

    def _raise(self, error: TransportError) -> NoReturn:
        self._count("engine_error", status=error.status.name)
        raise smg_error(error) from error

    def _count(self, name: str, **labels: str) -> None:
        self._on_event(name, {"contract": self.contract.value, **labels})
