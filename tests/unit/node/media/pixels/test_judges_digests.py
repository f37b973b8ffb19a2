"""Resizing and normalising give the very bytes that torchvision gives, compiled and by numpy."""

import json
from typing import Final

import numpy as np
import pytest

from smg_node.media.engine_media import Dtype
from smg_node.media.pixels.filter_weights import Kernel
from smg_node.media.pixels.kernels import KERNELS
from smg_node.media.pixels.patches import finish, merged_patches, planar
from smg_node.media.pixels.resize import (
    resize,
    resize_as_pillow,
    resize_by_numpy,
    resize_by_pillow,
)
from support.media.resize_vectors import (
    DIGESTS,
    NORMALISED,
    PATCHED,
    PILLOWED,
    VECTORS,
    ResizeVector,
    digest,
)

EXPECTED: Final[dict[str, str]] = json.loads(DIGESTS.read_text())
KERNELS_BY_NAME: Final[dict[str, Kernel]] = {
    "bicubic": "bicubic",
    "bilinear": "bilinear",
    "lanczos": "lanczos",
}
EXACT: Final = (resize_by_numpy,) if KERNELS is None else (resize_by_numpy, resize)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_a_resized_picture_is_torchvisions(vector: ResizeVector) -> None:
    kernel = KERNELS_BY_NAME[vector.kernel]
    for make in EXACT:
        made = make(vector.pixels(), vector.columns, vector.rows, kernel)
        assert digest(made.tobytes()) == EXPECTED[vector.name], make.__name__


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_without_a_compiler_a_resized_picture_is_two_levels_away_at_most(
    vector: ResizeVector,
) -> None:
    kernel = KERNELS_BY_NAME[vector.kernel]
    wanted = (vector.pixels(), vector.columns, vector.rows, kernel)
    made, exact = resize_by_pillow(*wanted), resize_by_numpy(*wanted)
    assert made.shape == exact.shape
    assert np.abs(made.astype(int) - exact).max() <= 2


@pytest.mark.parametrize("vector", PILLOWED, ids=lambda vector: vector.name)
def test_a_picture_resized_as_pillow_does_it_is_pillow_13s_whichever_is_here(
    vector: ResizeVector,
) -> None:
    kernel = KERNELS_BY_NAME[vector.kernel]
    made = resize_as_pillow(vector.pixels(), vector.columns, vector.rows, kernel)
    assert digest(made.tobytes()) == EXPECTED[f"pillow {vector.name}"]


@pytest.mark.parametrize("name", NORMALISED)
def test_values_in_two_steps_are_those_of_torchvisions_transforms(name: str) -> None:
    values = planar(VECTORS[0].pixels())
    made = finish(values, *NORMALISED[name], 1 / 255, "float32", stepwise=True)
    assert digest(bytes(made)) == EXPECTED[f"{name} stepwise"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", NORMALISED)
def test_normalised_values_are_torchvisions(name: str, dtype: Dtype) -> None:
    values = planar(VECTORS[0].pixels())
    made = finish(values, *NORMALISED[name], 1 / 255, dtype)
    assert digest(bytes(made)) == EXPECTED[f"{name} {dtype}"]


@pytest.mark.parametrize("name", PATCHED)
def test_a_picture_in_patches_is_that_of_qwens_processor(name: str) -> None:
    patch = int(name.split()[1])
    grid, expected = EXPECTED[name].split()
    _, rows, columns = (int(side) for side in grid.split("x"))
    resized = resize_by_numpy(PATCHED[name].pixels(), columns * patch, rows * patch, "bicubic")
    patches = merged_patches(resized, patch, merge=2, temporal=2)
    assert digest(bytes(finish(patches, *NORMALISED["clip"], 1 / 255, "float32"))) == expected
