"""HTTP transport over aiohttp's client, with redirects, cookies, decompression, proxies and default
headers turned off.

No redirect is followed (a worker could send us anywhere), no cookie kept, nothing inflated, no proxy taken from
the environment, no header added. Kept connections are let go a little before common servers do so themselves,
because a request on one that is just being closed is lost.

Which certificates this machine trusts is read with the first call by https, in a thread: the library's own
contexts, made when it is imported, know none (`process_memory.without_certificates`).
"""

import asyncio
import errno
import os
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientConnectorSSLError,
    ClientError,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
)
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from yarl import URL

from smg_node.engines.http.transport import (
    FAILED_TO_CONNECT,
    HEAD_LINE_MAX_BYTES,
    PIECE_MAX_BYTES,
    HttpAnswer,
    HttpCall,
)
from smg_node.engines.transport.transport import StatusCode, TransportError

KEPT_S: Final = 4.0
"""The servers that most engines run on close an idle connection after 5 s."""
_TRUSTED_S: Final = 1.0
"""So long certificates are not looked at again."""
_NUMBER: Final = re.compile(r"\[Errno (\d+)\]")
_ADDED: Final = frozenset({"accept", "accept-encoding", "user-agent", "content-type"})


def trusting() -> ssl.SSLContext:
    """Return the TLS context that trusts this machine's certificates: 20 ms, and a megabyte."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(("http/1.1",))
    return context


class AiohttpTransport:
    """Connections to the worker at `base` (`http://host:port`, or `https://…`, which `trust` checks).

    `trust` is called in a thread, and may return the same for all. Idle connections are let go after `kept_s`. `proxy`
    is the URL of what calls go through, "" for nothing. `allowed` says of the IP address that a connection is about to
    be made to whether it may be, None for all; of calls through a proxy it is not asked. `parts`: calls may have statuses
    that part. `renewed`: what `trust` returns may change, and is asked for once a second. `tls_name` is the name that the
    worker's certificate must be for, "" for its host.
    """

    def __init__(
        self,
        base: str,
        *,
        connect_s: float,
        trust: Callable[[], ssl.SSLContext] = trusting,
        kept_s: float = KEPT_S,
        proxy: str = "",
        allowed: Callable[[str], bool] | None = None,
        parts: bool = False,
        renewed: bool = False,
        tls_name: str = "",
    ) -> None:
        scheme, _, self.target = base.partition("://")
        self._secure = scheme == "https"
        self._base = base
        self._connect_s = connect_s
        self._trust = trust
        self._kept_s = kept_s
        self._proxy = proxy or None
        self._allowed = None if proxy else allowed
        self._refused = False
        self._parts = parts
        self._renewed = renewed
        self._tls_name = tls_name or None
        self._trusted: ssl.SSLContext | None = None
        self._trusted_s = 0.0
        self._session: ClientSession | None = None
        self._closed = False

    async def send(self, call: HttpCall) -> HttpAnswer:
        """See `HttpTransport`."""
        if self._secure and (self._trusted is None or self._renewed):
            await self._look_at_trust()
        if self._closed:
            raise TransportError(StatusCode.UNAVAILABLE, "the connections are closed")
        try:
            response = await self._open().request(
                call.method,
                URL(self._base + call.path, encoded=True),
                data=call.body or None,
                headers=dict(call.headers),
                allow_redirects=False,
                proxy=self._proxy,
                # Where it may change, a connection that was made by another one is not taken for this call.
                ssl=self._trusted if self._renewed and self._trusted is not None else True,
                server_hostname=self._tls_name,
            )
        except (ClientConnectorError, ConnectionTimeoutError) as error:
            raise TransportError(
                StatusCode.UNAVAILABLE, f"{FAILED_TO_CONNECT}: {self._why(error)}"
            ) from error
        except (ClientError, OSError, ValueError) as error:
            raise _lost(error) from error
        self._refused = False
        if response.status in call.parting and isinstance(response, _PartingResponse):
            response.part()
        return _Answer(response)

    async def close(self) -> None:
        """See `HttpTransport`."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _look_at_trust(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._trusted is None or now_s - self._trusted_s >= _TRUSTED_S:
            self._trusted_s = now_s
            try:
                self._trusted = await asyncio.to_thread(self._trust)
            except OSError as error:
                why = f"certificates cannot be used: {error}"
                raise TransportError(
                    StatusCode.UNAVAILABLE, f"{FAILED_TO_CONNECT}: {why}"
                ) from error

    def _socket(self, address: tuple[Any, ...]) -> socket.socket:
        """Return a socket for an address that was just resolved, or stood in the URL; OSError where it may not be used."""
        family, kind, protocol, _, place = address
        assert self._allowed is not None, "it is only asked where something is not allowed"
        if not self._allowed(place[0]):
            self._refused = True
            raise OSError(errno.EACCES, "the address is not allowed")
        return socket.socket(family=family, type=kind, proto=protocol)

    def _why(self, error: ClientConnectorError | ConnectionTimeoutError) -> str:
        """Return in an operator's words why there is no connection."""
        if self._refused:
            return "it is at an address that may not be called"
        match error:
            case ConnectionTimeoutError():
                return f"no connection within {self._connect_s:g} s"
            case ClientConnectorDNSError():
                return "its name cannot be resolved"
            case ClientConnectorCertificateError(
                certificate_error=ssl.SSLCertVerificationError() as why
            ):
                return f"its certificate is not trusted: {why.verify_message}"
            case ClientConnectorSSLError(os_error=ssl.SSLError() as why):
                return f"TLS cannot be spoken with it: {(why.reason or 'no reason').lower()}"
            case ClientConnectorError():
                return _words(error.os_error)

    def _open(self) -> ClientSession:
        if self._session is None:
            self._session = ClientSession(
                # True trusts nothing: the library's own context has no certificates.
                connector=TCPConnector(
                    ssl=self._trusted or True,
                    limit=0,
                    keepalive_timeout=self._kept_s,
                    socket_factory=None if self._allowed is None else self._socket,
                ),
                cookie_jar=DummyCookieJar(),
                response_class=_PartingResponse if self._parts else ClientResponse,
                timeout=ClientTimeout(total=None, sock_connect=self._connect_s),
                skip_auto_headers=_ADDED,
                auto_decompress=False,
                trust_env=False,
                read_bufsize=PIECE_MAX_BYTES,
                max_line_size=HEAD_LINE_MAX_BYTES,
                max_field_size=HEAD_LINE_MAX_BYTES,
            )
        return self._session


