"""Writes what the published video processors make of drawn clips, and the prompts of the published processors.

Run with the folder of tests on the path, by an interpreter with torch, torchvision and transformers (2.13.0, 0.28.0
and 5.24.0 made what is there): `PYTHONPATH=tests python tests/support/media/programs/clip_judge.py`. A row is frames,
width, height and frames a second of a clip; the frames that are seen, as a digest; grid; digest of the values in
float32; number and digest of the prompt's ids; seconds between steps. null from the grid on where it was refused.
"""

import hashlib
import json
import sys
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import AddedToken
from transformers.models.qwen2_5_vl.processing_qwen2_5_vl import Qwen2_5_VLProcessor
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
from transformers.models.qwen2_vl.processing_qwen2_vl import Qwen2VLProcessor
from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor
from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor
from transformers.video_utils import VideoMetadata

from support.media.drawn_clips import JUDGED, PROCESSORS, frames, lengths, numbers, step_cases
from support.models.tiny_tokenizer import trained_tokenizer

VISION = ("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>")
PROMPT = "a<|vision_start|><|video_pad|><|vision_end|>b"
CLASSES = {
    "qwen2_vl": (Qwen2VLProcessor, Qwen2VLVideoProcessor),
    "qwen2_5_vl": (Qwen2_5_VLProcessor, Qwen2VLVideoProcessor),
    "qwen3_vl": (Qwen3VLProcessor, Qwen3VLVideoProcessor),
}


def digest(data: bytes) -> str:
    """Return enough of a digest to tell."""
    return hashlib.sha256(data).hexdigest()[:24]


def main() -> None:
    """Write the rows of all checkpoints."""
    tokenizer = trained_tokenizer()
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in VISION]
    )
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    rows = {
        name: [row(name, seed, fast) for seed in range(len(lengths(name)))] for name in PROCESSORS
    }
    lines = [
        f" {json.dumps(name)}: [\n  " + ",\n  ".join(json.dumps(each) for each in found) + "\n ]"
        for name, found in rows.items()
    ]
    sys.stdout.write(f"steps {steps()}\n")
    JUDGED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def steps() -> str:
    """Return the digest of the frames of many clips, as Qwen2-VL's rule has them."""
    found = hashlib.sha256()
    for total, count in step_cases():
        chosen = torch.arange(0, total, total / count).int().clamp(max=total - 1)
        found.update(chosen.unique().numpy().astype("<i4").tobytes())
    return found.hexdigest()


def row(name: str, seed: int, fast: Any) -> list[Any]:
    """Return the row of one clip."""
    total, width, height, fps = lengths(name)[seed]
    kinds = CLASSES[name.split()[0]]
    video = kinds[1](**numbers(name))
    processor = kinds[0](Qwen2VLImageProcessor(), fast, video)
    about = VideoMetadata(total_num_frames=total, fps=fps, width=width, height=height)
    chosen = video.sample_frames(about, fps=numbers(name).get("fps", 2.0))
    # The engines' loaders leave out what their rule names twice, and clamp what it names behind the end.
    about.frames_indices = sorted({min(int(at), total - 1) for at in chosen})
    told: list[Any] = [total, width, height, fps, digest(json.dumps(about.frames_indices).encode())]
    clip = torch.from_numpy(
        np.stack(frames(width, height, about.frames_indices, seed)).transpose(0, 3, 1, 2).copy()
    )
    try:
        out = processor(
            text=[PROMPT], videos=[clip], video_metadata=[about], do_sample_frames=False
        )
    except ValueError:
        return [*told, None]
    values = np.ascontiguousarray(np.asarray(out["pixel_values_videos"], dtype=np.float32))
    ids = np.asarray(out["input_ids"][0], dtype=np.uint32)
    seconds = out.get("second_per_grid_ts")
    grid = [int(each) for each in np.asarray(out["video_grid_thw"])[0]]
    told += [grid, digest(values.tobytes()), len(ids), digest(ids.tobytes())]
    return [*told, None if seconds is None else float(seconds[0])]


if __name__ == "__main__":
    main()
