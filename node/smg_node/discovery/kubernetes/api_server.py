"""API server: requests to it over HTTP, with the access that its files give at that moment.

No proxy of the environment is used. Every request has its own deadline, set by who asks.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from smg_node.discovery.kubernetes.kube_config import (
    Access,
    AccessError,
    AccessFiles,
    account_access,
    file_access,
    tls_context,
)
from smg_node.discovery.kubernetes.objects import read_status, shown
from smg_node.engines.http.transport import HttpAnswer, HttpCall, HttpTransport
from smg_node.engines.transport.transport import TransportError

OK: Final = 200
UNAUTHENTICATED: Final = 401
CONNECT_S: Final = 5.0
_KEPT_S: Final = 30.0
"""The pages of a list share a connection; a list and the next watch do too."""


_REFUSAL_MAX_BYTES: Final = 65_536


class AskFailedError(Exception):
    """Nothing was answered, and why, in words for operators."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What an API server said instead of what was asked, for operators, and after how many seconds it wants to be asked again."""

    why: str
    retry_after_s: int


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


def access_reader(kubeconfig: str) -> Callable[[], Access]:
    """Return what reads how the API server is reached: by that file, or with none by the pod's own account."""
    if kubeconfig:
        return lambda: file_access(Path(kubeconfig))
    return lambda: account_access(os.environ)


async def read_body(answer: HttpAnswer, most_bytes: int) -> bytes:
    """Return the body; AskFailedError if it is larger than that, TransportError if it was cut short."""
    received = bytearray()
    while piece := await answer.read():
        received += piece
        if len(received) > most_bytes:
            raise AskFailedError(f"an answer of more than {most_bytes} bytes")
    return bytes(received)


async def refusal(answer: HttpAnswer, verb: str, place: str) -> Refusal:
    """Return what an answer with another status than 200 says of a request to `verb` what is at `place`."""
    status = read_status(await read_body(answer, _REFUSAL_MAX_BYTES))
    said = shown(status.message) or "no reason given"
    match answer.status:
        case 401:
            why = f"401: the API server does not know this node's token: {said}"
        case 403:
            why = f"403: no right to {verb} {place}: {said}"
        case code:
            why = f"{code}: {verb} of {place}: {said}"
    in_body_s = status.details.retry_after_seconds if status.details else 0
    return Refusal(why, max(in_body_s, _retry_after_s(answer)))


def failure(error: AskFailedError | TransportError) -> str:
    """Return why nothing was answered, in words for operators."""
    return error.message if isinstance(error, TransportError) else str(error)


def _retry_after_s(answer: HttpAnswer) -> int:
    for name, value in answer.headers:
        if name == "retry-after" and value.isascii() and value.isdigit() and len(value) <= 9:
            return int(value)
    return 0
