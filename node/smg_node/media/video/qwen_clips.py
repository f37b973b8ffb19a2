"""Qwen clips: video of Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3.5: steps of two frames, each in patches as a picture.

A step in time is `temporal_patch_size` frames, and a row of values has a patch of each of them. Qwen2-VL bounds the
pixels of a frame and writes the features of a clip in one run, with the seconds between steps beside them for Qwen2.5;
Qwen3-VL bounds the pixels of all frames together and writes the time of every step into the prompt.
"""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from smg_node.media.engine_media import MediaRange, Tensor, TensorBatch
from smg_node.media.expand import repeated
from smg_node.media.families.checkpoint.processor_files import (
    AREA_MAX,
    CLIP_MEAN,
    CLIP_STD,
    HALF,
    ProcessorError,
    ProcessorValue,
)
from smg_node.media.families.checkpoint.tensors import counts, finished, integers, singles
from smg_node.media.family import FinishedFor, PictureLayout
from smg_node.media.sizes import Size, at_least, within_area
from smg_node.media.video.clip import ClipHeader, ClipPlan
from smg_node.media.video.clip_family import TextTokens
from smg_node.media.video.clip_files import ClipFiles
from smg_node.media.video.clip_sizes import (
    checked_frame,
    even_share,
    share_of_context,
    within_volume,
)
from smg_node.media.video.frame_choice import FPS_MAX, FRAMES_MAX, FrameRate, spread, stepped

if TYPE_CHECKING:
    from smg_node.media.picture import Pixels

ANCHOR: Final = "<|video_pad|>"
_CHANNELS: Final = 3
_CONTEXT_MAX: Final = 1 << 24


