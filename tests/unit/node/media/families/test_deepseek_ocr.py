"""DeepSeek-OCR: two tensors a picture, both to the bit what vLLM 0.32's own processor makes of it."""

import copy
import hashlib
from typing import Any

import numpy as np
import pytest

from smg_node.media.engine_media import Tensor
from smg_node.media.families.registry import UnknownFamily
from smg_node.media.family import Family, FinishedFor
from smg_node.media.picture import Picture
from support.media.checkpoints import Vocabulary, found
from support.media.programs.picture_judge import pattern
from support.media.tiled_checkpoints import OCR_CHECKPOINTS, OCR_TOKENS

FLOATS = FinishedFor(dtype="float32", device_normalizes=False)
SEED = 30
"""Of the first size's pattern; the next ones have the numbers after it."""
SIZES = ((700, 500), (900, 1300), (1500, 300))

# Columns and rows of tiles, placeholders, and digests of the square and of the tiles; made by `picture_judge.py`.
JUDGED: dict[str, tuple[tuple[tuple[int, int], int, str, str] | None, ...]] = {
    "deepseek_ocr": (
        (
            (3, 2),
            893,
            "791233277a06e564fac8659fb479e7a75b4d9329bf8df7365fedbc7ea015d13b",
            "1a97dd0cd786db678963a49cab1458a9ce325d31a2d870dc1b414f99929b98c5",
        ),
        (
            (2, 3),
            903,
            "931bb7db64d09296cb5ebfa972e4ffd776881b0cbbea1412e261dc085abc019e",
            "39842e7e6c78a48368007c98fa1aa7bc10d8b9f8276245c109aba5cf06e2e48a",
        ),
        (
            (5, 1),
            783,
            "0aaec0ce81886faf610f5449f6dc541608872f07d82a1c5859e2c4107b922501",
            "d989d5eebb75d9596fd7045e9541604da6b44c9b78b6a7977ba2cb9ef4b4c6f9",
        ),
    ),
    "deepseek_ocr2": (
        None,
        (
            (2, 3),
            1121,
            "931bb7db64d09296cb5ebfa972e4ffd776881b0cbbea1412e261dc085abc019e",
            "917eea9dc19e38d65bb207f84eb699e1a44c954c8124fb025362c9a9651a28d0",
        ),
        (
            (5, 1),
            977,
            "0aaec0ce81886faf610f5449f6dc541608872f07d82a1c5859e2c4107b922501",
            "02a275d23468f2bfbd7bba715b85a2c32a52ff20f31526ffb837169002badbed",
        ),
    ),
}


def family(name: str, files: Any = None, **told: Any) -> Family:
    made = found(name, files or OCR_CHECKPOINTS[name], tokens=OCR_TOKENS, **told)
    assert made is not None
    assert not isinstance(made, UnknownFamily), made.reason
    return made


def reason(name: str, files: Any = None, **told: Any) -> str:
    unknown = found(name, files or OCR_CHECKPOINTS[name], tokens=OCR_TOKENS, **told)
    assert isinstance(unknown, UnknownFamily)
    return unknown.reason


def changed(file: str, **values: Any) -> Any:
    files: Any = copy.deepcopy(OCR_CHECKPOINTS["deepseek_ocr"])
    files[file].update(values)
    return files


def sha(tensor: Tensor) -> str:
    return hashlib.sha256(b"".join(tensor.pieces)).hexdigest()


