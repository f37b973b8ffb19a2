"""Stream client: sends a chat and reads its stream to the end or to its failure."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from smg_chaos.gameday.agents.engine_pool import CHAT
from smg_chaos.gameday.agents.smg_agent import HTTP_PORT
from smg_chaos.gameday.clients.stream_check import Hearing
from smg_chaos.gameday.lab.lab import Lab

_HEAD_BYTES_MAX: Final = 1 << 16
_WORKER: Final = b"x-smg-routed-worker-id:"
_REQUEST: Final = b"x-request-id:"
_LENGTH: Final = b"content-length:"


Connect: TypeAlias = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


def at_place(lab: Lab, place: str) -> Connect:
    """Return a function that connects, at a place of the lab, to the node that runs there."""

    async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        made = lab.socket(place)
        try:
            made.setblocking(False)
            await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", HTTP_PORT))
            return await asyncio.open_connection(sock=made, limit=_HEAD_BYTES_MAX)
        except BaseException:
            made.close()
            raise

    return connect


async def listen(
    connect: Connect,
    asked: Mapping[str, Any],
    *,
    now_s: Callable[[], float],
    limit_s: float,
    hearing: Hearing,
    key: str = "",
) -> None:
    """Send a streamed chat, with a routing key if there is one, and read it to its end; `hearing`
    gets what came.
    """
    try:
        async with asyncio.timeout(limit_s):
            await _listened(connect, asked, now_s, hearing, key)
    except TimeoutError:
        hearing.broken = f"no end within {limit_s:.0f} s"
    except (OSError, EOFError, ValueError, LookupError, asyncio.LimitOverrunError) as error:
        hearing.broken = f"the connection broke: {str(error) or type(error).__name__}"
    hearing.ended_s = now_s()


async def _listened(
    connect: Connect,
    asked: Mapping[str, Any],
    now_s: Callable[[], float],
    hearing: Hearing,
    key: str,
) -> None:
    reader, writer = await connect()
    try:
        body = json.dumps(asked).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n"
        head += f"x-smg-routing-key: {key}\r\n" if key else ""
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        status = int(lines[0].split(b" ")[1])
        hearing.worker = _value(lines, _WORKER).decode()
        hearing.request = _value(lines, _REQUEST).decode()
        if status != 200:
            hearing.refused(status, await reader.readexactly(int(_value(lines, _LENGTH) or b"0")))
            return
        hearing.status = status
        while size := int(await reader.readline(), 16):
            hearing.feed((await reader.readexactly(size + 2))[:size], now_s())
    finally:
        writer.close()


def _value(lines: list[bytes], name: bytes) -> bytes:
    return next((line[len(name) :].strip() for line in lines if line.startswith(name)), b"")
