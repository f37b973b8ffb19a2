"""Something between a node and an engine that changes what the engine says."""

from collections.abc import AsyncIterator, Callable

import grpc
import grpc.aio
from smg_grpc_proto import vllm_engine_pb2 as words

from support.engines.engine_server import EngineServer

Meddle = Callable[[words.GenerateResponse], None]


async def forwarding(server: EngineServer, address: str, meddle: Meddle) -> grpc.aio.Channel:
    """Let `server` answer as the engine at `address` does, but for what `meddle` changes."""
    channel = grpc.aio.insecure_channel(address)
    service = "/vllm.grpc.engine.VllmEngine"

    def unary(path: str) -> None:
        server.unary[path] = channel.unary_unary(path, None, None)

    def stream(path: str, change: Meddle | None = None) -> None:
        call = channel.unary_stream(path, None, None)

        async def answers(request: bytes) -> AsyncIterator[bytes]:
            async for data in call(request):
                if change is None:
                    yield data
                    continue
                message = words.GenerateResponse.FromString(data)
                change(message)
                yield message.SerializeToString()

        server.streams[path] = answers

    unary("/grpc.health.v1.Health/Check")
    for method in ("HealthCheck", "GetModelInfo", "GetServerInfo", "Abort"):
        unary(f"{service}/{method}")
    stream(f"{service}/GetTokenizer")
    stream(f"{service}/Generate", meddle)
    return channel
