"""Drawn clips: frames whose every level follows from their size, number and seed, and checkpoints that see them."""

import json
import random
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
JUDGED: Final = Path(__file__).with_name("judged_clips.json")
PLACES: Final = 40
STEPS_DIGEST: Final = "c074d8c63ae025ff8dc90aa5d9bd31a4c9534cb832dd127994320c1737e82144"
"""What `programs/clip_judge.py` prints of `step_cases`."""
_HALF: Final = [0.5, 0.5, 0.5]
_CLIP: Final = [[0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]]

PROCESSORS: Final[Mapping[str, Mapping[str, Any]]] = {
    # Qwen/Qwen2-VL-7B-Instruct and Qwen/Qwen2.5-VL-7B-Instruct have one file for pictures and clips.
    "qwen2_vl": {"min_pixels": 3136, "max_pixels": 12845056},
    "qwen2_5_vl": {"min_pixels": 3136, "max_pixels": 12845056},
    # Without bounds in its file: those of the class.
    "qwen2_5_vl defaults": {"fps": 2.0},
    "qwen2_5_vl capped": {"fps": 2.0, "cap_pixels_per_frame": True, "max_video_tokens": 900},
    # Qwen/Qwen3-VL-8B-Instruct, video_preprocessor_config.json
    "qwen3_vl": {
        "size": {"longest_edge": 25165824, "shortest_edge": 4096},
        "patch_size": 16,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": _HALF,
        "image_std": _HALF,
    },
    "qwen3_vl defaults": {},
    "qwen3_vl capped": {"cap_pixels_per_frame": True, "max_video_tokens": 60},
}
"""Numbers of video processors, by model_type and what is odd about them."""


def numbers(name: str) -> dict[str, Any]:
    """Return what a published processor is made with."""
    told = dict(PROCESSORS[name])
    if name.startswith("qwen2"):
        told = {"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2, **told}
        told |= {"image_mean": _CLIP[0], "image_std": _CLIP[1]}
    return told


def files(name: str) -> dict[str, bytes]:
    """Return the files of a checkpoint, as a bundle has them."""
    config = {"model_type": name.split()[0], "vision_config": {}}
    place = "video_preprocessor_config.json" if "3" in name else "preprocessor_config.json"
    return {
        "config.json": json.dumps(config).encode(),
        place: json.dumps(numbers(name)).encode(),
    }


def lengths(name: str) -> list[tuple[int, int, int, float]]:
    """Return random frames, width, height and frames a second: short and long clips, small and large frames."""
    rng = random.Random(name)
    found: list[tuple[int, int, int, float]] = []
    rates = (30.0, 25.0, 24.0, 29.97, 30000 / 1001, 24000 / 1001, 12.5, 60.0, 5.0, 1.0)
    while len(found) < PLACES:
        frames = int(2 ** rng.uniform(1, 8.5))
        width, height = (int(2 ** rng.uniform(3.5, 8.7)) for _ in range(2))
        found.append((frames, width, height, rng.choice(rates)))
    return found


def step_cases() -> list[tuple[int, int]]:
    """Return random lengths of clips, and how many of their frames are seen."""
    rng = random.Random("steps")
    totals = [rng.randint(4, 200_000) for _ in range(5000)]
    return [(total, rng.randint(2, min(total, 768) // 2) * 2) for total in totals]


def frame(width: int, height: int, number: int, seed: int) -> Pixels:
    """Return one frame: waves with noise and hard edges, other ones in each frame."""
    size = width * height * 3
    block = np.frombuffer(sha256(f"{seed} {number}".encode()).digest(), dtype=np.uint8)
    noise = np.resize(block, size).reshape(height, width, 3)
    y, x = np.mgrid[0:height, 0:width]
    ramp = (x * 3 + y * 5 + number * 11 + seed) % 256
    waves = np.stack([ramp, 255 - ramp, ramp // 2], axis=2)
    edges = np.where((x // 5 + y // 3 + number) % 4 == 0, 90, 0)[:, :, None]
    return (waves + noise // 16 + edges).astype(np.uint8)


def frames(width: int, height: int, numbers: Sequence[int], seed: int) -> list[Pixels]:
    """Return some frames of a clip."""
    return [frame(width, height, number, seed) for number in numbers]
