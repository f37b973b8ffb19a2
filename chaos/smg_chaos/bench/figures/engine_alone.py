"""Engine alone: its time to the first token over gRPC, one request at a time, without a gateway.

The share of a gateway in the time to the first token is what remains after subtracting this. The
engine is asked for one token at a time, in messages that are ready and are not read: this client
costs as little as can be, on the same kind of event loop as the clients of gateways.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import uvloop

from smg_chaos.bench.children import BenchError
from smg_chaos.bench.figures.rows import ALONE, Row, times_of
from smg_chaos.bench.load.workload import Workload
from smg_chaos.engine.scripts.bundle import Bundle
from smg_node.core.generation.request import Sampling, token_ids
from smg_node.engines.contracts.wire import GENERATE
from smg_node.engines.engine import Contract, EngineRequest
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.engines.grpc.known_transports import open_transport
from smg_node.engines.transport.transport import Transport, TransportError

_PROMPT: Final = (
    "You are a helpful assistant. Say what you know of question 1234567, in a few words."
)
_WAIT_S: Final = 10.0


async def first_tokens(
    workload: Workload,
    contract: Contract,
    port: int,
    bundle: Bundle,
    *,
    number: int,
    warmup_s: float,
    duration_s: float,
    clock_s: Callable[[], float],
) -> Row:
    """Return the row of the engine at `port` on the loopback interface in round `number`; BenchError if it does not answer."""

    def in_a_thread() -> list[float]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            asked = _Asked(contract, port, bundle, f"alone-{number}")
            return runner.run(asked.times(warmup_s, duration_s, clock_s))

    seen = await asyncio.to_thread(in_a_thread)
    row = Row(workload=workload.name, gateway=ALONE, round=number)
    row.seconds, row.requests, row.ttft_ms = duration_s, len(seen), times_of(seen)
    return row


class _Asked:
    """An engine that is sent the same request again and again."""

    def __init__(self, contract: Contract, port: int, bundle: Bundle, name: str) -> None:
        self._wire = WIRES[contract]()
        self._path = f"/{self._wire.service}/{GENERATE}"
        self._target = f"127.0.0.1:{port}"
        self._ids = token_ids(bundle.encode(_PROMPT))
        self._name = name

    async def times(
        self, warmup_s: float, duration_s: float, clock_s: Callable[[], float]
    ) -> list[float]:
        """Return the seconds to the first message of each request that began after the warm-up."""
        transport = open_transport("h2", self._target, EngineOptions().transport_options())
        try:
            begun_s = now_s = clock_s()
            seen: list[float] = []
            count = 0
            while now_s < begun_s + warmup_s + duration_s:
                took_s = await self._first_s(transport, f"{self._name}-{count}", clock_s)
                if now_s >= begun_s + warmup_s:
                    seen.append(took_s)
                count, now_s = count + 1, clock_s()
        except TransportError as error:
            raise BenchError(f"the engine alone does not answer: {error.message}") from error
        finally:
            await transport.close()
        return seen

    async def _first_s(
        self, transport: Transport, request_id: str, clock_s: Callable[[], float]
    ) -> float:
        request = EngineRequest(request_id, self._ids, Sampling(max_tokens=1), True, _WAIT_S)
        data = self._wire.generate(request, bias_width=None)
        asked_s = clock_s()
        first_s: float | None = None
        async for _ in transport.stream(self._path, data, timeout_s=_WAIT_S):
            if first_s is None:
                first_s = clock_s() - asked_s
        if first_s is None:
            raise BenchError("the engine alone ended an answer without a token")
        return first_s
