"""Clip sizes: the size that frames are resized to, from their own size and number, and a checkpoint's bounds; pure.

The same roundings as in the published processors, in the same double arithmetic and order; `media.sizes` has the rules
of still pictures, of which that of Qwen2-VL is also the rule of its frames.
"""

import math

from smg_node.media.sizes import RATIO_MAX, Size
from smg_node.media.video.clip import refused


def checked_frame(width: int, height: int) -> Size:
    """Return the size of a frame, or raise SmgError `invalid_video` for one that is empty or a needle."""
    if width < 1 or height < 1:
        raise refused(f"the video has no pixels ({width}x{height})")
    if max(width, height) / min(width, height) > RATIO_MAX:
        raise refused(
            f"the video is {width}x{height}: one side is more than {RATIO_MAX} times the other"
        )
    return Size(width, height)


def within_volume(
    size: Size, *, frames: int, temporal: int, factor: int, volume_min: int, volume_max: int
) -> Size:
    """Return the nearest size whose sides are multiples of `factor` and whose pixels lie between the bounds.

    The pixels are those of all `frames`, rounded to whole steps of `temporal` frames where they are compared, and not
    rounded where the scale is found. Rule of Qwen3-VL and GLM-4V.
    """
    width, height = size
    wide, high = round(width / factor) * factor, round(height / factor) * factor
    steps = round(frames / temporal) * temporal
    if steps * high * wide > volume_max:
        shrink = math.sqrt((frames * height * width) / volume_max)
        wide = max(factor, math.floor(width / shrink / factor) * factor)
        high = max(factor, math.floor(height / shrink / factor) * factor)
    elif steps * high * wide < volume_min:
        grow = math.sqrt(volume_min / (frames * height * width))
        wide = math.ceil(width * grow / factor) * factor
        high = math.ceil(height * grow / factor) * factor
    return Size(wide, high)


def even_share(volume_max: int, volume_min: int, *, frames: int, area_max: int) -> int:
    """Return the pixels of all frames where each may have its share of them, and `area_max` at most (Qwen3-VL)."""
    area = max(min(area_max, volume_max // frames), int(volume_min * 1.05))
    return area * frames


def share_of_context(
    area_max: int, area_min: int, *, frames: int, temporal: int, factor: int, tokens_max: int
) -> int:
    """Return the pixels of one frame where all together may take nine tenths of a context (Qwen2-VL)."""
    volume = int(tokens_max * factor * factor * 0.9)
    return max(min(area_max, volume * temporal // frames), int(area_min * 1.05))
