"""Head cache: recognises a connection's next head without parsing, if only its length differs.

Recognising a head costs a twentieth of parsing it. It is the same to the byte but for the digits of
its `content-length`, and these must be exactly the length of the body that came with it, so the
grammar would parse it as before. The middleware's findings about the head hold for the next request
as well, whatever the length.

A crowd of clients that are new has few heads as well: most differ in nothing but their connections.
So the latest heads of a listener are known to each connection that begins. What is found about
them is passed on only by whoever knows that it does not hang on the connection; and they are
forgotten soon after the last connection began with one, for keys stand in them.
"""

import re
from typing import Final

from smg_node.http.message.body_stream import ArrivedBody
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.request_head import ClientLine, Head

_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"\r\ncontent-length:"
_NAME: Final = "content-length"
_DIGITS_MAX: Final = 9
_DIGITS: Final = re.compile(rb"\r\ncontent-length: ?([0-9]{1,9})\r\n", re.IGNORECASE)
_COMMON_MAX: Final = 64
_COMMON_BYTES_MAX: Final = 4096


class KnownHead:
    """A parsed head, of a request whose whole body came with it and that kept its connection."""

    __slots__ = ("_place", "_rest", "_start", "head", "head_bytes", "request_bytes", "whole")

    def __init__(self, start: bytes, rest: bytes, place: int, head: Head) -> None:
        self._start = start
        self._rest = rest
        self._place = place
        self.head = head
        """What the latest one says."""
        self.whole = start
        """How the latest one was spelled."""
        self.head_bytes = len(start)
        self.request_bytes = 0
        """How long the latest one was together with its body."""

    def read(self, data: bytes, line: ClientLine) -> HttpRequest | None:
        """Return the request in `data` if it is one whole request with this head and nothing else."""
        # Where the latest of this head had another length, it is looked at what is the same.
        same = len(data) == self.request_bytes and data.startswith(self.whole)
        if not same and not self._is_like(data):
            return None
        return HttpRequest(self.head, ArrivedBody(data[self.head_bytes :]), line)

    @property
    def spelled(self) -> bytes:
        """The head without the digits of its length."""
        return self._start + self._rest

    def kept(self) -> "KnownHead":
        """Return it for connections to come, without what was found about it."""
        own = self.head
        head = Head(own.method, own.target, own.headers, own.raw, http11=True, keep_alive=True)
        return KnownHead(self._start, self._rest, self._place, head)

    def beginning(self, data: bytes) -> "KnownHead | None":
        """Return it as learned by a connection that begins with `data`; None if that is not one request with this head."""
        known = KnownHead(self._start, self._rest, self._place, self.head)
        if not known._is_like(data):
            return None
        known.head.common = self.head
        return known

    def _is_like(self, data: bytes) -> bool:
        """Whether `data` has this head but for the digits of its length; if so, they are
        remembered.
        """
        start, rest = self._start, self._rest
        if not data.startswith(start):
            return False
        at = len(start)
        stop = data.find(b"\r", at, at + _DIGITS_MAX + 1)
        if not (stop > at and data.startswith(rest, stop)):
            return False
        digits = data[at:stop]
        begins = stop + len(rest)
        if not digits.isdigit() or int(digits) != len(data) - begins:
            return False
        before = self.head
        raw = list(before.raw)
        raw[self._place] = (raw[self._place][0], digits)
        headers = {**before.headers, _NAME: digits.decode("ascii")}
        head = Head(before.method, before.target, headers, raw, http11=True, keep_alive=True)
        # Nobody decides anything by a length that has come with as many bytes.
        head.standing, head.common = before.standing, before.common
        self.head, self.whole = head, data[:begins]
        self.head_bytes, self.request_bytes = begins, len(data)
        return True


class CommonHeads:
    """Heads that connections of one listener have in common. None of them has a client certificate.

    They are looked up by the interpreter's keyed hash, so how long it takes says nothing about keys in others' heads.
    """

    __slots__ = ("_fresh", "_heads")

    def __init__(self) -> None:
        self._heads: dict[bytes, KnownHead] = {}
        """By what they are without the digits of their length, those last that were found last."""
        self._fresh: set[KnownHead] = set()

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._heads)

    def find(self, data: bytes) -> KnownHead | None:
        """Return what a connection has learned whose first bytes are one whole request with such a head; else None."""
        heads, end = self._heads, data.find(_END)
        if not heads or not 0 < end <= _COMMON_BYTES_MAX:
            return None
        digits = _DIGITS.search(data, 0, end + 2)
        if digits is None:
            return None
        at, stop = digits.span(1)
        key = data[:at] + data[stop : end + len(_END)]
        kept = heads.pop(key, None)
        if kept is None:
            return None
        heads[key] = kept
        self._fresh.add(kept)
        return kept.beginning(data)

    def learn(self, known: KnownHead, own: Head) -> None:
        """Keep a head that the first request of a connection had, there called `own`."""
        key = known.spelled
        if len(key) > _COMMON_BYTES_MAX:
            return
        heads, kept = self._heads, known.kept()
        own.common = kept.head
        heads.pop(key, None)
        heads[key] = kept
        self._fresh.add(kept)
        if len(heads) > _COMMON_MAX:
            self._fresh.discard(heads.pop(next(iter(heads))))

    def age(self) -> None:
        """Forget those that no connection has begun with since the last time."""
        self._heads = {key: kept for key, kept in self._heads.items() if kept in self._fresh}
        self._fresh.clear()

    def clear(self) -> None:
        """Forget all of them."""
        self._heads.clear()
        self._fresh.clear()


def known_head(data: bytes, incoming: Head) -> KnownHead | None:
    """Return the head of the one whole request that `data` is; None for one that may not be cached.

    `data` is exactly one request, parsed as one of head `incoming`, which keeps its connection.
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
    rest = data[stop : end + len(_END)]
    return KnownHead(data[:at], rest, names.index(_NAME.encode()), incoming)
