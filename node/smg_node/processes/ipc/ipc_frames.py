"""IPC frames between control and data processes: length-prefixed msgpack [kind, number, name,
payload]. Pure.

    frame = length (4 bytes, of what follows) · msgpack [kind, number, name, payload]

Payloads are opaque bytes, defined by the user of a name, so that a frame is read without knowing
what it is about. Both ends are processes of one node and one version; what cannot be read is a
mistake of ours, and ends the link.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

FRAME_BYTES_MAX: Final = 64 * 1024 * 1024
"""A snapshot of ten thousand workers is about 5 MB."""
NAME_CHARS_MAX: Final = 64
_LENGTH_BYTES: Final = 4


class FrameError(ValueError):
    """These bytes are no frames."""


class Kind(IntEnum):
    """Kind of a frame."""

    TELL = 0
    ASK = 1
    ANSWER = 2
    FAILURE = 3
    """The answer to a question that could not be answered; the payload says why, in UTF-8."""


class Frame(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One frame. `number` names a question; 0 for a message without answer."""

    kind: Kind
    number: Annotated[int, Meta(ge=0, le=0xFFFF_FFFF)]
    name: Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
    payload: bytes


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Frame).decode


def pack(kind: Kind, number: int, name: str, payload: bytes) -> bytes:
    """Return a frame as it travels; ValueError for one that is too large."""
    content = _encode(Frame(kind, number, name, payload))
    if len(content) > FRAME_BYTES_MAX:
        raise FrameError(f"{name} of {len(payload)} bytes does not fit into a frame")
    return len(content).to_bytes(_LENGTH_BYTES, "big") + content


class FrameReader:
    """Reassembles frames from bytes, however these are cut."""

    def __init__(self) -> None:
        self._unread = bytearray()

    @property
    def held_bytes(self) -> int:
        """Bytes held of a frame that is not complete."""
        return len(self._unread)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete now. FrameError for what is none: then reading on is
        of no use.
        """
        unread = self._unread
        unread += data
        at = 0
        try:
            while len(unread) - at >= _LENGTH_BYTES:
                length = int.from_bytes(unread[at : at + _LENGTH_BYTES], "big")
                if length > FRAME_BYTES_MAX:
                    raise FrameError(f"a frame of {length} bytes")
                begin = at + _LENGTH_BYTES
                if len(unread) - begin < length:
                    break
                at = begin + length
                yield _read(bytes(unread[begin:at]))
        finally:
            del unread[:at]


def _read(content: bytes) -> Frame:
    try:
        return _decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(f"no frame: {error}") from error
