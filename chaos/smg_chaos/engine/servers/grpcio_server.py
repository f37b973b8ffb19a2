"""grpc.aio server (grpcio): the stack that real servicers run on, with its behaviour and its
cost.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import grpc

from smg_chaos.engine.protocol.rpc_call import Call, Code, How
from smg_chaos.engine.servers.call_gate import Door
from smg_chaos.engine.servers.h2_connection import MESSAGE_MAX
from smg_chaos.engine.servers.process_link import Passage
from smg_chaos.engine.servers.service import Service
from smg_chaos.engine.simulator.engine import Engine
from smg_chaos.engine.simulator.engine_loop import Clockwork
from smg_node.core.ports import Clock

_STATUS: Final = {status.value[0]: status for status in grpc.StatusCode}

_Context = grpc.aio.ServicerContext[bytes, bytes]


class GrpcFace:
    """Serves one engine on one port."""

    def __init__(self, engine: Engine, clock: Clock, door: Door | None = None) -> None:
        self.engine = engine
        self._door = door or Door()
        self._service = Service(engine)
        self._clock = clock
        self._server: grpc.aio.Server | None = None
        self._clockwork: Clockwork | None = None
        self._passage: Passage | None = None

    async def listen(self, host: str, port: int) -> int:
        """Listen; return the port, which was chosen by the system if `port` is 0."""
        loop = asyncio.get_running_loop()
        self._clockwork = Clockwork(self.engine, self._clock, loop, lambda: None)
        # A port that is taken is an error here; by default a second server shares it silently.
        server = grpc.aio.server(
            options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", MESSAGE_MAX)]
        )
        services: dict[str, dict[str, grpc.RpcMethodHandler[bytes, bytes]]] = {}
        for method in self._service.methods:
            _, service, name = method.split("/")
            services.setdefault(service, {})[name] = grpc.unary_stream_rpc_method_handler(
                self._serving(method)
            )
        server.add_generic_rpc_handlers(
            tuple(
                grpc.method_handlers_generic_handler(service, handlers)
                for service, handlers in services.items()
            )
        )
        bound = server.add_insecure_port(f"{host}:{port}")
        if not bound:
            raise OSError(f"cannot listen on {host}:{port}")
        self._server = server
        self._door.port = bound
        self._passage = Passage(self.engine, self._clockwork.now_s, self._clockwork.settle)
        await self._passage.open(host)
        await server.start()
        self._clockwork.arm()
        return bound

    def _serving(self, method: str) -> Callable[[bytes, _Context], Awaitable[None]]:
        async def serve(body: bytes, context: _Context) -> None:
            await self._answer(method, body, context)

        return serve

    async def _answer(self, method: str, body: bytes, context: _Context) -> None:
        clockwork = self._clockwork
        assert clockwork is not None, "the face listens"
        headers = {key: str(value) for key, value in context.invocation_metadata() or ()}
        call = self._door.refusal(method, context.peer(), headers) or self._service.start(
            method, body, clockwork.now_s()
        )
        reader = _Reader(call)
        clockwork.settle()
        try:
            await reader.write_all(context)
        finally:
            call.cancel(clockwork.now_s())
            clockwork.settle()
        end = call.end
        assert end is not None, "everything was written"
        if end.code is not Code.OK or end.how is not How.STATUS:
            await context.abort(_STATUS[int(end.code)], end.message)

    async def close(self) -> None:
        """Close the port and every connection at once."""
        if self._clockwork is not None:
            self._clockwork.stop()
        if self._passage is not None:
            self._passage.close()
        if self._server is not None:
            await self._server.stop(None)


class _Reader:
    """Takes a call's messages as fast as they can be written, and detects a slow reader."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._bell = asyncio.Event()
        self._writing = False
        self._lagging = False
        call.bell = self._ring

    def _ring(self, call: Call) -> None:
        self._lagging = self._lagging or self._writing
        self._bell.set()

    async def write_all(self, context: _Context) -> None:
        """Write messages until the call has ended and all were taken."""
        while True:
            lagging, self._lagging = self._lagging, False
            messages = self._call.take(lagging=lagging)
            self._writing = True
            for message in messages:
                await context.write(message)
            self._writing = False
            if self._call.end is not None:
                return
            if not messages:
                await self._bell.wait()
                self._bell.clear()
