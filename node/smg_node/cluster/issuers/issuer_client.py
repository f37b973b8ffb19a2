"""Issuer client: one bounded request to an issuer over HTTP, without redirects and without the environment's proxies.

Connections are not kept: an issuer is asked a few times an hour. Its authorities are read anew with every request, and so
is the bearer token for issuers that want one: both are files that are renewed.
"""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from aiohttp import (
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)

from smg_node.cluster.issuers.key_ports import IssuerError
from smg_node.engines.http.aiohttp_client import trusting

FETCH_S: Final = 5.0
"""From the first packet to the last byte."""
FILE_BYTES_MAX: Final = 65_536
ACCEPT: Final = "application/json, application/jwk-set+json"


class Answer:
    """A good answer: its headers by small names, and its body."""

    __slots__ = ("body", "headers")

    def __init__(self, headers: Mapping[str, str], body: bytes) -> None:
        self.headers = headers
        self.body = body


async def ask_issuer(
    url: str,
    *,
    bytes_max: int,
    authority: str = "",
    token_file: str = "",
    form: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Return what is answered with status 200; IssuerError otherwise. With a `form` it is a POST."""
    try:
        async with asyncio.timeout(FETCH_S):
            trust = await asyncio.to_thread(_trust, authority) if url.startswith("https:") else True
            sent = {"accept": ACCEPT, "accept-encoding": "identity", **(headers or {})}
            if token_file:
                token = await asyncio.to_thread(read_secret, token_file)
                sent["authorization"] = f"Bearer {token}"
            return await _asked(url, trust, sent, form, bytes_max)
    except TimeoutError:
        raise IssuerError(f"no whole answer within {FETCH_S:g} s") from None
    except (ClientError, OSError, ValueError) as error:
        raise IssuerError(_why(error)) from None


def read_secret(path: str) -> str:
    """Return the text of a file that holds one secret, without the end of its line; IssuerError."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise IssuerError(f"{path} cannot be read: {reason}") from None
    text = content.decode("ascii", "replace").strip()
    if len(content) > FILE_BYTES_MAX or not text or not text.isascii() or not text.isprintable():
        raise IssuerError(f"{path} holds no secret: one line of printable characters is needed")
    return text


async def _asked(
    url: str,
    trust: ssl.SSLContext | bool,
    headers: Mapping[str, str],
    form: bytes | None,
    bytes_max: int,
) -> Answer:
    session = ClientSession(
        connector=TCPConnector(ssl=trust, force_close=True),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None),
        auto_decompress=False,
        trust_env=False,
    )
    async with session:
        method = "GET" if form is None else "POST"
        async with session.request(
            method, url, headers=dict(headers), data=form, allow_redirects=False
        ) as answer:
            if answer.status != 200:
                raise IssuerError(_refused(answer.status))
            body = await _body(answer, bytes_max)
            told = {name.lower(): value for name, value in answer.headers.items()}
            return Answer(told, body)


async def _body(answer: ClientResponse, bytes_max: int) -> bytes:
    received = bytearray()
    # `read(n)` would give what is there by now, which may be half a document.
    async for piece in answer.content.iter_any():
        received += piece
        if len(received) > bytes_max:
            raise IssuerError(f"it answered more than {bytes_max:,} bytes")
    return bytes(received)


def _trust(authority: str) -> ssl.SSLContext:
    if not authority:
        return trusting()
    try:
        context = ssl.create_default_context(cafile=authority)
    except ssl.SSLError:
        raise IssuerError(f"{authority} cannot be used: it holds no certificate (PEM)") from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise IssuerError(f"{authority} cannot be read: {reason}") from None
    context.set_alpn_protocols(("http/1.1",))
    return context


def _refused(status: int) -> str:
    if status in (301, 302, 303, 307, 308):
        return f"it answered {status}: redirects are not followed"
    if status in (401, 403):
        return f"it answered {status}: it wants to know who asks (token_file)"
    return f"it answered {status}"


def _why(error: Exception) -> str:
    certificate = getattr(error, "certificate_error", None)
    if isinstance(certificate, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {certificate.verify_message}"
    inner = getattr(error, "os_error", None)
    if isinstance(inner, OSError) and inner.strerror:
        return f"it cannot be reached: {inner.strerror.lower()}"
    return f"it cannot be reached: {type(error).__name__}"
