"""Gemma 3: every picture squeezed into one square, and blank lines around its place in the prompt.

The blank lines are text: where the prompt has newlines beside them, the tokenizer has one token for all of them
together, and so must the expanded prompt (`PictureLayout.joins`). Cutting tall and wide pictures into several ("pan and
scan") is off in published checkpoints and not known here.
"""

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, TensorBatch
from smg_node.media.expand import repeated
from smg_node.media.families.checkpoint.checkpoint_family import CheckpointFamily
from smg_node.media.families.checkpoint.processor_files import HALF, ProcessorError, ProcessorFiles
from smg_node.media.families.checkpoint.tensors import Layout, counts, finished, image_batch
from smg_node.media.family import FinishedFor, PictureLayout, PicturePlan, TokenLookup
from smg_node.media.sizes import checked

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

ANCHOR: Final = "<start_of_image>"
LAYOUT: Final = Layout(
    flat_keys={"pixel_values": "num_patches"},
    batched_keys=("num_patches",),
    cpu_keys=("num_patches",),
)


class Gemma3Family(CheckpointFamily):
    """Gemma 3 with its SigLIP encoder."""

    def __init__(self, files: ProcessorFiles) -> None:
        files.always("do_resize")
        if files.flag("do_pan_and_scan", default=False):
            raise ProcessorError("do_pan_and_scan is true")
        self.side = files.square("size", 896)
        self.features = files.config_integer("mm_tokens_per_image", 256)
        self.end = files.token("<end_of_image>")
        one, two, three, four = (files.token("\n" * count) for count in range(1, 5))
        self.blank_line = two
        self.joins = ((one, two, three), (two, one, three), (two, two, four))
        super().__init__(
            files,
            name="gemma3",
            anchor=ANCHOR,
            mean_std=files.normalization(HALF, HALF),
            kernel=files.kernel(2),
        )

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan: one square, whatever the picture's size."""
        size, side = checked(width, height), self.side
        return PicturePlan(
            width=size.width,
            height=size.height,
            columns=side,
            rows=side,
            tokens=self.features,
            shape=(3, side, side),
            grid=(1, 1),
        )

    def layout(self, plan: PicturePlan, tokens: TokenLookup) -> PictureLayout:
        """Return the placeholders between start and end, and a blank line before and after, outside of the range."""
        ids = array("I", (self.blank_line, self.anchor_id))
        ids += repeated(self.placeholder, plan.tokens)
        ids += array("I", (self.end, self.blank_line))
        return PictureLayout(ids, before=1, after=1, joins=self.joins)

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the square, channel by channel."""
        from smg_node.media.pixels.patches import planar  # numpy comes with the first picture

        return planar(self.resized(picture, plan.columns, plan.rows))

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the squares of all pictures."""
        shape = (len(plans), *plans[0].shape)
        pixels = finished(patches, shape, self.normalization, wanted)
        sides = {"num_patches": counts([1] * len(plans))}
        return image_batch(LAYOUT, pixels, sides, self.placeholder, ranges)
