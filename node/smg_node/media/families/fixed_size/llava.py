"""LLaVA: every picture is one square: with CLIP the middle of it, with SigLIP all of it, squeezed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, TensorBatch
from smg_node.media.families.checkpoint.processor_files import (
    CLIP_MEAN,
    CLIP_STD,
    HALF,
    ProcessorError,
    ProcessorFiles,
)
from smg_node.media.families.checkpoint.tensors import Layout
from smg_node.media.families.fixed_size.square_family import SquareFamily
from smg_node.media.families.fixed_size.towers import (
    CLIP,
    SIGLIP,
    VisionTower,
    check_size,
    tower_kind,
)
from smg_node.media.family import FinishedFor, PicturePlan
from smg_node.media.sizes import Size, with_short_side

if TYPE_CHECKING:
    from smg_node.media.picture import Pixels

ANCHOR: Final = "<image>"
LAYOUT: Final = Layout(batched_keys=("pixel_values",))


class LlavaFamily(SquareFamily):
    """LLaVA 1.5 with a CLIP encoder, and its likes with a SigLIP encoder."""

    def __init__(self, files: ProcessorFiles) -> None:
        if files.flag("do_pad", default=False):
            raise ProcessorError("do_pad is true")
        kind = tower_kind(files, default=CLIP)
        if kind not in (CLIP, SIGLIP):
            raise ProcessorError("vision_config of config.json is not that of CLIP or SigLIP")
        self.squeezed = kind == SIGLIP
        if self.squeezed and files.flag("do_center_crop", default=False):
            raise ProcessorError("do_center_crop is true")
        side = 224 if self.squeezed else 336
        tower = VisionTower(
            files, kind=kind, side=side, strategy="default", cropped=not self.squeezed
        )
        read = files.square if self.squeezed else files.short_side
        check_size(read("size", tower.side), tower)
        self.side, self.features = tower.side, tower.features
        self.rows_and_columns = (tower.patches, tower.patches)
        mean, std = (HALF, HALF) if self.squeezed else (CLIP_MEAN, CLIP_STD)
        super().__init__(
            files,
            name="llava_siglip" if self.squeezed else "llava",
            anchor=ANCHOR,
            mean_std=files.normalization(mean, std),
            kernel=files.kernel(3),
        )

    def resized_to(self, size: Size) -> Size:
        """Return the size that a picture is resized to before the middle is taken."""
        return super().resized_to(size) if self.squeezed else with_short_side(size, side=self.side)

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the squares of all pictures."""
        return self.stacked_batch(LAYOUT, plans, patches, ranges, wanted)
