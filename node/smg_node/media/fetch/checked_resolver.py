"""Checked resolver: looks a host up once, and gives its addresses only if all of them may be connected with."""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeAlias

from aiohttp.abc import AbstractResolver, ResolveResult

Allows: TypeAlias = Callable[[str, int, str], bool]
"""Whether for a host and port a connection to an IP address may be made."""
Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the IP addresses of a host; OSError where it has none."""

_THREADS: Final = 8
"""Look-ups at a time; one takes a few milliseconds, but those of names that answer slowly."""
_REMEMBERED_MAX: Final = 4_096
"""Addresses that were found allowed: as many hosts are hardly asked between two connections."""
_ADDRESSES_MAX: Final = 16
"""Addresses of a name that are tried; more is no honest name."""


class ForbiddenAddressError(OSError):
    """An address that may not be connected with. It is not told."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "the address is not allowed")


class SystemLookup:
    """Look-up by the system's resolver, in threads of its own: names of strangers may take as long as they like."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "media-lookup")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the IPv4 and IPv6 addresses of a host."""
        ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._threads, ask)
        except UnicodeError as error:
            # A label that is empty or too long: no name of a host, so it has no address either.
            raise OSError(errno.EINVAL, "it is no name of a host") from error
        return [str(address[0]) for *_, address in found]

    def close(self) -> None:
        """Begin no look-up any more; those that are under way end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class CheckedResolver(AbstractResolver):
    """Resolver for aiohttp's connector, which then connects to what it was given, without another look-up.

    `lookup` finds addresses, `allows` says of each whether it may be connected with.
    """

    def __init__(self, lookup: Lookup, allows: Allows) -> None:
        self._lookup = lookup
        self._allows = allows
        self._found: dict[str, None] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host; `ForbiddenAddressError` if one of them may not be connected with."""
        addresses = list(dict.fromkeys(await self._lookup(host, port)))
        if not all(self._allows(host, port, address) for address in addresses):
            raise ForbiddenAddressError
        for address in addresses:
            self._found[address] = None
        while len(self._found) > _REMEMBERED_MAX:
            del self._found[next(iter(self._found))]
        return [_result(host, port, address) for address in addresses[:_ADDRESSES_MAX]]

    async def close(self) -> None:
        """Do nothing: nothing is open."""

    def socket(self, address: tuple[Any, ...]) -> socket.socket:
        """Return a socket to an address that was found here, or is one of a URL; else `ForbiddenAddressError`.

        The last look before a connection is made: it also sees addresses that nobody had to resolve.
        """
        family, kind, protocol, _, place = address
        known = place[0] in self._found or self._allows(place[0], place[1], place[0])
        if not known:
            raise ForbiddenAddressError
        return socket.socket(family=family, type=kind, proto=protocol)


def _result(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=family,
        proto=socket.IPPROTO_TCP,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
