"""HTTP client of a server at a place of the lab: one connection, reused while it lasts."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Final

_HEAD_BYTES_MAX: Final = 1 << 16
_BODY_BYTES_MAX: Final = 1 << 24
_LENGTH: Final = b"content-length:"


class Talk:
    """A client of one HTTP server. `make_socket` gives a new socket made at the client's place."""

    def __init__(self, make_socket: Callable[[], socket.socket], host: str, port: int) -> None:
        self._make_socket = make_socket
        self._where = (host, port)
        self._turn = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        timeout_s: float = 2.0,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Return status and body of one request; OSError if there is no whole answer in time."""
        more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        async with self._turn:
            try:
                async with asyncio.timeout(timeout_s):
                    return await self._exchange(method, path, body, more)
            except (OSError, EOFError, asyncio.LimitOverrunError) as error:
                self.close()
                raise ConnectionError(f"{path}: {str(error) or type(error).__name__}") from error
            except asyncio.CancelledError:
                self.close()
                raise

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _exchange(self, method: str, path: str, body: bytes, more: str) -> tuple[int, bytes]:
        if self._streams is not None and _is_over(*self._streams):
            self.close()
        reader, writer = self._streams or await self._connect()
        writer.write(
            f"{method} {path} HTTP/1.1\r\nhost: {self._where[0]}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n{more}\r\n".encode()
            + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next((int(one[len(_LENGTH) :]) for one in lines if one.startswith(_LENGTH)), None)
        if length is None or length > _BODY_BYTES_MAX or not head[9:12].isdigit():
            raise ConnectionError(f"not an answer with a length: {head[:80]!r}")
        content = await reader.readexactly(length)
        if b"connection: close" in lines:
            self.close()
        return int(head[9:12]), content

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        made = self._make_socket()
        try:
            made.setblocking(False)
            await asyncio.get_running_loop().sock_connect(made, self._where)
            self._streams = await asyncio.open_connection(sock=made, limit=_HEAD_BYTES_MAX)
        except BaseException:
            made.close()
            raise
        return self._streams


def _is_over(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Return whether the server has closed the connection since the last answer."""
    return reader.at_eof() or reader.exception() is not None or writer.is_closing()
