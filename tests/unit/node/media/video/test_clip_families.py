"""Video processors of checkpoints: where their numbers come from, what is refused, and their tensors."""

import json
from typing import Any

import numpy as np
import pytest

from smg_node.core.errors import SmgError
from smg_node.engines.contracts.media.item_cuts import items_of, whole_numbers
from smg_node.media.engine_media import MediaRange
from smg_node.media.families.checkpoint.processor_files import ProcessorValue
from smg_node.media.family import FinishedFor
from smg_node.media.video.clip import ClipHeader
from smg_node.media.video.qwen_clips import QwenClips
from smg_node.media.video.video_registry import CLIP_FAMILIES, UnknownClips, clip_family_of
from support.media.checkpoints import Vocabulary

TOKENS = {"<|video_pad|>": 90, "<|vision_start|>": 91, "<|vision_end|>": 92}


def made(
    model_type: str, overrides: dict[str, object] | None = None, **files: Any
) -> QwenClips | UnknownClips:
    """Return what the registry makes of some files, named without their ending."""
    documents = {"config": {"model_type": model_type, "video_token_id": 90}, **files}
    found = clip_family_of(
        {f"{name}.json": json.dumps(value).encode() for name, value in documents.items()},
        overrides=overrides or {},
        tokens=Vocabulary(TOKENS),
    )
    assert isinstance(found, QwenClips | UnknownClips)
    return found


def known(model_type: str, overrides: dict[str, object] | None = None, **files: Any) -> QwenClips:
    found = made(model_type, overrides, **files)
    assert isinstance(found, QwenClips), found
    return found


def value(family: QwenClips, name: str) -> ProcessorValue:
    return next(each for each in family.values if each.name == name)


def clip(width: int, height: int, frames: int = 50, fps: float = 25.0) -> ClipHeader:
    return ClipHeader(width, height, frames, fps, "mp4", "h264")


def test_one_file_has_all_numbers_the_nested_one_first() -> None:
    own = {"size": {"shortest_edge": 4096, "longest_edge": 400_000}}
    old = {"size": {"shortest_edge": 65_536, "longest_edge": 500_000}, "fps": 1}
    nested = {"video_processor": {"size": {"shortest_edge": 4096, "longest_edge": 300_000}}}
    all_three: dict[str, Any] = {
        "processor_config": nested,
        "video_preprocessor_config": own,
        "preprocessor_config": old,
    }
    family = known("qwen3_vl", **all_three)
    assert value(family, "max_pixels")[1:] == (300_000, "processor_config.json")
    # What the file that counts does not say is the default, never that of another file.
    assert value(family, "fps")[1:] == (2.0, "family default")
    del all_three["processor_config"]
    family = known("qwen3_vl", **all_three)
    assert value(family, "max_pixels")[1:] == (400_000, "video_preprocessor_config.json")
    del all_three["video_preprocessor_config"]
    family = known("qwen3_vl", **all_three)
    assert value(family, "max_pixels")[1:] == (500_000, "preprocessor_config.json")
    assert value(family, "fps")[1:] == (1.0, "preprocessor_config.json")


def test_operators_write_video_processor_and_pictures_numbers_are_not_taken_for_clips() -> None:
    overrides: dict[str, object] = {"max_pixels": 5000, "video_processor": {"max_frames": 8}}
    family = known("qwen2_5_vl", overrides)
    assert value(family, "max_frames")[1:] == (8, "models.media.processor")
    assert value(family, "max_pixels")[1:] == (768 * 28 * 28, "family default")
    assert len(family.plan(clip(64, 64, 500)).frames) == 8


def test_other_numbers_are_another_fingerprint() -> None:
    one, other = known("qwen3_vl"), known("qwen3_vl", {"video_processor": {"fps": 1}})
    assert one.fingerprint == known("qwen3_vl").fingerprint
    assert len({one.fingerprint, other.fingerprint, known("qwen3_5").fingerprint}) == 3


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ({"num_frames": 32}, "num_frames"),
        ({"fps": 0}, "fps"),
        ({"fps": "two"}, "fps"),
        ({"fps": 1e9}, "fps"),
        ({"max_frames": 0}, "max_frames"),
        ({"do_resize": False}, "do_resize"),
        ({"size": {"shortest_edge": 100, "longest_edge": 50}}, "min_pixels"),
        ({"resample": 0}, "resample"),
    ],
)
def test_odd_numbers_make_no_family_and_say_which(numbers: dict[str, Any], why: str) -> None:
    for model_type in ("qwen2_5_vl", "qwen3_vl"):
        found = made(model_type, video_preprocessor_config=numbers)
        assert isinstance(found, UnknownClips)
        assert why in found.reason


def test_other_models_are_not_known() -> None:
    found = made("internvl")
    assert isinstance(found, UnknownClips)
    assert "internvl" in found.reason


@pytest.mark.parametrize("model_type", CLIP_FAMILIES)
def test_needles_and_single_frames_are_refused(model_type: str) -> None:
    family = known(model_type)
    for header in (clip(10_000, 20), clip(0, 20), clip(20, 20, 1), clip(20, 20, 0)):
        with pytest.raises(SmgError) as refusal:
            family.plan(header)
        assert refusal.value.code == "invalid_video"


def test_several_clips_are_one_batch_cut_by_their_grids() -> None:
    family = known("qwen2_5_vl")
    plans = [family.plan(clip(64, 64, 50)), family.plan(clip(120, 90, 90, 30.0))]
    rows = [np.full(plan.shape, at, dtype=np.uint8) for at, plan in enumerate(plans, start=1)]
    ranges = [MediaRange(0, plan.tokens, plan.tokens, "a" * 64, "v") for plan in plans]
    batch = family.batch(plans, rows, ranges, FinishedFor("float32", device_normalizes=True))
    assert batch.modality == "video"
    assert batch.placeholder == 90
    assert set(batch.sides) == {"video_grid_thw", "patches_per_video", "second_per_grid_ts"}
    for at, item in enumerate(items_of(batch)):
        assert item.pixels.shape == plans[at].shape
        assert set(b"".join(item.pixels.pieces)) == {at + 1}
        assert list(whole_numbers(item.sides["video_grid_thw"])) == list(plans[at].grid)
        seconds = np.frombuffer(b"".join(item.sides["second_per_grid_ts"].pieces), "<f4")
        assert seconds.tolist() == [np.float32(plans[at].step_s)]
    assert "second_per_grid_ts" not in known("qwen2_vl").times(plans)
    assert not known("qwen3_vl").times(plans)
