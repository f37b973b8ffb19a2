"""Side datagrams (letters): not gossip, but the same header, seal and
socket; another first body byte.

A body of gossip is a msgpack array and begins with 0x95; that of a letter begins with 0x52, which is no array, so
a node that knows no letters refuses one as it refuses any other nonsense. Who wrote it is known from the header,
which is authenticated; that the writer lives is not learnt from a letter.
"""

from typing import Final

from smg_mesh.swim.wire import (
    BODY_BYTES_MAX,
    HEADER_BYTES,
    MAGIC,
    TAG_BYTES,
    VERSION,
    sender_tag,
)

KIND: Final = b"R"
LETTER_BYTES_MAX: Final = BODY_BYTES_MAX - len(KIND)
_START: Final = MAGIC + bytes((VERSION, 0)) + bytes(4)
_NO_COUNTER: Final = bytes(8)
_TAG: Final = slice(len(_START), len(_START) + TAG_BYTES)
_KIND: Final = slice(HEADER_BYTES, HEADER_BYTES + len(KIND))


def write_letter(name: str, boot: int, content: bytes) -> bytes:
    """Return the clear packet of a letter of that life; sealing it is the driver's."""
    assert len(content) <= LETTER_BYTES_MAX
    return b"".join((_START, sender_tag(name), boot.to_bytes(8, "big"), _NO_COUNTER, KIND, content))


def is_letter(packet: bytes) -> bool:
    """Return whether an opened packet is one."""
    return packet[_KIND] == KIND


def read_letter(packet: bytes) -> tuple[bytes, bytes]:
    """Return the tag of its writer's name, and what it says."""
    return packet[_TAG], packet[HEADER_BYTES + len(KIND) :]
