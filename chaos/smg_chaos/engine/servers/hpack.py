"""HPACK decoder (RFC 7541), complete: static and dynamic table, Huffman.

A gRPC client sends nearly the same block for every request of a connection, so blocks that changed
no table are cached by their bytes. The encoder needs none of this: response headers are fixed
literals.
"""

from collections import deque
from typing import Final

TABLE_BYTES: Final = 4096
_ENTRY_OVERHEAD: Final = 32
_REMEMBERED_MAX: Final = 512
_HEADERS_MAX_BYTES: Final = 256 * 1024

Headers = tuple[tuple[bytes, bytes], ...]


class HpackError(Exception):
    """A block that cannot be decoded; the connection's table is lost with it."""


_STATIC_TEXT: Final = (
    ":authority|:method GET|:method POST|:path /|:path /index.html|:scheme http|:scheme https|"
    ":status 200|:status 204|:status 206|:status 304|:status 400|:status 404|:status 500|"
    "accept-charset|accept-encoding gzip, deflate|accept-language|accept-ranges|accept|"
    "access-control-allow-origin|age|allow|authorization|cache-control|content-disposition|"
    "content-encoding|content-language|content-length|content-location|content-range|content-type|"
    "cookie|date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|"
    "if-unmodified-since|last-modified|link|location|max-forwards|proxy-authenticate|"
    "proxy-authorization|range|referer|refresh|retry-after|server|set-cookie|"
    "strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate"
)
_STATIC: Final = tuple(
    (name.encode(), value.encode())
    for name, _, value in (entry.partition(" ") for entry in _STATIC_TEXT.split("|"))
)

# Code lengths of the symbols 0..255 and of the end marker; the code is canonical, so the lengths
# are all there is to it (appendix B).
_LENGTHS: Final = (
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
)  # fmt: skip


def huffman_codes() -> dict[tuple[int, int], int]:
    """Return the symbol of every (length, code)."""
    codes: dict[tuple[int, int], int] = {}
    code = length = 0
    for wanted, symbol in sorted((length, symbol) for symbol, length in enumerate(_LENGTHS)):
        code <<= wanted - length
        length = wanted
        codes[length, code] = symbol
        code += 1
    return codes


_CODES: Final = huffman_codes()
_END: Final = 256
_LONGEST: Final = max(_LENGTHS)


def huffman(raw: bytes) -> bytes:
    """Return the text behind a Huffman-coded string."""
    out = bytearray()
    code = length = 0
    for byte in raw:
        for shift in range(7, -1, -1):
            code = code << 1 | byte >> shift & 1
            length += 1
            symbol = _CODES.get((length, code))
            if symbol is not None:
                if symbol == _END:
                    raise HpackError("the end marker stands in a string")
                out.append(symbol)
                code = length = 0
            elif length > _LONGEST:
                raise HpackError("no such code")
    if length > 7 or code != (1 << length) - 1:
        raise HpackError("wrong padding")
    return bytes(out)


class HeaderReader:
    """The decoder of one connection."""

    def __init__(self) -> None:
        self._table: deque[tuple[bytes, bytes]] = deque()
        self._size = 0
        self._limit = TABLE_BYTES
        self._remembered: dict[bytes, Headers] = {}
        self._changed = False

    def read(self, block: bytes) -> Headers:
        """Return the headers of a complete block, in order; HpackError for anything else."""
        known = self._remembered.get(block)
        if known is not None:
            return known
        self._changed = False
        headers = self._decode(block)
        if self._changed or len(self._remembered) >= _REMEMBERED_MAX:
            self._remembered.clear()
        if not self._changed:
            self._remembered[block] = headers
        return headers

    def _decode(self, block: bytes) -> Headers:
        headers: list[tuple[bytes, bytes]] = []
        at = total = 0
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = _integer(block, at, 7)
                entry = self._entry(index)
            elif first & 0xE0 == 0x20:
                if headers:
                    raise HpackError("a table size change comes first")
                size, at = _integer(block, at, 5)
                self._resize(size)
                continue
            else:
                entry, at = self._literal(block, at, indexed=bool(first & 0x40))
            total += len(entry[0]) + len(entry[1]) + _ENTRY_OVERHEAD
            if total > _HEADERS_MAX_BYTES:
                raise HpackError("too many headers")
            headers.append(entry)
        return tuple(headers)

    def _literal(self, block: bytes, at: int, *, indexed: bool) -> tuple[tuple[bytes, bytes], int]:
        index, at = _integer(block, at, 6 if indexed else 4)
        if index:
            name = self._entry(index)[0]
        else:
            name, at = _string(block, at)
        value, at = _string(block, at)
        if indexed:
            self._add(name, value)
        return (name, value), at

    def _entry(self, index: int) -> tuple[bytes, bytes]:
        if 1 <= index <= len(_STATIC):
            return _STATIC[index - 1]
        index -= len(_STATIC) + 1
        if not 0 <= index < len(self._table):
            raise HpackError("no such table entry")
        return self._table[index]

    def _add(self, name: bytes, value: bytes) -> None:
        self._changed = True
        self._size += len(name) + len(value) + _ENTRY_OVERHEAD
        self._table.appendleft((name, value))
        self._evict()

    def _resize(self, limit: int) -> None:
        if limit > TABLE_BYTES:
            raise HpackError("the table is larger than agreed")
        self._changed = True
        self._limit = limit
        self._evict()

    def _evict(self) -> None:
        while self._size > self._limit:
            name, value = self._table.pop()
            self._size -= len(name) + len(value) + _ENTRY_OVERHEAD


def _integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    value = block[at] & most
    at += 1
    if value < most:
        return value, at
    shift = 0
    while at < len(block) and shift <= 28:
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise HpackError("an integer that does not end")


def _string(block: bytes, at: int) -> tuple[bytes, int]:
    if at >= len(block):
        raise HpackError("a string is missing")
    coded = block[at] & 0x80
    length, at = _integer(block, at, 7)
    raw = block[at : at + length]
    if len(raw) < length:
        raise HpackError("a string is cut off")
    return (huffman(raw) if coded else raw), at + length


def literal(name: bytes, value: bytes) -> bytes:
    """Return a header as a literal that enters no table."""
    return b"\x00" + _length(name) + name + _length(value) + value


def _length(text: bytes) -> bytes:
    if len(text) < 0x7F:
        return bytes((len(text),))
    out, rest = bytearray((0x7F,)), len(text) - 0x7F
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