class _PartingResponse(ClientResponse):
    """Response whose connection can be kept from being used again, also where its body came with its head."""

    _carrier: ResponseHandler | None = None

    async def start(self, connection: Connection) -> ClientResponse:
        self._carrier = connection.protocol
        return await super().start(connection)

    def part(self) -> None:
        """Close the connection once the response is over: at once, if it is. Nobody else can have it by then."""
        if self._carrier is None:
            return
        self._carrier.force_close()
        if self.connection is None:
            self._carrier.close()


class _Answer:
    """See `HttpAnswer`."""

    def __init__(self, response: ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Sequence[tuple[str, str]] = [
            (name.lower(), value) for name, value in response.headers.items()
        ]

    async def read(self) -> bytes:
        try:
            return await self._response.content.readany()
        except (ClientError, OSError, ValueError) as error:
            raise _lost(error) from error

    def close(self) -> None:
        self._response.close()


def _words(error: OSError) -> str:
    """Return what the system says of a connection that failed, on one of several addresses maybe."""
    told = _NUMBER.search(str(error))
    number = error.errno or (int(told[1]) if told else 0)
    return os.strerror(number).lower() if number > 0 else type(error).__name__


def _lost(error: Exception) -> TransportError:
    """Return the error of a call that was under way; the library's text may hold what a worker
    said.
    """
    if isinstance(error, asyncio.TimeoutError):
        return TransportError(StatusCode.DEADLINE_EXCEEDED, "the connection timed out")
    if isinstance(error, ClientResponseError):
        return TransportError(StatusCode.UNAVAILABLE, "connection lost: the answer is no HTTP/1.1")
    return TransportError(StatusCode.UNAVAILABLE, f"connection lost: {type(error).__name__}")
