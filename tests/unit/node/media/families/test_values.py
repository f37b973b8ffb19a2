"""Values of every family's tensors: to the bit what the processors that engines use make of the same pictures."""

import hashlib

import numpy as np
import pytest

from smg_node.media.engine_media import WIDTHS, Dtype, MediaRange, Tensor, TensorBatch
from smg_node.media.family import Family, FinishedFor, PicturePlan
from smg_node.media.picture import Picture
from smg_node.media.pixels import resize
from smg_node.media.pixels.kernels import KERNELS
from support.media.checkpoints import CHECKPOINTS, family
from support.media.family_digests import DIGESTS, SIZES
from support.media.programs.picture_judge import pattern

FLOATS = FinishedFor(dtype="float32", device_normalizes=False)
FLOAT_TYPES: tuple[Dtype, ...] = ("float32", "float16", "bfloat16")
RAGGED = {"pixtral", "mistral3"}
PADDED = {"llava_next", "llava_next_siglip", "llava_onevision", "phi4mm", "gemma4"}
SMALL = ((97, 64), (30, 90), (97, 64))
PAIRS = {"deepseek_vl2"}


def sizes_of(name: str) -> tuple[tuple[int, int], ...]:
    """Pictures that are one batch of a family."""
    return SMALL[:1] * 2 if name in RAGGED else SMALL[:2] if name in PAIRS else SMALL


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler nodes resize with Pillow, up to two levels away; the twin in numpy is exact."""
    if KERNELS is None:
        monkeypatch.setattr(resize, "resize", resize.resize_by_numpy)


def patches_of(made: Family, width: int, height: int, seed: int) -> "np.typing.NDArray[np.uint8]":
    return made.patches(Picture(pattern(width, height, seed)), made.plan(width, height))


def ranges_of(plans: list[PicturePlan]) -> list[MediaRange]:
    return [
        MediaRange(offset=at * 30000, length=plan.tokens, tokens=plan.tokens, digest="", where="")
        for at, plan in enumerate(plans)
    ]


def batch_of(
    made: Family, sizes: tuple[tuple[int, int], ...], wanted: FinishedFor = FLOATS
) -> TensorBatch | None:
    plans = [made.plan(width, height) for width, height in sizes]
    patches = [patches_of(made, *size, seed) for seed, size in enumerate(sizes)]
    return made.batch(plans, patches, ranges_of(plans), wanted)


def content(tensor: Tensor) -> bytes:
    return b"".join(tensor.pieces)


def test_every_family_has_digests() -> None:
    assert DIGESTS.keys() == CHECKPOINTS.keys()


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("name", DIGESTS)
@pytest.mark.parametrize("seed", range(3))
def test_a_picture_becomes_the_values_of_the_published_processor(name: str, seed: int) -> None:
    made = family(name)
    width, height = SIZES[seed]
    plan = made.plan(width, height)
    patches = patches_of(made, width, height, seed)
    assert patches.dtype == np.uint8
    assert patches.shape == plan.shape
    batch = made.batch([plan], [patches], ranges_of([plan]), FLOATS)
    assert batch is not None
    values = np.frombuffer(content(batch.pixels), dtype="<f4").reshape(batch.pixels.shape)
    if name == "phi4mm":
        values = values[:, 1:]
    assert hashlib.sha256(values.tobytes()).hexdigest() == DIGESTS[name][seed]


@pytest.mark.parametrize("name", [name for name in CHECKPOINTS if name not in RAGGED | PADDED])
def test_pictures_are_those_of_each_behind_each_other(name: str) -> None:
    made = family(name)
    plans = [made.plan(*size) for size in sizes_of(name)]
    patches = [patches_of(made, *size, seed) for seed, size in enumerate(sizes_of(name))]
    together = made.batch(plans, patches, ranges_of(plans), FLOATS)
    assert together is not None
    alone = [
        made.batch([plan], [levels], ranges_of([plan]), FLOATS)
        for plan, levels in zip(plans, patches, strict=True)
    ]
    assert content(together.pixels) == b"".join(content(each.pixels) for each in alone if each)
    for key, tensor in together.sides.items():
        parts = [content(each.sides[key]) for each in alone if each]
        assert content(tensor) in (b"".join(parts), parts[0])


@pytest.mark.parametrize("name", sorted(RAGGED))
def test_pictures_of_unlike_sizes_are_no_tensor_where_nothing_is_filled_up(name: str) -> None:
    assert batch_of(family(name), SMALL) is None
    assert batch_of(family(name), SMALL[:1]) is not None


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_all_tensors_have_the_bytes_that_their_shapes_call_for(name: str, dtype: Dtype) -> None:
    sizes = sizes_of(name)
    wanted = FinishedFor(dtype=dtype, device_normalizes=False)
    batch = batch_of(family(name), sizes, wanted)
    assert batch is not None
    assert batch.pixels.dtype == dtype
    for tensor in (batch.pixels, *batch.sides.values()):
        assert len(content(tensor)) == tensor.size
        assert tensor.dtype in WIDTHS


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_every_key_is_divided_in_one_way_and_flat_ones_add_up(name: str) -> None:
    sizes = sizes_of(name)
    batch = batch_of(family(name), sizes)
    assert batch is not None
    keys = {batch.pixel_key, *batch.sides}
    whole = keys - set(batch.batched_keys) - set(batch.flat_keys)
    assert set(batch.batched_keys) <= keys
    assert set(batch.cpu_keys) <= keys
    assert not set(batch.batched_keys) & set(batch.flat_keys)
    assert whole <= {"image_token_id"}
    for key in batch.batched_keys:
        tensor = batch.pixels if key == batch.pixel_key else batch.sides[key]
        assert tensor.shape[0] == len(sizes)
    for key, counted in batch.flat_keys.items():
        tensor = batch.pixels if key == batch.pixel_key else batch.sides[key]
        lengths = np.frombuffer(content(batch.sides[counted]), dtype="<i8")
        assert len(lengths) == len(sizes)
        assert int(lengths.sum()) == tensor.shape[0]


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_worker_that_normalises_gets_the_levels_themselves(name: str) -> None:
    made = family(name)
    wanted = FinishedFor(dtype="bfloat16", device_normalizes=True)
    batch = batch_of(made, SMALL[:1], wanted)
    if name == "phi4mm":
        assert batch is None
        return
    assert batch is not None
    assert batch.pixels.dtype == "uint8"
    patches = patches_of(made, *SMALL[0], 0)
    assert content(batch.pixels).startswith(patches.tobytes())


def test_grids_are_as_the_contract_has_them() -> None:
    batch = batch_of(family("qwen3_vl"), ((640, 480), (32, 32)))
    assert batch is not None
    grids = np.frombuffer(content(batch.sides["image_grid_thw"]), dtype="<i8").reshape(2, 3)
    assert grids.tolist() == [[1, 30, 40], [1, 16, 16]]
    assert batch.pixels.shape == (1200 + 256, 1536)
    assert batch.flat_keys == {"pixel_values": "patches_per_image"}
    assert batch.batched_keys == ("image_grid_thw", "patches_per_image")
    assert batch.cpu_keys == ("image_grid_thw",)
    assert batch.placeholder == 151655


def test_llava_next_fills_up_with_nought_after_normalising() -> None:
    made = family("llava_next")
    batch = batch_of(made, ((640, 480), (333, 251)))
    assert batch is not None
    assert batch.pixels.shape == (2, 5, 3, 336, 336)
    values = np.frombuffer(content(batch.pixels), dtype="<f4").reshape(batch.pixels.shape)
    assert not values[1, 3:].any()
    assert values[1, :3].any(axis=(1, 2, 3)).all()
    sizes = np.frombuffer(content(batch.sides["image_sizes"]), dtype="<i8").reshape(2, 2)
    assert sizes.tolist() == [[480, 640], [251, 333]]


def test_gemma4_marks_places_that_are_none() -> None:
    batch = batch_of(family("gemma4"), ((500, 500),))
    assert batch is not None
    places = np.frombuffer(content(batch.sides["pixel_position_ids"]), dtype="<i8")
    places = places.reshape(1, 2520, 2)
    assert places[0, :3].tolist() == [[0, 0], [1, 0], [2, 0]]
    assert places[0, 48].tolist() == [0, 1]
    assert (places[0, 2304:] == -1).all()
    assert (places[0, :2304] >= 0).all()


def test_phi4_masks_the_patches_that_show_nothing() -> None:
    made = family("phi4mm")
    batch = batch_of(made, ((640, 480), (333, 251)))
    assert batch is not None
    masks = np.frombuffer(content(batch.sides["image_attention_mask"]), dtype="<f4")
    masks = masks.reshape(2, 5, 32, 32)
    assert masks[:, 0].all()
    assert masks[1, 2:].all()
    tokens = np.frombuffer(content(batch.sides["num_img_tokens"]), dtype="<i8")
    for at, (rows, columns) in enumerate(((2, 2), (1, 1))):
        crops = masks[at, 1 : 1 + rows * columns].reshape(rows, columns, 32, 32)
        whole = crops.transpose(0, 2, 1, 3).reshape(rows * 32, columns * 32)[::2, ::2]
        assert tokens[at] == 256 + 1 + whole.sum() + whole[:, 0].sum() + 16


def test_the_whole_crop_of_phi4_is_the_canvas_where_they_are_of_one_size() -> None:
    made = family("phi4mm")
    batch = batch_of(made, ((448, 448),))
    assert batch is not None
    values = np.frombuffer(content(batch.pixels), dtype="<f4").reshape(batch.pixels.shape)
    assert np.array_equal(values[0, 0], values[0, 1])


# Channel, row, column of the whole crop of a pattern of 700x930 with seed 4, as torch 2.13 interpolates it.
WHOLE = {
    (0, 0, 0): -0.615686297416687,
    (1, 0, 447): 0.38308826088905334,
    (2, 447, 0): 1.0,
    (1, 200, 300): 0.13921569287776947,
    (2, 301, 17): -0.2497549057006836,
    (0, 99, 250): -0.1615196019411087,
    (1, 446, 223): 1.0,
}


@pytest.mark.usefixtures("exact")
def test_the_whole_crop_of_phi4_is_interpolated_as_torch_does_it() -> None:
    made = family("phi4mm")
    plan = made.plan(700, 930)
    batch = made.batch([plan], [patches_of(made, 700, 930, 4)], ranges_of([plan]), FLOATS)
    assert batch is not None
    values = np.frombuffer(content(batch.pixels), dtype="<f4").reshape(batch.pixels.shape)
    for place, told in WHOLE.items():
        assert values[(0, 0, *place)] == pytest.approx(told, abs=1e-6)
