"""LLaVA 1.5: every picture is one square: its short side to the encoder's size, the middle cut out."""

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
from smg_node.media.families.checkpoint.tensors import Layout, finished, image_batch
from smg_node.media.family import FinishedFor, PicturePlan
from smg_node.media.sizes import checked, with_short_side

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

ANCHOR: Final = "<image>"
LAYOUT: Final = Layout(batched_keys=("pixel_values",))


class ClipTower:
    """The vision encoder of a LLaVA checkpoint: side of its square, and features of one.

    `patches` is how many patches a side has, `features` how many features a square gives: its patches, and the class
    feature where the checkpoint keeps it.
    """

    def __init__(self, files: ProcessorFiles) -> None:
        vision = files.config.get("vision_config")
        kind = vision.get("model_type") if isinstance(vision, dict) else None
        if kind not in (None, "clip_vision_model"):
            raise ProcessorError("vision_config of config.json is not that of CLIP")
        self.side = files.config_integer("image_size", 336, "vision_config", "image_size")
        patch = files.config_integer("patch_size", 14, "vision_config", "patch_size")
        self.patches = self.side // patch
        if not self.patches:
            raise ProcessorError("patch_size of the vision_config is above its image_size")
        strategy = files.config.get("vision_feature_select_strategy", "default")
        if strategy not in ("default", "full"):
            raise ProcessorError("vision_feature_select_strategy of config.json is not known")
        self.features = self.patches**2 + files.note(
            "class_features", int(strategy == "full"), "config.json"
        )
        for step in ("do_resize", "do_center_crop"):
            files.always(step)
        if files.square("crop_size", self.side) != self.side:
            raise ProcessorError("crop_size is not the image_size of the vision_config")
        if files.short_side("size", self.side) != self.side:
            raise ProcessorError("size is not the image_size of the vision_config")


class LlavaFamily(CheckpointFamily):
    """LLaVA 1.5 with a CLIP encoder."""

    def __init__(self, files: ProcessorFiles) -> None:
        if files.flag("do_pad", default=False):
            raise ProcessorError("do_pad is true")
        self.tower = ClipTower(files)
        super().__init__(
            files,
            name="llava",
            anchor=ANCHOR,
            mean_std=files.normalization(CLIP_MEAN, CLIP_STD),
            kernel=files.kernel(3),
        )

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan: columns and rows are those before the middle is cut out, `grid` rows and columns of patches."""
        side, patches = self.tower.side, self.tower.patches
        size = with_short_side(checked(width, height), side=side)
        return PicturePlan(
            width=width,
            height=height,
            columns=size.width,
            rows=size.height,
            tokens=self.tower.features,
            shape=(3, side, side),
            grid=(patches, patches),
        )

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the middle square, channel by channel."""
        from smg_node.media.pixels.patches import planar  # numpy comes with the first picture

        side = self.tower.side
        pixels = self.resized(picture, plan.columns, plan.rows)
        left, top = (plan.columns - side) // 2, (plan.rows - side) // 2
        return planar(pixels[top : top + side, left : left + side])

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
        return image_batch(LAYOUT, pixels, {}, self.placeholder, ranges)
