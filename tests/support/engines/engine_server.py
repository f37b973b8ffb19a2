"""A real gRPC server that says whatever a test wants, on any contract, as bytes.

A script answers one method. A unary script is a function from the request to the answer (or an
exception); a stream script is an async generator function from the request to its messages. A script
refuses by raising `RefusalError`. The server remembers every call and which of them were cancelled.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import grpc
import grpc.aio

UnaryScript: TypeAlias = Callable[[bytes], "bytes | Awaitable[bytes]"]
StreamScript: TypeAlias = Callable[[bytes], AsyncIterator[bytes]]


class RefusalError(Exception):
    """How a script ends a call with a status other than OK."""

    def __init__(
        self, status: grpc.StatusCode, message: str = "", trailers: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.trailers = tuple(trailers)


@dataclass
class ServedCall:
    """One call the server got. `ended` is set when its handler is over, however it ended."""

    method: str
    request: bytes
    headers: Mapping[str, str]
    sent: int = 0
    cancelled: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class EngineServer(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """Use it as `async with EngineServer() as server`; `server.target` is its address."""

    def __init__(self, *, options: Sequence[tuple[str, Any]] = ()) -> None:
        self.unary: dict[str, UnaryScript] = {}
        self.streams: dict[str, StreamScript] = {}
        self.calls: list[ServedCall] = []
        self.target = ""
        self._called = asyncio.Condition()
        self._options = options
        self._server: grpc.aio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = grpc.aio.server(options=list(self._options))
        self._server.add_generic_rpc_handlers((self,))
        port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        self.target = f"127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        await self._server.stop(None)

    def calls_of(self, method: str) -> list[ServedCall]:
        """Return the calls of methods that end with `method`."""
        return [call for call in self.calls if call.method.endswith(method)]

    async def call_of(self, method: str) -> ServedCall:
        """Return the first such call, once it has come."""
        async with asyncio.timeout(20), self._called:
            await self._called.wait_for(lambda: self.calls_of(method))
        return self.calls_of(method)[0]

    def service(self, handler_call_details: Any) -> Any:
        """Return the handler of one call (gRPC's own door)."""
        method = handler_call_details.method
        if method in self.unary:
            return grpc.unary_unary_rpc_method_handler(self._answer(method))
        if method in self.streams:
            return grpc.unary_stream_rpc_method_handler(self._stream(method))
        return None

    async def _note(self, method: str, request: bytes, context: Any) -> ServedCall:
        headers = dict(context.invocation_metadata())
        call = ServedCall(method, request, headers)
        async with self._called:
            self.calls.append(call)
            self._called.notify_all()
        return call

    def _answer(self, method: str) -> Callable[[bytes, Any], Awaitable[bytes]]:
        async def answer(request: bytes, context: Any) -> bytes:
            call = await self._note(method, request, context)
            try:
                said = self.unary[method](request)
                return said if isinstance(said, bytes) else await said
            except RefusalError as refusal:
                await context.abort(refusal.status, refusal.message, refusal.trailers)
                raise AssertionError("abort raises") from refusal
            except asyncio.CancelledError:
                call.cancelled = True
                raise
            finally:
                call.ended.set()

        return answer

    def _stream(self, method: str) -> Callable[[bytes, Any], AsyncIterator[bytes]]:
        async def stream(request: bytes, context: Any) -> AsyncIterator[bytes]:
            call = await self._note(method, request, context)
            try:
                async for message in self.streams[method](request):
                    yield message
                    call.sent += 1
            except RefusalError as refusal:
                await context.abort(refusal.status, refusal.message, refusal.trailers)
            except (asyncio.CancelledError, GeneratorExit):
                call.cancelled = True
                raise
            finally:
                call.ended.set()

        return stream
