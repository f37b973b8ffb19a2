"""HTTP/2 frames (RFC 9113): their numbers, and the bytes of those that a client sends. Pure."""

import struct
from typing import Final

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
STREAM_CLOSED: Final = 0x5
FRAME_SIZE_ERROR: Final = 0x6
REFUSED_STREAM: Final = 0x7
CANCEL: Final = 0x8
COMPRESSION_ERROR: Final = 0x9
ENHANCE_YOUR_CALM: Final = 0xB
INADEQUATE_SECURITY: Final = 0xC

TABLE_SIZE: Final = 0x1
ENABLE_PUSH: Final = 0x2
MAX_STREAMS: Final = 0x3
INITIAL_WINDOW: Final = 0x4
MAX_FRAME: Final = 0x5
MAX_HEADER_LIST: Final = 0x6

DEFAULT_WINDOW: Final = 65_535
FRAME_MAX_BYTES: Final = 16_384
"""The largest frame that everybody takes, and the largest one that we take."""
FRAME_LIMIT_BYTES: Final = (1 << 24) - 1
WINDOW_MAX: Final = (1 << 31) - 1
NUMBER_MAX: Final = (1 << 31) - 1

HEAD: Final = struct.Struct(">IBI")
"""A frame's head: length and kind as one word (`length << 8 | kind`), flags, stream."""
HEAD_BYTES: Final = HEAD.size
MESSAGE_HEAD: Final = struct.Struct(">IBIBI")
"""A frame's head and the five bytes before a gRPC message, read in one go."""
PREFIX: Final = struct.Struct(">BI")
"""What stands before a gRPC message: whether it is compressed, and its length."""
PREFIX_BYTES: Final = PREFIX.size
SETTING: Final = struct.Struct(">HI")
WORD: Final = struct.Struct(">I")


class BrokenError(Exception):
    """The peer broke the protocol: the connection ends with this error code."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


def frame(kind: int, flags: int, number: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return HEAD.pack(len(payload) << 8 | kind, flags, number) + payload


def settings(*pairs: tuple[int, int]) -> bytes:
    """Return a SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join([SETTING.pack(*pair) for pair in pairs]))


def window_update(number: int, more: int) -> bytes:
    """Return a WINDOW_UPDATE frame."""
    return HEAD.pack(4 << 8 | WINDOW_UPDATE, 0, number) + WORD.pack(more)


def reset(number: int, code: int) -> bytes:
    """Return a RST_STREAM frame."""
    return HEAD.pack(4 << 8 | RST_STREAM, 0, number) + WORD.pack(code)


def goaway(code: int) -> bytes:
    """Return a GOAWAY frame of a client that has taken no stream of its peer's."""
    return frame(GOAWAY, 0, 0, WORD.pack(0) + WORD.pack(code))


def headers(number: int, block: bytes, frame_max: int, *, last: bool) -> bytes:
    """Return a header block as HEADERS, and as many CONTINUATIONs as it takes."""
    flags = END_STREAM if last else 0
    if len(block) <= frame_max:
        return HEAD.pack(len(block) << 8 | HEADERS, flags | END_HEADERS, number) + block
    pieces = [block[at : at + frame_max] for at in range(0, len(block), frame_max)]
    out = [frame(HEADERS, flags, number, pieces[0])]
    out += [frame(CONTINUATION, 0, number, piece) for piece in pieces[1:-1]]
    out.append(frame(CONTINUATION, END_HEADERS, number, pieces[-1]))
    return b"".join(out)


def read_word(payload: bytes) -> int:
    """Return the number that four bytes begin with."""
    value: int
    (value,) = WORD.unpack_from(payload)
    return value


def unpadded(payload: bytes) -> bytes:
    """Return a padded frame's payload without its padding; BrokenError if it is all padding."""
    if not payload or payload[0] >= len(payload):
        raise BrokenError(PROTOCOL_ERROR, "more padding than frame")
    return payload[1 : len(payload) - payload[0]]
