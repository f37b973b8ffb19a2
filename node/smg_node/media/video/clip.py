"""Clip: what is known of an encoded video before it is decoded, and what becomes of it; pure."""

from typing import Final

import msgspec

from smg_node.core.errors import SmgError, invalid

FPS_UNKNOWN: Final = 24.0
"""Frames a second of a clip that does not say: what published processors take then."""
INVALID_VIDEO: Final = "invalid_video"


class ClipHeader(msgspec.Struct, frozen=True):
    """The size of a clip: `frames` of `width` by `height` pixels as they are shown, `fps` of them a second.

    `fps` is above zero. `format` is the container's name, such as "mp4", found by content; `codec` that of its pixels.
    """

    width: int
    height: int
    frames: int
    fps: float
    format: str
    codec: str

    @property
    def pixels(self) -> int:
        """Return the pixels of one frame."""
        return self.width * self.height


class ClipPlan(msgspec.Struct, frozen=True):
    """What becomes of a clip of a known size: decided by its header alone.

    `frames` are the numbers of the frames that the model sees, ascending; the last one stands for those that are
    missing to a whole step in time. `columns` and `rows` are the resized size in pixels. `grid` is (steps, rows,
    columns) of patches, `tokens` how many placeholder ids there are in the prompt, `shape` that of the patches.
    `seconds` is the time of each step where prompts tell it, `step_s` the seconds between steps.
    """

    header: ClipHeader
    frames: tuple[int, ...]
    columns: int
    rows: int
    tokens: int
    shape: tuple[int, int]
    grid: tuple[int, int, int]
    seconds: tuple[float, ...]
    step_s: float

    @property
    def width(self) -> int:
        """Return the width of the clip itself, in pixels."""
        return self.header.width

    @property
    def height(self) -> int:
        """Return the height of the clip itself, in pixels."""
        return self.header.height


def refused(message: str) -> SmgError:
    """Return the error for a clip that cannot be shown to a model; the caller adds the path of the part."""
    return invalid(message, code=INVALID_VIDEO)
