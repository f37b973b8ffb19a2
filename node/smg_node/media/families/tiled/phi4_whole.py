"""Whole crop of Phi-4-multimodal: a canvas of finished values, interpolated down to one square.

Bicubic with a = -0.75 over four samples a side, no matter how much smaller the square is (no antialiasing), samples
beyond the border being those of the border: what torch does with numbers that are no pixels. Values may lie a little
outside those of any pixel.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from smg_node.media.engine_media import Dtype
from smg_node.media.families.checkpoint.processor_files import Normalization
from smg_node.media.pixels.patches import upper_halves, value_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smg_node.media.picture import Pixels

    Floats = NDArray[np.float32]

_SHARPNESS: Final = -0.75
_TAPS: Final = 4


def whole_crop(
    crops: "Pixels", grid: tuple[int, ...], values: Normalization, dtype: Dtype
) -> memoryview:
    """Return one crop [3, side, side] made of the canvas that `crops` [rows * columns, 3, side, side] are cut from."""
    rows, columns = grid
    side = crops.shape[-1]
    tall, high_weights = _samples(rows * side, side)
    wide, wide_weights = _samples(columns * side, side)
    table = value_table(values.mean, values.std, values.rescale, "float32")
    made = np.empty((3, side, side), dtype=np.float32)
    for channel in range(3):
        cut = crops[:, channel].reshape(rows, columns, side, side)
        canvas = cut.transpose(0, 2, 1, 3).reshape(rows * side, columns * side)
        levels = canvas.take(tall, axis=0).take(wide, axis=1)
        samples = table[channel].take(levels).reshape(side * _TAPS, side, _TAPS)
        lines = _weighed(samples, wide_weights).reshape(side, _TAPS, side)
        made[channel] = _weighed(lines.transpose(0, 2, 1), high_weights[:, None])
    return _as_bytes(made, dtype)


def _samples(length: int, side: int) -> "tuple[NDArray[np.int64], Floats]":
    """Return which of `length` samples make each of `side` ones, four behind each other, and their weights."""
    centre = (np.arange(side, dtype=np.float32) + np.float32(0.5)) * np.float32(
        length / side
    ) - np.float32(0.5)
    before = np.floor(centre)
    part = centre - before
    places = before.astype(np.int64)[:, None] + np.arange(-1, 3)
    weights = np.stack([_far(part + 1), _near(part), _near(1 - part), _far(2 - part)], axis=1)
    return np.clip(places, 0, length - 1).reshape(-1), weights


def _near(x: "Floats") -> "Floats":
    """Return the weight of a sample less than one away."""
    a = np.float32(_SHARPNESS)
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _far(x: "Floats") -> "Floats":
    """Return the weight of a sample between one and two away."""
    a = np.float32(_SHARPNESS)
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def _weighed(samples: "Floats", weights: "Floats") -> "Floats":
    """Return the weighted sum along the last axis of four."""
    products: Floats = samples * weights
    total: Floats = products[..., 0] + products[..., 1] + products[..., 2] + products[..., 3]
    return total


def _as_bytes(made: "Floats", dtype: Dtype) -> memoryview:
    if dtype == "bfloat16":
        return upper_halves(made).reshape(-1).view(np.uint8).data
    exact = made.astype("<f2" if dtype == "float16" else "<f4")
    return exact.reshape(-1).view(np.uint8).data
