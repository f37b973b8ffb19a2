"""HPACK (RFC 7541): header compression of HTTP/2, for an endpoint that announces a dynamic table of
no bytes. Pure.

This end announces a table of no bytes, so what a server writes stands for itself: the static table,
literals, Huffman. Blocks therefore mean the same wherever they stand, and may be cached.
"""

from typing import Final

from smg_node.engines.transport.h2.protocol.frames import COMPRESSION_ERROR, BrokenError
from smg_node.engines.transport.h2.protocol.huffman import HuffmanError, decoded

HEADERS_MAX_BYTES: Final = 64 * 1024
"""Names and values of one block; gRPC servers stop at 8 to 16 KB, a proxy's error page adds a few."""

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
STATIC: Final = tuple(
    (name.encode(), value.encode())
    for name, _, value in (entry.partition(" ") for entry in _STATIC_TEXT.split("|"))
)


def read_block(block: bytes) -> list[tuple[bytes, bytes]]:
    """Return the headers of a complete block, in order; BrokenError for anything else."""
    headers: list[tuple[bytes, bytes]] = []
    at = total = 0
    while at < len(block):
        first = block[at]
        if first & 0x80:
            index, at = _integer(block, at, 7)
            entry = _entry(index)
        elif first & 0xE0 == 0x20:
            size, at = _integer(block, at, 5)
            if headers or size:
                raise _broken("a table of a size that nobody allowed")
            continue
        else:
            entry, at = _literal(block, at, 6 if first & 0x40 else 4)
        # What a literal asks to be remembered does not fit into a table of no bytes.
        total += len(entry[0]) + len(entry[1])
        if total > HEADERS_MAX_BYTES:
            raise _broken("too many headers")
        headers.append(entry)
    return headers


def literal(name: bytes, value: bytes) -> bytes:
    """Return a header as a literal that is not added to any table."""
    return b"\x00" + length_of(name) + name + length_of(value) + value


def indexed(index: int, value: bytes) -> bytes:
    """Return a header with a name of the static table, below 15, and a value that is not added to
    any table.
    """
    assert index < 0x0F
    return bytes((index,)) + length_of(value) + value


def length_of(text: bytes) -> bytes:
    """Return the length prefix of a plain string."""
    if len(text) < 0x7F:
        return bytes((len(text),))
    out, rest = bytearray((0x7F,)), len(text) - 0x7F
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _broken(why: str) -> BrokenError:
    return BrokenError(COMPRESSION_ERROR, why)


def _entry(index: int) -> tuple[bytes, bytes]:
    if not 0 < index <= len(STATIC):
        raise _broken("a header of a table that is empty")
    return STATIC[index - 1]


def _literal(block: bytes, at: int, bits: int) -> tuple[tuple[bytes, bytes], int]:
    index, at = _integer(block, at, bits)
    if index:
        name = _entry(index)[0]
    else:
        name, at = _string(block, at)
    value, at = _string(block, at)
    return (name, value), at


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
    raise _broken("a number that does not end")


def _string(block: bytes, at: int) -> tuple[bytes, int]:
    if at >= len(block):
        raise _broken("a string is missing")
    coded = block[at] & 0x80
    length, at = _integer(block, at, 7)
    raw = block[at : at + length]
    if len(raw) < length:
        raise _broken("a string is cut off")
    if not coded:
        return raw, at + length
    try:
        return decoded(raw), at + length
    except HuffmanError as error:
        raise _broken(str(error)) from None
