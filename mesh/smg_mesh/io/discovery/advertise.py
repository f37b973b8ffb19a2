"""Advertised address: the operator's, the one that is listened on, or the one of the route out."""

import asyncio
import logging
import socket
from collections.abc import Sequence
from typing import Final

from smg_mesh.io.discovery.host_address import Place, is_wildcard, numeric_host, parse_place
from smg_mesh.io.discovery.resolver import ResolveError, Resolver
from smg_mesh.io.errors import MeshError
from smg_mesh.swim.messages import Address

RETRIES: Final = 5
RETRY_S: Final = 1.0
SEED_TIMEOUT_S: Final = 1.0
"""A seed's name is looked up only to choose between our own addresses: not worth a slow start."""
# No packet goes there: connecting a UDP socket asks the routing table, and any far address will do.
_FAR: Final = (Address("198.41.0.4", 53), Address("2001:503:ba3e::2:30", 53))
_LOOPBACK: Final = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}

_log = logging.getLogger("smg_mesh")


async def advertised_address(
    advertise: str, listen_host: str, port: int, seeds: Sequence[Place], resolver: Resolver
) -> Address:
    """Return the address to tell peers, numeric.

    `advertise` as the operator wrote it, or empty; `listen_host` is numeric and `port` the one bound.
    MeshError if `advertise` is nonsense or a name that does not resolve within 5 tries.
    """
    if advertise:
        return await _named(advertise, listen_host, port, resolver)
    if not is_wildcard(listen_host):
        return Address(listen_host, port)
    family = socket.AF_INET6 if listen_host == "::" else socket.AF_INET
    routes = [*await _seed_addresses(seeds, resolver), *_FAR]
    if family == socket.AF_INET:
        routes = [route for route in routes if ":" not in route.host]
    for route in routes:
        host = route_host(route)
        if host is not None:
            return Address(host, port)
    host = _LOOPBACK[family]
    _log.warning(
        "this machine has no route out: peers are told %s, which only nodes on this machine can reach; "
        "name an address with mesh.advertise",
        host,
    )
    return Address(host, port)


def route_host(to: Address) -> str | None:
    """Return this machine's address on the way to `to`, or None if there is no way."""
    family = socket.AF_INET6 if ":" in to.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((to.host, to.port))
            host = numeric_host(str(probe.getsockname()[0]))
    except OSError:
        return None
    return None if host is None or is_wildcard(host) else host


async def _named(advertise: str, listen_host: str, port: int, resolver: Resolver) -> Address:
    try:
        place = parse_place(advertise, default_port=port)
    except ValueError as error:
        raise MeshError(f"mesh.advertise: {error}") from error
    if place.service:
        raise MeshError(f"mesh.advertise: {advertise!r} names a service, not this node")
    if is_wildcard(place.host):
        raise MeshError(f"mesh.advertise: {place.host} is no address that a peer could reach")
    trouble = ""
    for attempt in range(RETRIES):
        if attempt:
            await asyncio.sleep(RETRY_S)
        try:
            found = (await resolver.resolve(place)).addresses
            return next(
                (one for one in found if (":" in one.host) == (":" in listen_host)), found[0]
            )
        except ResolveError as error:
            trouble = str(error)
    raise MeshError(f"mesh.advertise: {advertise!r} does not resolve: {trouble}")


async def _seed_addresses(seeds: Sequence[Place], resolver: Resolver) -> list[Address]:
    """Return the addresses of the first seed that resolves at once."""
    for seed in seeds[:3]:
        try:
            return list((await resolver.resolve(seed, timeout_s=SEED_TIMEOUT_S)).addresses)
        except ResolveError:
            continue
    return []
