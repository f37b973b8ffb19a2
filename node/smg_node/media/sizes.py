"""Size rules of image processors: the size that a picture is resized to, from its own size and a checkpoint's numbers.

Each rule is that of a family of models and gives, for every size, what the family's published processor gives: the
same roundings (Python's `round` takes halves to the even number) in the same double arithmetic, in the same order.
The names of the rules follow what they bound. All sizes are in pixels, width first; pure arithmetic.
"""

import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from smg_node.core.errors import SmgError, invalid

RATIO_MAX: Final = 200
"""Longest side to shortest: the bound of the Qwen group's processors, which keeps the work of all others bounded."""


_FLOAT: Final = struct.Struct("<f")


class Size(NamedTuple):
    """Width and height in pixels, or columns and rows of tiles."""

    width: int
    height: int

    @property
    def area(self) -> int:
        """Return width times height."""
        return self.width * self.height


def refused(message: str) -> SmgError:
    """Return the error for a picture whose size a model cannot take; the caller adds the path of the part."""
    return invalid(message, code="invalid_image")


def checked(width: int, height: int) -> Size:
    """Return the size of a picture, or raise SmgError `invalid_image` for one that is empty or a needle."""
    if width < 1 or height < 1:
        raise refused(f"the picture has no pixels ({width}x{height})")
    if max(width, height) / min(width, height) > RATIO_MAX:
        raise refused(
            f"the picture is {width}x{height}: one side is more than {RATIO_MAX} times the other"
        )
    return Size(width, height)


def within_area(size: Size, *, factor: int, area_min: int, area_max: int, frames: int = 1) -> Size:
    """Return the nearest size whose sides are multiples of `factor` and whose area lies between the bounds.

    The aspect ratio is kept as closely as that allows. `frames` copies count towards the area (GLM). Bounds win over
    nearness, and a side is never below `factor`. Rule of the Qwen group ("smart resize").
    """
    width, height = size
    wide, high = round(width / factor) * factor, round(height / factor) * factor
    if frames * high * wide > area_max:
        shrink = math.sqrt((frames * height * width) / area_max)
        wide = max(factor, math.floor(width / shrink / factor) * factor)
        high = max(factor, math.floor(height / shrink / factor) * factor)
    elif frames * high * wide < area_min:
        grow = math.sqrt(area_min / (frames * height * width))
        wide = math.ceil(width * grow / factor) * factor
        high = math.ceil(height * grow / factor) * factor
    return Size(wide, high)


def at_least(size: Size, *, side: int) -> Size:
    """Return `size`, enlarged so that no side is below `side`; sides are cut to whole pixels (GLM, before its rule)."""
    width, height = size
    if height >= side and width >= side:
        return size
    scale = max(side / height, side / width)
    return Size(int(width * scale), int(height * scale))


def with_short_side(size: Size, *, side: int) -> Size:
    """Return the size whose shortest side is `side`, the other in proportion, cut to whole pixels (CLIP)."""
    if size.width <= size.height:
        return Size(side, int(side * size.height / size.width))
    return Size(int(side * size.width / size.height), side)


