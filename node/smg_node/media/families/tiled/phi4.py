"""Phi-4-multimodal (`Phi4Family`): a picture in the square crops of a canvas of its ratio, and one of the whole.

The picture is laid into the canvas's upper left corner on white; a mask tells which patches show it. The crop of the
whole is made of the canvas's finished values, not of its pixels, so it is no part of the 8-bit patches.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import WIDTHS, MediaRange, Tensor, TensorBatch
from smg_node.media.families.checkpoint.checkpoint_family import CheckpointFamily
from smg_node.media.families.checkpoint.processor_files import HALF, ProcessorError, ProcessorFiles
from smg_node.media.families.checkpoint.tensors import Layout, counts, image_batch, integers, piece
from smg_node.media.family import FinishedFor, PicturePlan
from smg_node.media.sizes import Size, checked, nearest_grid, refused, tile_grids

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

ANCHOR: Final = "<|endoftext10|>"
"""What the published processor puts in the place of `<|image_1|>`."""
LAYOUT: Final = Layout(
    pixel_key="input_image_embeds",
    batched_keys=("input_image_embeds", "image_attention_mask", "image_sizes", "num_img_tokens"),
    cpu_keys=("image_sizes", "num_img_tokens"),
)
CROPS_MAX: Final = 144
SIDE_MIN: Final = 10
"""Fewest pixels of a side of the picture on its canvas: below it the published processor refuses too."""


class Phi4Family(CheckpointFamily):
    """Phi-4-multimodal with its SigLIP encoder."""

    def __init__(self, files: ProcessorFiles) -> None:
        self.crop = files.square("size", 448)
        self.patch = files.integer("patch_size", 14)
        self.crops_max = files.integer("dynamic_hd", 36, most=CROPS_MAX)
        self.cells = self.crop // self.patch
        if self.cells * self.patch != self.crop or self.cells % 2:
            raise ProcessorError("size is not made of pairs of patches")
        super().__init__(
            files,
            name="phi4_multimodal",
            anchor=ANCHOR,
            mean_std=files.normalization(HALF, HALF),
            kernel=2,  # its `resample` is that of the crop of the whole only
        )

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan: columns and rows are the canvas's, `grid` its rows and columns of crops.

        `shape` is that of the crops alone, without the one of the whole.
        """
        size = checked(width, height)
        grid = Size(-(-width // self.crop), -(-height // self.crop))
        if grid.area > self.crops_max:
            grid = nearest_grid(size, tile_grids(1, self.crops_max), tile=self.crop)
        canvas = Size(grid.width * self.crop, grid.height * self.crop)
        drawn = self._drawn(size, canvas)
        if min(drawn) < SIDE_MIN:
            raise refused(f"the picture is {width}x{height}, too narrow for this model")
        shown = self._shown(drawn, canvas)
        high, wide = -(-shown.height // 2), -(-shown.width // 2)
        whole = self.cells // 2
        return PicturePlan(
            width=width,
            height=height,
            columns=canvas.width,
            rows=canvas.height,
            tokens=whole**2 + 1 + high * wide + high + whole,
            shape=(grid.area, 3, self.crop, self.crop),
            grid=(grid.height, grid.width),
        )

    def _drawn(self, size: Size, canvas: Size) -> Size:
        """Return the size of the picture on its canvas."""
        wide, high = canvas.width / size.width, canvas.height / size.height
        if wide < high:
            return Size(canvas.width, int(size.height * wide))
        return Size(int(size.width * high), canvas.height)

    def _shown(self, drawn: Size, canvas: Size) -> Size:
        """Return how many columns and rows of patches show some of the picture."""
        return Size(
            (canvas.width // self.patch) - (canvas.width - drawn.width) // self.patch,
            (canvas.height // self.patch) - (canvas.height - drawn.height) // self.patch,
        )

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the crops of the canvas, row by row."""
        from smg_node.media.pixels.patches import padded, planar_tiles

        canvas = Size(plan.columns, plan.rows)
        drawn = self._drawn(Size(picture.width, picture.height), canvas)
        return planar_tiles(padded(self.resized(picture, *drawn), *canvas, level=255), self.crop)

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the crops of all pictures, filled up with nought to the most that one has.

        None for a worker that wants 8-bit values: the crop of the whole has none.
        """
        if wanted.device_normalizes:
            return None
        most = 1 + max(plan.shape[0] for plan in plans)
        square = (3, self.crop, self.crop)
        pieces: list[memoryview | bytes] = []
        for plan, crops in zip(plans, patches, strict=True):
            pieces.append(self._whole(crops, plan, wanted))
            pieces.append(piece(crops, self.normalization, wanted.dtype))
            missing = (most - 1 - plan.shape[0]) * math.prod(square) * WIDTHS[wanted.dtype]
            pieces.extend([bytes(missing)] if missing else ())
        pixels = Tensor((len(plans), most, *square), wanted.dtype, tuple(pieces))
        sides = {
            "image_attention_mask": self._masks(plans, most),
            "image_sizes": integers([(plan.rows, plan.columns) for plan in plans]),
            "num_img_tokens": counts([plan.tokens for plan in plans]),
        }
        return image_batch(LAYOUT, pixels, sides, self.placeholder, ranges)

    def _whole(self, crops: "Pixels", plan: PicturePlan, wanted: FinishedFor) -> memoryview:
        """Return the crop of the whole: the canvas's values at the points of a square, interpolated."""
        from smg_node.media.families.tiled.phi4_whole import whole_crop

        return whole_crop(crops, plan.grid, self.normalization, wanted.dtype)

    def _masks(self, plans: Sequence[PicturePlan], most: int) -> Tensor:
        """Return 1.0 for each patch that shows some of its picture, and for all of crops that are none."""
        import numpy as np

        cells = self.cells
        masks = np.ones((len(plans), most, cells, cells), dtype="<f4")
        for at, plan in enumerate(plans):
            canvas = Size(plan.columns, plan.rows)
            shown = self._shown(self._drawn(Size(plan.width, plan.height), canvas), canvas)
            rows, columns = plan.grid
            whole = np.zeros((rows * cells, columns * cells), dtype="<f4")
            whole[: shown.height, : shown.width] = 1.0
            cut = whole.reshape(rows, cells, columns, cells).transpose(0, 2, 1, 3)
            masks[at, 1 : 1 + plan.shape[0]] = cut.reshape(-1, cells, cells)
        return Tensor(masks.shape, "float32", (masks.reshape(-1).view(np.uint8).data,))
