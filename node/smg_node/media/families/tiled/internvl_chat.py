"""InternVL in its own form (`internvl_chat`: InternVL 2 to 3.5): the numbers are config.json's, the resizing is Pillow's.

Engines make its pictures by code of their own and read nothing of preprocessor_config.json. Templates of these
checkpoints know no pictures: engines write `<image>` before the texts, which its tokenizers have no token for, so here
the place of a picture is its placeholder's text from the beginning.
"""

from typing import Final

from smg_node.media.families.checkpoint.processor_files import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Normalization,
    ProcessorError,
    ProcessorFiles,
)
from smg_node.media.families.checkpoint.tensors import Layout
from smg_node.media.families.tiled.internvl import ANCHOR, TILES_MAX, RatioTiledFamily

LAYOUT: Final = Layout(
    pixel_key="pixel_values_flat",
    flat_keys={"pixel_values_flat": "image_num_patches"},
    batched_keys=("image_num_patches",),
    cpu_keys=("image_num_patches", "image_token_id"),
)
_BICUBIC: Final = 3


class InternVlChatFamily(RatioTiledFamily):
    """InternVL 2, 2.5, 3 and 3.5 in the form that brings code of its own."""

    division = LAYOUT

    def __init__(self, files: ProcessorFiles) -> None:
        vision = "vision_config"
        self.tile = files.engine_integer("image_size", 448, vision, "image_size")
        self.tiles_min = files.engine_integer("min_dynamic_patch", 1, most=TILES_MAX)
        self.tiles_max = files.engine_integer("max_dynamic_patch", 6, most=TILES_MAX)
        if not files.engine_flag("dynamic_image_size", default=False):
            self.tiles_min = self.tiles_max = 1
        if self.tiles_min > self.tiles_max:
            raise ProcessorError("min_dynamic_patch is above max_dynamic_patch")
        self.has_whole = files.engine_flag("use_thumbnail", default=False)
        patch = files.config_integer("patch_size", 14, vision, "patch_size")
        self.tile_tokens = int((self.tile // patch) ** 2 * _ratio(files) ** 2)
        if not self.tile_tokens:
            raise ProcessorError("patch_size of the vision_config leaves a tile without features")
        self.start = files.token("<img>")
        self.end = files.token("</img>")
        super().__init__(
            files,
            name="internvl_chat",
            anchor=ANCHOR,
            mean_std=Normalization(1 / 255, IMAGENET_MEAN, IMAGENET_STD, stepwise=True),
            kernel=_BICUBIC,
            resampler="pillow",
        )


def _ratio(files: ProcessorFiles) -> float:
    """Return how many features a row of patches becomes, as a part of it."""
    told = files.config.get("downsample_ratio", 0.5)
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0.01 <= told <= 1:
        raise ProcessorError("downsample_ratio of config.json is not a number up to 1")
    return files.note("downsample_ratio", float(told), "config.json")
