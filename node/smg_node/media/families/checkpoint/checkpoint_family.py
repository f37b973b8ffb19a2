"""Checkpoint family: what all families of image processors have in common, made from the files of a checkpoint."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from smg_node.media.engine_media import MediaRange, Tensor, TensorBatch
from smg_node.media.expand import repeated
from smg_node.media.families.checkpoint.processor_files import (
    Normalization,
    ProcessorFiles,
    ProcessorValue,
)
from smg_node.media.families.checkpoint.tensors import Layout, finished, image_batch
from smg_node.media.family import ContentOrder, FinishedFor, PictureLayout, PicturePlan, TokenLookup

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels
    from smg_node.media.pixels.filter_weights import Kernel

Resampler: TypeAlias = Literal["torchvision", "pillow"]
"""Whose arithmetic a published processor resizes with."""

_NO_SIDES: Final[Mapping[str, Tensor]] = MappingProxyType({})


class CheckpointFamily:
    """Names, tokens and numbers of one checkpoint's image processor.

    A family reads all its numbers from `files` before it calls this, because the fingerprint is made of them.
    `pixel_values` tells how levels become numbers; they are no part of an identity of 8-bit patches, but of the
    encoder's output, so they count in the fingerprint.
    """

    def __init__(
        self,
        files: ProcessorFiles,
        *,
        name: str,
        anchor: str,
        order: ContentOrder = "media_first",
        mean_std: Normalization,
        kernel: int,
        resampler: Resampler = "torchvision",
    ) -> None:
        self.name = name
        self.anchor = anchor
        self.anchor_id = files.token(anchor)
        self.placeholder = files.placeholder(anchor)
        self.order: ContentOrder = order
        self.normalization = mean_std
        self.kernel: Kernel = _kernel(kernel)
        self.resampler: Resampler = resampler
        self.values: tuple[ProcessorValue, ...] = files.values
        self.fingerprint = files.fingerprint(name)

    def layout(self, plan: PicturePlan, tokens: TokenLookup) -> PictureLayout:
        """Return the placeholder as often as the picture has features."""
        return PictureLayout(repeated(self.placeholder, plan.tokens))

    def resized(self, picture: "Picture", columns: int, rows: int) -> "Pixels":
        """Return the picture's pixels at that size."""
        return self.resampled(picture.pixels, columns, rows)

    def resampled(self, pixels: "Pixels", columns: int, rows: int) -> "Pixels":
        """Return pixels [height, width, 3] at that size."""
        from smg_node.media.pixels import resize  # numpy comes with the first picture

        if self.resampler == "pillow":
            return resize.resize_as_pillow(pixels, columns, rows, self.kernel)
        return resize.resize(pixels, columns, rows, self.kernel)

    def batch_of(
        self,
        layout: Layout,
        pixels: Tensor,
        sides: Mapping[str, Tensor],
        ranges: Sequence[MediaRange],
    ) -> TensorBatch:
        """Return tensors that are finished as a batch."""
        return image_batch(layout, pixels, sides, self.placeholder, ranges)

    def flat_batch(
        self,
        layout: Layout,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
        sides: Mapping[str, Tensor],
        *,
        coarse: bool = False,
    ) -> TensorBatch:
        """Return the patches or tiles of all pictures behind each other; `coarse` as in `tensors.finished`."""
        shape = (sum(plan.shape[0] for plan in plans), *plans[0].shape[1:])
        pixels = finished(patches, shape, self.normalization, wanted, coarse=coarse)
        return self.batch_of(layout, pixels, sides, ranges)

    def stacked_batch(
        self,
        layout: Layout,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
        sides: Mapping[str, Tensor] = _NO_SIDES,
    ) -> TensorBatch:
        """Return pictures of one shape, one a row of the tensor."""
        shape = (len(plans), *plans[0].shape)
        pixels = finished(patches, shape, self.normalization, wanted)
        return self.batch_of(layout, pixels, sides, ranges)

    def filled_batch(
        self,
        layout: Layout,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
        sides: Mapping[str, Tensor],
        *,
        most: int = 0,
    ) -> TensorBatch:
        """Return pictures of several patches or tiles, one a row, filled up with nought to `most` or what one has."""
        most = most or max(plan.shape[0] for plan in plans)
        part = plans[0].shape[1:]
        zeros = [(most - plan.shape[0]) * math.prod(part) for plan in plans]
        shape = (len(plans), most, *part)
        pixels = finished(patches, shape, self.normalization, wanted, zeros=zeros)
        return self.batch_of(layout, pixels, sides, ranges)


def _kernel(number: int) -> "Kernel":
    """Return the name of a resampling filter that Pillow counts as `number`."""
    match number:
        case 1:
            return "lanczos"
        case 2:
            return "bilinear"
        case _:
            assert number == 3
            return "bicubic"
