"""HTTP transport: interface of HTTP calls to a worker and of their answers, independent of the
client library.

Callers see bytes and header pairs, and one error: `TransportError`, with the status that a gRPC call would have
had. So its meaning is decided by the one table of `grpc_status`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

FAILED_TO_CONNECT: Final = "failed to connect"
"""Stands in the message of a call that never reached anybody."""
NOT_SERVING_CODE: Final = "upstream_not_serving"
"""Code of a worker that answers, and does not say that it is well."""
HEAD_LINE_MAX_BYTES: Final = 16_384
PIECE_MAX_BYTES: Final = 65_536
"""About how much of an answer is read ahead of whoever takes it."""


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One request. Header names are lower case; `path` begins with a slash.

    `parting`: after an answer with one of these statuses its connection is not used again.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    parting: Sequence[int] = ()


class HttpAnswer(Protocol):
    """One answer, whose head has come. Close it in any case."""

    status: int
    headers: Sequence[tuple[str, str]]
    """As they came; names in lower case."""

    async def read(self) -> bytes:
        """Return what has come of the body, b"" at its end. TransportError if it was cut short."""
        ...

    def close(self) -> None:
        """Let go: where more of it was to come, the worker sees the connection close at once."""
        ...


class HttpTransport(Protocol):
    """Connections to one worker. `target` is its host:port."""

    target: str

    async def send(self, call: HttpCall) -> HttpAnswer:
        """Send a request and return its answer once the head is there. TransportError if nothing came."""
        ...

    async def close(self) -> None:
        """Close all connections; open answers are cut."""
        ...
