"""A transport of any kind to a server under test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from smg_node.engines.grpc.known_transports import open_transport
from smg_node.engines.transport.transport import Transport, TransportOptions


@asynccontextmanager
async def transport_to(
    kind: str, target: str, options: TransportOptions | None = None
) -> AsyncIterator[Transport]:
    transport = open_transport(kind, target, options or TransportOptions())
    try:
        yield transport
    finally:
        await transport.close()
