"""What a picture costs from its bytes to its tensor, in time of the processor; pytest's `-s` shows the table.

Budgets are ratios to what the same machine takes for something else at the same time, the least of several tries each.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Final

import numpy as np
import pytest
from PIL import Image

from smg_node.media.engine_media import WIDTHS, Dtype
from smg_node.media.family import PicturePlan
from smg_node.media.pixels.arena import Arenas, owned
from smg_node.media.pixels.decode import DecodeLimits, decode, read_header
from smg_node.media.pixels.identity import picture_digest
from smg_node.media.pixels.kernels import VECTORS
from smg_node.media.pixels.patch_cache import PatchCache
from smg_node.media.pixels.patches import finish, merged_patches
from smg_node.media.pixels.resize import resize

LIMITS: Final = DecodeLimits(pixels_max=40_000_000)
HALF: Final = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), 1 / 255)
DTYPES: Final[tuple[Dtype, ...]] = ("uint8", "bfloat16", "float32")
PATCH: Final = 16
HIT_SHARE_MAX: Final = 0.25
"""Most of the first time that the same picture may cost again."""
PILLOW_SHARE_MAX: Final = 0.6
"""Most of Pillow's time that resizing may take where the wide loops run: it took a third when they were written."""
TRIES: Final = 7


@dataclass(frozen=True)
class Case:
    """A picture and the size that Qwen3-VL's rule gives it, whole or capped at a million pixels."""

    width: int
    height: int
    columns: int
    rows: int

    @property
    def name(self) -> str:
        return f"{self.width}x{self.height} to {self.columns}x{self.rows}"

    def jpeg(self) -> bytes:
        """Return something like a photograph: soft shapes with fine noise."""
        rng = np.random.default_rng(5)
        shapes = rng.integers(
            0, 256, (self.height // 24 + 2, self.width // 24 + 2, 3), dtype=np.uint8
        )
        soft = Image.fromarray(shapes).resize((self.width, self.height), Image.Resampling.BICUBIC)
        grain = rng.integers(-7, 8, (self.height, self.width, 1))
        file = BytesIO()
        pixels = np.clip(np.asarray(soft).astype(np.int16) + grain, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(file, "JPEG", quality=85)
        return file.getvalue()


CASES: Final = (
    Case(640, 480, 640, 480),
    Case(1920, 1080, 1920, 1088),
    Case(1920, 1080, 1344, 736),
    Case(4032, 3024, 1152, 864),
)


def cpu_ms(work: Callable[[], object]) -> float:
    """Return the least time of this thread's processor over several tries."""
    found = []
    for _ in range(TRIES):
        started = time.thread_time()
        work()
        found.append(time.thread_time() - started)
    return min(found) * 1000


class Path:
    """The way of one picture, as the node goes it."""

    def __init__(self, case: Case) -> None:
        self.case, self.data = case, case.jpeg()
        self.arenas, self.cache = Arenas(), PatchCache(256 << 20)
        self.plan = PicturePlan(
            width=case.width,
            height=case.height,
            columns=case.columns,
            rows=case.rows,
            tokens=1,
            shape=(1, 1),
            grid=(1, 1, 1),
        )

    def patches(self) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        with self.arenas.working(0.0):
            header = read_header(self.data, LIMITS, None)
            pixels = decode(self.data, header, None).pixels
            resized = resize(pixels, self.case.columns, self.case.rows, "bicubic")
            return owned(merged_patches(resized, PATCH, 2, 2))

    def fresh(self) -> None:
        digest = picture_digest(self.data, fingerprint="f")
        self.cache.put(digest, self.plan, self.patches())

    def again(self) -> None:
        assert self.cache.get(picture_digest(self.data, fingerprint="f")) is not None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_picture_again_costs_a_quarter_at_most(case: Case) -> None:
    path = Path(case)
    first = cpu_ms(path.fresh)
    again = cpu_ms(path.again)
    made = path.patches()
    row = [
        f"{case.name}, {len(path.data) // 1000} kB",
        f"patches {first:.1f} ms, again {again:.2f}",
    ]
    for dtype in DTYPES:
        # Into its place in a message, which is there.
        place = memoryview(bytearray(made.size * WIDTHS[dtype]))
        row.append(f"{dtype} {cpu_ms(partial(finish, made, *HALF, dtype, out=place)):.1f}")
    sys.stdout.write(f"\n{', '.join(row)}\n")
    assert again <= HIT_SHARE_MAX * first


@pytest.mark.parametrize("case", [CASES[2], CASES[3]], ids=lambda case: case.name)
def test_resizing_costs_less_than_pillows(case: Case) -> None:
    image = Image.open(BytesIO(case.jpeg()))
    pixels = np.asarray(image)
    size = (case.columns, case.rows)
    arenas = Arenas()

    def ours() -> None:
        with arenas.working(0.0):
            resize(pixels, *size, "bicubic")

    own = cpu_ms(ours)
    pillow = cpu_ms(lambda: image.resize(size, Image.Resampling.BICUBIC))
    sys.stdout.write(f"\n{case.name}: {own:.1f} ms, Pillow {pillow:.1f}\n")
    assert own <= (PILLOW_SHARE_MAX if VECTORS else 4) * pillow
