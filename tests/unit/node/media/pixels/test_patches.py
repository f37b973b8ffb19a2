"""Patches have the order that models expect, and their numbers are those of the engines' processors."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from smg_node.media.engine_media import WIDTHS, Dtype
from smg_node.media.pixels.patches import (
    finish,
    merged_patches,
    padded,
    plain_patches,
    planar,
    planar_tiles,
    upper_halves,
    value_table,
)

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


def noise(height: int, width: int) -> Pixels:
    return np.random.default_rng(3).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("patch", "merge", "temporal"), [(14, 2, 2), (16, 2, 2), (4, 1, 1), (3, 3, 1)]
)
def test_merged_patches_go_by_blocks(patch: int, merge: int, temporal: int) -> None:
    side = patch * merge
    pixels = noise(2 * side, 3 * side)
    rows = []
    for block_row in range(2):
        for block_column in range(3):
            for row in range(merge):
                for column in range(merge):
                    top = block_row * side + row * patch
                    left = block_column * side + column * patch
                    cut = pixels[top : top + patch, left : left + patch]
                    values: list[int] = []
                    for channel in range(3):
                        values += cut[:, :, channel].reshape(-1).tolist() * temporal
                    rows.append(values)
    assert merged_patches(pixels, patch, merge, temporal).tolist() == rows


def test_plain_patches_and_tiles_go_row_by_row() -> None:
    pixels = noise(8, 12)
    made = plain_patches(pixels, 4)
    assert made.shape == (6, 3, 4, 4)
    assert np.array_equal(made[4], pixels[4:8, 4:8].transpose(2, 0, 1))
    assert np.array_equal(planar_tiles(pixels, 4), made)
    assert np.array_equal(planar(pixels), pixels.transpose(2, 0, 1))


def test_a_canvas_has_one_level_around_the_picture() -> None:
    pixels = noise(3, 4)
    made = padded(pixels, 7, 5, left=2, top=1, level=255)
    assert made.shape == (5, 7, 3)
    assert np.array_equal(made[1:4, 2:6], pixels)
    assert int(made.sum()) == int(pixels.sum()) + 255 * 3 * (35 - 12)
    assert padded(pixels, 4, 3) is pixels


def single(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def of_bits(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def plain_value(level: int, mean: float, std: float) -> float:
    """Return what the processor's arithmetic in float32 makes of a level."""
    back = single(1 / (1 / 255))
    mean255, std255 = single(single(mean) * back), single(single(std) * back)
    return single(single(level - mean255) / std255)


@pytest.mark.parametrize("numbers", [CLIP, HALF])
def test_normalising_is_done_in_single_precision(numbers: Sequence[Sequence[float]]) -> None:
    mean, std = numbers
    table = value_table(mean, std, 1 / 255, "float32")
    for channel in range(3):
        expected = [plain_value(level, mean[channel], std[channel]) for level in range(256)]
        assert table[channel].tolist() == expected


def test_bfloat16_is_rounded_to_the_nearest_and_ties_to_even() -> None:
    exact = value_table(*CLIP, 1 / 255, "float32").view(np.uint32)
    rounded = value_table(*CLIP, 1 / 255, "bfloat16")
    assert rounded.dtype == np.uint16
    for bits, short in zip(exact.ravel().tolist(), rounded.ravel().tolist(), strict=True):
        value, found = of_bits(int(bits)), of_bits(int(short) << 16)
        below, above = of_bits(int(bits) >> 16 << 16), of_bits((int(bits) >> 16) + 1 << 16)
        assert abs(found - value) == min(abs(below - value), abs(above - value))
    ties = np.array([0x3F808000, 0x3F818000, 0x3F808001], dtype=np.uint32).view(np.float32)
    assert upper_halves(ties).tolist() == [0x3F80, 0x3F82, 0x3F81]


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(5, 3 * 8), (2, 3, 4, 6), (1, 2, 3, 4, 4)])
def test_values_go_straight_into_their_place(dtype: Dtype, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    made = finish(values, *CLIP, 1 / 255, dtype)
    assert made.nbytes == values.size * WIDTHS[dtype]
    message = bytearray(made.nbytes + 7)
    again = finish(values, *CLIP, 1 / 255, dtype, out=memoryview(message)[3:-4])
    assert bytes(again) == bytes(made) == bytes(message[3:-4])
    if dtype == "uint8":
        assert bytes(made) == values.tobytes()
        return
    table = value_table(*CLIP, 1 / 255, dtype)
    channels = np.arange(values.size) // (values.size // values.shape[0] // 3) % 3
    if len(shape) != 2:
        channels = np.broadcast_to(np.arange(3)[:, None, None], shape).ravel()
    expected = table[channels, values.ravel()]
    assert bytes(made) == expected.tobytes()


def test_without_a_mean_levels_are_rescaled_only() -> None:
    table = value_table(None, None, 1 / 255, "float32")
    assert table[0].tolist() == [single(level * single(1 / 255)) for level in range(256)]


def test_levels_of_a_view_are_read_in_its_order() -> None:
    values = noise(6, 9).transpose(2, 0, 1)
    assert bytes(finish(values, None, None, 1.0, "uint8")) == values.tobytes()
    made = np.frombuffer(finish(values, None, None, 1.0, "float32"), dtype=np.float32)
    assert np.array_equal(made, values.ravel().astype(np.float32))
