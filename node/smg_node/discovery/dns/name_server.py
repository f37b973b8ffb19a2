"""Name server of the DNS source: dnspython's own, but for three things.

Long answers, which come by TCP, are read in a thread: one of 1,000 records takes 50 ms and more, in which the loop would do
nothing else. And a referral, which only says who else might know (RFC 2308, 2.1 and 2.2), is no answer, so that the next
server is asked; dnspython takes it for one that says "there is none". And a cancellation is not lost: dnspython waits by
`asyncio.wait_for`, which before Python 3.12 returns an answer that comes in the same moment as a cancellation and forgets
that; the task would then never end.

Imports dnspython: only the resolver imports this module, when it asks its first question.
"""

import asyncio
from collections.abc import Awaitable
from struct import pack, unpack
from typing import TYPE_CHECKING, Any

from dns.exception import FormError, Timeout
from dns.message import QueryMessage, from_wire
from dns.nameserver import Do53Nameserver
from dns.query import BadResponse
from dns.rcode import NOERROR
from dns.rdatatype import NS, SOA

if TYPE_CHECKING:
    from dns.message import Message


class ReferralError(FormError):
    """A server said that others know, and did not ask them. Of dnspython's errors it is one that ends a server's turn."""


class NameServer(Do53Nameserver):
    """A name server, by address and port."""

    async def async_query(self, request: QueryMessage, *given: Any, **named: Any) -> "Message":
        """See dnspython, which names all but the request: `max_size` asks by TCP."""
        if named["max_size"]:
            response = await self._by_tcp(request, named["timeout"])
        else:
            response = await _ended_by_cancellation(super().async_query(request, *given, **named))
        zone = _referred(response)
        if zone:
            why = f"that others know {zone}, and does not ask them"
            raise ReferralError(why)  # type: ignore[no-untyped-call]  # the library's
        return response

    async def _by_tcp(self, request: QueryMessage, within_s: float) -> "Message":
        try:
            async with asyncio.timeout(within_s):
                raw = await self._exchange(request.to_wire())
                response = await asyncio.to_thread(from_wire, raw)
        except TimeoutError:
            raise Timeout(timeout=within_s) from None  # type: ignore[no-untyped-call]  # the library's
        except asyncio.IncompleteReadError:
            raise BadResponse from None
        if not request.is_response(response):
            raise BadResponse
        return response

    async def _exchange(self, question: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(self.address, self.port)
        try:
            writer.write(pack("!H", len(question)) + question)
            (length,) = unpack("!H", await reader.readexactly(2))
            return await reader.readexactly(length)
        finally:
            writer.close()


async def _ended_by_cancellation(asking: "Awaitable[Message]") -> "Message":
    """Return the answer; CancelledError also where it came while this task was cancelled."""
    task = asyncio.current_task()
    assert task is not None, "it is awaited by one"
    before = task.cancelling()
    try:
        return await asking
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError


def _referred(response: "Message") -> str:
    """Return the zone that a response refers to, "" if it is an answer."""
    if response.rcode() != NOERROR or response.answer:
        return ""
    authority = {one.rdtype: one for one in response.authority}
    if SOA in authority or NS not in authority:
        return ""
    return str(authority[NS].name.to_text(omit_final_dot=True))
