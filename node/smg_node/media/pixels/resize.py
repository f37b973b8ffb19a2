"""Antialiased resizing of 8-bit pictures, to the bit as torchvision does it.

Always the horizontal pass first, 8 bits between the passes, and an axis that keeps its size is left alone. Compiled
where a compiler was there (`native/pixel_kernels`). Without one Pillow is asked for one pass at a time, in this order:
at most two levels away, where asking for both at once gives up to 25 (Pillow 13 runs the vertical pass first in pictures
that lose many rows, and models would see another picture than their own processor makes). The twin of the compiled
kernel is numpy, exact and thirty times slower: what tests compare with.
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
    pixels = np.ascontiguousarray(pixels)
    height, width, _ = pixels.shape
    if KERNELS is None:
        return resize_by_pillow(pixels, columns, rows, kernel)
    if columns != width:
        made = scratch((height, columns, 3))
        KERNELS.horizontal(pixels, made, *axis_weights(width, columns, kernel), VECTORS)
        pixels = made
    if rows != height:
        made = scratch((rows, columns, 3))
        KERNELS.vertical(pixels, made, *axis_weights(height, rows, kernel), VECTORS)
        pixels = made
    return pixels


def resize_by_pillow(pixels: "Pixels", columns: int, rows: int, kernel: Kernel) -> "Pixels":
    """Return the picture as `resize` does, at most two levels away, without the compiled kernel."""
    height, _, _ = pixels.shape
    return _by_pillow(pixels, ((columns, height), (columns, rows)), kernel)


def resize_as_pillow(pixels: "Pixels", columns: int, rows: int, kernel: Kernel) -> "Pixels":
    """Return the picture as Pillow 13 resizes it, whichever Pillow is installed here.

    For processors that ask Pillow instead of torchvision: its weights have more bits, and it begins with the rows where
    the picture loses more than twice as many of them as columns. Older ones always began with the columns, which is up
    to 25 levels away in tall pictures; one pass is the same in all of them.
    """
    height, width, _ = pixels.shape
    rows_first = rows < height and height - rows > 2 * (width - columns)
    between = (width, rows) if rows_first else (columns, height)
    return _by_pillow(pixels, (between, (columns, rows)), kernel)


def _by_pillow(pixels: "Pixels", sizes: tuple[tuple[int, int], ...], kernel: Kernel) -> "Pixels":
    """Return the picture resized by Pillow to one width and height after the other."""
    from PIL import Image

    height, width, _ = pixels.shape
    if sizes[-1] == (width, height):
        return pixels
    kinds = Image.Resampling
    found = {"bicubic": kinds.BICUBIC, "bilinear": kinds.BILINEAR, "lanczos": kinds.LANCZOS}[kernel]
    image = Image.fromarray(pixels)
    for size in sizes:
        image = image.resize(size, found)
    columns, rows = sizes[-1]
    return np.frombuffer(image.tobytes(), dtype=np.uint8).reshape(rows, columns, 3)


def resize_by_numpy(pixels: "Pixels", columns: int, rows: int, kernel: Kernel) -> "Pixels":
    """Return the picture as `resize` does, to the bit, without the compiled kernel."""
    height, width, _ = pixels.shape
    if columns != width:
        pixels = horizontal_by_numpy(pixels, axis_weights(width, columns, kernel))
    if rows != height:
        pixels = vertical_by_numpy(pixels, axis_weights(height, rows, kernel))
    return np.ascontiguousarray(pixels)


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
