"""Gemma 3 and Gemma 3n: every picture squeezed into one square, and blank lines around its place in the prompt.

The blank lines are text: where the prompt has newlines beside them, the tokenizer has one token for all of them
together, and so must the expanded prompt (`PictureLayout.joins`). Cutting tall and wide pictures into several ("pan and
scan") is off in published checkpoints and not known here. Templates of the two write different tokens for a picture.
"""

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, Tensor, TensorBatch
from smg_node.media.expand import repeated
from smg_node.media.families.checkpoint.processor_files import HALF, ProcessorError, ProcessorFiles
from smg_node.media.families.checkpoint.tensors import Layout, counts
from smg_node.media.families.fixed_size.square_family import SquareFamily
from smg_node.media.family import FinishedFor, PictureLayout, PicturePlan, TokenLookup

if TYPE_CHECKING:
    from smg_node.media.picture import Pixels

START: Final = "<start_of_image>"
GEMMA3: Final = Layout(
    flat_keys={"pixel_values": "num_patches"},
    batched_keys=("num_patches",),
    cpu_keys=("num_patches",),
)
GEMMA3N: Final = Layout(batched_keys=("pixel_values",))


class BlankLineFamily(SquareFamily):
    """A Gemma model whose pictures stand between blank lines; `features` was read before."""

    counted: bool

    def __init__(
        self, files: ProcessorFiles, *, name: str, anchor: str, side: int, normalized: bool
    ) -> None:
        files.always("do_resize")
        if files.flag("do_pan_and_scan", default=False):
            raise ProcessorError("do_pan_and_scan is true")
        self.side = files.square("size", side)
        self.start = files.token(START)
        self.end = files.token("<end_of_image>")
        one, two, three, four = (files.token("\n" * count) for count in range(1, 5))
        self.blank_line = two
        self.joins = ((one, two, three), (two, one, three), (two, two, four))
        super().__init__(
            files,
            name=name,
            anchor=anchor,
            mean_std=files.normalization(HALF, HALF, default=normalized),
            kernel=files.kernel(2),
        )

    def layout(self, plan: PicturePlan, tokens: TokenLookup) -> PictureLayout:
        """Return the placeholders between start and end, and a blank line before and after, outside of the range."""
        ids = array("I", (self.blank_line, self.start))
        ids += repeated(self.placeholder, plan.tokens)
        ids += array("I", (self.end, self.blank_line))
        return PictureLayout(ids, before=1, after=1, joins=self.joins)

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the squares of all pictures."""
        sides: dict[str, Tensor] = {}
        if self.counted:
            sides["num_patches"] = counts([1] * len(plans))
        layout = GEMMA3 if self.counted else GEMMA3N
        return self.stacked_batch(layout, plans, patches, ranges, wanted, sides)


class Gemma3Family(BlankLineFamily):
    """Gemma 3 with its SigLIP encoder."""

    counted = True

    def __init__(self, files: ProcessorFiles) -> None:
        self.features = files.config_integer("mm_tokens_per_image", 256)
        super().__init__(files, name="gemma3", anchor=START, side=896, normalized=True)


class Gemma3nFamily(BlankLineFamily):
    """Gemma 3n with its MobileNet encoder, which takes levels that are rescaled only."""

    counted = False

    def __init__(self, files: ProcessorFiles) -> None:
        engine = files.config_integer("vision_soft_tokens_per_image", 256)
        told = files.processor.get("image_seq_length")
        if told is not None and told != engine:
            raise ProcessorError(
                "image_seq_length of processor_config.json is not vision_soft_tokens_per_image"
            )
        self.features = engine
        super().__init__(
            files, name="gemma3n", anchor="<image_soft_token>", side=768, normalized=False
        )
