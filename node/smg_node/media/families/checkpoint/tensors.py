"""Tensors of a batch: 8-bit patches and side values in the form that engines are sent."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from smg_node.media.engine_media import WIDTHS, Dtype, MediaRange, Tensor, TensorBatch
from smg_node.media.families.checkpoint.processor_files import Normalization
from smg_node.media.family import FinishedFor, PicturePlan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from smg_node.media.picture import Pixels


class Layout(msgspec.Struct, frozen=True):
    """How the tensors of a family divide into pictures: the main tensor's key, and the kinds of all keys."""

    pixel_key: str = "pixel_values"
    flat_keys: Mapping[str, str] = msgspec.field(default_factory=dict)
    batched_keys: tuple[str, ...] = ()
    cpu_keys: tuple[str, ...] = ()


def integers(rows: Sequence[Sequence[int]]) -> Tensor:
    """Return a table of whole numbers as int64, one row a picture; all rows are equally long."""
    width = len(rows[0])
    assert all(len(row) == width for row in rows)
    return Tensor((len(rows), width), "int64", (_words([n for row in rows for n in row]),))


def counts(numbers: Sequence[int]) -> Tensor:
    """Return one whole number a picture, as int64."""
    return Tensor((len(numbers),), "int64", (_words(numbers),))


def patch_grids(name: str, plans: Sequence[PicturePlan]) -> dict[str, Tensor]:
    """Return the grids of pictures that are rows of patches, under the model's `name`, and how many rows each has."""
    rows = counts([plan.shape[0] for plan in plans])
    return {name: integers([plan.grid for plan in plans]), "patches_per_image": rows}


def shared(number: int) -> Tensor:
    """Return one whole number that all pictures have in common, as int64."""
    return Tensor((1,), "int64", (_words((number,)),))


def finished(
    patches: "Sequence[Pixels]",
    shape: tuple[int, ...],
    values: Normalization,
    wanted: FinishedFor,
    *,
    zeros: Sequence[int] = (),
    coarse: bool = False,
) -> Tensor:
    """Return pictures as one tensor of `shape`: a piece each, `zeros` elements of nought after each where given.

    The padding is nought in the finished values, after normalising. `coarse` normalises in bfloat16, step by step, as
    the processor of Llama 4 does.
    """
    dtype: Dtype = "uint8" if wanted.device_normalizes else wanted.dtype
    pieces: list[memoryview | bytes] = []
    for at, levels in enumerate(patches):
        pieces.append(piece(levels, values, dtype, coarse=coarse))
        if zeros and zeros[at]:
            pieces.append(bytes(zeros[at] * WIDTHS[dtype]))
    tensor = Tensor(shape, dtype, tuple(pieces))
    assert sum(memoryview(part).nbytes for part in tensor.pieces) == tensor.size
    return tensor


def piece(
    levels: "Pixels", values: Normalization, dtype: Dtype, *, coarse: bool = False
) -> memoryview:
    """Return the finished values of one picture; levels that stay as they are are not copied."""
    import numpy as np  # it comes with the first picture

    from smg_node.media.pixels.patches import finish

    if dtype == "uint8":
        return np.ascontiguousarray(levels).reshape(-1).data.toreadonly()

    if coarse and values.mean is not None:
        return _coarse(levels, values, dtype)
    told = (values.mean, values.std, values.rescale)
    return finish(levels, *told, dtype, stepwise=values.stepwise)


def _coarse(levels: "Pixels", values: Normalization, dtype: Dtype) -> memoryview:
    """Return values normalised in bfloat16: rescaled, less the mean, by the deviation, rounded after each."""
    import numpy as np

    from smg_node.media.pixels.patches import upper_halves

    every = np.arange(256, dtype=np.float32)
    made = np.empty(levels.shape, dtype={"float32": "<f4", "float16": "<f2"}.get(dtype, "<u2"))
    for channel, (mean, std) in enumerate(zip(values.mean or (), values.std or (), strict=True)):
        table = _bfloat16(every * np.float32(values.rescale))
        table = _bfloat16(table - _bfloat16(np.array((mean,), dtype=np.float32)))
        table = _bfloat16(table / _bfloat16(np.array((std,), dtype=np.float32)))
        chosen = upper_halves(table) if dtype == "bfloat16" else table.astype(made.dtype)
        made[:, channel] = chosen[levels[:, channel]]
    return made.reshape(-1).view(np.uint8).data


def _bfloat16(numbers: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return float32 rounded to bfloat16."""
    import numpy as np

    from smg_node.media.pixels.patches import upper_halves

    return (upper_halves(numbers).astype(np.uint32) << np.uint32(16)).view(np.float32)


def image_batch(
    layout: Layout,
    pixels: Tensor,
    sides: Mapping[str, Tensor],
    placeholder: int,
    ranges: Sequence[MediaRange],
) -> TensorBatch:
    """Return the batch of the pictures of one prompt."""
    return TensorBatch(
        modality="image",
        pixel_key=layout.pixel_key,
        pixels=pixels,
        sides=sides,
        flat_keys=layout.flat_keys,
        batched_keys=layout.batched_keys,
        cpu_keys=layout.cpu_keys,
        placeholder=placeholder,
        ranges=tuple(ranges),
    )


def _words(numbers: Sequence[int]) -> bytes:
    return b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)
