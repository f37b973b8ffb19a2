"""Known transports: registry of gRPC transports by name, and the opening of one."""

from collections.abc import Callable
from typing import TypeAlias

from smg_node.core.registry import Registry
from smg_node.engines.transport.h2.h2_transport import H2Transport
from smg_node.engines.transport.transport import Transport, TransportOptions

OpenTransport: TypeAlias = Callable[[str, TransportOptions], Transport]


def _over_grpcio(target: str, options: TransportOptions) -> Transport:
    # With the first engine that is called by it: the library is 15 MB that our own does without.
    from smg_node.engines.transport.grpcio_transport import GrpcioTransport

    return GrpcioTransport(target, options)


def transports() -> Registry[OpenTransport]:
    """Return a registry with the transports this house brings."""
    registry: Registry[OpenTransport] = Registry("engine transport")
    registry.add("h2", H2Transport)
    registry.add("grpcio", _over_grpcio)
    return registry


def open_transport(
    name: str,
    target: str,
    options: TransportOptions,
    *,
    known: Registry[OpenTransport] | None = None,
) -> Transport:
    """Return the transport called `name` to `target` (host:port); NOT_FOUND for an unknown name.

    Nothing is connected yet: the first call connects, and fails if nothing listens.
    """
    return (known if known is not None else transports()).get(name)(target, options)
