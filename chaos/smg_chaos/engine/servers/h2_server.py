"""HTTP/2 server: a lean gRPC server for benchmarks, and for faults that grpc.aio cannot make."""

import asyncio

from smg_chaos.engine.protocol.rpc_call import Call
from smg_chaos.engine.servers.h2_connection import Connection
from smg_chaos.engine.servers.process_link import Passage
from smg_chaos.engine.servers.service import Service
from smg_chaos.engine.simulator.engine import Engine
from smg_chaos.engine.simulator.engine_loop import Clockwork
from smg_node.core.ports import Clock


class H2Face:
    """Serves one engine on one port."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self.engine = engine
        self.connections: dict[Connection, None] = {}
        self.touched: list[Connection] = []
        self._service = Service(engine)
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._clockwork: Clockwork | None = None
        self._passage: Passage | None = None

    @property
    def clockwork(self) -> Clockwork:
        """The loop that advances the engine; there once the server listens."""
        assert self._clockwork is not None, "the face does not listen yet"
        return self._clockwork

    async def listen(self, host: str, port: int) -> int:
        """Listen; return the port, which was chosen by the system if `port` is 0."""
        loop = asyncio.get_running_loop()
        self._clockwork = Clockwork(self.engine, self._clock, loop, self.flush)
        self._server = await loop.create_server(lambda: Connection(self), host, port, backlog=1024)
        self._passage = Passage(self.engine, self._clockwork.now_s, self.settle)
        await self._passage.open(host)
        self._clockwork.arm()
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def start(self, method: str, body: bytes) -> Call:
        """Start the call of a method and return it."""
        return self._service.start(method, body, self.clockwork.now_s())

    def settle(self) -> None:
        """Advance the engine to now, then write everything there is."""
        self.clockwork.settle()
        self.flush()

    def flush(self) -> None:
        """Write what the connections collected, once each."""
        while self.touched:
            self.touched.pop().flush()

    async def close(self) -> None:
        """Close the port and every connection at once."""
        if self._clockwork is not None:
            self._clockwork.stop()
        if self._passage is not None:
            self._passage.close()
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.close()
