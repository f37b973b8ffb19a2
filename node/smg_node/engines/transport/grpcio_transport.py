"""Transport over grpcio: correct and complete, at about 15 us a message.

Serializers are the identity, so nothing but bytes crosses. The library reads one message per `read`
and lets HTTP/2 flow control hold the rest back.

gRPC core's "reconnect backoff" knobs are what bounds a connection attempt: an attempt may take
`min_reconnect_backoff_ms`, and a call made meanwhile fails with the attempt. Channels do not share
sockets (`use_local_subchannel_pool`), or two channels to one engine would be one connection.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import grpc
import grpc.aio

from smg_node.engines.transport.message_pieces import Body, MessagePieces
from smg_node.engines.transport.transport import (
    MessageStream,
    StatusCode,
    Take,
    TransportError,
    TransportOptions,
    check_size,
    metadata_of,
)

NOTICES_MAX: Final = 1024
"""Calls without a reader that may be under way; each is a few hundred bytes and ends by its timeout."""

_PING_ANSWER_S: Final = 10.0
_RECONNECT_FIRST_MS: Final = 100
_RECONNECT_MAX_MS: Final = 1000
_TRAILERS_MAX: Final = 32
_TRAILER_MAX_CHARACTERS: Final = 2048
_END: Final[object] = vars(grpc.aio)["EOF"]  # missing in the published stubs
_TOO_LARGE: Final = "CLIENT: Received message larger than max"


class GrpcioTransport:
    """One to two channels to one engine. Make it inside the running loop that will use it."""

    def __init__(self, target: str, options: TransportOptions) -> None:
        assert 1 <= options.connections <= 2, (
            "one connection per stream loses, and so does one for all"
        )
        self.target = target
        self._options = options
        self._channels = [_channel(target, options) for _ in range(options.connections)]
        self._next = 0
        self._methods: dict[tuple[int, str, bool], Any] = {}
        self._streams: set[GrpcioStream] = set()
        self._notices: set[grpc.aio.Call] = set()
        self._closed = False

    async def unary(
        self,
        method: str,
        request: Body,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
        work: bool = False,
    ) -> bytes:
        """See `Transport`; the library keeps one line, so `work` and questions wait alike."""
        data = self._checked(request)
        try:
            answer: bytes = await self._callable(method, streamed=False)(
                data, timeout=timeout_s, metadata=tuple(metadata_of(headers))
            )
        except grpc.aio.AioRpcError as error:
            raise _translated(error) from None
        except asyncio.CancelledError:
            if _task_is_cancelled():
                raise
            raise _dropped() from None
        return answer

    def stream(
        self,
        method: str,
        request: Body,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> MessageStream:
        """See `Transport`."""
        call = self._callable(method, streamed=True)(
            self._checked(request), timeout=timeout_s, metadata=tuple(metadata_of(headers))
        )
        stream = GrpcioStream(call)
        self._streams.add(stream)
        call.add_done_callback(lambda _: self._streams.discard(stream))
        return stream

    def notify(
        self,
        method: str,
        request: Body,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> bool:
        """See `Transport`."""
        if self._closed or len(self._notices) >= NOTICES_MAX:
            return False
        data = request.joined() if isinstance(request, MessagePieces) else request
        call = self._callable(method, streamed=False)(
            data, timeout=timeout_s, metadata=tuple(metadata_of(headers))
        )
        self._notices.add(call)
        call.add_done_callback(self._notices.discard)
        return True

    async def close(self) -> None:
        """See `Transport`."""
        self._closed = True
        for stream in tuple(self._streams):
            stream.cancel()
        for notice in tuple(self._notices):
            notice.cancel()
        for channel in self._channels:
            await channel.close(None)

    def _checked(self, request: Body) -> bytes:
        """Return a request in one piece, as the library wants it."""
        if self._closed:
            raise TransportError(StatusCode.CANCELLED, "the transport is closed")
        check_size(request, self._options)
        return request.joined() if isinstance(request, MessagePieces) else request

    def _callable(self, method: str, *, streamed: bool) -> Any:
        self._next = (self._next + 1) % len(self._channels)
        key = (self._next, method, streamed)
        found = self._methods.get(key)
        if found is None:
            channel = self._channels[self._next]
            # No serializers: bytes in, bytes out. (The published stubs want them all the same.)
            make: Any = channel.unary_stream if streamed else channel.unary_unary
            found = make(method)
            self._methods[key] = found
        return found


class GrpcioStream:
    """One call with many answers."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._kept: Sequence[bytes] = ()
        self._open: asyncio.Event | None = None

    @property
    def ended(self) -> bool:
        """See `MessageStream`: core does not say."""
        return False

    def __aiter__(self) -> "GrpcioStream":
        return self

    async def __anext__(self) -> Sequence[bytes]:
        batch = self._kept or await self._read()
        self._kept = batch
        while self._open is not None:
            await self._open.wait()
        self._kept = ()
        return batch

    async def pour(self, take: Take) -> bool:
        """See `MessageStream`."""
        async for batch in self:
            try:
                more = take(batch)
            except BaseException:
                self.cancel()
                raise
            if not more:
                return False
        return True

    def pause(self) -> None:
        """See `MessageStream`."""
        if self._open is None:
            self._open = asyncio.Event()

    def resume(self) -> None:
        """See `MessageStream`."""
        if self._open is not None:
            self._open.set()
            self._open = None

    async def _read(self) -> Sequence[bytes]:
        try:
            message = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise _translated(error) from None
        except asyncio.CancelledError:
            if _task_is_cancelled():
                raise
            raise _dropped() from None
        if message is _END:
            raise StopAsyncIteration
        return (message,)

    def cancel(self) -> None:
        """See `MessageStream`."""
        self._kept = ()
        self._call.cancel()
        self.resume()


