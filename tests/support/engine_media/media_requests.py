"""Requests with pictures, as families of image processors make them: small ones, of any number and grid."""

import hashlib
import struct
from collections.abc import Sequence

from smg_node.core.generation.request import Sampling, token_ids
from smg_node.engines.engine import EngineRequest
from smg_node.media.engine_media import (
    WIDTHS,
    Dtype,
    EngineMedia,
    MediaRange,
    Modality,
    Tensor,
    TensorBatch,
)

PLACEHOLDER = 151
COLUMNS = 12
MERGED = 4
GRIDS = ((1, 2, 4), (1, 4, 4))


def ints(shape: tuple[int, ...], *values: int) -> Tensor:
    return Tensor(shape, "int64", (struct.pack(f"<{len(values)}q", *values),))


def filled(shape: tuple[int, ...], dtype: Dtype, seed: int = 0) -> bytes:
    size = WIDTHS[dtype]
    for length in shape:
        size *= length
    return bytes((seed + at) % 251 for at in range(size))


def digest(name: object) -> str:
    return hashlib.sha256(repr(name).encode()).hexdigest()


def prompt_of(grids: Sequence[tuple[int, int, int]]) -> tuple[list[int], tuple[MediaRange, ...]]:
    """A prompt that shows each picture between two ids, with text around."""
    ids, ranges = [1, 2, 3], []
    for number, (frames, rows, columns) in enumerate(grids):
        tokens = frames * rows * columns // MERGED
        ids.append(8)
        where = f"messages[0].content[{number}]"
        ranges.append(MediaRange(len(ids), tokens, tokens, digest((number, columns)), where))
        ids += [PLACEHOLDER] * tokens
        ids += [9, 4, 5]
    return ids, tuple(ranges)


def qwen_batch(
    grids: Sequence[tuple[int, int, int]] = GRIDS,
    *,
    dtype: Dtype = "float32",
    columns: int = COLUMNS,
    modality: Modality = "image",
) -> tuple[list[int], TensorBatch]:
    """The ids and the tensors of pictures of the Qwen group: a piece of memory for each of them."""
    ids, ranges = prompt_of(grids)
    rows = [frames * height * width for frames, height, width in grids]
    pieces = tuple(filled((count, columns), dtype, at) for at, count in enumerate(rows))
    count = len(grids)
    return ids, TensorBatch(
        modality=modality,
        pixel_key="pixel_values",
        pixels=Tensor((sum(rows), columns), dtype, pieces),
        sides={
            "image_grid_thw": ints((count, 3), *[side for grid in grids for side in grid]),
            "patches_per_image": ints((count,), *rows),
        },
        flat_keys={"pixel_values": "patches_per_image"},
        batched_keys=("image_grid_thw", "patches_per_image"),
        cpu_keys=("image_grid_thw",),
        placeholder=PLACEHOLDER,
        ranges=ranges,
    )


def llava_batch(count: int = 2, *, dtype: Dtype = "bfloat16") -> tuple[list[int], TensorBatch]:
    """The ids and the tensors of pictures that are one row of a batch each, without a grid."""
    ids, ranges = prompt_of([(1, 2, 4)] * count)
    shape = (count, 3, 4, 4)
    return ids, TensorBatch(
        modality="image",
        pixel_key="input_image_embeds",
        pixels=Tensor(shape, dtype, (filled(shape, dtype),)),
        sides={"image_sizes": ints((count, 2), *[4] * (2 * count))},
        flat_keys={},
        batched_keys=("input_image_embeds", "image_sizes"),
        cpu_keys=(),
        placeholder=PLACEHOLDER,
        ranges=ranges,
    )


def request_of(
    ids: Sequence[int], media: EngineMedia | None, *, name: str = "eng-1", max_tokens: int = 7
) -> EngineRequest:
    sampling = Sampling(max_tokens=max_tokens, temperature=0.5)
    return EngineRequest(name, token_ids(list(ids)), sampling, True, 20.0, media=media)
