"""Vectors of resizing, normalising and patches, whose results by torchvision and transformers are kept as digests.

`python tests/support/media/resize_vectors.py` writes the digests anew, in an environment with torch, torchvision,
transformers and Pillow (2.13.0, 0.28.0, 5.24.0 and 13.0.0 made those that are here; torchvision's own build is for CUDA, and on another machine it works for
this with an empty `torchvision/_meta_registrations.py`). The pixels come from SHA-256, so that no library's random
numbers are in them.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
DIGESTS: Final = Path(__file__).with_name("judges_digests.json")


class ResizeVector(NamedTuple):
    """One picture and the size that it gets."""

    width: int
    height: int
    columns: int
    rows: int
    kernel: str
    kind: str

    @property
    def name(self) -> str:
        return f"{self.kind} {self.width}x{self.height} {self.kernel} {self.columns}x{self.rows}"

    def pixels(self) -> Pixels:
        """Return the picture: noise, black and white noise, or slow waves with edges."""
        size = self.width * self.height * 3
        blocks = (sha256(f"{self.name} {at}".encode()).digest() for at in range(-(-size // 32)))
        noise = np.frombuffer(b"".join(blocks)[:size], dtype=np.uint8)
        noise = noise.reshape(self.height, self.width, 3)
        if self.kind == "edges":
            return np.where(noise > 127, 255, 0).astype(np.uint8)
        if self.kind == "waves":
            y, x = np.mgrid[0 : self.height, 0 : self.width]
            ramp = (x * 3 + y * 5) % 256
            return (np.stack([ramp, 255 - ramp, ramp // 2], axis=2) + noise // 32).astype(np.uint8)
        return noise


VECTORS: Final = tuple(
    ResizeVector(width, height, columns, rows, kernel, kind)
    for width, height, columns, rows, kernel, kind in (
        (640, 480, 616, 476, "bicubic", "waves"),
        (640, 480, 640, 480, "bicubic", "noise"),
        (640, 480, 640, 476, "bicubic", "noise"),
        (640, 480, 616, 480, "bilinear", "noise"),
        (333, 251, 320, 256, "bicubic", "edges"),
        (251, 333, 252, 336, "bicubic", "noise"),
        (100, 1000, 112, 1008, "bicubic", "edges"),
        (1000, 100, 336, 336, "bilinear", "edges"),
        (1920, 108, 1316, 84, "bicubic", "waves"),
        (32, 32, 256, 256, "bicubic", "edges"),
        (1, 1, 28, 28, "bicubic", "noise"),
        (1, 200, 28, 56, "bilinear", "noise"),
        (200, 1, 56, 28, "bicubic", "edges"),
        (3, 5, 336, 336, "bicubic", "edges"),
        (500, 500, 2, 3, "bicubic", "noise"),
        (500, 500, 2, 1, "bilinear", "edges"),
        (2017, 53, 448, 448, "bicubic", "edges"),
        (53, 2017, 896, 896, "bilinear", "noise"),
        (777, 333, 1540, 868, "bicubic", "waves"),
        (1023, 767, 1024, 768, "bilinear", "waves"),
        (333, 251, 1456, 1092, "lanczos", "noise"),
        (640, 480, 384, 384, "lanczos", "edges"),
        (500, 500, 2, 3, "lanczos", "noise"),
        (1, 3, 364, 364, "lanczos", "edges"),
    )
)
PILLOWED: Final = tuple(
    ResizeVector(width, height, columns, rows, kernel, kind)
    for width, height, columns, rows, kernel, kind in (
        (640, 480, 1792, 1344, "bicubic", "waves"),
        (120, 900, 448, 448, "bicubic", "edges"),
        (900, 120, 448, 448, "bicubic", "edges"),
        # Twice as many rows are lost as columns, and then one more.
        (300, 500, 200, 300, "bicubic", "noise"),
        (300, 501, 200, 300, "bicubic", "noise"),
        (200, 300, 200, 100, "bilinear", "noise"),
        (100, 300, 101, 299, "lanczos", "noise"),
        (1, 200, 28, 56, "bilinear", "noise"),
    )
)
"""Pictures that Pillow 13 resizes: tall ones begin with their rows."""
NORMALISED: Final = {
    "clip": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}
"""Means and deviations of processors; the pixels are the first vector's."""


PATCHED: Final = {"qwen 14": VECTORS[5], "qwen 16": VECTORS[18]}
"""Pictures that Qwen's processor makes patches of, by the side of its patches."""
PIXELS_MIN, PIXELS_MAX = 65536, 250_000


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def made_by_torchvision() -> dict[str, str]:
    """Return the digest of every vector's result, as torchvision makes it."""
    # In the judge's environment only.
    import torch
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.v2 import functional

    found = {}
    for vector in VECTORS:
        planes = torch.from_numpy(vector.pixels()).permute(2, 0, 1).contiguous()
        resized = functional.resize(
            planes,
            [vector.rows, vector.columns],
            interpolation=InterpolationMode(vector.kernel),
            antialias=True,
        )
        found[vector.name] = digest(resized.permute(1, 2, 0).contiguous().numpy().tobytes())
    planes = torch.from_numpy(VECTORS[0].pixels()).permute(2, 0, 1).contiguous()
    for name, (mean, std) in NORMALISED.items():
        # The order of transformers' processors: the factor 1/255 goes into mean and deviation.
        wide_mean, wide_std = (torch.tensor(one) * (1.0 / (1 / 255)) for one in (mean, std))
        values = functional.normalize(planes.to(torch.float32), wide_mean, wide_std)
        for kind in ("float32", "bfloat16", "float16"):
            cast = values.to(getattr(torch, kind)).contiguous().view(torch.uint8)
            found[f"{name} {kind}"] = digest(cast.numpy().tobytes())
        # The order of torchvision's own transforms, which models with code of their own use.
        apart = functional.normalize(planes.to(torch.float32).div(255), list(mean), list(std))
        found[f"{name} stepwise"] = digest(apart.contiguous().numpy().tobytes())
    return found


def made_by_pillow() -> dict[str, str]:
    """Return the digests of pictures that Pillow 13 resizes at once."""
    from PIL import Image

    found = {}
    for vector in PILLOWED:
        kernel = Image.Resampling[vector.kernel.upper()]
        made = Image.fromarray(vector.pixels()).resize((vector.columns, vector.rows), kernel)
        found[f"pillow {vector.name}"] = digest(made.tobytes())
    return found


def made_by_transformers() -> dict[str, str]:
    """Return the digests of whole pictures, as the processor of Qwen2-VL makes them: sizes, values and order."""
    # In the judge's environment only.
    from PIL import Image
    from transformers import Qwen2VLImageProcessor

    found = {}
    for name, vector in PATCHED.items():
        mean, std = NORMALISED["clip"]
        processor = Qwen2VLImageProcessor(
            patch_size=int(name.split()[1]),
            merge_size=2,
            temporal_patch_size=2,
            min_pixels=PIXELS_MIN,
            max_pixels=PIXELS_MAX,
            image_mean=list(mean),
            image_std=list(std),
        )
        made = processor(images=[Image.fromarray(vector.pixels())], return_tensors="pt")
        grid = "x".join(str(side) for side in made["image_grid_thw"][0].tolist())
        found[name] = f"{grid} {digest(made['pixel_values'].contiguous().numpy().tobytes())}"
    return found


if __name__ == "__main__":
    MADE = {**made_by_torchvision(), **made_by_pillow(), **made_by_transformers()}
    DIGESTS.write_text(json.dumps(MADE, indent=1, sort_keys=True) + "\n")
