"""Idefics 3 and SmolVLM: a picture enlarged to one long side, then squeezed to whole square tiles, and one of the whole.

The picture is resized twice, with 8 bits in between, and the tile of the whole is made of the canvas and not of the
picture. Each tile has a mark of its row and column in the prompt, and each row of tiles ends with a newline.
"""

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, Tensor, TensorBatch
from smg_node.media.expand import repeated
from smg_node.media.families.checkpoint.processor_files import HALF, ProcessorError, ProcessorFiles
from smg_node.media.families.checkpoint.tensors import Layout, counts
from smg_node.media.families.tiled.tiled_family import TiledFamily
from smg_node.media.family import FinishedFor, PictureLayout, PicturePlan, TokenLookup
from smg_node.media.sizes import Size, in_even_tiles, with_long_side

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

ANCHOR: Final = "<image>"
LAYOUT: Final = Layout(
    flat_keys={"pixel_values": "num_patches", "pixel_attention_mask": "num_patches"},
    batched_keys=("num_patches",),
    cpu_keys=("num_patches",),
)
LONGEST_MAX: Final = 4096
"""Pixels of a side that the published processor never goes above."""
ROWS_MAX: Final = 16


class Idefics3Family(TiledFamily):
    """Idefics 3, or SmolVLM, with a SigLIP encoder."""

    def __init__(self, files: ProcessorFiles) -> None:
        for step in ("do_resize", "do_pad"):
            files.always(step)
        edge = ("max_image_size", "longest_edge")
        self.tile = files.integer("max_image_size", 364, edge, most=LONGEST_MAX)
        edge = ("size", "longest_edge")
        self.longest = files.integer("size", 4 * 364, edge, most=LONGEST_MAX)
        self.split = files.flag("do_image_splitting", default=True)
        vision = ("vision_config",)
        if files.config_integer("image_size", self.tile, *vision, "image_size") != self.tile:
            raise ProcessorError("max_image_size is not the image_size of the vision_config")
        self.tile_tokens = self._features(files)
        self.around = files.token("<fake_token_around_image>")
        self.global_mark = files.token("<global-img>")
        self.newline = files.token("\n")
        blank = files.tokens.token_id("\n\n")
        self.blank_line = array("I", (self.newline,) * 2 if blank is None else (blank,))
        self.marks = self._marks(files)
        super().__init__(
            files,
            name=files.model_type,
            anchor=ANCHOR,
            mean_std=files.normalization(HALF, HALF),
            kernel=files.kernel(1),
        )

    def _features(self, files: ProcessorFiles) -> int:
        """Return how many placeholders a tile has: its patches, of which squares become one."""
        patch = files.config_integer("patch_size", 32, "vision_config", "patch_size")
        shuffled = files.config_integer("scale_factor", 2, most=16)
        features = int((self.tile // patch) ** 2 / shuffled**2)
        told = files.processor.get("image_seq_len", features)
        if not features or told != features:
            raise ProcessorError(f"a tile has {features} features, and image_seq_len is not that")
        return features

    def _marks(self, files: ProcessorFiles) -> dict[tuple[int, int], int]:
        """Return the marks of tiles by row and column, from one, of all grids that pictures may have."""
        most = -(-self.longest // self.tile)
        if most > ROWS_MAX:
            raise ProcessorError(f"size is more than {ROWS_MAX} times max_image_size")
        if self.longest % self.tile:
            # Engines then count other tiles than the published processor makes.
            raise ProcessorError("size is no multiple of max_image_size")
        numbers = range(1, most + 1 if self.split and most > 1 else 1)
        return {
            (row, column): files.token(f"<row_{row}_col_{column}>")
            for row in numbers
            for column in numbers
        }

    def grid(self, size: Size) -> Size:
        """Return columns and rows of tiles for a picture of that size."""
        if not self.split:
            return Size(1, 1)
        canvas = in_even_tiles(with_long_side(size, side=self.longest), tile=self.tile)
        return Size(canvas.width // self.tile, canvas.height // self.tile)

    def layout(self, plan: PicturePlan, tokens: TokenLookup) -> PictureLayout:
        """Return the tiles with their marks, a newline after each row, then the tile of the whole."""
        tile = repeated(self.placeholder, self.tile_tokens)
        rows, columns = plan.grid
        ids = array("I")
        if rows * columns > 1:
            for row in range(1, rows + 1):
                for column in range(1, columns + 1):
                    ids += array("I", (self.around, self.marks[row, column])) + tile
                ids.append(self.newline)
            ids.pop()
            ids += self.blank_line
        ids += array("I", (self.around, self.global_mark)) + tile
        ids.append(self.around)
        return PictureLayout(ids)

    def canvas(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the canvas: the picture at its long side, squeezed to whole tiles."""
        drawn = with_long_side(Size(picture.width, picture.height), side=self.longest)
        return self.resampled(self.resized(picture, *drawn), plan.columns, plan.rows)

    def whole(self, picture: "Picture", canvas: "Pixels") -> "Pixels":
        """Return the pixels of the tile of the whole: the canvas squeezed into it."""
        return self.resampled(canvas, self.tile, self.tile)

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the tiles of all pictures behind each other, and masks that say that all of each shows something.

        Masks are a byte a pixel where the published processor has eight: models only ask whether it is nought.
        """
        tiles = [plan.shape[0] for plan in plans]
        mask = b"\x01" * self.tile**2
        shape = (sum(tiles), self.tile, self.tile)
        sides = {
            "num_patches": counts(tiles),
            "pixel_attention_mask": Tensor(shape, "uint8", (mask,) * sum(tiles)),
        }
        return self.flat_batch(LAYOUT, plans, patches, ranges, wanted, sides)
