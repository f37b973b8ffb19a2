"""Reply: a route's answer, and the writer of its HTTP response head."""

from collections.abc import Mapping, Sequence
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import msgspec

from smg_node.core.ports import Clock

JSON: Final = "application/json"
_REASON: Final = {status.value: status.phrase for status in HTTPStatus} | {
    499: "Client Closed Request",
}
_NAMES_SHOWN_MAX: Final = 32
_SERVER: Final = "server: smg-node\r\nx-content-type-options: nosniff"
"""Lines that every head has: browsers take each answer for what its content type says."""
_STRICT: Final = "strict-transport-security: max-age=%d"
_encode: Final = msgspec.json.Encoder().encode
_Kind: TypeAlias = tuple[int | str, ...]
Lines: TypeAlias = tuple[tuple[str, str | None], ...]
LIMITS: Final = ("", None)
"""Where the headers about limits stand among those of a form."""


class Form(msgspec.Struct, frozen=True):
    """Precomputed head of an answer: `text` has places for the date, the connection lines, and some
    values.

    `limits` are the names of its limit headers, and `breaks` the number of its own line breaks.
    """

    limits: list[str]
    text: str
    breaks: int


class Reply(msgspec.Struct):
    """A whole answer. Header names are lower case; values must not contain line breaks.

    With a `form`, its head is that with these values, equal to what status, content type and
    headers give.
    """

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    form: Form | None = None
    values: tuple[object, ...] = ()


class Streamed(msgspec.Struct, frozen=True):
    """An answer that was already written, event by event."""

    status: int = 200


def json_reply(value: Any, status: int = 200) -> Reply:
    """Return `value` as a JSON answer."""
    return Reply(status, _encode(value))


def name_list(names: Sequence[str]) -> str:
    """Return client-chosen names as a header value: characters that may not stand there become `?`."""
    shown = [
        "".join(c if c.isascii() and (c.isalnum() or c in "_-.[]") else "?" for c in name[:64])
        for name in names[:_NAMES_SHOWN_MAX]
    ]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more > 0 else "")


class HeadWriter:
    """Writes response heads; caches the common part of one kind for the second that its date is
    valid.

    Answers of one kind have the same headers with other values. So a kind is a text with places for
    the values: filling them in takes two thirds of the time that joining the lines takes.
    """

    def __init__(self, clock: Clock, hsts_s: int = 0) -> None:
        """Take `hsts_s`, how long browsers are to come by https only; 0 tells them nothing (RFC 6797)."""
        self._monotonic_s = clock.monotonic_s
        self._now_ms = clock.now_ms
        self._server = f"{_SERVER}\r\n{_STRICT % hsts_s}" if hsts_s else _SERVER
        self._until_s = float("-inf")
        self._date = ""
        # By status, fixed lines, whether there is no size, and the headers' names: the text, and its line breaks.
        self._kinds: dict[_Kind, tuple[str, int]] = {}
        # By its lines and the headers about limits: forms do not contain the date, and hold for ever.
        self._forms: dict[tuple[Lines, tuple[str, ...]], Form] = {}

    def head(
        self, status: int, fixed: str, headers: Mapping[str, str], size: int | None = None
    ) -> bytes:
        """Return status line and headers, with the `size` of a body that has one. AssertionError on a line break.

        `fixed` are whole lines, with line breaks between them only; there are few of them, or "" for none.
        """
        if self._monotonic_s() >= self._until_s:
            self._turn()
        kind: _Kind = (status, fixed, size is None, *headers)
        template, breaks = self._kinds.get(kind) or self._kind(kind)
        values = headers.values()
        text = template % ((*values,) if size is None else (*values, size))
        # A header that smuggles in a line break would let a client write headers of its own.
        assert text.count("\n") == breaks, "a response header contains a line break"
        assert text.count("\r") == breaks, "a response header contains a carriage return"
        return text.encode("utf-8", "replace")

    def filled(self, form: Form, values: tuple[object, ...], lines: str) -> bytes:
        """Return a head of a known form. `lines`, about the connection, end in line breaks.
        AssertionError on any other.
        """
        if self._monotonic_s() >= self._until_s:
            self._turn()
        text = form.text % (self._date, lines, *values)
        breaks = form.breaks
        if lines:
            breaks += lines.count("\n")
        # As in `head`.
        assert text.count("\n") == breaks, "a response header contains a line break"
        assert text.count("\r") == breaks, "a response header contains a carriage return"
        return text.encode("utf-8", "replace")

    def form(self, lines: Lines, limits: Sequence[str]) -> Form:
        """Return the form of good answers with these headers: each its value, or None for a place, at `LIMITS` several."""
        key = (lines, (*limits,))
        found = self._forms.get(key)
        if found is None:
            spread: list[tuple[str, str | None]] = []
            for line in lines:
                spread += [(name, None) for name in limits] if line == LIMITS else [line]
            told = "".join(
                f"{name}: ".replace("%", "%%")
                + ("%s" if value is None else value.replace("%", "%%"))
                + "\r\n"
                for name, value in spread
            )
            text = f"HTTP/1.1 200 OK\r\ndate: %s\r\n{self._server}\r\n%s{told}\r\n"
            # Counted by lines, as in `_kind`.
            found = Form([*limits], text, len(spread) + self._server.count("\n") + 4)
            if len(self._forms) < _KINDS_MAX:
                self._forms[key] = found
        return found

    def _turn(self) -> None:
        """Begin another second of the wall clock."""
        now_ms = self._now_ms()
        self._until_s = self._monotonic_s() + (1000 - now_ms % 1000) / 1000
        self._date = formatdate(now_ms // 1000, usegmt=True)
        self._kinds.clear()

    def _kind(self, kind: _Kind) -> tuple[str, int]:
        """Return a head with places for its values, and how many line breaks it has, the empty line's included."""
        status, fixed, bare, *names = kind
        reason = _REASON.get(int(status), "")
        start = f"HTTP/1.1 {status} {reason}\r\ndate: {self._date}\r\n{self._server}"
        if fixed:
            start += f"\r\n{fixed}"
        wanted = [str(name) for name in names]
        if not bare:
            wanted.append("content-length")
        lines = [start.replace("%", "%%"), *(name.replace("%", "%%") + ": %s" for name in wanted)]
        # Counted by lines, not in the text: a name may contain a line break as well.
        found = "\r\n".join([*lines, "", ""]), start.count("\n") + len(wanted) + 2
        if len(self._kinds) < _KINDS_MAX:
            self._kinds[kind] = found
        return found


_KINDS_MAX: Final = 64
"""More kinds of answers in one second are not remembered."""
