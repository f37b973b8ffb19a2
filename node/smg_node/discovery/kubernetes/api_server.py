"""API server: requests to it over HTTP, with the access that its files give at that moment.

No proxy of the environment is used. Every request has its own deadline, set by who asks.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from smg_node.discovery.kubernetes.kube_config import Access, AccessError, AccessFiles, tls_context
from smg_node.engines.http.transport import HttpAnswer, HttpCall, HttpTransport
from smg_node.engines.transport.transport import TransportError

UNAUTHENTICATED: Final = 401
CONNECT_S: Final = 5.0
_KEPT_S: Final = 30.0
"""The pages of a list share a connection; a list and the next watch do too."""


class AskFailedError(Exception):
    """Nothing was answered, and why, in words for operators."""


class Api(Protocol):
    """What a source asks of an API server."""

    async def access(self) -> Access:
        """Return how it is reached; AskFailedError where that cannot be known."""
        ...

    async def get(self, path: str) -> HttpAnswer:
        """Return the answer once its head is there; AskFailedError if nothing came. Close it in any case."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class ApiServer:
    """The API server that some files lead to. Connections begin anew when its certificates or its address change."""

    def __init__(self, read: Callable[[], Access]) -> None:
        """`read` reads the files; it is called in a thread."""
        self._files = AccessFiles(read)
        self._connection: tuple[str, bytes, bytes, bytes] | None = None
        self._transport: HttpTransport | None = None

    async def access(self) -> Access:
        """See `Api`."""
        try:
            return await asyncio.to_thread(self._files.current)
        except AccessError as error:
            raise AskFailedError(str(error)) from None

    async def get(self, path: str) -> HttpAnswer:
        """See `Api`. After a 401 the token is read again, once."""
        answer = await self._send(path)
        if answer.status == UNAUTHENTICATED:
            answer.close()
            self._files.forget()
            answer = await self._send(path)
        return answer

    async def close(self) -> None:
        """See `Api`."""
        transport, self._transport = self._transport, None
        self._connection = None
        if transport is not None:
            await transport.close()

    async def _send(self, path: str) -> HttpAnswer:
        access = await self.access()
        if access.connection != self._connection:
            await self.close()
            self._transport = _transport(access)
            self._connection = access.connection
        assert self._transport is not None, "it was made with its connection"
        headers = {"accept": "application/json", "user-agent": "smg-node"}
        if access.token:
            headers["authorization"] = f"Bearer {access.token}"
        try:
            return await self._transport.send(HttpCall("GET", path, headers))
        except (AccessError, TransportError) as error:
            why = error.message if isinstance(error, TransportError) else str(error)
            raise AskFailedError(f"{access.server}: {why}") from None


def _transport(access: Access) -> HttpTransport:
    # Not before a source asks: a node that stands by needs no client.
    from smg_node.engines.http.aiohttp_client import AiohttpTransport

    return AiohttpTransport(
        access.server,
        connect_s=CONNECT_S,
        trust=lambda: tls_context(access),
        kept_s=_KEPT_S,
    )
