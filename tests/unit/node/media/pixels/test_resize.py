"""Resizing is what torchvision does, to the bit."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from smg_node.media.pixels.filter_weights import Kernel, axis_weights
from smg_node.media.pixels.kernels import KERNELS
from smg_node.media.pixels.resize import resize as resize_here
from smg_node.media.pixels.resize import resize_by_numpy, resize_by_pillow

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
Resize = Callable[[Pixels, int, int, Kernel], Pixels]
EXACT: list[Resize] = [resize_by_numpy] if KERNELS is None else [resize_by_numpy, resize_here]


def noise(height: int, width: int, seed: int = 1) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def filtered(x: float, kernel: Kernel) -> float:
    x = abs(x)
    if kernel == "bilinear":
        return max(1 - x, 0.0)
    if kernel == "lanczos":
        whole = math.pi * x
        parts = whole and 3 * math.sin(whole) * math.sin(whole / 3) / (whole * whole)
        return (parts if whole else 1.0) if x < 3 else 0.0
    if x < 1:
        return ((-0.5 + 2) * x - (-0.5 + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * -0.5 if x < 2 else 0.0


def line(samples: list[int], outputs: int, kernel: Kernel) -> list[int]:
    """Return a line of one channel, resampled in the plainest way."""
    scale = len(samples) / outputs
    stretch = max(scale, 1.0)
    support = stretch * (2 if kernel == "bicubic" else 1)
    rows = []
    for place in range(outputs):
        centre = (place + 0.5) * scale
        low = max(int(centre - support + 0.5), 0)
        high = min(int(centre + support + 0.5), len(samples))
        weights = [filtered((j - centre + 0.5) * (1 / stretch), kernel) for j in range(low, high)]
        total = 0.0
        for weight in weights:
            total += weight
        rows.append((low, [weight / total for weight in weights]))
    largest = max(max(weights) for _, weights in rows)
    bits = 0
    while bits < 22 and int(0.5 + largest * 2 ** (bits + 1)) < 2**15:
        bits += 1
    made = []
    for low, weights in rows:
        whole = [int(math.copysign(abs(w) * 2**bits + 0.5, w)) for w in weights]
        total_of = sum(w * samples[low + k] for k, w in enumerate(whole))
        made.append(min(max((total_of + (1 << bits >> 1)) >> bits, 0), 255))
    return made


@pytest.fixture(params=EXACT, ids=lambda resize: resize.__name__)
def resize(request: pytest.FixtureRequest) -> Resize:
    """Each form that is exact on this machine."""
    found: Resize = request.param
    return found


@pytest.mark.parametrize("exact", EXACT, ids=lambda resize: resize.__name__)
@given(
    some.sampled_from(["bicubic", "bilinear"]),
    some.lists(some.integers(0, 255), min_size=1, max_size=60),
    some.integers(min_value=1, max_value=60),
)
@settings(max_examples=60, deadline=None)
def test_both_passes_are_the_plain_formula(
    exact: Resize, kernel: Kernel, samples: list[int], outputs: int
) -> None:
    expected = line(samples, outputs, kernel)
    wide = np.repeat(np.array(samples, dtype=np.uint8)[None, :, None], 3, axis=2)
    assert exact(wide, outputs, 1, kernel)[0, :, 1].tolist() == expected
    tall = np.ascontiguousarray(wide.transpose(1, 0, 2))
    assert exact(tall, 1, outputs, kernel)[:, 0, 2].tolist() == expected


def test_the_horizontal_pass_is_first_and_rounds_to_levels_in_between(resize: Resize) -> None:
    pixels = noise(31, 47)
    both = resize(pixels, 20, 50, "bicubic")
    assert np.array_equal(both, resize(resize(pixels, 20, 31, "bicubic"), 20, 50, "bicubic"))
    other = resize(resize(pixels, 47, 50, "bicubic"), 20, 50, "bicubic")
    assert not np.array_equal(both, other)


def test_an_axis_that_keeps_its_size_is_left_alone(resize: Resize) -> None:
    pixels = noise(20, 30)
    assert resize(pixels, 30, 20, "bicubic") is pixels
    tall, column = resize(pixels, 30, 40, "bilinear"), resize(pixels[:, 3:4], 1, 40, "bilinear")
    assert np.array_equal(tall[:, 3], column[:, 0])


def test_a_picture_that_is_not_contiguous_is_resized_the_same(resize: Resize) -> None:
    pixels = noise(40, 60)
    view = pixels[::2, ::-1]
    assert np.array_equal(resize(view, 17, 13, "bicubic"), resize(view.copy(), 17, 13, "bicubic"))


def test_pillow_pass_by_pass_is_two_levels_away_at_most() -> None:
    rng = np.random.default_rng(6)
    for at in range(80):
        height, width, rows, columns = (int(side) for side in rng.integers(1, 200, 4))
        kernel: Kernel = "bicubic" if at % 2 else "bilinear"
        pixels = noise(height, width, at)
        made = resize_by_pillow(pixels, columns, rows, kernel)
        exact = resize_by_numpy(pixels, columns, rows, kernel)
        assert made.shape == exact.shape
        assert np.abs(made.astype(int) - exact).max() <= 2
    pixels = noise(5, 6)
    assert resize_by_pillow(pixels, 6, 5, "bicubic") is pixels


def test_weights_of_a_sample_are_together_one() -> None:
    for samples, outputs in [(640, 616), (100, 1000), (4032, 1064), (1, 7), (7, 1)]:
        axis = axis_weights(samples, outputs, "bicubic")
        total = axis.weights.astype(int).sum(axis=1) / 2**axis.precision
        assert np.abs(total - 1).max() < 2e-3
        assert (axis.starts >= 0).all()
        assert (axis.starts + axis.counts <= samples).all()
