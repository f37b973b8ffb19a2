"""Vision towers of the LLaVA group: side of an encoder's square, and how many features the model takes of one."""

from smg_node.media.families.checkpoint.processor_files import ProcessorError, ProcessorFiles

CLIP: str = "clip_vision_model"
SIGLIP: str = "siglip_vision_model"


class VisionTower:
    """The vision encoder of a checkpoint.

    `patches` is how many patches a side has, `features` how many features a square gives: its patches, and for CLIP the
    class feature where the checkpoint keeps it. SigLIP has none, so what leaves the first feature out leaves out a patch.
    """

    def __init__(
        self, files: ProcessorFiles, *, kind: str, side: int, strategy: str, cropped: bool
    ) -> None:
        """`cropped` tells that the processor takes the middle of what it resized, `strategy` is the model's default."""
        self.side = files.config_integer("image_size", side, "vision_config", "image_size")
        patch = files.config_integer("patch_size", 14, "vision_config", "patch_size")
        self.patches = self.side // patch
        if not self.patches:
            raise ProcessorError("patch_size of the vision_config is above its image_size")
        told = files.config.get("vision_feature_select_strategy")
        selected = strategy if told is None else told
        if selected not in ("default", "full"):
            raise ProcessorError("vision_feature_select_strategy of config.json is not known")
        beside = int(selected == "full") - (kind == SIGLIP)
        self.features = self.patches**2 + files.note("class_features", beside, "config.json")
        if self.features < 1:
            raise ProcessorError("patch_size of the vision_config leaves a square without features")
        files.always("do_resize")
        if cropped:
            files.always("do_center_crop")
            if files.square("crop_size", self.side) != self.side:
                raise ProcessorError("crop_size is not the image_size of the vision_config")


def check_size(found: int, tower: VisionTower) -> None:
    """Refuse a processor whose `size` is not the side of the encoder's square."""
    if found != tower.side:
        raise ProcessorError("size is not the image_size of the vision_config")


def tower_kind(files: ProcessorFiles, *, default: str) -> str:
    """Return the model_type of the vision_config, `default` where it says none."""
    vision = files.config.get("vision_config")
    kind = vision.get("model_type") if isinstance(vision, dict) else None
    return kind if isinstance(kind, str) else default
