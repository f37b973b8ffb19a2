"""Compiled kernels of pixels give the bytes of their numpy twins in every form there is, and check what they are given."""

import base64
import binascii
import threading
from typing import Any

import numpy as np
import pytest

from smg_node.media.pixels.filter_weights import AxisWeights, Kernel, axis_weights
from smg_node.media.pixels.kernels import KERNELS, VECTORS
from smg_node.media.pixels.patches import (
    finish,
    merged_by_numpy,
    merged_patches,
    plain_patches,
    planar,
    planes_by_numpy,
    value_table,
    widen_by_numpy,
)
from smg_node.media.pixels.resize import horizontal_by_numpy, vertical_by_numpy

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
FORMS = [] if KERNELS is None else [False, True] if VECTORS else [False]
"""Whether wide loops are taken, for each form that this processor runs; none without a compiler."""


def pictures(number: int, most: int) -> list[tuple[Pixels, int, int, Kernel]]:
    """Return random pictures of noise, half of it black and white, with the size they get."""
    rng = np.random.default_rng(20)
    made: list[tuple[Pixels, int, int, Kernel]] = []
    for at in range(number):
        height, width, rows, columns = (int(side) for side in rng.integers(1, most, 4))
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        if at % 2:
            pixels = np.where(pixels > 127, 255, 0).astype(np.uint8)
        made.append((pixels, columns, rows, "bicubic" if at % 3 else "bilinear"))
    return made


def compiled(
    name: str, pixels: Pixels, shape: tuple[int, ...], axis: AxisWeights, wide: bool
) -> Pixels:
    assert KERNELS is not None
    # Guards around the result: a loop that writes too much is seen.
    size = int(np.prod(shape))
    room = np.full(size + 64, 77, dtype=np.uint8)
    made = room[32 : 32 + size].reshape(shape)
    getattr(KERNELS, name)(pixels, made, *axis, wide)
    assert (room[:32] == 77).all()
    assert (room[32 + size :] == 77).all()
    return made


def test_resampling_gives_the_bytes_of_numpy_for_300_random_shapes() -> None:
    for pixels, columns, rows, kernel in [*pictures(200, 40), *pictures(100, 160)]:
        height, width, _ = pixels.shape
        across, down = axis_weights(width, columns, kernel), axis_weights(height, rows, kernel)
        wide = horizontal_by_numpy(pixels, across)
        tall = vertical_by_numpy(pixels, down)
        for form in FORMS:
            made = compiled("horizontal", pixels, wide.shape, across, form)
            assert np.array_equal(made, wide), (pixels.shape, columns, kernel, form)
            made = compiled("vertical", pixels, tall.shape, down, form)
            assert np.array_equal(made, tall), (pixels.shape, rows, kernel, form)


@pytest.mark.parametrize(
    ("patch", "merge", "copies"), [(14, 2, 2), (16, 2, 2), (5, 3, 1), (1, 1, 3)]
)
def test_patches_are_those_of_numpy(patch: int, merge: int, copies: int) -> None:
    side = patch * merge
    pixels = np.random.default_rng(2).integers(0, 256, (2 * side, 5 * side, 3), dtype=np.uint8)
    assert np.array_equal(
        merged_patches(pixels, patch, merge, copies), merged_by_numpy(pixels, patch, merge, copies)
    )


def test_pieces_are_those_of_numpy() -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (6, 35, 3), dtype=np.uint8)
    assert np.array_equal(planar(pixels)[None], planes_by_numpy(pixels, 6, 35))
    assert np.array_equal(plain_patches(pixels[:, :30], 3), planes_by_numpy(pixels[:, :30], 3, 3))


@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_numbers_are_those_of_numpy_wherever_they_are_written(dtype: Any, copies: int) -> None:
    # Copies of a still are looked up once; some of these are not copies in one level.
    once = np.random.default_rng(3).integers(0, 256, (7, 3, 1, 10), dtype=np.uint8)
    levels = np.repeat(once, copies, axis=2).reshape(7, -1)
    levels[3] ^= (np.arange(levels.shape[1]) % 7 == 0).astype(np.uint8)
    numbers = ((0.48, 0.45, 0.4), (0.26, 0.26, 0.27), 1 / 255)
    expected = np.empty(levels.size * (4 if dtype == "float32" else 2), dtype=np.uint8)
    widen_by_numpy(levels, value_table(*numbers, dtype), expected, 10 * copies)
    message = bytearray(expected.size + 3)
    finish(levels, *numbers, dtype, out=memoryview(message)[3:])
    assert bytes(message[3:]) == expected.tobytes()


def test_what_would_read_or_write_outside_is_refused() -> None:
    for wide in FORMS:
        check_refusals(wide)


