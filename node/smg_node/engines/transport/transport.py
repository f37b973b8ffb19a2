"""Transport: interface of calls and streams of bytes to one engine, independent of the gRPC
library.

Contract code never sees a gRPC object: requests and messages are bytes, every failure is one
`TransportError`. So the transport can be exchanged (grpcio, an HTTP/2 client of our own) without a
change to any contract.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol, TypeAlias

from smg_node.engines.transport.message_pieces import Body, MessagePieces
from smg_node.engines.transport.tls_trust import Trust

MESSAGE_MAX_BYTES: Final = 64 * 1024 * 1024
PIECES_MAX_BYTES: Final = 256 * 1024 * 1024
"""What the servers of most contracts take in one message."""


class StatusCode(IntEnum):
    """The canonical gRPC status codes."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class TransportError(Exception):
    """A call that did not end OK. `trailers` are the text headers that came with the status."""

    def __init__(
        self, status: StatusCode, message: str, trailers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(f"{status.name}: {message}")
        self.status = status
        self.message = message
        self.trailers: Mapping[str, str] = trailers if trailers is not None else {}


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """Options of connections. A message is refused above `message_max_bytes` in both directions.

    A request in pieces is refused above `pieces_max_bytes` instead. With `trust` connections are secure, and without
    it plain.
    """

    connect_s: float = 5.0
    ping_interval_s: float = 30.0
    message_max_bytes: int = MESSAGE_MAX_BYTES
    pieces_max_bytes: int = PIECES_MAX_BYTES
    connections: int = 1
    trust: Trust | None = None
    tls_name: str = ""
    """The name that the engine's certificate must be for; "" for the host that it is called at."""


def check_size(request: Body, options: TransportOptions) -> None:
    """Return if a request may be sent; TransportError OUT_OF_RANGE for one that is too large."""
    pieces = isinstance(request, MessagePieces)
    most = options.pieces_max_bytes if pieces else options.message_max_bytes
    if len(request) > most:
        raise TransportError(
            StatusCode.OUT_OF_RANGE,
            f"the request has {len(request)} bytes, at most {most} are sent",
        )


Take: TypeAlias = Callable[[Sequence[bytes]], bool]
"""Told what one wake-up brought, at least one message; says whether it wants more."""


class MessageStream(Protocol):
    """The messages of one call; each item is what one wake-up brought, at least one message.

    Ends normally when the call ended OK, otherwise raises `TransportError`. Nothing is read ahead
    beyond the flow-control window: a reader that pauses pauses the sender. One reader at a time,
    which may pull for a while and pour afterwards, or the other way round: nothing is lost or said
    twice.
    """

    @property
    def ended(self) -> bool:
        """Whether nothing more will come than what is here already. It may be False of a call that
        has ended.
        """
        ...

    def __aiter__(self) -> AsyncIterator[Sequence[bytes]]: ...

    async def __anext__(self) -> Sequence[bytes]: ...

    def pour(self, take: Take) -> Awaitable[bool]:
        """Hand what each wake-up brings to `take`, within that wake-up, until there is no more of it.

        Begins when it is called, and is to be awaited at once. True when the call ended OK; False when `take` had enough: the call goes on then, and may be
        poured, read or cancelled. Raises `TransportError` where reading would, and whatever `take`
        raised, after which the call is cancelled and no other stream has noticed.
        """
        ...

    def pause(self) -> None:
        """Hand nothing more out and let the sender run into its window. Harmless at any time."""
        ...

    def resume(self) -> None:
        """Hand out again what comes, and what came meanwhile, but not before this returns."""
        ...

    def cancel(self) -> None:
        """Drop the call at once; its reader gets CANCELLED. Harmless after its end."""
        ...


class Transport(Protocol):
    """The connections to one engine. `target` is its host:port."""

    target: str

    async def unary(
        self,
        method: str,
        request: Body,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
        work: bool = False,
    ) -> bytes:
        """Return the answer to one call of `/package.Service/Method`, or raise `TransportError`.

        Where the engine takes no more calls at once, `work` waits its turn as streams do, and a question goes first.

        Nothing listening: UNAVAILABLE, after the connect timeout at the latest.
        """
        ...

    def stream(
        self,
        method: str,
        request: Body,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> MessageStream:
        """Start a call with many answers; its failures are raised where it is read."""
        ...

    def notify(
        self,
        method: str,
        request: Body,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> bool:
        """Send a call whose answer is not needed, without waiting and first of all; the transport
        owns it.

        Returns False where too many are under way; the call is not made then.
        """
        ...

    async def close(self) -> None:
        """Drop every call and connection."""
        ...


_KEY_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")


def is_proper_key(key: str) -> bool:
    """Whether a header of this name may travel as gRPC metadata: lower-case ASCII, not `grpc-…`, not binary (`…-bin`)."""
    proper = key and _KEY_CHARACTERS.issuperset(key)
    return bool(proper) and not key.startswith("grpc-") and not key.endswith("-bin")


def is_proper_value(value: str) -> bool:
    """Whether a header of this value may travel as gRPC metadata: printable ASCII."""
    return value.isascii() and value.isprintable()


def metadata_of(headers: Mapping[str, str] | None) -> Iterator[tuple[str, str]]:
    """Yield the headers that may travel as gRPC metadata: others would break the whole call."""
    for key, value in (headers or {}).items():
        if is_proper_key(key) and is_proper_value(value):
            yield key, value
