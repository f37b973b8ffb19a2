"""A transport of any kind to a server under test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from smg_node.engines.transport import Transport, TransportOptions
from smg_node.engines.transports import open_transport


@asynccontextmanager
async def transport_to(
    kind: str, target: str, options: TransportOptions | None = None
) -> AsyncIterator[Transport]:
    transport = open_transport(kind, target, options or TransportOptions())
    try:
        yield transport
    finally:
        await transport.close()
