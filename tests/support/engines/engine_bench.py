"""A scripted engine of any contract behind a real gRPC server, and the engine object that talks to it."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from smg_grpc_proto.generated import (
    mlx_engine_pb2,
    sglang_scheduler_pb2,
    tokenspeed_scheduler_pb2,
    trtllm_service_pb2,
    vllm_engine_pb2,
)

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import Sampling, token_ids
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import Contract, EngineRequest
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.grpc.contract_detection import WIRES, open_engine
from smg_node.engines.grpc.remote_engine import RemoteEngine
from support.engines.engine_server import EngineServer, StreamScript

GENEROUS_S = 20.0
TRANSPORT = EngineOptions().transport
"""What the engine is called over; tests that run over every transport set it."""
PB: dict[Contract, Any] = {
    Contract.VLLM: vllm_engine_pb2,
    Contract.SGLANG: sglang_scheduler_pb2,
    Contract.MLX: mlx_engine_pb2,
    Contract.TRTLLM: trtllm_service_pb2,
    Contract.TOKENSPEED: tokenspeed_scheduler_pb2,
}


class Bench:
    """A scripted engine of one contract and the engine object that talks to it."""

    def __init__(self, contract: Contract, server: EngineServer) -> None:
        self.contract = contract
        self.server = server
        self.pb = PB[contract]
        self.events: list[tuple[str, Mapping[str, str]]] = []
        self.engine: RemoteEngine

    def path(self, method: str) -> str:
        return f"/{WIRES[self.contract].service}/{method}"

    def generates(self, script: StreamScript) -> None:
        self.server.streams[self.path("Generate")] = script

    def chunk(self, *ids: int, choice: int = 0) -> bytes:
        own = {"sequence_index" if self.contract is Contract.TRTLLM else "index": choice}
        part = self.pb.GenerateStreamChunk(token_ids=ids, prompt_tokens=2, **own)
        data: bytes = self.pb.GenerateResponse(chunk=part).SerializeToString()
        return data

    def complete(self, reason: str = "stop", *ids: int, choice: int = 0) -> bytes:
        trtllm = self.contract is Contract.TRTLLM
        own: dict[str, Any] = {
            "sequence_index" if trtllm else "index": choice,
            "output_token_ids" if trtllm else "output_ids": ids,
        }
        part = self.pb.GenerateComplete(finish_reason=reason, **own)
        data: bytes = self.pb.GenerateResponse(complete=part).SerializeToString()
        return data

    def says(self, *messages: bytes) -> None:
        async def script(_: bytes) -> AsyncIterator[bytes]:
            for message in messages:
                yield message

        self.generates(script)

    def labels(self, name: str) -> list[Mapping[str, str]]:
        return [labels for event, labels in self.events if event == name]


@asynccontextmanager
async def bench(
    contract: Contract = Contract.VLLM,
    options: EngineOptions | None = None,
    *,
    takes_bytes: int | None = None,
) -> AsyncIterator[Bench]:
    taken = [] if takes_bytes is None else [("grpc.max_receive_message_length", takes_bytes)]
    async with EngineServer(options=taken) as server:
        made = Bench(contract, server)
        abort = made.pb.AbortResponse().SerializeToString()
        server.unary[made.path("Abort")] = lambda _: abort
        made.engine = await open_engine(
            server.target,
            replace(options or EngineOptions(), transport=TRANSPORT),
            contract=contract,
            on_event=lambda name, labels: made.events.append((name, labels)),
        )
        try:
            yield made
        finally:
            await made.engine.close()


def request(
    request_id: str = "smg-1", *, timeout_s: float = GENEROUS_S, stream: bool = True, **wishes: Any
) -> EngineRequest:
    sampling = Sampling(**{"max_tokens": 8, **wishes})
    return EngineRequest(
        request_id, token_ids([5, 6]), sampling, stream, timeout_s, {"traceparent": "00-1"}
    )


async def collected(engine: RemoteEngine, asked: EngineRequest) -> list[Chunk]:
    return [one async for chunks in engine.generate(asked) for one in chunks]


async def failure(engine: RemoteEngine, asked: EngineRequest) -> SmgError:
    async with asyncio.timeout(GENEROUS_S):
        with pytest.raises(SmgError) as raised:
            await collected(engine, asked)
    return raised.value


async def drained(chunks: AsyncIterator[Sequence[Chunk]]) -> None:
    async for _ in chunks:
        pass


def ids_of(chunks: Sequence[Chunk]) -> list[int]:
    return [token_id for one in chunks for token_id in one.ids]


async def fast_forever(bench_: Bench) -> AsyncIterator[bytes]:
    while True:
        yield bench_.chunk(1)
        await asyncio.sleep(0.002)


def sent(
    contract: Contract, sampling: Sampling, *, stream: bool = True, bias_width: int | None = None
) -> dict[str, Any]:
    """Return the fields that are set in the request for `sampling`, by their names."""
    request = EngineRequest("smg-1", token_ids([5, 4_000_000_000, 6]), sampling, stream, 9.0)
    data = WIRES[contract]().generate(request, bias_width=bias_width)
    said: dict[str, Any] = MessageToDict(
        PB[contract].GenerateRequest.FromString(data), preserving_proto_field_name=True
    )
    return said
