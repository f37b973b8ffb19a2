"""Frame choice: how many frames of a clip a model sees, and which; pure.

Both rules are those of the published video processors, to the frame. They agree in how many frames there are: as many
as the rate asks for, within bounds and never more than the clip has. They differ in which ones: Qwen3-VL spreads them
from the first to the last frame in doubles, Qwen2-VL steps through the clip in single precision.
"""

import math
import struct
from collections.abc import Sequence
from typing import Final

import msgspec

from smg_node.media.video.clip import refused

FRAMES_MAX: Final = 768
"""Most frames of a clip that engines take from a file, whatever a checkpoint says."""
FPS_MAX: Final = 30.0
"""Most frames a second that engines take."""

_LANES: Final = 8
"""Numbers that torch's `arange` makes together, from a base that is rounded to single precision."""
_BLOCK: Final = 2 * _LANES
"""Numbers of one round of its loop; what is left at the end is made one by one, without a base."""
_FLOAT: Final = struct.Struct("<f")


class FrameRate(msgspec.Struct, frozen=True):
    """How densely a checkpoint looks at clips: `fps` frames a second, at least and at most so many of a clip."""

    fps: float
    frames_min: int
    frames_max: int


def spread(total: int, fps: float, rate: FrameRate) -> list[int]:
    """Return the frames that Qwen3-VL sees of a clip of `total` frames, `fps` a second; ascending, in order.

    SmgError `invalid_video` for a clip of fewer than two frames.
    """
    _check(total)
    wanted = int(total / fps * min(rate.fps, FPS_MAX))
    count = min(max(wanted, rate.frames_min), rate.frames_max, FRAMES_MAX, total)
    if count < 2:
        return [0]
    step = (total - 1) / (count - 1)
    # Halves are rounded to the even number, as numpy does; the last is the last frame, not a product.
    return [round(at * step) for at in range(count - 1)] + [total - 1]


def stepped(total: int, fps: float, rate: FrameRate, temporal: int) -> list[int]:
    """Return the frames that Qwen2-VL and Qwen2.5-VL see of a clip; ascending, in order.

    They are a multiple of `temporal`, or one more where single precision has it so.

    SmgError `invalid_video` for a clip of fewer than two frames, or fewer than `temporal`.
    """
    _check(total)
    most = min(rate.frames_max, FRAMES_MAX, total) // temporal * temporal
    wanted = min(max(total / fps * min(rate.fps, FPS_MAX), rate.frames_min), most, total)
    count = math.floor(wanted / temporal) * temporal
    if count < 1:
        raise refused(f"the video has {total} frames; this model takes {temporal} at a time")
    step = total / count
    found = _single_range(math.ceil(total / step), step)
    # Rounding may add a number behind the end, which then is the last frame, perhaps for the second time.
    return list(dict.fromkeys(min(int(each), total - 1) for each in found))


def _single_range(count: int, step: float) -> Sequence[float]:
    """Return the first multiples of `step` in single precision, as torch 2's `arange` makes them on every CPU."""
    blocks = count // _BLOCK * _BLOCK
    found = []
    for at in range(count):
        lane = at % _LANES if at < blocks else 0
        base = at - lane
        start = _single(base * step) if at < blocks else base * step
        found.append(_single(start + lane * step))
    return found


def _check(total: int) -> None:
    if total < 2:
        raise refused("the video has fewer than two frames: send a picture")


def _single(value: float) -> float:
    """Return the nearest single-precision number."""
    return float(_FLOAT.unpack(_FLOAT.pack(value))[0])
