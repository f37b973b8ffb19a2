"""In-memory server of a simulated engine: same methods, bytes in and bytes out, on virtual time."""

from smg_chaos.engine.protocol.rpc_call import Call, End
from smg_chaos.engine.servers.service import Service
from smg_chaos.engine.simulator.engine import Engine


class MemoryCall:
    """Messages and end of a call in memory, as its client has received them so far."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.messages: list[bytes] = []
        self.end: End | None = None
        call.bell = self._hear
        self._hear(call)

    def _hear(self, call: Call) -> None:
        while self.end is None:
            more = call.take()
            self.messages += more
            self.end = call.end
            if not more:
                return


class MemoryFace:
    """Calls an engine's methods in memory. Time only moves by `advance`."""

    def __init__(self, engine: Engine, *, now_s: float) -> None:
        self.engine = engine
        self.service = Service(engine)
        self.now_s = now_s

    def start(self, method: str, body: bytes) -> MemoryCall:
        """Start a call now; what is due now is done at once."""
        call = MemoryCall(self.service.start(method, body, self.now_s))
        self.engine.advance(self.now_s)
        return call

    def cancel(self, call: MemoryCall) -> None:
        """Cancel a call, as a client that disconnects does."""
        call.call.cancel(self.now_s)
        call.end = call.call.end

    def advance(self, seconds: float) -> None:
        """Advance virtual time."""
        self.now_s += seconds
        self.engine.advance(self.now_s)

    def run(self, call: MemoryCall, *, patience_s: float = 60.0) -> MemoryCall:
        """Advance virtual time until the call ends, or for so long."""
        until_s = self.now_s + patience_s
        while call.end is None:
            due_s = self.engine.due_s()
            if due_s is None or due_s > until_s:
                self.advance(until_s - self.now_s)
                break
            self.advance(max(0.0, due_s - self.now_s))
        return call
