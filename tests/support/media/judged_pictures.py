"""Pictures given to the published image processors, in the environment that `make pictures` makes."""

import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from support.house.tree import ROOT
from support.media.checkpoints import CHECKPOINTS
from support.media.tiled_checkpoints import OCR_CHECKPOINTS

PYTHON: Final = ROOT / ".cache" / "pictures" / "bin" / "python"
PROGRAM: Final = Path(__file__).parent / "programs" / "picture_judge.py"
KIMI: Final = {
    "patch_size": 14,
    "merge_size": 2,
    "max_patches": 16384,
    "size": {"max_height": 512, "max_width": 512},
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}
"""What transformers' own form of Kimi's processor calls the numbers of its checkpoint."""
INTERNVL_CHAT: Final = (
    "min_dynamic_patch",
    "max_dynamic_patch",
    "dynamic_image_size",
    "use_thumbnail",
)
DEEPSEEK: Final = ("deepseek_vl2", "deepseek_ocr", "deepseek_ocr2")
_LEFT_OUT: Final = ("image_processor_type", "aspect_ratio_setting")
_RATIO: Final = 60


class NotInstalledError(Exception):
    """The environment of the judges is missing."""


def numbers(name: str) -> dict[str, Any]:
    """Return what a published processor is made with."""
    if name == "kimi_k25":
        return dict(KIMI)
    files = {**CHECKPOINTS, **OCR_CHECKPOINTS}[name]
    if name in DEEPSEEK:
        return dict(files["processor_config.json"])
    if name == "internvl_chat":
        config = files["config.json"]
        told = {key: config[key] for key in INTERNVL_CHAT}
        return {**told, "image_size": config["vision_config"]["image_size"]}
    processor = files.get("processor_config.json", {}).get("image_processor", {})
    told = {**processor, **files.get("preprocessor_config.json", {})}
    if name == "mistral3":
        # PixtralProcessor hands on the merged patch, whatever the file says.
        told["patch_size"] = {"height": 28, "width": 28}
    return {key: value for key, value in told.items() if key not in _LEFT_OUT}


def sizes(count: int, seed: int) -> list[tuple[int, int]]:
    """Return random widths and heights, of as many small ones as large ones."""
    rng = random.Random(seed)
    found: list[tuple[int, int]] = []
    while len(found) < count:
        width, height = (int(2 ** rng.uniform(3, 10.3)) for _ in range(2))
        if max(width, height) / min(width, height) < _RATIO:
            found.append((width, height))
    return found


def judged(
    name: str, pictures: Sequence[tuple[int, int]], folder: Path, *, values: int
) -> list[dict[str, Any]]:
    """Return what the published processor makes of pictures; seeds of their patterns are their places in the list."""
    if not PYTHON.exists():
        raise NotInstalledError(f"{PYTHON} is missing: run `make pictures`")
    case = {
        "family": name,
        "processor": numbers(name),
        "pictures": [[*size, seed] for seed, size in enumerate(pictures)],
        "values": values,
    }
    told = subprocess.run(
        [str(PYTHON), str(PROGRAM), str(folder)],
        input=json.dumps([case]),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found: dict[str, list[dict[str, Any]]] = json.loads(told[told.index("{") :])
    return found[name]
