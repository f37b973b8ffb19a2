"""The head that a connection's last request had: a client's next one mostly differs from it in nothing but its length.

Reading such a head again costs a twentieth of reading it anew. It is the same to the byte but for the digits of its
`content-length`, and these must name exactly what came with it, so the grammar would say of it what it said before.
"""

from typing import Final

from smg_node.http.arriving import ArrivingBody, Flow
from smg_node.http.incoming import ClientLine, HeadFacts, Incoming

_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"\r\ncontent-length:"
_NAME: Final = "content-length"
_DIGITS_MAX: Final = 9


class KnownHead:
    """A head that the grammar has taken, of a request whose whole body came with it and that kept its connection."""

    __slots__ = ("_facts", "_headers", "_method", "_place", "_raw", "_rest", "_start", "_target")

    def __init__(self, start: bytes, rest: bytes, place: int, incoming: Incoming) -> None:
        self._start = start
        self._rest = rest
        self._place = place
        self._method = incoming.method
        self._target = incoming.target
        self._headers = incoming.headers
        self._raw = incoming.raw
        self._facts = HeadFacts()

    def read(self, data: bytes, line: ClientLine, flow: Flow) -> Incoming | None:
        """Return the request in `data` if it is one whole request with this head and nothing else."""
        start, rest = self._start, self._rest
        if not data.startswith(start):
            return None
        at = len(start)
        stop = data.find(b"\r", at, at + _DIGITS_MAX + 1)
        if not (stop > at and data.startswith(rest, stop)):
            return None
        digits = data[at:stop]
        begins = stop + len(rest)
        if not digits.isdigit() or int(digits) != len(data) - begins:
            return None
        headers = dict(self._headers)
        headers[_NAME] = digits.decode("ascii")
        raw = list(self._raw)
        raw[self._place] = (raw[self._place][0], digits)
        body = ArrivingBody.arrived(flow, data[begins:])
        return Incoming(
            self._method, self._target, headers, raw, body, line, True, True, self._facts
        )


def known_head(data: bytes, incoming: Incoming) -> KnownHead | None:
    """Return the head of the one whole request that `data` is; None for one that need not be what it seems.

    The grammar has read `data` from a request's beginning to its end as `incoming`, which keeps its connection.
    """
    if not incoming.http11 or "transfer-encoding" in incoming.headers:
        return None
    end = data.find(_END)
    head = data[:end].lower()
    if end < 0 or head.count(_LENGTH) != 1:
        return None
    at = head.index(_LENGTH) + len(_LENGTH)
    if data[at : at + 1] == b" ":
        at += 1
    stop = data.find(b"\r", at)
    digits = data[at:stop]
    body_bytes = len(data) - end - len(_END)
    if not digits.isdigit() or len(digits) > _DIGITS_MAX or int(digits) != body_bytes:
        return None
    names = [name.lower() for name, _ in incoming.raw]
    if names.count(_NAME.encode()) != 1:
        return None
    return KnownHead(data[:at], data[stop : end + len(_END)], names.index(_NAME.encode()), incoming)
