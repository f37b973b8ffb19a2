"""LLaVA-NeXT and LLaVA-OneVision: a picture is a squeezed square of the whole, and the tiles of a canvas that fits it.

The checkpoint lists canvases ("pinpoints"). The picture is laid into the middle of one, in proportion, on black; the
encoder's features of the black borders are thrown away again, which the number of placeholders must foresee. Each row
of features that is left ends with one more, a newline. OneVision shrinks the features of a canvas to those of about
nine tiles.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, TensorBatch
from smg_node.media.families.checkpoint.checkpoint_family import CheckpointFamily
from smg_node.media.families.checkpoint.processor_files import (
    CLIP_MEAN,
    CLIP_STD,
    SIDE_MAX,
    Normalization,
    ProcessorError,
    ProcessorFiles,
)
from smg_node.media.families.checkpoint.tensors import Layout, integers
from smg_node.media.families.fixed_size.llava import ANCHOR
from smg_node.media.families.fixed_size.towers import (
    CLIP,
    SIGLIP,
    VisionTower,
    check_size,
    tower_kind,
)
from smg_node.media.family import FinishedFor, PicturePlan
from smg_node.media.sizes import Size, best_canvas, checked, fitted

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

LAYOUT: Final = Layout(batched_keys=("pixel_values", "image_sizes"), cpu_keys=("image_sizes",))
CANVASES_MAX: Final = 256
TILES_MAX: Final = 144
"""Most tiles of a canvas: LLaVA-OneVision's largest has 36, so this is only a bound on work."""
MOST_FEATURES: Final = "anyres_max_9"
"""The one way to bound features that vLLM counts by, whatever a checkpoint says."""
NINE: Final = 9
SHRUNK_FROM: Final = 1.1
"""Sides are divided by the root of how many times nine tiles the features are, where that is above this."""


class PinpointFamily(CheckpointFamily):
    """A family whose canvases its checkpoint lists."""

    def __init__(
        self, files: ProcessorFiles, tower: VisionTower, *, name: str, mean_std: Normalization
    ) -> None:
        files.always("do_pad")
        self.tower = tower
        check_size(files.square("size", tower.side), tower)
        self.canvases = _canvases(files, self.tower.side)
        super().__init__(files, name=name, anchor=ANCHOR, mean_std=mean_std, kernel=files.kernel(3))

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan: columns and rows are the canvas's, `grid` its rows and columns of tiles."""
        size, side = checked(width, height), self.tower.side
        canvas = best_canvas(size, self.canvases)
        rows, columns = canvas.height // side, canvas.width // side
        return PicturePlan(
            width=width,
            height=height,
            columns=canvas.width,
            rows=canvas.height,
            tokens=self.tower.features + self._drawn_features(size, rows, columns),
            shape=(1 + rows * columns, 3, side, side),
            grid=(rows, columns),
        )

    def _drawn_features(self, size: Size, rows: int, columns: int) -> int:
        """Return the features of a canvas that show the picture, and one for the end of each of their rows."""
        high, wide = self.tower.patches * rows, self.tower.patches * columns
        if size.width / size.height > wide / high:
            drawn = int(round(size.height * (wide / size.width), 7))
            high -= (high - drawn) // 2 * 2
        else:
            drawn = int(round(size.width * (high / size.height), 7))
            wide -= (wide - drawn) // 2 * 2
        high, wide = self.kept(high, wide)
        return high * wide + high

    def kept(self, high: int, wide: int) -> tuple[int, int]:
        """Return how many of the rows and columns of features that show the picture the model takes: all of them."""
        return high, wide

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the square of the whole, then the tiles row by row."""
        import numpy as np

        from smg_node.media.pixels.patches import padded, planar, planar_tiles

        side = self.tower.side
        drawn = fitted(Size(picture.width, picture.height), Size(plan.columns, plan.rows), up=True)
        canvas = padded(
            self.resized(picture, *drawn),
            plan.columns,
            plan.rows,
            left=(plan.columns - drawn.width) // 2,
            top=(plan.rows - drawn.height) // 2,
        )
        whole = planar(self.resized(picture, side, side))
        return np.concatenate((whole[None], planar_tiles(canvas, side)))

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the squares of all pictures, filled up with nought to the most that one has."""
        sides = {"image_sizes": integers([(plan.height, plan.width) for plan in plans])}
        return self.filled_batch(LAYOUT, plans, patches, ranges, wanted, sides)


class LlavaNextFamily(PinpointFamily):
    """LLaVA-NeXT with a CLIP encoder, and its likes with a SigLIP encoder (Granite Vision)."""

    def __init__(self, files: ProcessorFiles) -> None:
        kind = tower_kind(files, default=CLIP)
        if kind not in (CLIP, SIGLIP):
            raise ProcessorError("vision_config of config.json is not that of CLIP or SigLIP")
        side = 336 if kind == CLIP else 224
        tower = VisionTower(files, kind=kind, side=side, strategy="default", cropped=True)
        name = "llava_next" if kind == CLIP else "llava_next_siglip"
        values = files.normalization(CLIP_MEAN, CLIP_STD)
        super().__init__(files, tower, name=name, mean_std=values)


class LlavaOneVisionFamily(PinpointFamily):
    """LLaVA-OneVision with a SigLIP encoder."""

    def __init__(self, files: ProcessorFiles) -> None:
        if tower_kind(files, default=SIGLIP) != SIGLIP:
            raise ProcessorError("vision_config of config.json is not that of SigLIP")
        ratio = files.config.get("vision_aspect_ratio")
        if ratio not in (None, MOST_FEATURES):
            raise ProcessorError(f"vision_aspect_ratio of config.json is not {MOST_FEATURES}")
        if files.flag("do_center_crop", default=False):
            raise ProcessorError("do_center_crop is true")
        tower = VisionTower(files, kind=SIGLIP, side=384, strategy="full", cropped=False)
        values = files.normalization(CLIP_MEAN, CLIP_STD)
        super().__init__(files, tower, name="llava_onevision", mean_std=values)

    def kept(self, high: int, wide: int) -> tuple[int, int]:
        """Return the rows and columns of features after shrinking to about nine tiles."""
        ratio = math.sqrt(high * wide / (NINE * self.tower.patches**2))
        return (int(high // ratio), int(wide // ratio)) if ratio > SHRUNK_FROM else (high, wide)


def _canvases(files: ProcessorFiles, side: int) -> tuple[Size, ...]:
    """Return the checkpoint's canvases, which are listed as height and width."""
    told, origin = files.raw("image_grid_pinpoints")
    engine = files.config.get("image_grid_pinpoints")
    if told is None:
        told, origin = engine, "config.json"
    elif engine is not None and engine != told:
        raise ProcessorError("image_grid_pinpoints of config.json and of the processor differ")
    if not isinstance(told, list) or not 0 < len(told) <= CANVASES_MAX:
        raise ProcessorError(f"image_grid_pinpoints of {origin} is no list of canvases")
    canvases = tuple(_canvas(each, side, origin) for each in told)
    return files.note("image_grid_pinpoints", canvases, origin)


def _canvas(told: object, side: int, origin: str) -> Size:
    match told:
        case [int(high), int(wide)] if 0 < high <= SIDE_MAX and 0 < wide <= SIDE_MAX:
            if high % side == 0 and wide % side == 0 and high * wide <= TILES_MAX * side * side:
                return Size(wide, high)
    raise ProcessorError(
        f"image_grid_pinpoints of {origin} has a canvas that is not made of tiles of {side}"
    )
