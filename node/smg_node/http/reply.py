"""What a route answers, and how it looks as the head of an HTTP message."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final

import msgspec

JSON: Final = "application/json"
_REASON: Final = {status.value: status.phrase for status in HTTPStatus} | {
    499: "Client Closed Request",
}
_NAMES_SHOWN_MAX: Final = 32
_LINE: Final = "%s: %s".__mod__
_encode: Final = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Reply:
    """A whole answer. Header names are lower case; values must not contain line breaks."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer that has already been written, event by event."""

    status: int = 200


def json_reply(value: Any, status: int = 200) -> Reply:
    """Return `value` as a JSON answer."""
    return Reply(status, _encode(value))


def name_list(names: Sequence[str]) -> str:
    """Return names that a client chose as a header value: what may not stand there becomes `?`."""
    shown = [
        "".join(c if c.isascii() and (c.isalnum() or c in "_-.[]") else "?" for c in name[:64])
        for name in names[:_NAMES_SHOWN_MAX]
    ]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more > 0 else "")


class HeadWriter:
    """Spells response heads; remembers how those of one status begin for the second they are good for."""

    def __init__(self) -> None:
        self._second = -1
        self._starts: dict[int, str] = {}

    def head(
        self,
        status: int,
        fixed: Iterable[str],
        headers: Mapping[str, str],
        *,
        now_s: int,
    ) -> bytes:
        """Return status line and headers; `fixed` are whole lines. AssertionError on a line break.

        `now_s` is the wall clock in whole seconds.
        """
        if now_s != self._second:
            self._second = now_s
            self._starts.clear()
        start = self._starts.get(status)
        if start is None:
            start = self._starts[status] = _start(status, now_s)
        lines = [start, *fixed, *map(_LINE, headers.items())]
        text = "\r\n".join(lines)
        # A header that smuggles in a line break would let a client write headers of its own.
        breaks = len(lines) + _START_BREAKS - 1
        assert text.count("\n") == breaks, "a response header contains a line break"
        assert text.count("\r") == breaks, "a response header contains a carriage return"
        return text.encode("utf-8", "replace") + b"\r\n\r\n"


_START_BREAKS: Final = 2
"""How many line breaks the start of a head has."""


def _start(status: int, now_s: int) -> str:
    date = formatdate(now_s, usegmt=True)
    return f"HTTP/1.1 {status} {_REASON.get(status, '')}\r\ndate: {date}\r\nserver: smg-node"
