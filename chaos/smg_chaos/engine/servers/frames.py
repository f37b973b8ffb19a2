"""Frames of HTTP/2 (RFC 9113): their numbers, and the bytes a gRPC server sends."""

import struct
from typing import Final
from urllib.parse import quote

from smg_chaos.engine.protocol.rpc_call import End
from smg_chaos.engine.servers.hpack import literal

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA: Final = 0x0
HEADERS: Final = 0x1
PRIORITY: Final = 0x2
RST_STREAM: Final = 0x3
SETTINGS: Final = 0x4
PUSH_PROMISE: Final = 0x5
PING: Final = 0x6
GOAWAY: Final = 0x7
WINDOW_UPDATE: Final = 0x8
CONTINUATION: Final = 0x9

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
WITH_PRIORITY: Final = 0x20

NO_ERROR: Final = 0x0
PROTOCOL_ERROR: Final = 0x1
INTERNAL_ERROR: Final = 0x2
FLOW_CONTROL_ERROR: Final = 0x3
FRAME_SIZE_ERROR: Final = 0x6
REFUSED_STREAM: Final = 0x7
COMPRESSION_ERROR: Final = 0x9
ENHANCE_YOUR_CALM: Final = 0xB

SET_INITIAL_WINDOW: Final = 0x4
SET_MAX_FRAME: Final = 0x5
SET_MAX_STREAMS: Final = 0x3

DEFAULT_WINDOW: Final = 65_535
DEFAULT_FRAME: Final = 16_384
WINDOW_MAX: Final = (1 << 31) - 1

HEAD: Final = struct.Struct(">BHBBI")
_SETTING: Final = struct.Struct(">HI")
_WORD: Final = struct.Struct(">I")
# A frame header and the five bytes in front of a gRPC message, in one go.
_MESSAGE: Final = struct.Struct(">BHBBIBI")
_GRPC: Final = struct.Struct(">BI")
GRPC_PREFIX: Final = _GRPC.size


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    length = len(payload)
    return HEAD.pack(length >> 16, length & 0xFFFF, kind, flags, stream) + payload


def message_head(stream: int, length: int) -> bytes:
    """Return the bytes before a gRPC message of `length` bytes that fills one DATA frame."""
    whole = length + GRPC_PREFIX
    return _MESSAGE.pack(whole >> 16, whole & 0xFFFF, DATA, 0, stream, 0, length)


def prefixed(message: bytes) -> bytes:
    """Return a gRPC message with its prefix, to be cut into frames."""
    return _GRPC.pack(0, len(message)) + message


def settings(*pairs: tuple[int, int]) -> bytes:
    """Return a SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join([_SETTING.pack(*pair) for pair in pairs]))


def window_update(stream: int, more: int) -> bytes:
    """Return a WINDOW_UPDATE frame."""
    return frame(WINDOW_UPDATE, 0, stream, _WORD.pack(more))


def reset(stream: int, code: int) -> bytes:
    """Return a RST_STREAM frame."""
    return frame(RST_STREAM, 0, stream, _WORD.pack(code))


def goaway(last: int, code: int) -> bytes:
    """Return a GOAWAY frame."""
    return frame(GOAWAY, 0, 0, _WORD.pack(last) + _WORD.pack(code))


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    """Return the settings of a SETTINGS payload, whose length is a multiple of six."""
    return [_SETTING.unpack_from(payload, at) for at in range(0, len(payload), _SETTING.size)]


def read_word(payload: bytes) -> int:
    """Return a 31-bit number."""
    value: int = _WORD.unpack(payload)[0]
    return value & 0x7FFF_FFFF


_RESPONSE: Final = literal(b":status", b"200") + literal(b"content-type", b"application/grpc")
_OPENING: Final = HEAD.pack(0, len(_RESPONSE), HEADERS, END_HEADERS, 0)[:5]
_FINE: Final = literal(b"grpc-status", b"0")
_CLOSING: Final = HEAD.pack(0, len(_FINE), HEADERS, END_HEADERS | END_STREAM, 0)[:5]


def opening(stream: int) -> bytes:
    """Return the response headers."""
    return _OPENING + _WORD.pack(stream) + _RESPONSE


def closing(stream: int, end: End, *, opened: bool) -> bytes:
    """Return the trailers; they come alone, with the response headers, if nothing was sent before."""
    if opened and not end.code:
        return _CLOSING + _WORD.pack(stream) + _FINE
    block = b"" if opened else _RESPONSE
    block += literal(b"grpc-status", str(int(end.code)).encode())
    if end.message:
        block += literal(b"grpc-message", quote(end.message, safe=" !#$&'()*+,/:;=?@[]~").encode())
    return frame(HEADERS, END_HEADERS | END_STREAM, stream, block)
