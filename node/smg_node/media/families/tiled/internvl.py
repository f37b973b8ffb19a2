"""InternVL in its Hugging Face form: a picture squeezed onto a canvas of square tiles of about its ratio, and a small one.

The tile of the whole comes last, and only where there is more than one other. Checkpoints of the form that brings code
of its own (`internvl_chat`) have the same tiles of other values.
"""

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, TensorBatch
from smg_node.media.expand import repeated
from smg_node.media.families.checkpoint.processor_files import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    ProcessorError,
    ProcessorFiles,
)
from smg_node.media.families.checkpoint.tensors import Layout, counts, shared
from smg_node.media.families.tiled.tiled_family import TiledFamily
from smg_node.media.family import FinishedFor, PictureLayout, PicturePlan, TokenLookup
from smg_node.media.sizes import Size, nearest_grid, tile_grids

if TYPE_CHECKING:
    from smg_node.media.picture import Pixels

ANCHOR: Final = "<IMG_CONTEXT>"
LAYOUT: Final = Layout(
    flat_keys={"pixel_values": "image_num_patches"},
    batched_keys=("image_num_patches",),
    cpu_keys=("image_num_patches", "image_token_id"),
)
TILES_MAX: Final = 144


class RatioTiledFamily(TiledFamily):
    """A family whose canvas has about the picture's ratio, with `tiles_min` to `tiles_max` tiles: both of InternVL."""

    tiles_min: int
    tiles_max: int
    start: int
    end: int
    division: Layout

    def grid(self, size: Size) -> Size:
        """Return columns and rows of tiles for a picture of that size."""
        return nearest_grid(size, tile_grids(self.tiles_min, self.tiles_max), tile=self.tile)

    def layout(self, plan: PicturePlan, tokens: TokenLookup) -> PictureLayout:
        """Return the placeholders between start and end."""
        ids = array("I", (self.start,)) + repeated(self.placeholder, plan.tokens)
        ids.append(self.end)
        return PictureLayout(ids)

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the tiles of all pictures behind each other."""
        tiles = counts([plan.shape[0] for plan in plans])
        sides = {"image_num_patches": tiles, "image_token_id": shared(self.placeholder)}
        return self.flat_batch(self.division, plans, patches, ranges, wanted, sides)


class InternVlFamily(RatioTiledFamily):
    """InternVL 2.5, 3 and 3.5 in the form that transformers has."""

    division = LAYOUT

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