@pytest.mark.parametrize("name", OCR_CHECKPOINTS)
@pytest.mark.parametrize("at", range(3))
def test_a_page_is_a_square_of_the_whole_and_tiles(name: str, at: int) -> None:
    made, told = family(name), JUDGED[name][at]
    plan = made.plan(*SIZES[at])
    if told is None:
        assert plan.grid == (1, 1)
        return
    (columns, rows), tokens, whole, tiles = told
    assert plan.grid == (rows, columns)
    assert plan.tokens == tokens
    assert list(made.layout(plan, Vocabulary(OCR_TOKENS)).ids) == [128815] * tokens
    levels = made.patches(Picture(pattern(*SIZES[at], SEED + at)), plan)
    assert levels.shape == plan.shape
    batch = made.batch([plan], [levels], (), FLOATS)
    assert batch is not None
    assert batch.pixels.shape == (1, 3, 1024, 1024)
    assert sha(batch.pixels) == whole
    side = made.plan(5000, 5000).rows // 2
    assert batch.sides["images_crop"].shape == (rows * columns, 3, side, side)
    assert sha(batch.sides["images_crop"]) == tiles
    crop = np.frombuffer(b"".join(batch.sides["images_spatial_crop"].pieces), dtype="<i8")
    assert crop.tolist() == [columns, rows]
    assert batch.flat_keys == {"images_crop": "patches_per_image"}


def test_a_picture_without_tiles_goes_by_reference_and_so_do_those_beside_it() -> None:
    made = family("deepseek_ocr")
    plans = [made.plan(640, 640), made.plan(700, 500)]
    assert plans[0].tokens == 16 * 17 + 1
    patches = [made.patches(Picture(pattern(plan.width, plan.height, 1)), plan) for plan in plans]
    assert patches[0].shape == plans[0].shape == (3 * 1024 * 1024,)
    assert made.batch(plans[:1], patches[:1], (), FLOATS) is None
    assert made.batch(plans, patches, (), FLOATS) is None
    assert made.batch(plans[1:], patches[1:], (), FLOATS) is not None
    normalizes = FinishedFor(dtype="float32", device_normalizes=True)
    assert made.batch(plans[1:], patches[1:], (), normalizes) is None


def test_two_pages_have_their_tiles_behind_each_other() -> None:
    made = family("deepseek_ocr")
    plans = [made.plan(700, 500), made.plan(500, 700)]
    patches = [made.patches(Picture(pattern(plan.width, plan.height, 1)), plan) for plan in plans]
    batch = made.batch(plans, patches, (), FLOATS)
    assert batch is not None
    assert batch.pixels.shape == (2, 3, 1024, 1024)
    assert batch.sides["images_crop"].shape[0] == 12
    alone = [
        made.batch([plan], [levels], (), FLOATS)
        for plan, levels in zip(plans, patches, strict=True)
    ]
    for key in ("images_crop", "images_spatial_crop", "patches_per_image"):
        parts = [b"".join(each.sides[key].pieces) for each in alone if each]
        assert b"".join(batch.sides[key].pieces) == b"".join(parts)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (changed("config.json", architectures=["DeepseekV9"]), "architectures"),
        (changed("processor_config.json", image_mean=[0.4, 0.5, 0.5]), "image_mean"),
        (changed("processor_config.json", normalize=False), "normalize"),
    ],
)
def test_a_processor_that_does_otherwise_is_not_known(files: Any, told: str) -> None:
    assert told in reason("deepseek_ocr", files)


@pytest.mark.parametrize("override", [{"crop_mode": False}, {"base_size": 1280}, {"max_crops": 9}])
def test_sizes_that_engines_do_not_count_by_are_not_taken(override: dict[str, Any]) -> None:
    assert next(iter(override)) in reason("deepseek_ocr", overrides=override)


def test_vl2_is_told_by_its_architecture_and_cuts_two_pictures_at_most() -> None:
    made = found("deepseek_vl2")
    assert made is not None
    assert not isinstance(made, UnknownFamily)
    assert made.name == "deepseek_vl2"
    plan = made.plan(97, 64)
    levels = made.patches(Picture(pattern(97, 64, 1)), plan)
    assert made.batch([plan] * 2, [levels] * 2, (), FLOATS) is not None
    assert made.batch([plan] * 3, [levels] * 3, (), FLOATS) is None
