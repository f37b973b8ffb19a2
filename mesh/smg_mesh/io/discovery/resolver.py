"""Resolver: names to addresses, without holding up the loop; keeps the
last good answer for failures.
"""

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from smg_mesh.io.blocking_threads import Threads, ThreadsBusyError
from smg_mesh.io.discovery.dns_srv import DnsError, Srv, look_up, name_servers
from smg_mesh.io.discovery.host_address import Place, numeric_host
from smg_mesh.swim.effects import Rng
from smg_mesh.swim.messages import Address

ADDRESSES_MAX: Final = 64
"""Of one name; a headless service of more instances is joined through some of them."""
LOOKUPS_MAX: Final = 8
LOOKUP_TIMEOUT_S: Final = 5.0
_SERVER_TIMEOUT_S: Final = 1.5
_REMEMBERED_MAX: Final = 256


class ResolveError(Exception):
    """A name gave no address, not now and not before."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Addresses of a place; `stale` says why the answer is an older one, or is empty."""

    addresses: tuple[Address, ...]
    stale: str = ""


class Resolver:
    """Looks names up in threads: all A and AAAA records, SRV records for names that begin with `_`."""

    def __init__(
        self,
        rng: Rng,
        *,
        hosts: Callable[[str], Sequence[str]] | None = None,
        services: Callable[[str, int], Sequence[Srv]] | None = None,
    ) -> None:
        """Without `hosts` and `services` the system is asked."""
        self._rng = rng
        self._hosts = hosts or system_hosts
        self._services = services or system_services
        self._threads = Threads("names", threads_max=LOOKUPS_MAX)
        self._asking: dict[str, asyncio.Future[tuple[Address, ...]]] = {}
        self._good: OrderedDict[str, tuple[Address, ...]] = OrderedDict()

    async def resolve(self, place: Place, *, timeout_s: float = LOOKUP_TIMEOUT_S) -> Resolved:
        """Return the addresses of `place`, at least one; ResolveError says why there is none.

        When a lookup fails or takes too long, the last good answer is returned.
        """
        numeric = place.numeric
        if numeric is not None:
            return Resolved((numeric,))
        try:
            async with asyncio.timeout(timeout_s):
                return Resolved(await asyncio.shield(self._ask(place)))
        except (OSError, ValueError, DnsError, ThreadsBusyError) as error:
            return self._last_good(place, _reason(error))

    def _ask(self, place: Place) -> asyncio.Future[tuple[Address, ...]]:
        """Start a lookup, or join the one that still hangs: one thread a name, and late answers count."""
        asking = self._asking.get(place.text)
        if asking is None:
            query_id = self._rng.getrandbits(16)
            asking = self._threads.start(lambda: self._look_up(place, query_id))
            asking.add_done_callback(lambda done: self._answered(place, done))
            self._asking[place.text] = asking
        return asking

    def _answered(self, place: Place, asking: asyncio.Future[tuple[Address, ...]]) -> None:
        self._asking.pop(place.text, None)
        if asking.cancelled() or asking.exception() is not None:
            return
        self._good[place.text] = asking.result()
        self._good.move_to_end(place.text)
        while len(self._good) > _REMEMBERED_MAX:
            self._good.popitem(last=False)

    def _last_good(self, place: Place, reason: str) -> Resolved:
        good = self._good.get(place.text)
        if good is None:
            raise ResolveError(f"{place.host}: {reason}")
        return Resolved(good, stale=reason)

    def _look_up(self, place: Place, query_id: int) -> tuple[Address, ...]:
        """Block until the addresses of a name are known."""
        if not place.service:
            return tuple(Address(host, place.port) for host in self._numeric(place.host))
        found: list[Address] = []
        trouble: Exception | None = None
        for record in self._services(place.host, query_id):
            try:
                found += [Address(host, record.port) for host in self._numeric(record.target)]
            except OSError as error:
                trouble = error
        if not found:
            raise trouble or DnsError("its targets have no address")
        return tuple(dict.fromkeys(found))[:ADDRESSES_MAX]

    def _numeric(self, host: str) -> Sequence[str]:
        usual = [one for one in map(numeric_host, self._hosts(host)) if one is not None]
        if not usual:
            raise DnsError("no address")
        return list(dict.fromkeys(usual))[:ADDRESSES_MAX]


def system_hosts(host: str) -> Sequence[str]:
    """Return every address of a host name, as the system has it; blocks; OSError if there is none."""
    rows = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    return [str(row[4][0]) for row in rows]


def system_services(name: str, query_id: int) -> Sequence[Srv]:
    """Return the instances of a service; blocks; DnsError if there are none."""
    return look_up(name, name_servers(), query_id=query_id, timeout_s=_SERVER_TIMEOUT_S)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "the name servers do not answer"
    if isinstance(error, socket.gaierror):
        return str(error.strerror or error)
    return str(error) or type(error).__name__
