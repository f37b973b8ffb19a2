"""TLS in front of a server that speaks none itself, as an operator's proxy or a cloud puts it there."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from support.http.certificate_authority import Authority


@dataclass(slots=True)
class Front:
    """Where it listens, and how many have got through to the server behind it."""

    port: int
    admitted: int = 0


def written(folder: Path, name: str, pem: bytes) -> str:
    """Write something down, and return where."""
    path = folder / name
    path.write_bytes(pem)
    return str(path)


@asynccontextmanager
async def tls_front(
    behind_port: int,
    authority: Authority,
    folder: Path,
    *names: str,
    clients: bool = False,
    speaks: tuple[str, ...] = (),
) -> AsyncIterator[Front]:
    """Listen with a certificate for these names; with `clients` they need one of the same authority.

    `speaks` is what it says it speaks, by ALPN.
    """
    certificate, key = authority.issue(*names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(
        written(folder, "front.pem", certificate), written(folder, "front.key", key)
    )
    if speaks:
        context.set_alpn_protocols(speaks)
    if clients:
        context.load_verify_locations(cadata=authority.certificate.decode())
        context.verify_mode = ssl.CERT_REQUIRED
    front = Front(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        front.admitted += 1
        behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", behind_port)
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(reader, behind_writer))
            group.create_task(_copy(behind_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    front.port = server.sockets[0].getsockname()[1]
    async with server:
        yield front


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass  # whoever hung up is gone, and so is the other end of it
    finally:
        writer.close()
