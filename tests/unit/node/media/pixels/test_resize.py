"""Resizing is what torchvision does, to the bit."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from smg_node.media.pixels.filter_weights import Kernel, axis_weights
from smg_node.media.pixels.resize import resize

Pixels = np.ndarray[Any, np.dtype[np.uint8]]


def noise(height: int, width: int, seed: int = 1) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def filtered(x: float, kernel: Kernel) -> float:
    x = abs(x)
    if kernel == "bilinear":
        return max(1 - x, 0.0)
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


@pytest.mark.parametrize("kernel", ["bicubic", "bilinear"])
@given(
    some.lists(some.integers(0, 255), min_size=1, max_size=60),
    some.integers(min_value=1, max_value=60),
)
@settings(max_examples=60, deadline=None)
def test_both_passes_are_the_plain_formula(
    kernel: Kernel, samples: list[int], outputs: int
) -> None:
    expected = line(samples, outputs, kernel)
    wide = np.repeat(np.array(samples, dtype=np.uint8)[None, :, None], 3, axis=2)
    assert resize(wide, outputs, 1, kernel)[0, :, 1].tolist() == expected
    tall = np.ascontiguousarray(wide.transpose(1, 0, 2))
    assert resize(tall, 1, outputs, kernel)[:, 0, 2].tolist() == expected


def test_the_horizontal_pass_is_first_and_rounds_to_levels_in_between() -> None:
    pixels = noise(31, 47)
    both = resize(pixels, 20, 50, "bicubic")
    assert np.array_equal(both, resize(resize(pixels, 20, 31, "bicubic"), 20, 50, "bicubic"))
    other = resize(resize(pixels, 47, 50, "bicubic"), 20, 50, "bicubic")
    assert not np.array_equal(both, other)


def test_an_axis_that_keeps_its_size_is_left_alone() -> None:
    pixels = noise(20, 30)
    assert resize(pixels, 30, 20, "bicubic") is pixels
    assert np.array_equal(
        resize(pixels, 30, 40, "bilinear")[::, 3], resize(pixels[:, 3:4], 1, 40, "bilinear")[:, 0]
    )


def test_weights_of_a_sample_are_together_one() -> None:
    for samples, outputs in [(640, 616), (100, 1000), (4032, 1064), (1, 7), (7, 1)]:
        axis = axis_weights(samples, outputs, "bicubic")
        total = axis.weights.astype(int).sum(axis=1) / 2**axis.precision
        assert np.abs(total - 1).max() < 2e-3
        assert (axis.starts >= 0).all()
        assert (axis.starts + axis.counts <= samples).all()


def test_a_picture_that_is_not_contiguous_is_resized_the_same() -> None:
    pixels = noise(40, 60)
    view = pixels[::2, ::-1]
    assert np.array_equal(resize(view, 17, 13, "bicubic"), resize(view.copy(), 17, 13, "bicubic"))
