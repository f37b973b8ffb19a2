"""Media fields: the tensors of a request as protobuf fields, in pieces: no protobuf object holds them. Pure.

    field = tag · length · { tag · length · bytes of the tensor … | handle } · shape · dtype

Only what stands around a tensor's bytes is written; the bytes themselves stay the buffers that they came in.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from smg_node.engines.contracts.wire import Places
from smg_node.engines.transport.message_pieces import MessagePieces, Piece
from smg_node.media.engine_media import Tensor
from smg_node.native.token_ids import varint

Pieces: TypeAlias = list[Piece]

SHARED_MIN_BYTES: Final = 64 * 1024
"""Smaller tensors go in the message: to open a file costs an engine more than to copy them."""

_JOINED_BYTES: Final = 1024
"""A tensor of so many bytes is copied into its field."""
_DELIMITED: Final = 2
_HANDLE_NAME: Final = 1
_HANDLE_BYTES: Final = 3
_KEY: Final = 1
_VALUE: Final = 2


@dataclass(frozen=True, slots=True)
class TensorFields:
    """Numbers of the fields of a contract's TensorData; `shared` is that of a handle, 0 where there is none."""

    data: int
    shape: int
    dtype: int
    shared: int = 0

    def pieces(self, tensor: Tensor, place: str = "") -> Pieces:
        """Return the inside of a TensorData; with a `place` its bytes are in shared memory of that name."""
        about = b"".join(map(varint, tensor.shape))
        about = delimited(self.shape, about) + delimited(self.dtype, tensor.dtype.encode())
        if not place:
            return [about, *wrapped(self.data, list(tensor.pieces))]
        assert self.shared, "this contract has no shared memory"
        handle = delimited(_HANDLE_NAME, place.encode())
        handle += number(_HANDLE_BYTES, tensor.size)
        return [about, delimited(self.shared, handle)]

    def by_name(
        self, field: int, tensors: Mapping[str, Tensor], places: Places, prefix: str = ""
    ) -> Pieces:
        """Return a map of tensors: field `field`, one entry for each name, in their order."""
        found: Pieces = []
        for name, tensor in tensors.items():
            inside = self.pieces(tensor, places.get(prefix + name, ""))
            if tensor.size <= _JOINED_BYTES:
                # Most are a few numbers, less than what is said of a buffer.
                value = b"".join(inside)
                entry = delimited(_KEY, name.encode()) + delimited(_VALUE, value)
                found.append(delimited(field, entry))
            else:
                found += wrapped(field, [delimited(_KEY, name.encode()), *wrapped(_VALUE, inside)])
        return found


def wrapped(field: int, pieces: Sequence[Piece]) -> Pieces:
    """Return `pieces` as the value of a length-delimited field."""
    return [tag(field, _DELIMITED) + varint(sum(map(size_of, pieces))), *pieces]


def delimited(field: int, value: bytes) -> bytes:
    """Return a field of bytes, text or a message."""
    return tag(field, _DELIMITED) + varint(len(value)) + value


def number(field: int, value: int) -> bytes:
    """Return a field of an unsigned number, or of an enum's."""
    return tag(field, 0) + varint(value)


def tag(field: int, kind: int) -> bytes:
    """Return what a field begins with."""
    return varint(field << 3 | kind)


def size_of(piece: Piece) -> int:
    """Return the bytes of a buffer, whatever its items are."""
    return piece.nbytes if isinstance(piece, memoryview) else len(piece)


def with_fields(text: bytes, more: Iterable[Piece]) -> MessagePieces:
    """Return a message that has further fields at its end: fields come in any order."""
    return MessagePieces([text, *more])


def shareable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return those that are worth a file in shared memory, by key."""
    return {key: tensor for key, tensor in tensors.items() if tensor.size >= SHARED_MIN_BYTES}
