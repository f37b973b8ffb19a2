"""JSON pieces: decodes a large body in steps of bounded work, and bounds how many values it may have. Pure.

A decoder takes as long as a body has values, and while it runs nothing else does: two million token ids
are a quarter of a second. So a large body is cut at commas into pieces of some kilobytes. Each piece is
decoded by itself, between the brackets that are open where it begins and where it ends:

    {"a": [1, 2 | , 3, 4], "b": 5}   =   {"a": [1, 2]}   +   {"": [3, 4], "b": 5}

What continues a container is then put at the end of it. A long string is taken out of its piece, decoded
by itself in parts (`json_strings`), and put back. Where to cut is found by looking at strings and
brackets only, never at what is between them; whether it is JSON, the decoder finds out in each piece.
A continued member has a key that nothing in the body can have, because it is a hash of the body.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import xxhash

from smg_node.core.cooperative_steps import Steps, whole
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.json_strings import LONG_BYTES, string_in_steps

PIECE_BYTES: Final = 16_384
"""A piece has at least as many bytes; decoding them takes about a millisecond at worst."""
THINGS_MAX: Final = 262_144
"""Strings, keys, arrays and objects of one body; the largest sensible request has a third of that."""
VALUES_MAX: Final = 2_097_152
"""All values of one body; most of so many are token ids."""

_LOOKED_BYTES: Final = 65_536
# Numbers, words, commas, colons and blanks: all but strings and brackets.
_RUN: Final = re.compile(rb'[^"\[\]{}]*+')
_STRING_REST: Final = re.compile(rb"[^\"\\]*+(?:\\.[^\"\\]*+)*+", re.DOTALL)
_BLANKS: Final = b" \t\r\n"
_BLANKS_MAX: Final = 256
"""A comma with more of them on one side is no place to cut."""
_QUOTE, _BACKSLASH, _OBJECT, _ARRAY = b'"'[0], b"\\"[0], b"{"[0], b"["[0]
_CLOSERS: Final = b"]}"
_OFFSET: Final = re.compile(r"\(byte (\d+)\)")
_decode: Final = msgspec.json.Decoder().decode


def decode_in_pieces(body: bytes, *, nesting_max: int) -> Steps[Any]:
    """Return the value that `body` spells, in steps of about a piece.

    `msgspec.DecodeError` and UnicodeDecodeError where it is none, RecursionError where it nests deeper,
    TOO_LARGE where it has too many values.
    """
    scan, tree = _Scan(body, nesting_max), _Tree(body)
    while (piece := scan.next_piece()) is not None:
        strings: list[str] = []
        for start, end in piece.long_strings:
            strings.append((yield from string_in_steps(body, start, end)))
        tree.add(piece, strings)
        yield PIECE_BYTES
    return tree.root


class _Piece:
    """Where a piece is, and which containers are open where it begins and ends.

    `keys` are the spans of the keys under which those at its end stand, `low` how many were open throughout,
    `long_strings` the spans of its long strings, quotes included.
    """

    __slots__ = ("begin", "end", "keys", "long_strings", "low", "opened_after", "opened_before")

    def __init__(
        self,
        begin: int,
        end: int,
        opened_before: bytes,
        opened_after: bytes,
        keys: list[tuple[int, int]],
        low: int,
        long_strings: list[tuple[int, int]],
    ) -> None:
        self.begin = begin
        self.end = end
        self.opened_before = opened_before
        self.opened_after = opened_after
        self.keys = keys
        self.low = low
        self.long_strings = long_strings


class _Scan:
    """Finds the pieces of a body, from left to right."""

    def __init__(self, body: bytes, nesting_max: int) -> None:
        self._body = body
        self._nesting_max = nesting_max
        self._at = 0
        self._begin = 0
        self._open = bytearray()
        self._before = b""
        self._keys: list[tuple[int, int]] = []
        self._low = 0
        self._string = (0, 0)
        self._long: list[tuple[int, int]] = []
        self._things = 0
        self._values = 1

    def next_piece(self) -> _Piece | None:
        """Return the next piece; None when there is none."""
        body = self._body
        if self._begin > len(body):
            return None
        while self._at < len(body):
            cut = self._run()
            if cut >= 0:
                return self._cut(cut)
            if self._at < len(body) and not self._thing(body[self._at]):
                break
        return self._cut(len(body))

    def _run(self) -> int:
        """Pass over what is no string and no bracket; return where to cut in it, -1 for nowhere."""
        at, body = self._at, self._body
        found = _RUN.match(body, at, at + PIECE_BYTES)
        assert found is not None
        end = self._at = found.end()
        commas = body.count(b",", at, end)
        if not commas:
            return -1
        self._values += commas
        if self._values > VALUES_MAX:
            raise _too_many(VALUES_MAX, "values")
        comma = body.rfind(b",", at, end)
        if comma - self._begin < PIECE_BYTES or not self._open:
            return -1
        return comma if self._between_values(comma) else -1

    def _between_values(self, comma: int) -> bool:
        """Whether there is a value on both sides; else it is no JSON, which neither half would show."""
        body = self._body
        before = body[max(self._begin, comma - _BLANKS_MAX) : comma].rstrip(_BLANKS)
        after = body[comma + 1 : comma + 1 + _BLANKS_MAX].lstrip(_BLANKS)
        return bool(before and after) and before[-1] not in b"[{" and after[0] not in _CLOSERS

    def _thing(self, sign: int) -> bool:
        """Pass over the string or bracket at hand; False after the last bracket, or where a string has no end."""
        if self._at + 1 > len(self._body) or sign not in b'"[]{}':
            return True
        if sign in _CLOSERS:
            self._at += 1
            if self._open:
                self._open.pop()
                self._keys.pop()
            self._low = min(self._low, len(self._open))
            return bool(self._open)
        self._things += 1
        if self._things > THINGS_MAX:
            raise _too_many(THINGS_MAX, "strings, keys, arrays and objects")
        if sign == _QUOTE:
            return self._pass_string()
        self._open.append(sign)
        self._keys.append(self._string)
        if len(self._open) > self._nesting_max:
            raise RecursionError
        self._at += 1
        return True

    def _pass_string(self) -> bool:
        body, start = self._body, self._at
        end = body.find(b'"', start + 1)
        if end > 0 and body[end - 1] == _BACKSLASH:
            end = self._escaped_end(start + 1)
        if end < 0:
            return False
        self._string = (start, end + 1)
        if end - start > LONG_BYTES:
            self._long.append(self._string)
        self._at = end + 1
        return True

    def _escaped_end(self, at: int) -> int:
        """Return where a string with escapes ends, -1 for nowhere."""
        body = self._body
        while at < len(body):
            found = _STRING_REST.match(body, at, at + _LOOKED_BYTES)
            assert found is not None
            at = found.end()
            if at < len(body) and body[at] == _QUOTE:
                return at
            if at == found.start() and body[at] == _BACKSLASH:
                at += 2
        return -1

    def _cut(self, end: int) -> _Piece:
        opened = bytes(self._open)
        keys, low, long_strings = list(self._keys), self._low, self._long
        piece = _Piece(self._begin, end, self._before, opened, keys, low, long_strings)
        self._long = []
        self._begin = end + 1
        self._at = max(self._at, min(end + 1, len(self._body)))
        self._before = opened
        self._low = len(opened)
        return piece


class _Tree:
    """The value, as far as it is decoded. `spine`: the containers that are open, the outermost first."""

    def __init__(self, body: bytes) -> None:
        self.root: Any = None
        self._body = body
        self._mark = f"continued {xxhash.xxh3_128_hexdigest(body)}"
        self._spine: list[Any] = []

    def add(self, piece: _Piece, strings: Sequence[str]) -> None:
        """Decode a piece, of whose long strings these are the values, and put it where it belongs."""
        head = self._head(piece.opened_before)
        last = piece.end >= len(self._body)
        tail = b"" if last else piece.opened_after.translate(_CLOSED)[::-1]
        value = self._decoded(piece, head, tail)
        if strings:
            value = _filled(value, {self._stand_in(at): text for at, text in enumerate(strings)})
        if piece.opened_before:
            self._join(value)
        else:
            self.root = value
        if not last:
            self._follow(piece)

    def _decoded(self, piece: _Piece, head: bytes, tail: bytes) -> Any:
        body, at, parts = self._body, piece.begin, [head]
        for number, (start, end) in enumerate(piece.long_strings):
            parts += (body[at:start], b'"%b"' % self._stand_in(number).encode())
            at = end
        parts += (body[at : piece.end], tail)
        try:
            return _decode(b"".join(parts))
        except msgspec.DecodeError as error:
            # Where it is in the whole body.
            words = _OFFSET.sub(
                lambda found: f"(byte {self._place(piece, int(found[1]) - len(head))})", str(error)
            )
            raise msgspec.DecodeError(words) from error

    def _place(self, piece: _Piece, offset: int) -> int:
        """Return the place in the body of what is so far behind the beginning of the decoded piece."""
        at = piece.begin + offset
        for number, (start, end) in enumerate(piece.long_strings):
            if at > start:
                at += end - start - len(self._stand_in(number)) - 2
        return at

    def _stand_in(self, number: int) -> str:
        return f"{self._mark} {number}"

    def _head(self, opened: bytes) -> bytes:
        inner = len(opened) - 1
        key = b'{"%b":' % self._mark.encode()
        return b"".join(
            key if kind == _OBJECT and at < inner else opened[at : at + 1]
            for at, kind in enumerate(opened)
        )

    def _join(self, value: Any) -> None:
        inner = len(self._spine) - 1
        for at, container in enumerate(self._spine):
            if type(container) is list:
                container += value if at == inner else value[1:]
                value = value[0] if at < inner else None
            else:
                continued = value.pop(self._mark) if at < inner else None
                container.update(value)
                value = continued

    def _follow(self, piece: _Piece) -> None:
        """Note the containers that are open where the piece ends."""
        spine = self._spine
        del spine[piece.low :]
        for at in range(len(spine), len(piece.opened_after)):
            if at == 0:
                spine.append(self.root)
                continue
            outer = spine[-1]
            begin, end = piece.keys[at]
            key = whole(string_in_steps(self._body, begin, end)) if type(outer) is dict else -1
            spine.append(outer[key])


_CLOSED: Final = bytes.maketrans(b"[{", b"]}")


def _filled(value: Any, strings: Mapping[str, str]) -> Any:
    """Return a value with these strings in place of those that stand for them."""
    if type(value) is str:
        return strings.get(value, value)
    if type(value) is list:
        value[:] = [_filled(one, strings) for one in value]
    elif type(value) is dict:
        return {strings.get(key, key): _filled(one, strings) for key, one in value.items()}
    return value


def _too_many(most: int, what: str) -> SmgError:
    return SmgError(
        ErrorKind.TOO_LARGE, f"the body has more than {most:,} {what}; send less at once"
    )
