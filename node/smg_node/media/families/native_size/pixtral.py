"""Pixtral and Mistral 3: a picture in its own shape, in whole patches, a row of placeholders for each row of them.

Two models with one encoder: the Hugging Face form of Pixtral, which calls itself `llava`, and Mistral 3, which merges
patches. Pictures are not padded, so those of one prompt can be one tensor only where all have the same size.
"""

import math
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, TensorBatch
from smg_node.media.families.checkpoint.checkpoint_family import CheckpointFamily
from smg_node.media.families.checkpoint.processor_files import (
    CLIP_MEAN,
    CLIP_STD,
    ProcessorError,
    ProcessorFiles,
)
from smg_node.media.families.checkpoint.tensors import Layout
from smg_node.media.family import FinishedFor, PictureLayout, PicturePlan, TokenLookup
from smg_node.media.sizes import Size, checked, in_patches

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

LAYOUT: Final = Layout(batched_keys=("pixel_values",))
SIDE_BOUND: Final = 8192
"""Most pixels of a side that a checkpoint may ask for: published ones ask for 1540."""


class PixtralFamily(CheckpointFamily):
    """A model with a Pixtral encoder."""

    def __init__(self, files: ProcessorFiles, *, name: str, merged: bool) -> None:
        files.always("do_resize")
        merge = files.config_integer("spatial_merge_size", 2, most=16) if merged else 1
        self.patch = _patch(files) * merge
        self.longest = files.integer(
            "longest_edge", 1024, ("size", "longest_edge"), ("size", "height"), most=SIDE_BOUND
        )
        self.row_end = files.token(_text(files, "image_break_token", "[IMG_BREAK]"))
        self.end = files.token(_text(files, "image_end_token", "[IMG_END]"))
        super().__init__(
            files,
            name=name,
            anchor=_text(files, "image_token", "[IMG]"),
            mean_std=files.normalization(CLIP_MEAN, CLIP_STD),
            kernel=files.kernel(3),
        )

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan: `grid` is rows and columns of placeholders."""
        longest = self.longest
        if area_max is not None:
            longest = max(self.patch, min(longest, math.isqrt(area_max)))
        size = in_patches(
            checked(width, height),
            longest=Size(longest, longest),
            patch=Size(self.patch, self.patch),
        )
        rows, columns = size.height // self.patch, size.width // self.patch
        return PicturePlan(
            width=width,
            height=height,
            columns=size.width,
            rows=size.height,
            tokens=rows * columns,
            shape=(3, size.height, size.width),
            grid=(rows, columns),
        )

    def layout(self, plan: PicturePlan, tokens: TokenLookup) -> PictureLayout:
        """Return a row of placeholders and its end for each row of patches; the last has the picture's end instead."""
        rows, columns = plan.grid
        ids = array("I", [self.placeholder] * columns + [self.row_end]) * rows
        ids[-1] = self.end
        return PictureLayout(ids)

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the whole picture, channel by channel."""
        from smg_node.media.pixels.patches import planar  # numpy comes with the first picture

        return planar(self.resized(picture, plan.columns, plan.rows))

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the pictures as one tensor; None where their sizes differ."""
        if any(plan.shape != plans[0].shape for plan in plans):
            return None
        return self.stacked_batch(LAYOUT, plans, patches, ranges, wanted)


def _patch(files: ProcessorFiles) -> int:
    """Return the encoder's patch: the processor's own word is overruled by processor_config.json, as in engines."""
    told = files.processor.get("patch_size")
    vision = files.config_integer("patch_size", 16, "vision_config", "patch_size")
    if told is not None and told != vision:
        raise ProcessorError("patch_size of processor_config.json is not that of the vision_config")
    return vision


def _text(files: ProcessorFiles, name: str, default: str) -> str:
    found = files.processor.get(name, default)
    if not isinstance(found, str):
        raise ProcessorError(f"{name} of processor_config.json is no text")
    return files.note(
        name, found, "processor_config.json" if name in files.processor else "family default"
    )


def pixtral(files: ProcessorFiles) -> PixtralFamily:
    """Return the family of a Pixtral checkpoint in its Hugging Face form."""
    return PixtralFamily(files, name="pixtral", merged=False)


def mistral3(files: ProcessorFiles) -> PixtralFamily:
    """Return the family of a Mistral 3 checkpoint."""
    return PixtralFamily(files, name="mistral3", merged=True)
