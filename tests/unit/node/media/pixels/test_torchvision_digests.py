"""Resizing and normalising give the very bytes that torchvision gives, compiled and by numpy."""

import json
from typing import Any, Final

import numpy as np
import pytest

from smg_node.media.engine_media import Dtype
from smg_node.media.pixels.filter_weights import Kernel, axis_weights
from smg_node.media.pixels.patches import finish, planar
from smg_node.media.pixels.resize import horizontal_by_numpy, resize, vertical_by_numpy
from support.media.resize_vectors import DIGESTS, NORMALISED, VECTORS, ResizeVector, digest

EXPECTED: Final[dict[str, str]] = json.loads(DIGESTS.read_text())
Pixels = np.ndarray[Any, np.dtype[np.uint8]]


def by_numpy(pixels: Pixels, columns: int, rows: int, kernel: Kernel) -> Pixels:
    height, width, _ = pixels.shape
    if columns != width:
        pixels = horizontal_by_numpy(pixels, axis_weights(width, columns, kernel))
    if rows != height:
        pixels = vertical_by_numpy(pixels, axis_weights(height, rows, kernel))
    return pixels


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_a_resized_picture_is_torchvisions(vector: ResizeVector) -> None:
    kernel: Kernel = "bicubic" if vector.kernel == "bicubic" else "bilinear"
    for make in (resize, by_numpy):
        made = make(vector.pixels(), vector.columns, vector.rows, kernel)
        assert digest(made.tobytes()) == EXPECTED[vector.name], make.__name__


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", NORMALISED)
def test_normalised_values_are_torchvisions(name: str, dtype: Dtype) -> None:
    values = planar(VECTORS[0].pixels())
    made = finish(values, *NORMALISED[name], 1 / 255, dtype)
    assert digest(bytes(made)) == EXPECTED[f"{name} {dtype}"]