def in_patches(size: Size, *, longest: Size, patch: Size) -> Size:
    """Return the size in whole patches after shrinking, never enlarging, to at most `longest` (Pixtral)."""
    width, height = size
    ratio = max(height / longest.height, width / longest.width)
    if ratio > 1:
        width, height = math.floor(width / ratio), math.floor(height / ratio)
    return Size(
        max(1, -(-width // patch.width)) * patch.width,
        max(1, -(-height // patch.height)) * patch.height,
    )


def within_patches(size: Size, *, patch: int, patches_max: int, side_max: int) -> Size:
    """Return the size after shrinking, never enlarging, below both bounds, in patches (Kimi).

    `patches_max` bounds the patches of the picture, `side_max` those of a side. Sides are not multiples of anything.
    """
    width, height = size
    patches = max(1.0, height // patch) * max(1.0, width // patch)
    scale = min(
        1.0,
        math.sqrt(patches_max / patches),
        side_max * patch / height,
        side_max * patch / width,
    )
    return Size(
        min(max(1, int(width * scale)), side_max * patch),
        min(max(1, int(height * scale)), side_max * patch),
    )


def rounded_up(size: Size, *, factor: int) -> Size:
    """Return the smallest multiples of `factor` that hold `size`."""
    return Size(-(-size.width // factor) * factor, -(-size.height // factor) * factor)


def best_canvas(size: Size, canvases: Sequence[Size]) -> Size:
    """Return the canvas on which most of the picture's pixels survive; of equal ones that with the least waste.

    The first of the list wins where both are equal (LLaVA-NeXT's pinpoints). There is at least one.
    """
    best: Size | None = None
    most, least = 0, math.inf
    for canvas in canvases:
        scale = min(canvas.width / size.width, canvas.height / size.height)
        drawn = min(int(size.width * scale) * int(size.height * scale), size.area)
        wasted = canvas.area - drawn
        if drawn > most or (drawn == most and wasted < least):
            best, most, least = canvas, drawn, wasted
    assert best is not None
    return best


def fitted(size: Size, canvas: Size, *, up: bool = False) -> Size:
    """Return the largest size of the same ratio inside `canvas`; the free side is cut to whole pixels, or rounded up."""
    wide, high = canvas.width / size.width, canvas.height / size.height
    whole = math.ceil if up else math.floor
    if wide < high:
        return Size(canvas.width, min(whole(size.height * wide), canvas.height))
    return Size(min(whole(size.width * high), canvas.width), canvas.height)


@lru_cache(maxsize=16)
def tile_grids(tiles_min: int, tiles_max: int) -> tuple[Size, ...]:
    """Return all grids of so many tiles: fewest tiles first, of as many the narrow ones first."""
    grids = (
        Size(columns, rows)
        for columns in range(1, tiles_max + 1)
        for rows in range(1, tiles_max // columns + 1)
        if columns * rows >= tiles_min
    )
    return tuple(sorted(grids, key=lambda grid: grid.area))


def nearest_grid(size: Size, grids: Sequence[Size], *, tile: int) -> Size:
    """Return the grid whose ratio is nearest to the picture's (InternVL, Phi-4).

    Of equal ratios the larger grid is taken as long as the picture has more than half of its pixels.
    """
    ratio = size.width / size.height
    best, nearest = Size(1, 1), math.inf
    for grid in grids:
        distance = abs(ratio - grid.width / grid.height)
        larger = distance == nearest and size.area > 0.5 * tile * tile * grid.width * grid.height
        if distance < nearest or larger:
            best, nearest = grid, distance
    return best


@lru_cache(maxsize=16)
def tile_canvases(tile: int, tiles_max: int) -> tuple[Size, ...]:
    """Return all canvases of up to `tiles_max` square tiles, in the order in which Llama 4 breaks ties.

    Canvases of one ratio are together, ratios in the order of their first canvas, most tiles first.
    """
    by_ratio: dict[float, list[Size]] = {}
    for tiles in range(tiles_max, 0, -1):
        for rows in range(1, tiles + 1):
            if tiles % rows == 0:
                columns = tiles // rows
                by_ratio.setdefault(rows / columns, []).append(Size(columns * tile, rows * tile))
    return tuple(canvas for group in by_ratio.values() for canvas in group)


def least_scaled_canvas(size: Size, canvases: Sequence[Size], *, largest: bool = False) -> Size:
    """Return the canvas that needs the least enlarging, or failing that the least shrinking (Llama 4).

    Of those that scale alike the smallest is taken. `largest` takes the one that enlarges most. Scales are compared
    in single precision, in which the published rule compares them.
    """
    scales = [
        min(_single(canvas.width / size.width), _single(canvas.height / size.height))
        for canvas in canvases
    ]
    enlarging = [scale for scale in scales if scale >= 1]
    chosen = max(scales) if largest or not enlarging else min(enlarging)
    alike = [canvas for canvas, scale in zip(canvases, scales, strict=True) if scale == chosen]
    return min(alike, key=lambda canvas: canvas.area)


def _single(value: float) -> float:
    """Return the nearest single-precision number."""
    return float(_FLOAT.unpack(_FLOAT.pack(value))[0])


def pooled(size: Size, *, patch: int, pool: int, tokens_max: int) -> Size:
    """Return the largest size of about the same ratio with at most `tokens_max` pools of patches (Gemma 4).

    Sides are multiples of `pool * patch`, rounded down; a side that would vanish is one pool, the other then as many
    as the ratio says. Small pictures are enlarged. SmgError `invalid_image` where both would vanish.
    """
    side = pool * patch
    bound = tokens_max * pool**2 * patch**2
    scale = math.sqrt(bound / size.area)
    high = math.floor(scale * size.height / side) * side
    wide = math.floor(scale * size.width / side) * side
    if high == 0 and wide == 0:
        raise refused(f"the picture is {size.width}x{size.height}, too narrow for this model")
    if high == 0:
        high, wide = side, min(size.width // size.height, tokens_max) * side
    elif wide == 0:
        wide, high = side, min(size.height // size.width, tokens_max) * side
    if high * wide > bound:
        raise refused(f"the picture is {size.width}x{size.height}, too narrow for this model")
    return Size(wide, high)


def with_long_side(size: Size, *, side: int) -> Size:
    """Return the size whose longest side is `side`, the other in proportion, an odd one made even (Idefics 3)."""
    ratio = size.width / size.height
    if size.width >= size.height:
        high = int(side / ratio)
        return Size(side, max(high + high % 2, 1))
    wide = int(side * ratio)
    return Size(max(wide + wide % 2, 1), side)


def in_even_tiles(size: Size, *, tile: int) -> Size:
    """Return the size in whole tiles: the longest side rounded up, the other in proportion, then up (Idefics 3)."""
    ratio = size.width / size.height
    if size.width >= size.height:
        wide = -(-size.width // tile) * tile
        return rounded_up(Size(wide, int(wide / ratio)), factor=tile)
    high = -(-size.height // tile) * tile
    return rounded_up(Size(int(high * ratio), high), factor=tile)


def least_enlarged_grid(size: Size, grids: Sequence[Size], *, tile: int) -> Size:
    """Return the grid of tiles that a picture is enlarged least for, or failing that shrunk least for (Cohere 2).

    Of those that scale alike the first of the list is taken.
    """
    scales = [
        min(grid.width * tile / size.width, grid.height * tile / size.height) for grid in grids
    ]
    enlarging = [scale for scale in scales if scale >= 1]
    return grids[scales.index(min(enlarging) if enlarging else max(scales))]


def contained(size: Size, canvas: Size) -> Size:
    """Return the largest size of the same ratio inside `canvas`, the free side rounded (Pillow's `contain`)."""
    ratio, wanted = size.width / size.height, canvas.width / canvas.height
    if ratio > wanted:
        return Size(canvas.width, round(size.height / size.width * canvas.width))
    if ratio < wanted:
        return Size(round(size.width / size.height * canvas.height), canvas.height)
    return canvas
