"""An HTTP/2 server of a few lines that says exactly the frames a test wants, well-formed or not.

It introduces itself unless told not to, reads the frames of its peer without judging them, and hands
every call to a script. Whatever a script writes goes out as it is.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self, TypeAlias

from smg_node.engines.transport.h2.protocol import frames
from smg_node.engines.transport.h2.protocol.hpack import literal

HEAD = literal(b":status", b"200") + literal(b"content-type", b"application/grpc")
FINE = literal(b"grpc-status", b"0")


def message(content: bytes, *, squeezed: int = 0) -> bytes:
    """Return a gRPC message with its prefix."""
    return frames.PREFIX.pack(squeezed, len(content)) + content


def head(number: int, block: bytes = HEAD) -> bytes:
    """Return the headers of an answer."""
    return frames.headers(number, block, frames.FRAME_MAX_BYTES, last=False)


def tail(number: int, block: bytes = FINE) -> bytes:
    """Return the trailers of an answer, or all of one that has nothing else."""
    return frames.headers(number, block, frames.FRAME_MAX_BYTES, last=True)


def body(number: int, payload: bytes, flags: int = 0) -> bytes:
    """Return a DATA frame."""
    return frames.frame(frames.DATA, flags, number, payload)


def answer(number: int, *contents: bytes) -> bytes:
    """Return a whole answer: headers, one frame a message, trailers."""
    said = [body(number, message(content)) for content in contents]
    return head(number) + b"".join(said) + tail(number)


@dataclass(eq=False)
class Peer:
    """One connection: the frames that came, and where to write."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    frames: list[tuple[int, int, int, bytes]] = field(default_factory=list)

    def say(self, data: bytes) -> None:
        self.writer.write(data)

    def heard(self, kind: int) -> list[tuple[int, int, bytes]]:
        """Return flags, stream and payload of every frame of that kind so far."""
        return [(flags, number, payload) for k, flags, number, payload in self.frames if k == kind]


Script: TypeAlias = Callable[[Peer, int], Awaitable[None]]


class H2Server:
    """Use it as `async with H2Server(script)`; the script gets every call's headers."""

    def __init__(
        self, script: Script, *, hello: bytes | None = None, answers_pings: bool = True
    ) -> None:
        self.target = ""
        self.peers: list[Peer] = []
        self._script = script
        self._hello = frames.settings() if hello is None else hello
        self._answers_pings = answers_pings
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.target = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for peer in self.peers:
            peer.writer.close()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self.peers.append(peer)
        try:
            await reader.readexactly(len(frames.PREFACE))
            peer.say(self._hello)
            while True:
                word, flags, number = frames.HEAD.unpack(await reader.readexactly(9))
                payload = await reader.readexactly(word >> 8)
                kind = word & 0xFF
                peer.frames.append((kind, flags, number, payload))
                if kind == frames.PING and not flags and self._answers_pings:
                    peer.say(frames.frame(frames.PING, frames.ACK, 0, payload))
                elif kind == frames.SETTINGS and not flags:
                    peer.say(frames.frame(frames.SETTINGS, frames.ACK, 0))
                elif kind == frames.HEADERS:
                    await self._script(peer, number)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
