"""HTTP/2 stream: one call on a connection, its flow control state, and its protocol errors."""

from typing import Protocol

from smg_chaos.engine.protocol.rpc_call import Call
from smg_chaos.engine.servers import frames


class StreamWriter(Protocol):
    """The connection of a stream, as far as the stream wakes it up."""

    def pump(self, stream: "Stream") -> None:
        """Write what the stream's call has to say, as far as there is room."""
        ...

    def touch(self) -> None:
        """Remember that there is something to write."""
        ...


class BrokenProtocolError(Exception):
    """The peer broke the protocol; the connection ends with this error code."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


class Stream:
    """One call on a connection."""

    __slots__ = (
        "backlog",
        "body",
        "call",
        "connection",
        "lagging",
        "method",
        "number",
        "opened",
        "window",
    )

    def __init__(self, connection: StreamWriter, number: int, method: str, window: int) -> None:
        self.connection = connection
        self.number = number
        self.method = method
        self.body = bytearray()
        self.call: Call | None = None
        self.window = window
        self.opened = False
        self.backlog = b""
        self.lagging = False

    def ring(self, call: Call) -> None:
        """Note that the call has messages."""
        self.connection.pump(self)
        self.connection.touch()


def ignore(call: Call) -> None:
    """Do nothing: the caller is gone."""


def unpadded(flags: int, payload: bytes) -> bytes:
    """Return a frame's payload without its padding; BrokenProtocolError if it is all padding."""
    if not flags & frames.PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise BrokenProtocolError(frames.PROTOCOL_ERROR, "more padding than frame")
    return payload[1 : len(payload) - payload[0]]