def check_refusals(wide: bool) -> None:
    kernels = KERNELS
    assert kernels is not None
    pixels = np.zeros((4, 10, 3), dtype=np.uint8)
    axis = axis_weights(10, 5, "bicubic")
    made = np.empty((4, 5, 3), dtype=np.uint8)
    kernels.horizontal(pixels, made, *axis, wide)
    for wrong in (
        (pixels[:, :9].copy(), made, *axis),
        (pixels, np.empty((3, 5, 3), dtype=np.uint8), *axis),
        (pixels, np.empty((4, 6, 3), dtype=np.uint8), *axis),
        (pixels, made, *axis._replace(starts=axis.starts - 1)),
        (pixels, made, *axis._replace(counts=axis.counts + 9)),
        (pixels, made, *axis._replace(weights=axis.weights[:, :-1].copy())),
        (pixels, made, *axis._replace(precision=23)),
    ):
        with pytest.raises(ValueError, match=r"weights|shapes"):
            kernels.horizontal(*wrong, wide)
    with pytest.raises(ValueError, match="weights"):
        kernels.vertical(pixels, np.empty((5, 10, 3), dtype=np.uint8), *axis, wide)
    with pytest.raises(ValueError, match="blocks"):
        kernels.merged(pixels, np.empty(120, dtype=np.uint8), 3, 3, 1, 1, False)
    with pytest.raises(ValueError, match="blocks"):
        kernels.merged(pixels, np.empty(120, dtype=np.uint8), 1 << 40, 1 << 40, 1 << 40, 1, True)
    with pytest.raises(ValueError, match="patches"):
        kernels.merged(pixels, np.empty(119, dtype=np.uint8), 2, 2, 1, 1, False)
    table = np.zeros((3, 512), dtype=np.uint8)
    for levels, numbers, run in ((9, 18, 2), (12, 23, 2), (12, 24, 0)):
        with pytest.raises(ValueError, match="levels"):
            kernels.widened(np.zeros(levels, np.uint8), table, np.zeros(numbers, np.uint8), run)
    with pytest.raises(ValueError, match="table"):
        kernels.widened(np.zeros(6, np.uint8), table[:, :300].copy(), np.zeros(12, np.uint8), 2)


def test_kernels_of_several_threads_do_not_disturb_each_other() -> None:
    work = pictures(8, 300)
    wrong: list[int] = []

    def run(at: int) -> None:
        pixels, columns, _, kernel = work[at]
        axis = axis_weights(pixels.shape[1], columns, kernel)
        expected = horizontal_by_numpy(pixels, axis)
        found = (compiled("horizontal", pixels, expected.shape, axis, form) for form in FORMS * 5)
        wrong.extend(at for made in found if not np.array_equal(made, expected))

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def base64_texts() -> list[str]:
    """Return base64 of every length around the steps of the wide loop, and each of them damaged at every place."""
    rng = np.random.default_rng(30)
    texts = [""]
    for size in [*range(1, 100), 300]:
        text = base64.b64encode(rng.integers(0, 256, size, dtype=np.uint8).tobytes()).decode()
        texts += [text, text[:-1], text + "=", text.rstrip("=")]
    text = base64.b64encode(bytes(range(256))).decode()
    for at in range(len(text)):
        texts += [text[:at] + bad + text[at + 1 :] for bad in "=-_ \n\0\x7f@[`{:,.é€"]
    return texts


@pytest.mark.parametrize("wide", FORMS)
def test_base64_is_decoded_as_strictly_as_by_the_standard_library(wide: bool) -> None:
    assert KERNELS is not None
    for text in base64_texts():
        found = KERNELS.base64_decoded(f"data:;base64,{text}", 13, wide)
        try:
            known: bytes | None = binascii.a2b_base64(text, strict_mode=True)
        except ValueError:
            known = None
        # The library takes too much of padding as well.
        assert found in (None, known)
        if known and base64.b64encode(known).decode() == text:
            assert found == known
    every = bytes(rest << shift & 255 for rest in range(64) for shift in range(8)) * 40
    assert KERNELS.base64_decoded(base64.b64encode(every).decode(), 0, wide) == every
    # Nothing of a text before or behind what it is.
    assert KERNELS.base64_decoded("AAAA", 4, wide) is None
    assert KERNELS.base64_decoded("AAAA", 40, wide) is None
    assert KERNELS.base64_decoded("AAAA", -4, wide) is None


@pytest.mark.parametrize("wide", FORMS)
@pytest.mark.parametrize("columns", [1, 14, 15, 16, 17, 31, 32, 48, 100])
def test_patches_of_every_width_are_those_of_numpy(columns: int, wide: bool) -> None:
    assert KERNELS is not None
    rng = np.random.default_rng(columns)
    pixels = rng.integers(0, 256, (4, 4 * columns, 3), dtype=np.uint8)
    known = planes_by_numpy(pixels, 2, columns)
    room = np.full(known.size + 64, 77, dtype=np.uint8)
    KERNELS.merged(pixels, room[32:-32], 2, columns, 1, 1, wide)
    assert room[32:-32].tobytes() == known.tobytes()
    assert (room[:32] == 77).all()
    assert (room[-32:] == 77).all()
