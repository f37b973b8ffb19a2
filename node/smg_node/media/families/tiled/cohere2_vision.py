"""Cohere 2 Vision (Command A Vision): a picture squeezed onto the canvas of square tiles that it is enlarged least for.

Where all canvases are smaller than the picture, that which it is shrunk least for. The placeholders of each tile end
with a line break.
"""

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, TensorBatch
from smg_node.media.expand import repeated
from smg_node.media.families.checkpoint.processor_files import CLIP_MEAN, CLIP_STD, ProcessorFiles
from smg_node.media.families.checkpoint.tensors import Layout, counts
from smg_node.media.families.tiled.tiled_family import TiledFamily
from smg_node.media.family import FinishedFor, PictureLayout, PicturePlan, TokenLookup
from smg_node.media.sizes import Size, least_enlarged_grid, tile_grids

if TYPE_CHECKING:
    from smg_node.media.picture import Pixels

ANCHOR: Final = "<|IMG_PATCH|>"
LAYOUT: Final = Layout(
    flat_keys={"pixel_values": "num_patches"},
    batched_keys=("num_patches",),
    cpu_keys=("num_patches",),
)
TILES_MAX: Final = 144


class Cohere2VisionFamily(TiledFamily):
    """Command A Vision with its SigLIP encoder."""

    def __init__(self, files: ProcessorFiles) -> None:
        files.always("do_resize")
        self.tile = files.square("size", 512)
        self.tiles_max = files.integer("max_patches", 12, most=TILES_MAX)
        if not files.flag("crop_to_patches", default=True):
            self.tiles_max = 1
        self.tile_tokens = files.integer("patch_size", 16, most=256) ** 2
        self.start = files.token("<|START_OF_IMG|>")
        self.end = files.token("<|END_OF_IMG|>")
        self.line_break = files.token("<|IMG_LINE_BREAK|>")
        super().__init__(
            files,
            name="cohere2_vision",
            anchor=ANCHOR,
            mean_std=files.normalization(CLIP_MEAN, CLIP_STD),
            kernel=files.kernel(3),
        )

    def grid(self, size: Size) -> Size:
        """Return columns and rows of tiles for a picture of that size."""
        return least_enlarged_grid(size, tile_grids(1, self.tiles_max), tile=self.tile)

    def layout(self, plan: PicturePlan, tokens: TokenLookup) -> PictureLayout:
        """Return the placeholders of each tile and its line break, between start and end."""
        tile = repeated(self.placeholder, self.tile_tokens) + array("I", (self.line_break,))
        ids = array("I", (self.start,)) + tile * plan.shape[0]
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
        sides = {"num_patches": counts([plan.shape[0] for plan in plans])}
        return self.flat_batch(LAYOUT, plans, patches, ranges, wanted, sides)
