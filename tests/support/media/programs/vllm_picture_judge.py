"""vLLM's own way from files to tensors, as the judge of odd pictures.

Run by the interpreter of an engine's environment: `python vllm_picture_judge.py FOLDER`. Each file is loaded as vLLM
loads what a client sends, and becomes what the image processor of Qwen3-VL makes of it. Writes a JSON object: of each
file its grid and the SHA-256 of its values as float32, or `refused`.
"""

import hashlib
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
from vllm.multimodal.media.image import ImageMediaIO

NUMBERS: dict[str, Any] = {
    "size": {"shortest_edge": 65_536, "longest_edge": 16_777_216},
    "patch_size": 16,
    "merge_size": 2,
    "temporal_patch_size": 2,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}


def main(folder: Path) -> None:
    """Judge all files of a folder."""
    load, process = ImageMediaIO(), Qwen2VLImageProcessor(**NUMBERS)
    found: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        try:
            image = load.load_bytes(path.read_bytes()).media
        except (ValueError, OSError, SyntaxError):
            found[path.name] = "refused"
            continue
        made = process(images=[image], return_tensors="pt")
        grid = "x".join(str(int(side)) for side in made["image_grid_thw"][0])
        values = made["pixel_values"].contiguous().numpy().astype("<f4").tobytes()
        found[path.name] = f"{grid} {hashlib.sha256(values).hexdigest()}"
    names = ("vllm", "transformers", "torchvision", "torch", "pillow")
    made_by = ", ".join(f"{name} {version(name)}" for name in names)
    sys.stdout.write(json.dumps({"made by": made_by, "pictures": found}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
