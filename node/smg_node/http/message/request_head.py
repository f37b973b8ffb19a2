"""Request head and arriving body, as any server passes them on.

There are two servers: our own (`http1_connection`) and the framework's (`aiohttp_connection`). All
later stages depend on neither.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from smg_node.http.message.head_findings import HeadFindings
from smg_node.http.message.response_writer import Line

if TYPE_CHECKING:
    from smg_node.access.certificates import ClientCertificate

Headers: TypeAlias = Mapping[str, str]
"""Request headers by their names in lower case; of several of one name the first."""
RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Request headers as they were spelled and in their order, all of them."""
NO_QUERY: Final[Mapping[str, str]] = {}


class FramingError(Exception):
    """A body is not framed as HTTP demands, or its connection ended before it did."""


class Body(Protocol):
    """The body of a request, as it arrives."""

    @property
    def whole(self) -> bool:
        """Whether its last byte is here; never true of one that is broken."""
        ...

    def take(self) -> bytes:
        """Return the bytes that are here and not taken yet, without waiting. FramingError if it is
        broken.
        """
        ...

    async def more(self) -> bytes:
        """Return the bytes since the last take, b"" at the end; waits for at least a byte.
        FramingError.
        """
        ...


class Flow(Protocol):
    """Source of bytes, which can be paused."""

    def pause_reading(self) -> None:
        """Stop reading, until `resume_reading` was called as often."""
        ...

    def resume_reading(self) -> None:
        """Read again; once for every `pause_reading`."""
        ...


class ByteTaker(Protocol):
    """Reader of another protocol, which takes the bytes of a connection."""

    def feed(self, data: bytes) -> None:
        """Take bytes as they come; never raises."""
        ...


class ClientLine(Line, Protocol):
    """The connection that a request came by."""

    peer: str
    """The client's address, "" on a UNIX socket."""
    certificate: "ClientCertificate | None"
    """The verified certificate that the client showed; None for none."""

    def upgrade(self, taker: ByteTaker) -> Flow:
        """Give all bytes behind the request, whose offer of another protocol was taken, to `taker`; return their
        source.
        """
        ...


class Head:
    """Parsed head of a request; equal requests of a connection share one.

    `standing` are the middleware's findings about it, for the next request that has it. `path` is
    still percent-encoded, `query` decoded.
    """

    __slots__ = (
        "common", "headers", "http11", "keep_alive", "method", "path", "query", "raw", "standing", "target",
    )  # fmt: skip

    def __init__(
        self,
        method: str,
        target: str,
        headers: Headers,
        raw: RawHeaders,
        *,
        http11: bool,
        keep_alive: bool,
    ) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.raw = raw
        self.http11 = http11
        self.keep_alive = keep_alive
        self.path, self.query = split_target(target)
        self.standing: HeadFindings | None = None
        self.common: Head | None = None
        """The same head as connections that begin with it have it in common; what is found about it there holds for them."""


def split_target(target: str) -> tuple[str, Mapping[str, str]]:
    """Return the path of a request target, still percent-encoded, and its parameters, decoded; the
    first of each counts.

    Proxies write whole URLs there; of those, only the part after the authority matters here.
    """
    if not target.startswith("/"):
        target = _without_authority(target)
    path, asked, query = target.partition("?")
    if not asked:
        return path, NO_QUERY
    pairs = parse_qsl(query.partition("#")[0], keep_blank_values=True)
    return path, dict(reversed(pairs))


def _without_authority(target: str) -> str:
    scheme, colon, _ = target.partition("://")
    if not colon or not scheme.isalpha():
        return target
    try:
        parts = urlsplit(target)
    except ValueError:
        # An odd authority, such as half an IPv6 address. There is no route of this name.
        return target
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
