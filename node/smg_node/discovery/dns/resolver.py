"""Resolver of the DNS source: asks name servers through dnspython, by UDP and, where that has no room, by TCP.

dnspython is an optional dependency (the extra `dns`) and imported with the first question, in a thread: that takes a
quarter of a second. It tries the servers in turn, again and again until 5 seconds are over, and takes no answer that does
not fit the question. What it does not do, and is done here: an alias that leads out of what a server knows is followed.
"""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from smg_node.config.address import join_host_port, split_peer
from smg_node.discovery.dns.answers import (
    RECORDS_MAX,
    Addresses,
    Answer,
    RecordKind,
    SrvRecord,
    UnansweredError,
)
from smg_node.discovery.dns.names import host_name

if TYPE_CHECKING:
    from dns.asyncresolver import Resolver
    from dns.message import QueryMessage

INSTALL: Final = "pip install 'smg-node[dns]'"
LIFETIME_S: Final = 5.0
"""For one question, over all servers and tries."""
_SERVER_S: Final = 2.0
_EDNS_BYTES: Final = 1232
"""The size that passes everywhere without fragments (DNS flag day 2020)."""
_PORT: Final = 53
_ALIASES_MAX: Final = 8
_WHY_MAX: Final = 300


def has_library() -> bool:
    """Whether names can be asked for here."""
    return find_spec("dns") is not None


class DnsResolver:
    """Door to name servers: those named as `HOST[:PORT]`, or those of the machine.

    `timeout_s` is for one question in all, `server_timeout_s` for one server at a time.
    """

    def __init__(
        self,
        servers: Sequence[str] = (),
        *,
        timeout_s: float = LIFETIME_S,
        server_timeout_s: float = _SERVER_S,
    ) -> None:
        self._servers = tuple(servers)
        self._timeout_s = timeout_s
        self._server_timeout_s = server_timeout_s
        self._resolver: Resolver | None = None

    def forget(self) -> None:
        """Look the servers up again before the next question: they may be others now."""
        self._resolver = None

    async def ask(self, name: str, kind: RecordKind) -> Answer:
        """Return what the servers answer for an absolute name; UnansweredError if none of them does."""
        if self._resolver is None:
            self._resolver = await self._made()
        ttls: list[int] = []
        asked = name
        for _ in range(_ALIASES_MAX):
            response = await self._response(self._resolver, asked, kind)
            try:
                chain = response.resolve_chaining()
                # In a thread: a thousand records take 20 ms.
                answer = await asyncio.to_thread(_answer_of, response, chain, kind)
            except _library_errors() as error:
                raise UnansweredError(_why(error)) from None
            ttls.append(chain.minimum_ttl)
            if answer is not None:
                return _with_ttl(answer, min(ttls))
            asked = chain.canonical_name.to_text()
        raise UnansweredError(
            f"{host_name(name)} is an alias of an alias, more than {_ALIASES_MAX}"
        )

    async def _made(self) -> "Resolver":
        if not has_library():
            raise UnansweredError(f"this node was installed without DNS ({INSTALL})")
        asyncresolver = await asyncio.to_thread(import_module, "dns.asyncresolver")
        server = import_module("smg_node.discovery.dns.name_server").NameServer
        try:
            # Without servers, those of /etc/resolv.conf, which is read here; its search list is not used.
            made: Resolver = asyncresolver.Resolver(configure=not self._servers)
        except _library_errors() as error:
            raise UnansweredError(f"this machine names no server: {_why(error)}") from None
        if self._servers:
            places = await self._places()
        else:
            places = [(str(one), _PORT) for one in made.nameservers]
        made.nameservers = [server(*place) for place in places]
        made.use_edns(0, 0, _EDNS_BYTES)
        made.timeout, made.lifetime = self._server_timeout_s, self._timeout_s
        made.retry_servfail = False
        return made

    async def _places(self) -> list[tuple[str, int]]:
        """Return address and port of each server."""
        found: list[tuple[str, int]] = []
        for server in self._servers:
            try:
                host, port = split_peer(server)
                places = await asyncio.get_running_loop().getaddrinfo(
                    host, port or _PORT, type=socket.SOCK_DGRAM
                )
            except (OSError, ValueError) as error:
                why = f"the name server {server[:80]!r} cannot be found: {_why(error)}"
                raise UnansweredError(why) from None
            found += [(str(place[4][0]), int(place[4][1])) for place in places]
        return found

    async def _response(self, resolver: "Resolver", name: str, kind: RecordKind) -> "QueryMessage":
        """Return a response with code NOERROR or NXDOMAIN."""
        import dns.name
        import dns.resolver

        try:
            absolute = dns.name.from_text(name)  # with the final dot, and never a search list
            answer = await resolver.resolve(
                absolute, kind, raise_on_no_answer=False, search=False, lifetime=self._timeout_s
            )
            return answer.response
        except dns.resolver.NXDOMAIN as error:
            responses: Mapping[Any, QueryMessage] = error.kwargs["responses"]
            return next(iter(responses.values()))
        except dns.resolver.LifetimeTimeout as error:
            servers = sorted({_server(one[0]) for one in error.kwargs.get("errors", ())})
            said = f"no answer within {self._timeout_s:g} s"
            raise UnansweredError(f"{said} from {', '.join(servers)}"[:_WHY_MAX]) from None
        except _library_errors() as error:
            raise UnansweredError(_why(error)) from None


