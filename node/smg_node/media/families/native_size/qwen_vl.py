"""Qwen-VL: Qwen2-VL to Qwen3.5, and dots.ocr: pictures of any size, in patches that are merged in blocks.

A picture is resized to multiples of `patch_size * merge_size` within an area, and becomes one row of values a patch;
`merge_size` squared patches are one feature. Engines are sent the rows of all pictures behind each other and the grid
of each. Generations differ in their numbers only, which the checkpoint has.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, TensorBatch
from smg_node.media.families.checkpoint.checkpoint_family import CheckpointFamily
from smg_node.media.families.checkpoint.processor_files import (
    AREA_MAX,
    CLIP_MEAN,
    CLIP_STD,
    HALF,
    ProcessorError,
    ProcessorFiles,
)
from smg_node.media.families.checkpoint.tensors import Layout, patch_grids
from smg_node.media.family import FinishedFor, PicturePlan
from smg_node.media.sizes import Size, checked, within_area

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

LAYOUT: Final = Layout(
    flat_keys={"pixel_values": "patches_per_image"},
    batched_keys=("image_grid_thw", "patches_per_image"),
    cpu_keys=("image_grid_thw",),
)
_CHANNELS: Final = 3


class MergedPatchFamily(CheckpointFamily):
    """A family whose pictures become merged patches in rows: the Qwen group, and GLM-4V with another size rule."""

    def __init__(
        self,
        files: ProcessorFiles,
        *,
        name: str,
        anchor: str,
        area: tuple[int, int],
        patch: int,
        half: bool,
    ) -> None:
        files.always("do_resize")
        self.patch = files.integer("patch_size", patch)
        self.merge = files.integer("merge_size", 2, most=16)
        self.temporal = files.integer("temporal_patch_size", 2, most=16)
        self.area_min = files.integer(
            "min_pixels", area[0], ("min_pixels",), ("size", "shortest_edge"), most=AREA_MAX
        )
        self.area_max = files.integer(
            "max_pixels", area[1], ("max_pixels",), ("size", "longest_edge"), most=AREA_MAX
        )
        if self.area_min > self.area_max:
            raise ProcessorError(f"min_pixels {self.area_min} are above max_pixels {self.area_max}")
        mean, std = (HALF, HALF) if half else (CLIP_MEAN, CLIP_STD)
        super().__init__(
            files,
            name=name,
            anchor=anchor,
            mean_std=files.normalization(mean, std),
            kernel=files.kernel(3),
        )

    @property
    def factor(self) -> int:
        """Return the pixels of a block of patches: sides are multiples of it."""
        return self.patch * self.merge

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan: `grid` is (1, rows, columns) of patches, `shape` (patches, values of one)."""
        size = self.target(checked(width, height), self.bounded(area_max))
        rows, columns = size.height // self.patch, size.width // self.patch
        values = _CHANNELS * self.temporal * self.patch**2
        return PicturePlan(
            width=width,
            height=height,
            columns=size.width,
            rows=size.height,
            tokens=rows * columns // self.merge**2,
            shape=(rows * columns, values),
            grid=(1, rows, columns),
        )

    def bounded(self, area_max: int | None) -> int:
        """Return the largest area for a picture that should have at most `area_max` pixels."""
        return (
            self.area_max if area_max is None else max(self.area_min, min(self.area_max, area_max))
        )

    def target(self, size: Size, area_max: int) -> Size:
        """Return the size that a picture is resized to."""
        return within_area(size, factor=self.factor, area_min=self.area_min, area_max=area_max)

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the rows of the picture, blocks together."""
        from smg_node.media.pixels.patches import (
            merged_patches,
        )  # numpy comes with the first picture

        pixels = self.resized(picture, plan.columns, plan.rows)
        return merged_patches(pixels, self.patch, self.merge, self.temporal)

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the rows of all pictures behind each other; pictures of any sizes go together."""
        sides = patch_grids("image_grid_thw", plans)
        return self.flat_batch(LAYOUT, plans, patches, ranges, wanted, sides)


def qwen2_vl(files: ProcessorFiles) -> MergedPatchFamily:
    """Return the family of a Qwen2-VL or Qwen2.5-VL checkpoint."""
    return MergedPatchFamily(
        files,
        name=files.model_type,
        anchor="<|image_pad|>",
        area=(56 * 56, 28 * 28 * 1280),
        patch=14,
        half=False,
    )


def dots_ocr(files: ProcessorFiles) -> MergedPatchFamily:
    """Return the family of a dots.ocr checkpoint, which counts one copy of its pictures."""
    return MergedPatchFamily(
        files,
        name=files.model_type,
        anchor="<|imgpad|>",
        area=(56 * 56, 28 * 28 * 1280),
        patch=14,
        half=False,
    )


def qwen3_vl(files: ProcessorFiles) -> MergedPatchFamily:
    """Return the family of a Qwen3-VL or Qwen3.5 checkpoint."""
    return MergedPatchFamily(
        files,
        name=files.model_type,
        anchor="<|image_pad|>",
        area=(65536, 16777216),
        patch=16,
        half=True,
    )
