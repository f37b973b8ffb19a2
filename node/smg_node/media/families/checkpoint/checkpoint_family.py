"""Checkpoint family: what all families of image processors have in common, made from the files of a checkpoint."""

from typing import TYPE_CHECKING, Literal

from smg_node.media.expand import repeated
from smg_node.media.families.checkpoint.processor_files import (
    Normalization,
    ProcessorFiles,
    ProcessorValue,
)
from smg_node.media.family import ContentOrder, PictureLayout, PicturePlan, TokenLookup

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels


class CheckpointFamily:
    """Names, tokens and numbers of one checkpoint's image processor.

    A family reads all its numbers from `files` before it calls this, because the fingerprint is made of them.
    `pixel_values` tells how levels become numbers; they are no part of an identity of 8-bit patches, but of the
    encoder's output, so they count in the fingerprint.
    """

    modality: Literal["image"] = "image"

    def __init__(
        self,
        files: ProcessorFiles,
        *,
        name: str,
        anchor: str,
        order: ContentOrder = "media_first",
        mean_std: Normalization,
        kernel: int,
    ) -> None:
        self.name = name
        self.anchor = anchor
        self.anchor_id = files.token(anchor)
        self.placeholder = files.placeholder(anchor)
        self.order: ContentOrder = order
        self.normalization = mean_std
        self.kernel: Literal["bicubic", "bilinear"] = "bicubic" if kernel == 3 else "bilinear"
        self.values: tuple[ProcessorValue, ...] = files.values
        self.fingerprint = files.fingerprint(name)

    def layout(self, plan: PicturePlan, tokens: TokenLookup) -> PictureLayout:
        """Return the placeholder as often as the picture has features."""
        return PictureLayout(repeated(self.placeholder, plan.tokens))

    def resized(self, picture: "Picture", columns: int, rows: int) -> "Pixels":
        """Return the picture's pixels at that size."""
        from smg_node.media.pixels.resize import resize  # numpy comes with the first picture

        return resize(picture.pixels, columns, rows, self.kernel)