def _library_errors() -> tuple[type[Exception], ...]:
    from dns.exception import DNSException

    return DNSException, OSError, ValueError, EOFError


def _answer_of(response: "QueryMessage", chain: Any, kind: RecordKind) -> Answer | None:
    """Return a response as an answer; None where it is an alias that must be followed."""
    import dns.rcode
    import dns.rdatatype

    if chain.answer is None:
        authority = {one.rdtype for one in response.authority}
        if response.rcode() == dns.rcode.NXDOMAIN:
            return Answer(chain.minimum_ttl, exists=False)
        if chain.cnames and dns.rdatatype.SOA not in authority:
            return None
        return Answer(chain.minimum_ttl)
    rows = list(chain.answer)
    left_out = max(0, len(rows) - RECORDS_MAX)
    if kind != "SRV":
        found = tuple(row.address for row in rows[:RECORDS_MAX])
        return Answer(chain.minimum_ttl, addresses=found, left_out=left_out)
    services = tuple(
        SrvRecord(row.priority, row.weight, row.port, host_name(row.target.to_text()))
        for row in rows[:RECORDS_MAX]
    )
    return Answer(
        chain.minimum_ttl, services=services, additional=_additional(response), left_out=left_out
    )


def _additional(response: "QueryMessage") -> Mapping[str, Addresses]:
    """Return the IPv4 addresses that came along.

    A set of records is there whole or not at all (RFC 2181, 5.2 and 9), so one that is there can be used. IPv6 ones alone
    do not say that there are no others: room may have been short.
    """
    import dns.rdataclass
    import dns.rdatatype

    return MappingProxyType(
        {
            host_name(rows.name.to_text()): Addresses(tuple(row.address for row in rows), rows.ttl)
            for rows in response.additional
            if rows.rdtype == dns.rdatatype.A and rows.rdclass == dns.rdataclass.IN
        }
    )


def _with_ttl(answer: Answer, ttl_s: int) -> Answer:
    return Answer(
        ttl_s,
        answer.addresses,
        answer.services,
        answer.exists,
        answer.additional,
        answer.left_out,
    )


def _server(named: Any) -> str:
    """Return a server as errors of dnspython have it, `Do53:HOST@PORT`, as `HOST:PORT`."""
    host, at, port = str(named).removeprefix("Do53:").rpartition("@")
    return join_host_port(host, int(port)) if at and port.isdecimal() else str(named)


def _why(error: Exception) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= _WHY_MAX else f"{words[:_WHY_MAX]}…"
