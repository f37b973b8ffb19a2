"""Picture bytes: what the pictures of a prompt take in memory, as it is charged to the budget of all. Pure.

text      base64 in the request, or a URL      as long as the request
file      what was in it, or was fetched       as long as the request: an answer may have to go on elsewhere
work      the decoder's memory and the pixels  of as many pictures as there are threads, until all are made
patches   what is kept of the work             until each call of the request has said something
tensors   the patches as an engine wants them  as long as the patches, where they are others
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol

from smg_node.core.generation.request import MediaPart
from smg_node.media.family import PicturePlan
from smg_node.media.picture import PictureHeader

if TYPE_CHECKING:
    from smg_node.media.engine_media import Dtype

_CHANNELS: Final = 3
_WIDTHS: Final = {"float32": 4, "bfloat16": 2, "float16": 2}


class Shaped(Protocol):
    """What patches are made by."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of their axes."""
        ...


def text_bytes(parts: Iterable[MediaPart]) -> int:
    """Return what the addresses of parts take; nearly all of those that are long are ASCII."""
    return sum([len(part.source) for part in parts])


def work_bytes(plan: PicturePlan, header: PictureHeader, size: int) -> int:
    """Return what the work on a picture takes at its peak, beside its file of `size` bytes and what comes of it.

    That is the file once more as the decoder reads it, and either the decoder's own memory with the pixels in it, or
    these pixels, those between the two passes of resizing and those after it, whichever is more.
    """
    pixels = _CHANNELS * plan.width * plan.height
    between = plan.columns * plan.height if plan.columns != plan.width else 0
    same = (plan.columns, plan.rows) == (plan.width, plan.height)
    resized = 0 if same else plan.columns * plan.rows
    resizing = max(header.decoded_bytes, pixels) + _CHANNELS * (between + resized)
    return size + max(header.decoding_bytes, resizing)


def at_once(works: Iterable[int], threads: int) -> int:
    """Return what so many works take of which no more than `threads` are under way at a time."""
    return sum(sorted(works, reverse=True)[:threads])


def patch_bytes(plan: Shaped) -> int:
    """Return what the patches of a picture take, for as long as it may have to be handed to an engine."""
    patches = 1
    for length in plan.shape:
        patches *= length
    return patches


def tensor_bytes(plans: Iterable[Shaped], dtype: "Dtype") -> int:
    """Return what the patches of pictures take as numbers of that kind."""
    return _WIDTHS.get(dtype, 1) * sum(map(patch_bytes, plans))
