"""Patches and tiles: a resized picture in the order of values that a model takes, and those values as numbers; pure.

All that is moved here are bytes, so what models want is exact whatever it is computed with. `finish` turns levels into
the floats that the engine's own processor would make, by a table of 256 values a channel.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from smg_node.media.engine_media import Dtype
from smg_node.media.pixels.kernels import KERNELS, VECTORS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smg_node.media.picture import Pixels

    Table: TypeAlias = NDArray[np.float32] | NDArray[np.float16] | NDArray[np.uint16]

_CHANNELS: Final = 3
_LEVELS: Final = 256


def merged_patches(pixels: "Pixels", patch: int, merge: int, temporal: int) -> "Pixels":
    """Return the patches of a picture in the order of the Qwen group: [patches, 3 * temporal * patch * patch].

    Patches go by (block row, block column, row in block, column in block) with blocks of `merge` by `merge` patches,
    the values of one by (channel, copy, y, x); the `temporal` copies of a still picture are equal. Height and width are
    multiples of `patch * merge`.
    """
    height, width, _ = pixels.shape
    side = patch * merge
    assert height % side == 0
    assert width % side == 0
    if KERNELS is None:
        return merged_by_numpy(pixels, patch, merge, temporal)
    shape = (height // patch * (width // patch), _CHANNELS * temporal * patch * patch)
    made: Pixels = np.empty(shape, dtype=np.uint8)
    source = np.ascontiguousarray(pixels)
    KERNELS.merged(source, made.reshape(-1), patch, patch, merge, temporal, VECTORS)
    return made


def merged_by_numpy(pixels: "Pixels", patch: int, merge: int, temporal: int) -> "Pixels":
    """Return the patches as `merged_patches` does, without the compiled kernel."""
    height, width, _ = pixels.shape
    side = patch * merge
    cut = pixels.reshape(height // side, merge, patch, width // side, merge, patch, _CHANNELS)
    ordered = cut.transpose(0, 3, 1, 4, 6, 2, 5)[:, :, :, :, :, None]
    shape = (*ordered.shape[:5], temporal, patch, patch)
    return np.broadcast_to(ordered, shape).reshape(height // patch * (width // patch), -1)


def merged_frames(frames: "Pixels", patch: int, merge: int, out: "Pixels") -> None:
    """Fill `out` with the patches of consecutive frames, which are one step in time: [patches, 3 * frames * patch²].

    `frames` has the shape [frames, height, width, 3]; the order is that of `merged_patches`, with a frame each where a
    still picture has its copies. Both are contiguous; height and width are multiples of `patch * merge`.
    """
    if KERNELS is None:
        out[:] = frames_by_numpy(frames, patch, merge)
        return
    KERNELS.merged_frames(frames, out.reshape(-1), patch, patch, merge)


def frames_by_numpy(frames: "Pixels", patch: int, merge: int) -> "Pixels":
    """Return the patches of frames as `merged_frames` does, without the compiled kernel."""
    steps, height, width, _ = frames.shape
    side = patch * merge
    cut = frames.reshape(
        steps, height // side, merge, patch, width // side, merge, patch, _CHANNELS
    )
    ordered = cut.transpose(1, 4, 2, 5, 7, 0, 3, 6)
    return np.ascontiguousarray(ordered).reshape(height // patch * (width // patch), -1)


def plain_patches(pixels: "Pixels", patch: int) -> "Pixels":
    """Return the patches of a picture row by row: [patches, 3, patch, patch], both sides multiples of `patch`."""
    height, width, _ = pixels.shape
    assert height % patch == 0
    assert width % patch == 0
    return _planes(pixels, patch, patch)


def planar_tiles(pixels: "Pixels", tile: int) -> "Pixels":
    """Return the square tiles of a picture row by row: [tiles, 3, tile, tile], both sides multiples of `tile`."""
    return plain_patches(pixels, tile)


def planar(pixels: "Pixels") -> "Pixels":
    """Return the whole picture channel by channel: [3, height, width]."""
    height, width, _ = pixels.shape
    return _planes(pixels, height, width).reshape(_CHANNELS, height, width)


def _planes(pixels: "Pixels", rows: int, columns: int) -> "Pixels":
    """Return the pieces of that size row by row, channel by channel: [pieces, 3, rows, columns]."""
    if KERNELS is None:
        return planes_by_numpy(pixels, rows, columns)
    height, width, _ = pixels.shape
    pieces = height // rows * (width // columns)
    made = np.empty((pieces, _CHANNELS, rows, columns), dtype=np.uint8)
    KERNELS.merged(np.ascontiguousarray(pixels), made.reshape(-1), rows, columns, 1, 1, VECTORS)
    return made


def planes_by_numpy(pixels: "Pixels", rows: int, columns: int) -> "Pixels":
    """Return the pieces of a picture as patches, tiles and planes have them, without the compiled kernel."""
    height, width, _ = pixels.shape
    cut = pixels.reshape(height // rows, rows, width // columns, columns, _CHANNELS)
    ordered = cut.transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(ordered).reshape(-1, _CHANNELS, rows, columns)


def padded(
    pixels: "Pixels", columns: int, rows: int, *, left: int = 0, top: int = 0, level: int = 0
) -> "Pixels":
    """Return a canvas of that size, all `level`, with the picture laid on it at (left, top)."""
    height, width, channels = pixels.shape
    assert left + width <= columns
    assert top + height <= rows
    if (columns, rows) == (width, height):
        return pixels
    canvas = np.full((rows, columns, channels), level, dtype=np.uint8)
    canvas[top : top + height, left : left + width] = pixels
    return canvas


def finish(
    values: "Pixels",
    mean: Sequence[float] | None,
    std: Sequence[float] | None,
    rescale: float,
    dtype: Dtype,
    out: memoryview | None = None,
    *,
    stepwise: bool = False,
) -> memoryview:
    """Return levels as the numbers of a tensor, row-major and little-endian: (level * rescale - mean) / std.

    `values` are patches as rows of three equal runs, one a channel ([n, 3 * k]), or have their channels third from last
    ([…, 3, height, width]). Without `mean` levels are rescaled only; `uint8` leaves them as they are, for engines that
    normalise by themselves. Done in float32 in the order of the engine's own processor, then rounded to `dtype` once,
    to the nearest, ties to even; `stepwise` rounds after rescaling too. `out` is where the bytes go, of exactly their number; else it is new memory.
    """
    assert dtype in ("uint8", "float32", "float16", "bfloat16")
    width = {"uint8": 1, "float32": 4}.get(dtype, 2)
    memory = out if out is not None else np.empty(values.size * width, dtype=np.uint8).data
    assert memory.nbytes == values.size * width
    flat = np.frombuffer(memory, dtype=np.uint8)
    if dtype == "uint8":
        flat[:] = values.reshape(-1)
        return memory
    table = value_table(mean, std, rescale, dtype, stepwise=stepwise)
    run = _channel_run(values)
    if KERNELS is None:
        widen_by_numpy(values, table, flat, run)
    else:
        levels = np.ascontiguousarray(values).reshape(-1)
        KERNELS.widened(levels, table.view(np.uint8), flat, run)
    return memory


def widen_by_numpy(values: "Pixels", table: "Table", flat: "Pixels", run: int) -> None:
    """Fill `flat` with the numbers of the levels, without the compiled kernel."""
    by_channel = values.reshape(-1, _CHANNELS, run)
    made = flat.view(table.dtype).reshape(by_channel.shape)
    for channel in range(_CHANNELS):
        made[:, channel] = table[channel][by_channel[:, channel]]


def value_table(
    mean: Sequence[float] | None,
    std: Sequence[float] | None,
    rescale: float,
    dtype: Dtype,
    *,
    stepwise: bool = False,
) -> "Table":
    """Return what each of 256 levels becomes in each channel: [3, 256]; bfloat16 as the upper halves of float32."""
    levels = np.arange(_LEVELS, dtype=np.float32)
    table: NDArray[np.float32]
    if mean is None or std is None:
        table = np.tile(levels * np.float32(rescale), (_CHANNELS, 1))
    elif stepwise:
        parts = levels / np.float32(round(1.0 / rescale))
        middle, spread = np.array((mean, std), dtype=np.float32)[:, :, None]
        table = (parts - middle) / spread
    else:
        back = np.float32(1.0 / rescale)
        mean255 = (np.array(mean, dtype=np.float32) * back)[:, None]
        std255 = (np.array(std, dtype=np.float32) * back)[:, None]
        table = (levels - mean255) / std255
    assert table.dtype == np.float32
    if dtype == "float16":
        return table.astype("<f2")
    return upper_halves(table) if dtype == "bfloat16" else table.astype("<f4")


def upper_halves(table: "NDArray[np.float32]") -> "NDArray[np.uint16]":
    """Return float32 as bfloat16, rounded to the nearest, ties to even; none of the values is a NaN."""
    bits = table.view(np.uint32)
    return ((bits + (0x7FFF + (bits >> 16 & 1))) >> 16).astype("<u2")


def _channel_run(values: "Pixels") -> int:
    """Return how many values of one channel follow each other."""
    if values.ndim == 2:
        columns = int(values.shape[1])
        assert columns % _CHANNELS == 0
        return columns // _CHANNELS
    channels, height, width = (int(length) for length in values.shape[-3:])
    assert channels == _CHANNELS
    return height * width
