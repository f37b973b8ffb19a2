"""Compression of stream messages (zlib): unpacks only up to what they are allowed to become."""

import zlib
from typing import Final

from smg_mesh.sync.exchange.exchange_frames import ExchangeError
from smg_proto import mesh_pb2

PACK_ABOVE_BYTES: Final = 1_024
"""Less is not worth the work."""
_LEVEL: Final = (
    1  # worker records shrink to a sixth; level 6 takes three times as long for a tenth more
)


def pack(plain: bytes) -> mesh_pb2.Packed:
    """Return these bytes, packed if they are many and it helps."""
    if len(plain) > PACK_ABOVE_BYTES:
        packed = zlib.compress(plain, _LEVEL)
        if len(packed) < len(plain):
            return mesh_pb2.Packed(content=packed, plain_bytes=len(plain))
    return mesh_pb2.Packed(content=plain)


def unpack(message: mesh_pb2.Packed, *, bytes_max: int) -> bytes:
    """Return the bytes, at most so many; ExchangeError. Never more than that is ever unpacked."""
    content, plain_bytes = message.content, message.plain_bytes
    if max(len(content), plain_bytes) > bytes_max:
        raise ExchangeError("size", f"sent {max(len(content), plain_bytes)} bytes at once")
    if not plain_bytes:
        return content
    unpacking = zlib.decompressobj()
    try:
        # One byte more than it says it has: who lies is found out, and the end is seen.
        plain = unpacking.decompress(content, plain_bytes + 1)
    except zlib.error as error:
        raise ExchangeError("wire", "sent packed bytes that cannot be unpacked") from error
    if len(plain) != plain_bytes or not unpacking.eof or unpacking.unused_data:
        raise ExchangeError("wire", f"sent packed bytes that are not {plain_bytes}")
    return plain
