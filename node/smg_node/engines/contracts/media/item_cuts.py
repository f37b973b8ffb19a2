"""Item cuts: the tensors of a batch of pictures cut into those of each picture, without a copy. Pure."""

import sys
from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate

import msgspec
from msgspec.structs import replace

from smg_node.media.engine_media import WIDTHS, Tensor, TensorBatch


class Item(msgspec.Struct, frozen=True):
    """One picture's own tensors: the main one, and the others by name."""

    pixels: Tensor
    sides: Mapping[str, Tensor]


def items_of(batch: TensorBatch) -> list[Item]:
    """Return the tensors of each picture, which keep their number of axes; `batch` was checked.

    A tensor that is neither flat nor batched is every picture's.
    """
    count = len(batch.ranges)
    named = {batch.pixel_key: batch.pixels, **batch.sides}
    cut = {name: _cut(name, tensor, batch, named, count) for name, tensor in named.items()}
    return [
        Item(cut[batch.pixel_key][at], {name: cut[name][at] for name in batch.sides})
        for at in range(count)
    ]


def single(batch: TensorBatch, at: int, item: Item) -> TensorBatch:
    """Return the batch of picture `at` alone, whose tensors are `item`; its place begins at 0."""
    return replace(
        batch,
        pixels=item.pixels,
        sides=item.sides,
        ranges=(replace(batch.ranges[at], offset=0),),
    )


def whole_numbers(tensor: Tensor) -> Sequence[int]:
    """Return the values of an int64 tensor, in order."""
    assert tensor.dtype == "int64"
    values = array("q", b"".join(tensor.pieces))
    if sys.byteorder != "little":
        values.byteswap()
    return values


def _cut(
    name: str, tensor: Tensor, batch: TensorBatch, named: Mapping[str, Tensor], count: int
) -> list[Tensor]:
    if name in batch.batched_keys:
        lengths: Sequence[int] = [1] * count
    elif name in batch.flat_keys:
        lengths = whole_numbers(named[batch.flat_keys[name]])
    else:
        return [tensor] * count
    row = WIDTHS[tensor.dtype]
    for length in tensor.shape[1:]:
        row *= length
    ends = list(accumulate(lengths))
    views = [memoryview(piece).cast("B") for piece in tensor.pieces]
    return [
        Tensor(
            (length, *tensor.shape[1:]),
            tensor.dtype,
            _slices(views, (end - length) * row, end * row),
        )
        for length, end in zip(lengths, ends, strict=True)
    ]


def _slices(views: Sequence[memoryview], start: int, stop: int) -> tuple[memoryview, ...]:
    """Return the bytes from `start` to `stop` of buffers that stand one behind the other."""
    found: list[memoryview] = []
    at = 0
    for view in views:
        end = at + len(view)
        if at < stop and start < end:
            found.append(view[max(start - at, 0) : stop - at])
        at = end
    return tuple(found)
