"""AWS event-stream frames: an encoder of events and exceptions, as Bedrock streams them.

    frame = total length | headers length | CRC32 of both | headers | payload | CRC32 of all before

Lengths and sums are big-endian numbers of four bytes. A header is the length of its name in one byte, the name, the
type 7 (a string), the length of the value in two bytes, and the value.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from zlib import crc32

_STRING: Final = 7
_PRELUDE_BYTES: Final = 12
_SUM_BYTES: Final = 4


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return one frame."""
    return _framed(b"".join(_header(name, value) for name, value in headers.items()), payload)


def event_frame(name: str, payload: bytes) -> bytes:
    """Return an event of that name whose payload is JSON."""
    return _framed(_event_headers(name), payload)


def exception_frame(name: str, payload: bytes) -> bytes:
    """Return an exception of that name, as it may come after the status 200."""
    kinds = {
        ":exception-type": name,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return frame(kinds, payload)


@lru_cache(64)
def _event_headers(name: str) -> bytes:
    kinds = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return b"".join(_header(key, value) for key, value in kinds.items())


def _header(name: str, value: str) -> bytes:
    key, said = name.encode(), value.encode()
    length = len(said).to_bytes(2, "big")
    return bytes([len(key)]) + key + bytes([_STRING]) + length + said


def _framed(headers: bytes, payload: bytes) -> bytes:
    total = _PRELUDE_BYTES + len(headers) + len(payload) + _SUM_BYTES
    prelude = total.to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    start = prelude + crc32(prelude).to_bytes(4, "big") + headers + payload
    return start + crc32(start).to_bytes(4, "big")
