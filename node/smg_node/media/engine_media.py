"""Engine media: pictures, videos and sounds of one prompt, in the form that an engine of any contract is sent; pure.

There are three ways to hand pictures over: finished tensors, references that the engine fetches itself, and encoded
files that it decodes itself. Which one is taken is decided by what the chosen worker's card says. Types only: nothing
here imports numpy, because engines import it in nodes that never see a picture.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import msgspec

Dtype: TypeAlias = Literal["uint8", "float32", "float16", "bfloat16", "int64", "uint32"]
Modality: TypeAlias = Literal["image", "video", "audio"]

WIDTHS: Final[Mapping[Dtype, int]] = MappingProxyType(
    {"uint8": 1, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "uint32": 4}
)
"""Bytes of one element."""


class Tensor(msgspec.Struct, frozen=True):
    """An array as engines are sent it: row-major, little-endian, contiguous.

    `pieces` are the bytes in order, several where they were made apart (a picture each) so that nobody has to join
    them; together they have exactly `width(dtype) * product(shape)` bytes.
    """

    shape: tuple[int, ...]
    dtype: Dtype
    pieces: tuple[bytes | bytearray | memoryview, ...]

    @property
    def size(self) -> int:
        """Return the number of bytes that shape and dtype call for."""
        total = WIDTHS[self.dtype]
        for length in self.shape:
            total *= length
        return total


class MediaRange(msgspec.Struct, frozen=True):
    """The place of one picture in the prompt: ids `offset` to `offset + length` exclusive, and whose they are.

    `tokens` of these ids are the placeholder's: separators of rows and tiles may stand between them. `digest` is the
    picture's identity for caches, 64 hex digits. `where` is the JSON path of the part.
    """

    offset: int
    length: int
    tokens: int
    digest: str
    where: str


class TensorBatch(msgspec.Struct, frozen=True):
    """Pictures as tensors, for engines that take them preprocessed.

    `pixels` is the main tensor and `pixel_key` its name for the model; `sides` are the model's other tensors by name.
    `flat_keys` names, for each tensor that is cut into items along its first axis, the tensor of the items' lengths;
    `batched_keys` are those with one row an item; `cpu_keys` stay on the CPU. `placeholder` is the token id that marks
    the places of features in the prompt.
    """

    modality: Modality
    pixel_key: str
    pixels: Tensor
    sides: Mapping[str, Tensor]
    flat_keys: Mapping[str, str]
    batched_keys: tuple[str, ...]
    cpu_keys: tuple[str, ...]
    placeholder: int
    ranges: tuple[MediaRange, ...]


class MediaReference(msgspec.Struct, frozen=True):
    """A picture, video or sound that the engine fetches and processes itself: an `http`, `https` or `data` URL."""

    modality: Modality
    url: str
    where: str


class ReferenceBatch(msgspec.Struct, frozen=True):
    """Media by reference, in the order of their placeholders; the prompt's ids are not expanded."""

    items: tuple[MediaReference, ...]


class EncodedBatch(msgspec.Struct, frozen=True):
    """Pictures as the files that the client sent, in the order of their placeholders; the prompt is not expanded."""

    items: tuple[bytes, ...]


EngineMedia: TypeAlias = TensorBatch | ReferenceBatch | EncodedBatch