class QwenClips(ABC):
    """What the video processors of the Qwen group have in common."""

    modality: Literal["video"] = "video"
    anchor = ANCHOR

    def __init__(
        self, files: ClipFiles, *, area: tuple[int, int], patch: int, half: bool, tokens_max: int
    ) -> None:
        """`area` bounds the pixels and `tokens_max` the features of whatever the family counts them of."""
        files.always("do_resize")
        if files.raw("num_frames")[0] is not None:
            raise ProcessorError("num_frames is set: frames are chosen by rate here")
        self.name = files.model_type
        self.patch = files.integer("patch_size", patch)
        self.merge = files.integer("merge_size", 2, most=16)
        self.temporal = files.integer("temporal_patch_size", 2, most=16)
        low, high = self.edges()
        self.pixels_min = files.integer("min_pixels", area[0], *low, most=AREA_MAX)
        self.pixels_max = files.integer("max_pixels", area[1], *high, most=AREA_MAX)
        if self.pixels_min > self.pixels_max:
            raise ProcessorError(
                f"min_pixels {self.pixels_min} are above max_pixels {self.pixels_max}"
            )
        self.rate = FrameRate(
            files.number("fps", 2.0, most=FPS_MAX),
            files.integer("min_frames", 4, most=FRAMES_MAX),
            files.integer("max_frames", FRAMES_MAX),
        )
        self.capped = files.flag("cap_pixels_per_frame", default=False)
        self.tokens_max = files.integer("max_video_tokens", tokens_max, most=_CONTEXT_MAX)
        mean, std = (HALF, HALF) if half else (CLIP_MEAN, CLIP_STD)
        self.normalization = files.normalization(mean, std)
        self.kernel: Literal["bicubic", "bilinear"] = (
            "bicubic" if files.kernel(3) == 3 else "bilinear"
        )
        self.anchor_id = files.token(ANCHOR)
        self.placeholder = files.placeholder(ANCHOR)
        self.values: tuple[ProcessorValue, ...] = files.values
        self.fingerprint = files.fingerprint(f"{self.name} video")

    @abstractmethod
    def edges(self) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]:
        """Return where a file has the least and the most pixels, the first place first."""

    @abstractmethod
    def chosen(self, header: ClipHeader) -> list[int]:
        """Return the frames that the model sees."""

    @abstractmethod
    def target(self, header: ClipHeader, frames: int) -> Size:
        """Return the size that so many frames are resized to."""

    @abstractmethod
    def layout(self, plan: ClipPlan, tokens: TextTokens) -> PictureLayout:
        """Return the ids that replace the anchor of a clip."""

    @property
    def factor(self) -> int:
        """Return the pixels of a block of patches: sides are multiples of it."""
        return self.patch * self.merge

    def plan(self, header: ClipHeader) -> ClipPlan:
        """Return the plan for a clip; see `ClipFamily`."""
        frames = self.chosen(header)
        size = self.target(header, len(frames))
        steps = -(-len(frames) // self.temporal)
        rows, columns = size.height // self.patch, size.width // self.patch
        values = _CHANNELS * self.temporal * self.patch**2
        patches = steps * rows * columns
        return ClipPlan(
            header=header,
            frames=tuple(frames),
            columns=size.width,
            rows=size.height,
            tokens=patches // self.merge**2,
            shape=(patches, values),
            grid=(steps, rows, columns),
            seconds=_seconds(frames, header.fps, self.temporal),
            step_s=self.temporal / (len(frames) / header.frames * header.fps),
        )

    def patches(self, frames: "Iterable[Pixels]", plan: ClipPlan) -> "Pixels":
        """Return the rows of the clip, step by step, blocks together."""
        # numpy comes with the first clip.
        import numpy as np

        from smg_node.media.pixels.patches import merged_frames
        from smg_node.media.pixels.resize import resize

        steps, rows, columns = plan.grid
        made = np.empty((steps, rows * columns, plan.shape[1]), dtype=np.uint8)
        step: Pixels = np.empty((self.temporal, plan.rows, plan.columns, _CHANNELS), dtype=np.uint8)
        source: Iterator[Pixels] = iter(frames)
        for at in range(len(plan.frames)):
            inside = at % self.temporal
            step[inside] = resize(next(source), plan.columns, plan.rows, self.kernel)
            if at + 1 == len(plan.frames):
                step[inside:] = step[inside]
            elif inside + 1 < self.temporal:
                continue
            merged_frames(step, self.patch, self.merge, made[at // self.temporal])
        return made.reshape(plan.shape)

    def batch(
        self,
        plans: Sequence[ClipPlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch:
        """Return the rows of all clips behind each other; clips of any sizes and lengths go together."""
        rows = [plan.shape[0] for plan in plans]
        sides = {
            "video_grid_thw": integers([plan.grid for plan in plans]),
            "patches_per_video": counts(rows),
            **self.times(plans),
        }
        cpu = [name for name in sides if name != "patches_per_video"]
        return TensorBatch(
            modality="video",
            pixel_key="pixel_values",
            pixels=finished(patches, (sum(rows), plans[0].shape[1]), self.normalization, wanted),
            sides=sides,
            flat_keys={"pixel_values": "patches_per_video"},
            batched_keys=tuple(sides),
            cpu_keys=tuple(cpu),
            placeholder=self.placeholder,
            ranges=tuple(ranges),
        )

    def times(self, plans: Sequence[ClipPlan]) -> Mapping[str, Tensor]:
        """Return what the model is told of time beside the prompt."""
        return {}


class SteppedClips(QwenClips):
    """Qwen2-VL and Qwen2.5-VL: a bound for the pixels of each frame, and all features of a clip in one run."""

    def __init__(self, files: ClipFiles) -> None:
        super().__init__(
            files,
            area=(128 * 28 * 28, 768 * 28 * 28),
            patch=14,
            half=False,
            tokens_max=128_000,
        )

    def edges(self) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]:
        """Return where a file has the least and the most pixels of a frame."""
        return (
            (("min_pixels",), ("size", "shortest_edge")),
            (("max_pixels",), ("size", "longest_edge")),
        )

    def chosen(self, header: ClipHeader) -> list[int]:
        """Return the frames that the model sees."""
        return stepped(header.frames, header.fps, self.rate, self.temporal)

    def target(self, header: ClipHeader, frames: int) -> Size:
        """Return the size that frames are resized to, whose number only counts where a checkpoint caps them."""
        most = self.pixels_max
        if self.capped:
            most = share_of_context(
                most,
                self.pixels_min,
                frames=frames,
                temporal=self.temporal,
                factor=self.factor,
                tokens_max=self.tokens_max,
            )
        size = checked_frame(header.width, header.height)
        return within_area(size, factor=self.factor, area_min=self.pixels_min, area_max=most)

    def layout(self, plan: ClipPlan, tokens: TextTokens) -> PictureLayout:
        """Return the placeholder as often as the clip has features."""
        return PictureLayout(repeated(self.placeholder, plan.tokens))

    def times(self, plans: Sequence[ClipPlan]) -> Mapping[str, Tensor]:
        """Return the seconds between steps, which Qwen2-VL does not know yet."""
        if self.name == "qwen2_vl":
            return {}
        return {"second_per_grid_ts": singles([plan.step_s for plan in plans])}


class TimedClips(QwenClips):
    """Qwen3-VL and Qwen3.5: a bound for the pixels of all frames, and the time before the features of each step."""

    def __init__(self, files: ClipFiles) -> None:
        self.start = files.config_token("vision_start_token_id", "<|vision_start|>")
        self.end = files.config_token("vision_end_token_id", "<|vision_end|>")
        super().__init__(
            files, area=(128 * 32 * 32, 768 * 32 * 32), patch=16, half=True, tokens_max=768
        )

    def edges(self) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]:
        """Return where a file has the least and the most pixels of all frames."""
        return (("size", "shortest_edge"),), (("size", "longest_edge"),)

    def chosen(self, header: ClipHeader) -> list[int]:
        """Return the frames that the model sees."""
        return spread(header.frames, header.fps, self.rate)

    def target(self, header: ClipHeader, frames: int) -> Size:
        """Return the size that so many frames are resized to."""
        checked_frame(header.width, header.height)
        size = at_least(Size(header.width, header.height), side=self.factor)
        most = self.pixels_max
        if self.capped:
            area = self.tokens_max * self.factor**2
            most = even_share(most, self.pixels_min, frames=frames, area_max=area)
        return within_volume(
            checked_frame(size.width, size.height),
            frames=frames,
            temporal=self.temporal,
            factor=self.factor,
            volume_min=self.pixels_min,
            volume_max=most,
        )

    def layout(self, plan: ClipPlan, tokens: TextTokens) -> PictureLayout:
        """Return time, start, features and end of every step."""
        steps, rows, columns = plan.grid
        features = repeated(self.placeholder, rows * columns // self.merge**2)
        ids = array("I")
        for second in plan.seconds:
            ids.extend(tokens.token_ids(f"<{second:.1f} seconds>"))
            ids.append(self.start)
            ids += features
            ids.append(self.end)
        assert len(plan.seconds) == steps
        return PictureLayout(ids)


def _seconds(frames: Sequence[int], fps: float, temporal: int) -> tuple[float, ...]:
    """Return the time of each step: halfway between its first and its last frame."""
    assert all(one < other for one, other in pairwise(frames))
    padded = [*frames, *([frames[-1]] * (-len(frames) % temporal))]
    times = [at / fps for at in padded]
    return tuple(
        (times[at] + times[at + temporal - 1]) / 2 for at in range(0, len(times), temporal)
    )
