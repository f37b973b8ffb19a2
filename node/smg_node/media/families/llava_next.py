"""LLaVA-NeXT: a picture is a squeezed square of the whole, and the tiles of a canvas that fits it best.

The checkpoint lists canvases ("pinpoints"). The picture is laid into the middle of one, in proportion, on black; the
encoder's features of the black borders are thrown away again, which the number of placeholders must foresee. Each row
of features that is left ends with one more, a newline.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, TensorBatch
from smg_node.media.families.checkpoint.checkpoint_family import CheckpointFamily
from smg_node.media.families.checkpoint.processor_files import (
    CLIP_MEAN,
    CLIP_STD,
    SIDE_MAX,
    ProcessorError,
    ProcessorFiles,
)
from smg_node.media.families.checkpoint.tensors import Layout, finished, image_batch, integers
from smg_node.media.families.llava import ANCHOR, ClipTower
from smg_node.media.family import FinishedFor, PicturePlan
from smg_node.media.sizes import Size, best_canvas, checked, fitted

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

LAYOUT: Final = Layout(batched_keys=("pixel_values", "image_sizes"), cpu_keys=("image_sizes",))
CANVASES_MAX: Final = 256
TILES_MAX: Final = 144
"""Most tiles of a canvas: LLaVA-OneVision's largest has 36, so this is only a bound on work."""


class LlavaNextFamily(CheckpointFamily):
    """LLaVA-NeXT with a CLIP encoder."""

    def __init__(self, files: ProcessorFiles) -> None:
        files.always("do_pad")
        self.tower = ClipTower(files)
        self.canvases = _canvases(files, self.tower.side)
        super().__init__(
            files,
            name="llava_next",
            anchor=ANCHOR,
            mean_std=files.normalization(CLIP_MEAN, CLIP_STD),
            kernel=files.kernel(3),
        )

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
        return high * wide + high

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
        most = max(plan.shape[0] for plan in plans)
        square = plans[0].shape[1:]
        values = square[0] * square[1] * square[2]
        pixels = finished(
            patches,
            (len(plans), most, *square),
            self.normalization,
            wanted,
            zeros=[(most - plan.shape[0]) * values for plan in plans],
        )
        sides = {"image_sizes": integers([(plan.height, plan.width) for plan in plans])}
        return image_batch(LAYOUT, pixels, sides, self.placeholder, ranges)


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
