"""Response request at a node of the lab: one call of `/v1/responses`, streamed or not, on a
connection of its own.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.clients.stream_client import Connect, at_place
from smg_chaos.gameday.lab.lab import Lab

RESPONSES: Final = "/v1/responses"
CONVERSATIONS: Final = "/v1/conversations"
_LENGTH: Final = b"content-length:"
_SPOOLED: Final = b"x-smg-store: spooled"
_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")
_BODY_BYTES_MAX: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and object of an answer (of a stream that of its last event), and whether it waits in
    a spool.
    """

    status: int
    said: Mapping[str, Any]
    spooled: bool = False

    @property
    def code(self) -> str:
        """The error's code, if it is one."""
        error = self.said.get("error")
        return str(error.get("code")) if isinstance(error, dict) else ""


async def ask(
    lab: Lab,
    node: SmgAgent,
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    timeout_s: float = 60.0,
    connect: Connect | None = None,
) -> Answer:
    """Return the answer to one request; ConnectionError if there is no whole one in time.

    It is asked from the loopback of the node's place, or over `connect`.
    """
    content = b"" if body is None else json.dumps(body).encode()
    try:
        async with asyncio.timeout(timeout_s):
            return await _asked(connect or at_place(lab, node.name), method, path, content)
    except (OSError, EOFError, ValueError, LookupError, asyncio.LimitOverrunError) as error:
        raise ConnectionError(f"{path}: {str(error) or type(error).__name__}") from error


async def _asked(connect: Connect, method: str, path: str, content: bytes) -> Answer:
    reader, writer = await connect()
    try:
        head = f"{method} {path} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n"
        writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
        lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        status = int(lines[0].split(b" ")[1])
        length = next((int(one[len(_LENGTH) :]) for one in lines if one.startswith(_LENGTH)), None)
        if length is not None:
            return Answer(status, json.loads(await reader.readexactly(length)), _SPOOLED in lines)
        answer = b""
        while size := int(await reader.readline(), 16):
            answer += (await reader.readexactly(size + 2))[:size]
            if len(answer) > _BODY_BYTES_MAX:
                raise ValueError("the answer does not end")
        return Answer(status, last_of(answer), _SPOOLED in lines)
    finally:
        writer.close()


def last_of(stream: bytes) -> Mapping[str, Any]:
    """Return the response of the event that ends a stream; ValueError if none does."""
    for frame in reversed(stream.split(b"\n\n")):
        for line in frame.splitlines():
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line.removeprefix(b"data: "))
            if event.get("type") in _ENDS:
                found: Mapping[str, Any] = event["response"]
                return found
    raise ValueError("the stream has no end")
