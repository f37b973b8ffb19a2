"""Antialiased resizing of 8-bit pictures, to the bit as torchvision does it.

Always the horizontal pass first, 8 bits between the passes, and an axis that keeps its size is left alone. Pillow gives
other values (version 13 by up to 25 levels), so models would see another picture than the one their own processor
makes. Compiled where a compiler was there (`native/pixel_kernels`), else numpy, slower with the same result to the bit.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from smg_node.media.pixels.arena import scratch
from smg_node.media.pixels.filter_weights import AxisWeights, Kernel, axis_weights
from smg_node.media.pixels.kernels import KERNELS, VECTORS

if TYPE_CHECKING:
    from smg_node.media.picture import Pixels

_LINES_AT_ONCE: Final = 64
"""Lines that numpy works on together, so that their 32-bit sums stay in the processor's cache."""


def resize(pixels: "Pixels", columns: int, rows: int, kernel: Kernel) -> "Pixels":
    """Return the picture [height, width, 3] with that many columns and rows.

    What comes back is contiguous, and the picture itself where its size stays. Inside an arena's work it is valid until
    that ends.
    """
    height, width, _ = pixels.shape
    pixels = np.ascontiguousarray(pixels)
    if columns != width:
        pixels = _horizontal(pixels, axis_weights(width, columns, kernel))
    if rows != height:
        pixels = _vertical(pixels, axis_weights(height, rows, kernel))
    return pixels


def _horizontal(pixels: "Pixels", axis: AxisWeights) -> "Pixels":
    """Return the picture with its columns resampled."""
    if KERNELS is None:
        return horizontal_by_numpy(pixels, axis)
    made = scratch((pixels.shape[0], len(axis.starts), 3))
    KERNELS.horizontal(pixels, made, *axis, VECTORS)
    return made


def _vertical(pixels: "Pixels", axis: AxisWeights) -> "Pixels":
    """Return the picture with its rows resampled."""
    if KERNELS is None:
        return vertical_by_numpy(pixels, axis)
    made = scratch((len(axis.starts), pixels.shape[1], 3))
    KERNELS.vertical(pixels, made, *axis, VECTORS)
    return made


def horizontal_by_numpy(pixels: "Pixels", axis: AxisWeights) -> "Pixels":
    """Return the picture with its columns resampled, without the compiled kernel."""
    height, width, channels = pixels.shape
    outputs, taps = len(axis.starts), int(axis.counts.max())
    places = np.minimum(axis.starts[:, None] + np.arange(taps, dtype=np.int32), width - 1)
    weights = axis.weights.astype(np.int32)[:, :, None]
    made = np.empty((height, outputs, channels), dtype=np.uint8)
    for top in range(0, height, _LINES_AT_ONCE):
        lines = pixels[top : top + _LINES_AT_ONCE]
        total = np.full((len(lines), outputs, channels), _half(axis), dtype=np.int32)
        for tap in range(taps):
            total += lines[:, places[:, tap]] * weights[:, tap]
        made[top : top + _LINES_AT_ONCE] = _levels(total, axis)
    return made


def vertical_by_numpy(pixels: "Pixels", axis: AxisWeights) -> "Pixels":
    """Return the picture with its rows resampled, without the compiled kernel."""
    made = np.empty((len(axis.starts), *pixels.shape[1:]), dtype=np.uint8)
    for row, (start, count) in enumerate(zip(axis.starts, axis.counts, strict=True)):
        total = np.full(pixels.shape[1:], _half(axis), dtype=np.int32)
        for tap in range(count):
            total += pixels[start + tap] * axis.weights[row, tap].astype(np.int32)
        made[row] = _levels(total, axis)
    return made


def _half(axis: AxisWeights) -> int:
    return 1 << axis.precision >> 1


def _levels(total: "np.typing.NDArray[np.int32]", axis: AxisWeights) -> "Pixels":
    """Return sums of weighted samples as levels, cut to 8 bits."""
    total >>= axis.precision
    return np.clip(total, 0, 255, out=total).astype(np.uint8)
