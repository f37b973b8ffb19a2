"""HTTP calls to one origin with one credential: no cookie, no proxy of the environment, redirects within the origin only."""

from collections.abc import Callable, Mapping
from ssl import SSLContext
from typing import Final
from urllib.parse import urljoin, urlsplit

from smg_node import __version__
from smg_node.engines.http.aiohttp_client import AiohttpTransport, trusting
from smg_node.engines.http.transport import FAILED_TO_CONNECT, HttpAnswer, HttpCall
from smg_node.engines.transport.transport import TransportError
from smg_node.mcp.definition import Credential
from smg_node.mcp.failures import Failure, lost
from smg_node.mcp.session.forgotten_session import MAY_FORGET
from smg_node.mcp.wire.headers import SESSION_ID

REDIRECTS_MAX: Final = 3
_KEEPING: Final = (307, 308)
"""Redirects that keep the method and the body."""
_PORTS: Final = {"http": 80, "https": 443}
_AGENT: Final = {"user-agent": f"smg-node/{__version__}"}


def origin_of(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL; ValueError for a port that is none."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)


def target_of(url: str) -> str:
    """Return the path and query of a URL, as a request line has them."""
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


class HttpCalls:
    """Connections to the origin of `url`, which nobody with another credential uses."""

    def __init__(
        self,
        url: str,
        credential: Credential,
        *,
        connect_s: float,
        trust: Callable[[], SSLContext] = trusting,
        proxy: str = "",
        allowed: Callable[[str], bool] | None = None,
    ) -> None:
        self.url = url
        self._origin = origin_of(url)
        parts = urlsplit(url)
        base = f"{parts.scheme}://{parts.netloc}"
        self._transport = AiohttpTransport(
            base, connect_s=connect_s, trust=trust, proxy=proxy, allowed=allowed, parts=True
        )
        self._credential = dict(credential.headers)

    def renew(self, credential: Credential) -> None:
        """Let later requests in by another credential of the same identity."""
        self._credential = dict(credential.headers)

    def within_origin(self, location: str) -> str | None:
        """Return where a reference of the server leads, None if that is another origin."""
        try:
            url = urljoin(self.url, location)
            return url if origin_of(url) == self._origin else None
        except ValueError:
            return None

    async def send(
        self, method: str, headers: Mapping[str, str], body: bytes = b"", url: str = ""
    ) -> HttpAnswer | Failure:
        """Return the answer once its head is there, or why there is none; the caller closes it.

        A connection that led to a replica which does not know the session is not used again.
        """
        target = target_of(url or self.url)
        parting = MAY_FORGET if SESSION_ID in headers else ()
        whole = {**_AGENT, **headers, **self._credential}
        for _ in range(REDIRECTS_MAX + 1):
            try:
                answer = await self._transport.send(HttpCall(method, target, whole, body, parting))
            except TransportError as error:
                return no_answer(error)
            location = header(answer, "location")
            elsewhere = self.within_origin(location) if answer.status in _KEEPING else None
            if elsewhere is None:
                return answer
            answer.close()
            target = target_of(elsewhere)
        return lost(f"more than {REDIRECTS_MAX} redirects", sent=False)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()


def header(answer: HttpAnswer, name: str) -> str:
    """Return the first header of that lower-case name, "" for none."""
    return next((value for key, value in answer.headers if key == name), "")


def no_answer(error: TransportError) -> Failure:
    """Return the failure of a call without an answer: a connection never made, or broken."""
    if error.message.startswith(FAILED_TO_CONNECT):
        return lost(error.message, sent=False)
    return lost(f"{error.message}; what was asked may have run", sent=True)
