"""AWS frames: incremental parser and encoder of `application/vnd.amazon.eventstream`. Pure.

    frame  = total length | length of headers | CRC | headers | payload | CRC       numbers of 32 bits, big endian
    header = length of name (8 bits) | name | type (8 bits) | value

The first CRC is over both lengths, the second one over all before it. Headers repeat from frame to frame, so those of
the last frames are kept as they were read.
"""

import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

from smg_node.core.errors import ErrorKind, SmgError

HeaderValue: TypeAlias = bool | int | str | bytes
HEADERS_MAX_BYTES: Final = 128 * 1024
PAYLOAD_MAX_BYTES: Final = 24 * 1024 * 1024
"""What AWS's own clients take of headers and of a payload."""
_PRELUDE: Final = struct.Struct("!III")
_CRC: Final = struct.Struct("!I")
_PRELUDE_BYTES: Final = 12
_AROUND_BYTES: Final = 16
"""Of a frame without headers and payload."""
_KEPT_MAX: Final = 16
"""Sets of headers that are kept; a stream has about six."""
_KEPT_MAX_BYTES: Final = 512
_TRUE, _FALSE, _BYTES, _TEXT, _UUID = 0, 1, 6, 7, 9
_INTEGERS: Final[Mapping[int, struct.Struct]] = {
    2: struct.Struct("!b"),
    3: struct.Struct("!h"),
    4: struct.Struct("!i"),
    5: struct.Struct("!q"),
    8: struct.Struct("!q"),
}
"""Byte, short, integer, long; and a timestamp in milliseconds."""
_INTEGER: Final = 4


class Frame(NamedTuple):
    """One message of a stream; its headers by name, without their types."""

    headers: Mapping[str, HeaderValue]
    payload: bytes


class FrameReader:
    """Parser of one stream, fed piece by piece."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        """Pieces of a frame that is not over."""
        self._size = 0
        self._wanted = _PRELUDE_BYTES
        """With so many bytes there is something to be read."""
        self._kept: dict[bytes, Mapping[str, HeaderValue]] = {}

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """Yield the frames that are whole now; UPSTREAM_FAILED for bytes that are none, behind those before it."""
        self._held.append(piece)
        self._size += len(piece)
        if self._size < self._wanted:
            return
        data = b"".join(self._held)
        start, size = 0, self._size
        while size - start >= _PRELUDE_BYTES:
            total, of_headers = _lengths(data, start)
            if size - start < total:
                self._wanted = total
                break
            yield self._frame(data, start, total, of_headers)
            start += total
        else:
            self._wanted = _PRELUDE_BYTES
        rest = data[start:]
        self._held, self._size = [rest], len(rest)

    def finish(self) -> None:
        """Take in that the stream has ended; UPSTREAM_FAILED in the middle of a frame."""
        if self._size:
            raise _broken("the vendor's stream ended in the middle of a frame")

    def _frame(self, data: bytes, start: int, total: int, of_headers: int) -> Frame:
        end = start + total - _CRC.size
        if crc32(memoryview(data)[start:end]) != _CRC.unpack_from(data, end)[0]:
            raise _broken("a frame of the vendor's stream is damaged: its checksum is wrong")
        border = start + _PRELUDE_BYTES + of_headers
        return Frame(self._headers(data[start + _PRELUDE_BYTES : border]), data[border:end])

    def _headers(self, raw: bytes) -> Mapping[str, HeaderValue]:
        kept = self._kept.get(raw)
        if kept is not None:
            return kept
        headers = MappingProxyType(_read_headers(raw))
        if len(self._kept) < _KEPT_MAX and len(raw) <= _KEPT_MAX_BYTES:
            self._kept[raw] = headers
        return headers


def encode_frame(headers: Mapping[str, HeaderValue], payload: bytes) -> bytes:
    """Return a frame: integers as 32 bits, text and bytes as what they are."""
    said = b"".join(_header(name, value) for name, value in headers.items())
    assert len(said) <= HEADERS_MAX_BYTES, "no frame has so large headers"
    assert len(payload) <= PAYLOAD_MAX_BYTES, "no frame has so large a payload"
    lengths = struct.pack("!II", _AROUND_BYTES + len(said) + len(payload), len(said))
    whole = b"".join((lengths, _CRC.pack(crc32(lengths)), said, payload))
    return whole + _CRC.pack(crc32(whole))


def event_frame(kind: str, payload: bytes) -> bytes:
    """Return the frame of an event, as Bedrock sends it."""
    headers = {
        ":event-type": kind,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    return encode_frame(headers, payload)


def exception_frame(kind: str, payload: bytes) -> bytes:
    """Return the frame of an exception, as Bedrock sends it."""
    headers = {
        ":exception-type": kind,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return encode_frame(headers, payload)


# ── Bytes ────────────────────────────────────────────────────────────────────


def _lengths(data: bytes, start: int) -> tuple[int, int]:
    """Return the length of a frame and that of its headers."""
    total, of_headers, crc = _PRELUDE.unpack_from(data, start)
    if crc32(data[start : start + _PRELUDE_BYTES - _CRC.size]) != crc:
        raise _broken("the vendor's stream is damaged: the checksum of a frame's lengths is wrong")
    of_payload = total - of_headers - _AROUND_BYTES
    if of_payload < 0:
        raise _broken("a frame of the vendor's stream is shorter than its headers")
    if of_headers > HEADERS_MAX_BYTES or of_payload > PAYLOAD_MAX_BYTES:
        raise _broken(f"the vendor's stream has a frame of {total} bytes")
    return total, of_headers


def _read_headers(raw: bytes) -> dict[str, HeaderValue]:
    headers: dict[str, HeaderValue] = {}
    at = 0
    try:
        while at < len(raw):
            name, at = _sized(raw, at, 1)
            value, at = _value(raw, raw[at], at + 1)
            text = name.decode()
            if text in headers:
                raise _broken(f"a frame of the vendor's stream has two headers {text[:40]!r}")
            headers[text] = value
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise _broken("a frame of the vendor's stream has headers that are none") from error
    return headers


def _value(raw: bytes, kind: int, at: int) -> tuple[HeaderValue, int]:
    if kind == _TEXT:
        text, at = _sized(raw, at, 2)
        return text.decode(), at
    if kind == _BYTES:
        return _sized(raw, at, 2)
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, at
    if kind == _UUID:
        return _cut(raw, at, 16)
    form = _INTEGERS.get(kind)
    if form is None:
        raise _broken(f"a frame of the vendor's stream has a header of unknown type {kind}")
    number: int = form.unpack_from(raw, at)[0]
    return number, at + form.size


def _sized(raw: bytes, at: int, size: int) -> tuple[bytes, int]:
    """Return bytes that their length of `size` bytes stands before, and where they end."""
    prefix, at = _cut(raw, at, size)
    return _cut(raw, at, int.from_bytes(prefix, "big"))


def _cut(raw: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(raw):
        raise IndexError
    return raw[at : at + size], at + size


def _header(name: str, value: HeaderValue) -> bytes:
    written = name.encode()
    head = bytes((len(written),)) + written
    if value is True or value is False:
        return head + bytes((_TRUE if value else _FALSE,))
    if isinstance(value, int):
        return head + bytes((_INTEGER,)) + _INTEGERS[_INTEGER].pack(value)
    kind, raw = (_TEXT, value.encode()) if isinstance(value, str) else (_BYTES, value)
    return head + bytes((kind,)) + struct.pack("!H", len(raw)) + raw


def _broken(message: str) -> SmgError:
    return SmgError(ErrorKind.UPSTREAM_FAILED, message)
