"""Proxied answer: rewrites a forwarded answer's head and tracks whether its body is whole. Pure.

The control process speaks HTTP as this process does and closes the connection after it. Headers
about the client's connection are replaced; everything else passes unchanged.
"""

from dataclasses import dataclass
from typing import Final

from smg_node.http.forwarding.chunked_body_end import ChunkedEnd
from smg_node.http.message.http_request import HttpRequest

HEAD_BYTES_MAX: Final = 262_144
"""Our own answers have heads of a few hundred bytes; explained ones may echo long headers."""
_BODILESS: Final = frozenset({204, 304})
_INTERIM: Final = range(100, 200)


@dataclass(slots=True)
class PassedAnswer:
    """Progress of one forwarded answer."""

    begun: bool = False
    whole: bool = False
    broken: bool = False
    """Whether the request's own body was."""
    keep_alive: bool = False
    """Whether the client may send another request."""


class PassingAnswer:
    """Forwarding state of an answer: what is still to come of it."""

    def __init__(
        self, head: bytes, *, interim: bool, keep_alive: bool, body: int | None, chunked: bool
    ) -> None:
        self.head: Final = head
        self.interim: Final = interim
        self.keep_alive: Final = keep_alive
        self._left = body
        """Of a body with a length; None: it ends with the last chunk, or is not framed at all."""
        self._chunks: Final = ChunkedEnd() if chunked else None

    @property
    def whole(self) -> bool:
        """Whether nothing is missing; true for an unframed body."""
        if self._left is not None:
            return self._left == 0
        return self._chunks is None or self._chunks.reached

    def count(self, data: bytes) -> None:
        """Count bytes of the body."""
        if self._left is not None:
            self._left -= len(data)
        elif self._chunks is not None:
            self._chunks.count(data)


def passed_answer(head: bytes, incoming: HttpRequest) -> PassingAnswer:
    """Return the state of an answer whose head, blank line included, is `head`."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    status = int(first.split(b" ", 2)[1])
    if status in _INTERIM:
        return PassingAnswer(head, interim=True, keep_alive=True, body=0, chunked=False)
    headers = dict(_named(line) for line in lines)
    bodiless = incoming.method == "HEAD" or status in _BODILESS
    chunked = b"transfer-encoding" in headers
    length = int(headers[b"content-length"]) if b"content-length" in headers else None
    body = 0 if bodiless else None if chunked else length
    framed = bodiless or chunked or length is not None
    # A body that nobody read to its end stands in the way of whatever would come after it.
    keep_alive = incoming.head.keep_alive and framed and incoming.body.whole
    kept = [line for line in lines if _named(line)[0] != b"connection"]
    if not keep_alive:
        kept.append(b"connection: close")
    elif not incoming.head.http11:
        kept.append(b"connection: keep-alive")
    whole_head = b"\r\n".join([first, *kept]) + b"\r\n\r\n"
    return PassingAnswer(
        whole_head,
        interim=False,
        keep_alive=keep_alive,
        body=body,
        chunked=chunked and not bodiless,
    )


def _named(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.strip().lower(), value.strip()
