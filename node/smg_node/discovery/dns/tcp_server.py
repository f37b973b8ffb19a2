"""TCP of the DNS source: a name server whose long answers are read in a thread.

dnspython takes 50 ms and more for an answer of 1,000 records, in which the loop would do nothing else. Answers by UDP are short.
Imports dnspython: only the resolver imports this module, when it asks its first question.
"""

import asyncio
from struct import pack, unpack
from typing import TYPE_CHECKING, Any

from dns.exception import Timeout
from dns.message import QueryMessage, from_wire
from dns.nameserver import Do53Nameserver
from dns.query import BadResponse

if TYPE_CHECKING:
    from dns.message import Message


class TcpServer(Do53Nameserver):
    """A name server, by address and port. What it is asked by UDP is as dnspython asks it."""

    async def async_query(
        self,
        request: QueryMessage,
        timeout: float,  # noqa: ASYNC109  # the library's signature
        source: str | None,
        source_port: int,
        max_size: bool,
        backend: Any,
        one_rr_per_rrset: bool = False,
        ignore_trailing: bool = False,
    ) -> "Message":
        """See dnspython: `max_size` asks by TCP."""
        if not max_size:
            return await super().async_query(
                request,
                timeout,
                source,
                source_port,
                max_size,
                backend,
                one_rr_per_rrset,
                ignore_trailing,
            )
        try:
            async with asyncio.timeout(timeout):
                raw = await self._exchange(request.to_wire())
                response = await asyncio.to_thread(from_wire, raw)
        except TimeoutError:
            raise Timeout(timeout=timeout) from None  # type: ignore[no-untyped-call]
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
