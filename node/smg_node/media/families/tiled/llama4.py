"""Llama 4: a picture is cut into the square tiles of a canvas that it is hardly scaled for, and one tile of the whole.

The picture is laid into the canvas's upper left corner on black, and enlarged to the side of one tile at most. The
tile of the whole comes last, and only where there is more than one other.
"""

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, TensorBatch
from smg_node.media.expand import repeated
from smg_node.media.families.checkpoint.processor_files import HALF, ProcessorError, ProcessorFiles
from smg_node.media.families.checkpoint.tensors import Layout, counts, integers
from smg_node.media.families.tiled.tiled_family import TiledFamily
from smg_node.media.family import FinishedFor, PictureLayout, PicturePlan, TokenLookup
from smg_node.media.sizes import Size, fitted, least_scaled_canvas, tile_canvases

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

ANCHOR: Final = "<|image|>"
LAYOUT: Final = Layout(
    flat_keys={"pixel_values": "patches_per_image"},
    batched_keys=("aspect_ratios", "patches_per_image"),
    cpu_keys=("aspect_ratios", "patches_per_image"),
)
TILES_MAX: Final = 256


class Llama4Family(TiledFamily):
    """Llama 4 Scout and Maverick."""

    def __init__(self, files: ProcessorFiles) -> None:
        files.always("do_resize")
        self.tile = files.square("size", 336)
        self.tiles_max = files.integer("max_patches", 16, most=TILES_MAX)
        self.largest = files.flag("resize_to_max_canvas", default=False)
        vision = ("vision_config",)
        if files.config_integer("image_size", self.tile, *vision, "image_size") != self.tile:
            raise ProcessorError("size is not the image_size of the vision_config")
        patch = files.config_integer("patch_size", 14, *vision, "patch_size")
        self.tile_tokens = (self.tile // patch) ** 2 // _shuffled(files)
        if not self.tile_tokens:
            raise ProcessorError("patch_size of the vision_config leaves a tile without features")
        self.start = files.token("<|image_start|>")
        self.end = files.token("<|image_end|>")
        self.patch_token = files.token("<|patch|>")
        self.next_column = files.token("<|tile_x_separator|>")
        self.next_row = files.token("<|tile_y_separator|>")
        super().__init__(
            files,
            name="llama4",
            anchor=ANCHOR,
            mean_std=files.normalization(HALF, HALF),
            kernel=files.kernel(2),
        )

    def grid(self, size: Size) -> Size:
        """Return columns and rows of tiles for a picture of that size."""
        canvases = tile_canvases(self.tile, self.tiles_max)
        canvas = least_scaled_canvas(size, canvases, largest=self.largest)
        return Size(canvas.width // self.tile, canvas.height // self.tile)

    def layout(self, plan: PicturePlan, tokens: TokenLookup) -> PictureLayout:
        """Return the rows of tiles with their separators, then the tile of the whole, between start and end."""
        tile = repeated(self.patch_token, self.tile_tokens)
        rows, columns = plan.grid
        ids = array("I", (self.start,))
        if rows * columns > 1:
            row = (tile + array("I", (self.next_column,))) * columns
            row[-1] = self.next_row
            ids += row * rows
        ids.append(self.anchor_id)
        ids += tile
        ids.append(self.end)
        return PictureLayout(ids)

    def canvas(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the canvas: the picture in its upper left corner, on black."""
        from smg_node.media.pixels.patches import padded  # numpy comes with the first picture

        canvas = Size(plan.columns, plan.rows)
        drawn = self._drawn(Size(picture.width, picture.height), canvas)
        return padded(self.resized(picture, *drawn), *canvas)

    def _drawn(self, size: Size, canvas: Size) -> Size:
        """Return the size of the picture on its canvas."""
        if not self.largest:
            canvas = Size(
                min(max(size.width, self.tile), canvas.width),
                min(max(size.height, self.tile), canvas.height),
            )
        found = fitted(size, canvas)
        return Size(max(found.width, 1), max(found.height, 1))

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the tiles of all pictures behind each other."""
        sides = {
            "aspect_ratios": integers([plan.grid for plan in plans]),
            "patches_per_image": counts([plan.shape[0] for plan in plans]),
        }
        return self.flat_batch(LAYOUT, plans, patches, ranges, wanted, sides, coarse=True)


def _shuffled(files: ProcessorFiles) -> int:
    """Return how many patches become one feature."""
    vision = files.config.get("vision_config")
    ratio = vision.get("pixel_shuffle_ratio", 0.5) if isinstance(vision, dict) else 0.5
    if not isinstance(ratio, float) or not 0.1 <= ratio <= 1:
        raise ProcessorError("pixel_shuffle_ratio of config.json is not a number up to 1")
    return files.note("pixel_shuffle", round(1 / ratio**2), "config.json")
