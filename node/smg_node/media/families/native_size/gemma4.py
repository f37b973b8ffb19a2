"""Gemma 4: a picture in its own ratio, as large as its budget of features allows, as patches with their places.

Patches are filled up with nought to the same number for every picture, with -1 for the places of what is filled up.
Values are levels between 0 and 1, not normalised.
"""

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, Tensor, TensorBatch
from smg_node.media.expand import repeated
from smg_node.media.families.checkpoint.checkpoint_family import CheckpointFamily
from smg_node.media.families.checkpoint.processor_files import (
    TOKEN_ID_MAX,
    ProcessorError,
    ProcessorFiles,
)
from smg_node.media.families.checkpoint.tensors import Layout
from smg_node.media.family import FinishedFor, PictureLayout, PicturePlan, TokenLookup
from smg_node.media.sizes import checked, pooled

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

ANCHOR: Final = "<|image|>"
LAYOUT: Final = Layout(batched_keys=("pixel_values", "pixel_position_ids"))
BUDGETS: Final = (70, 140, 280, 560, 1120)


class Gemma4Family(CheckpointFamily):
    """Gemma 4 with its vision tower."""

    def __init__(self, files: ProcessorFiles) -> None:
        files.always("do_resize")
        self.patch = files.integer("patch_size", 16)
        self.pool = files.integer("pooling_kernel_size", 3, most=16)
        self.budget = files.integer("max_soft_tokens", 280)
        if self.budget not in BUDGETS:
            raise ProcessorError(f"max_soft_tokens is {self.budget}, not one of {BUDGETS}")
        values = files.normalization((0.0,) * 3, (1.0,) * 3, default=False)
        if values.mean is not None:
            raise ProcessorError("do_normalize is true")
        self.start = files.config_integer("boi_token_id", None, most=TOKEN_ID_MAX)
        self.end = files.config_integer("eoi_token_id", None, most=TOKEN_ID_MAX)
        super().__init__(
            files, name="gemma4", anchor=ANCHOR, mean_std=values, kernel=files.kernel(3)
        )

    @property
    def patches_max(self) -> int:
        """Return how many patches every picture is filled up to."""
        return self.budget * self.pool**2

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan: `grid` is rows and columns of patches, `shape` that of the patches without filling."""
        size = pooled(
            checked(width, height), patch=self.patch, pool=self.pool, tokens_max=self.budget
        )
        rows, columns = size.height // self.patch, size.width // self.patch
        return PicturePlan(
            width=width,
            height=height,
            columns=size.width,
            rows=size.height,
            tokens=rows * columns // self.pool**2,
            shape=(rows * columns, 3 * self.patch**2),
            grid=(rows, columns),
        )

    def layout(self, plan: PicturePlan, tokens: TokenLookup) -> PictureLayout:
        """Return the placeholders between start and end."""
        ids = array("I", (self.start,)) + repeated(self.placeholder, plan.tokens)
        ids.append(self.end)
        return PictureLayout(ids)

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the patches row by row, the values of one by (y, x, channel)."""
        rows, columns = plan.grid
        pixels = self.resized(picture, plan.columns, plan.rows)
        cut = pixels.reshape(rows, self.patch, columns, self.patch, 3)
        return cut.transpose(0, 2, 1, 3, 4).reshape(plan.shape)

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the patches of all pictures, each filled up, and their places as column and row."""
        sides = {"pixel_position_ids": self._places(plans)}
        most = self.patches_max
        return self.filled_batch(LAYOUT, plans, patches, ranges, wanted, sides, most=most)

    def _places(self, plans: Sequence[PicturePlan]) -> Tensor:
        import numpy as np

        places = np.full((len(plans), self.patches_max, 2), -1, dtype="<i8")
        for at, plan in enumerate(plans):
            rows, columns = plan.grid
            y, x = np.divmod(np.arange(rows * columns), columns)
            places[at, : rows * columns] = np.stack((x, y), axis=1)
        return Tensor(places.shape, "int64", (places.reshape(-1).view(np.uint8).data,))
