"""InternVL in its Hugging Face form: a picture squeezed onto a canvas of square tiles of about its ratio, and a small one.

The tile of the whole comes last, and only where there is more than one other. Checkpoints of the form that brings code
of its own (`internvl_chat`) are another family, which is not known here.
"""

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, TensorBatch
from smg_node.media.expand import repeated
from smg_node.media.families.checkpoint.checkpoint_family import CheckpointFamily
from smg_node.media.families.checkpoint.processor_files import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    ProcessorError,
    ProcessorFiles,
)
from smg_node.media.families.checkpoint.tensors import Layout, counts, finished, image_batch, shared
from smg_node.media.family import FinishedFor, PictureLayout, PicturePlan, TokenLookup
from smg_node.media.sizes import checked, nearest_grid, tile_grids

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

ANCHOR: Final = "<IMG_CONTEXT>"
LAYOUT: Final = Layout(
    flat_keys={"pixel_values": "image_num_patches"},
    batched_keys=("image_num_patches",),
    cpu_keys=("image_num_patches", "image_token_id"),
)
TILES_MAX: Final = 144


class InternVlFamily(CheckpointFamily):
    """InternVL 2.5, 3 and 3.5."""

    def __init__(self, files: ProcessorFiles) -> None:
        files.always("do_resize")
        self.tile = files.square("size", 448)
        self.tiles_min = files.integer("min_patches", 1, most=TILES_MAX)
        self.tiles_max = files.integer("max_patches", 12, most=TILES_MAX)
        if not files.flag("crop_to_patches", default=False):
            self.tiles_max = 1
        if self.tiles_min > self.tiles_max:
            raise ProcessorError("min_patches are above max_patches")
        told = files.processor.get("image_seq_length")
        engine = files.config_integer("image_seq_length", 256)
        if told is not None and told != engine:
            raise ProcessorError("image_seq_length of config.json and of the processor differ")
        self.tile_tokens = engine
        self.start = files.token("<img>")
        self.end = files.token("</img>")
        super().__init__(
            files,
            name="internvl",
            anchor=ANCHOR,
            mean_std=files.normalization(IMAGENET_MEAN, IMAGENET_STD),
            kernel=files.kernel(3),
        )

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan: columns and rows are the canvas's, `grid` its rows and columns of tiles."""
        size = checked(width, height)
        grid = nearest_grid(size, tile_grids(self.tiles_min, self.tiles_max), tile=self.tile)
        tiles = grid.area + (grid.area > 1)
        return PicturePlan(
            width=width,
            height=height,
            columns=grid.width * self.tile,
            rows=grid.height * self.tile,
            tokens=tiles * self.tile_tokens,
            shape=(tiles, 3, self.tile, self.tile),
            grid=(grid.height, grid.width),
        )

    def layout(self, plan: PicturePlan, tokens: TokenLookup) -> PictureLayout:
        """Return the placeholders between start and end."""
        ids = array("I", (self.start,)) + repeated(self.placeholder, plan.tokens)
        ids.append(self.end)
        return PictureLayout(ids)

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the tiles row by row, then that of the whole where there is more than one."""
        import numpy as np

        from smg_node.media.pixels.patches import planar, planar_tiles

        tiles = planar_tiles(self.resized(picture, plan.columns, plan.rows), self.tile)
        if len(tiles) == 1:
            return tiles
        whole = planar(self.resized(picture, self.tile, self.tile))
        return np.concatenate((tiles, whole[None]))

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the tiles of all pictures behind each other."""
        tiles = [plan.shape[0] for plan in plans]
        pixels = finished(patches, (sum(tiles), *plans[0].shape[1:]), self.normalization, wanted)
        sides = {"image_num_patches": counts(tiles), "image_token_id": shared(self.placeholder)}
        return image_batch(LAYOUT, pixels, sides, self.placeholder, ranges)
