"""Kimi K2.5: pictures in their own size, at most shrunk, filled up with black to whole blocks of patches.

Engines know its pictures as chunks of vision and not as images; the servicer of vLLM 0.32 has no word for that, so
whether its tensors arrive is not proven (see `registry.BY_REFERENCE`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, TensorBatch
from smg_node.media.families.checkpoint.checkpoint_family import CheckpointFamily
from smg_node.media.families.checkpoint.processor_files import HALF, ProcessorError, ProcessorFiles
from smg_node.media.families.checkpoint.tensors import Layout, patch_grids
from smg_node.media.family import FinishedFor, PicturePlan
from smg_node.media.sizes import Size, checked, rounded_up, within_patches

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

LAYOUT: Final = Layout(
    flat_keys={"pixel_values": "patches_per_image"},
    batched_keys=("grid_thws", "patches_per_image"),
    cpu_keys=("grid_thws",),
)
_OWN: Final = "media_proc_cfg"
_PATCHES_MAX: Final = 1 << 20


class KimiFamily(CheckpointFamily):
    """Kimi K2.5, by the numbers of its own processor or of the one in transformers."""

    def __init__(self, files: ProcessorFiles) -> None:
        files.always("do_resize")
        for path in _either("fixed_output_tokens", "fixed_output_tokens"):
            if files.raw(*path)[0] is not None:
                raise ProcessorError("fixed_output_tokens is set")
        self.patch = files.integer("patch_size", 14, ("patch_size",), (_OWN, "patch_size"))
        self.merge = files.integer(
            "merge_size", 2, *_either("merge_size", "merge_kernel_size"), most=16
        )
        self.patches_max = files.integer(
            "max_patches", 16384, *_either("max_patches", "in_patch_limit"), most=_PATCHES_MAX
        )
        self.side_max = files.integer(
            "max_height",
            512,
            ("size", "max_height"),
            *_either("max_height", "patch_limit_on_one_side"),
        )
        super().__init__(
            files,
            name="kimi_k25",
            anchor="<|media_pad|>",
            order="as_sent",
            mean_std=files.normalization(HALF, HALF, inside=_OWN),
            kernel=files.kernel(3),
        )

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan: columns and rows are those of the picture, `grid` is (1, rows, columns) of patches.

        The canvas is the picture's size, rounded up to blocks of patches.
        """
        limit = self.patches_max
        if area_max is not None:
            limit = max(1, min(limit, area_max // self.patch**2))
        drawn = within_patches(
            checked(width, height), patch=self.patch, patches_max=limit, side_max=self.side_max
        )
        canvas = self._canvas(drawn)
        rows, columns = canvas.height // self.patch, canvas.width // self.patch
        return PicturePlan(
            width=width,
            height=height,
            columns=drawn.width,
            rows=drawn.height,
            tokens=rows * columns // self.merge**2,
            shape=(rows * columns, 3, self.patch, self.patch),
            grid=(1, rows, columns),
        )

    def _canvas(self, drawn: Size) -> Size:
        return rounded_up(drawn, factor=self.patch * self.merge)

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the patches row by row."""
        from smg_node.media.pixels.patches import padded, plain_patches

        canvas = self._canvas(Size(plan.columns, plan.rows))
        pixels = padded(self.resized(picture, plan.columns, plan.rows), *canvas)
        return plain_patches(pixels, self.patch)

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the patches of all pictures behind each other."""
        sides = patch_grids("grid_thws", plans)
        return self.flat_batch(LAYOUT, plans, patches, ranges, wanted, sides)


def _either(name: str, own: str) -> tuple[tuple[str, ...], ...]:
    """Return where a number may be: by transformers' name, or by the model's own, nested or not."""
    return (name,), (_OWN, own), (own,)
