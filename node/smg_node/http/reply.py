"""What a route answers, and how it looks as the head of an HTTP message."""

from collections.abc import Mapping, Sequence
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final

import msgspec

from smg_node.core.ports import Clock

JSON: Final = "application/json"
_REASON: Final = {status.value: status.phrase for status in HTTPStatus} | {
    499: "Client Closed Request",
}
_NAMES_SHOWN_MAX: Final = 32
_LINE: Final = "%s: %s".__mod__
_encode: Final = msgspec.json.Encoder().encode


class Reply(msgspec.Struct):
    """A whole answer. Header names are lower case; values must not contain line breaks."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class Streamed(msgspec.Struct, frozen=True):
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
    """Spells response heads; remembers how those of one kind begin for the second they are good for."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic_s = clock.monotonic_s
        self._now_ms = clock.now_ms
        self._until_s = float("-inf")
        self._date = ""
        # By status and fixed lines: how such a head begins, and how many line breaks that has beyond the one behind it.
        self._starts: dict[tuple[int, str], tuple[str, int]] = {}

    def head(
        self, status: int, fixed: str, headers: Mapping[str, str], size: int | None = None
    ) -> bytes:
        """Return status line and headers, with the `size` of a body that has one. AssertionError on a line break.

        `fixed` are whole lines, with line breaks between them only; there are few of them, or "" for none.
        """
        if self._monotonic_s() >= self._until_s:
            self._turn()
        start, more = self._starts.get((status, fixed)) or self._start(status, fixed)
        lines = [start, *map(_LINE, headers.items())]
        text = "\r\n".join(lines)
        # A header that smuggles in a line break would let a client write headers of its own.
        breaks = len(lines) + more
        assert text.count("\n") == breaks, "a response header contains a line break"
        assert text.count("\r") == breaks, "a response header contains a carriage return"
        if size is not None:
            text += f"\r\ncontent-length: {size}"
        return text.encode("utf-8", "replace") + b"\r\n\r\n"

    def _turn(self) -> None:
        """Begin another second of the wall clock."""
        now_ms = self._now_ms()
        self._until_s = self._monotonic_s() + (1000 - now_ms % 1000) / 1000
        self._date = formatdate(now_ms // 1000, usegmt=True)
        self._starts.clear()

    def _start(self, status: int, fixed: str) -> tuple[str, int]:
        lines = (
            f"HTTP/1.1 {status} {_REASON.get(status, '')}\r\ndate: {self._date}\r\nserver: smg-node"
        )
        text = f"{lines}\r\n{fixed}" if fixed else lines
        start = text, text.count("\n") - 1
        if len(self._starts) < _STARTS_MAX:
            self._starts[status, fixed] = start
        return start


_STARTS_MAX: Final = 64
"""More kinds of answers in one second are not remembered."""