def _channel(target: str, options: TransportOptions) -> grpc.aio.Channel:
    arguments: list[tuple[str, int | str]] = [*channel_arguments(options)]
    if options.trust is None:
        return grpc.aio.insecure_channel(target, options=arguments)
    if options.tls_name:
        arguments.append(("grpc.ssl_target_name_override", options.tls_name))
    credentials = grpc.ssl_channel_credentials(*options.trust.files())
    return grpc.aio.secure_channel(target, credentials, options=arguments)


def _task_is_cancelled() -> bool:
    """Whether a CancelledError out of grpcio is our task's, not only the call's."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _dropped() -> TransportError:
    return TransportError(StatusCode.CANCELLED, "the call was dropped here")


def _translated(error: grpc.aio.AioRpcError) -> TransportError:
    status = StatusCode(error.code().value[0])
    message = error.details() or ""
    if status is StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in message:
        # Not pressure at the engine: it sent more than we take in one message.
        status = StatusCode.DATA_LOSS
    return TransportError(status, message, _trailers(error))


def _trailers(error: grpc.aio.AioRpcError) -> Mapping[str, str]:
    found: dict[str, str] = {}
    metadata: Any = error.trailing_metadata() or ()
    for key, value in metadata:
        if isinstance(value, str) and len(found) < _TRAILERS_MAX:
            found[key] = value[:_TRAILER_MAX_CHARACTERS]
    return found


def channel_arguments(options: TransportOptions) -> list[tuple[str, int]]:
    """Return gRPC core's arguments for one channel. TCP_NODELAY is core's own default."""
    return [
        ("grpc.max_receive_message_length", options.message_max_bytes),
        ("grpc.max_send_message_length", max(options.message_max_bytes, options.pieces_max_bytes)),
        ("grpc.min_reconnect_backoff_ms", int(options.connect_s * 1000)),
        ("grpc.initial_reconnect_backoff_ms", _RECONNECT_FIRST_MS),
        ("grpc.max_reconnect_backoff_ms", _RECONNECT_MAX_MS),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.keepalive_time_ms", int(options.ping_interval_s * 1000)),
        ("grpc.keepalive_timeout_ms", int(_PING_ANSWER_S * 1000)),
        # Pings go on while a stream is silent (a long prefill), and stop when no stream is open.
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.keepalive_permit_without_calls", 0),
        # Retries are the pipeline's business: it alone knows which worker was sent what.
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", 0),
    ]
