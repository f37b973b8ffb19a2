"""GLM-4V (`Glm4vFamily`, 4.1V to 4.6V): merged patches as in the Qwen group, with limits that count both copies."""

from smg_node.media.families.checkpoint.processor_files import ProcessorFiles
from smg_node.media.families.native_size.qwen_vl import MergedPatchFamily
from smg_node.media.sizes import Size, at_least, within_area


class Glm4vFamily(MergedPatchFamily):
    """A GLM-4V checkpoint: small pictures are enlarged to a block first, and areas are those of all copies."""

    def __init__(self, files: ProcessorFiles) -> None:
        super().__init__(
            files,
            name=files.model_type,
            anchor="<|image|>",
            area=(112 * 112, 28 * 28 * 15000),
            patch=14,
            half=False,
        )

    def bounded(self, area_max: int | None) -> int:
        """Return the largest area of all copies, for a picture that should have at most `area_max` pixels."""
        return super().bounded(None if area_max is None else area_max * self.temporal)

    def target(self, size: Size, area_max: int) -> Size:
        """Return the size that a picture is resized to."""
        return within_area(
            at_least(size, side=self.factor),
            factor=self.factor,
            area_min=self.area_min,
            area_max=area_max,
            frames=self.temporal,
        )
