"""Tensors of videos at a simulated engine: what is right has no mistake, and every mutation of it has one."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from smg_grpc_proto.generated import common_pb2
from smg_grpc_proto.generated import vllm_engine_pb2 as pb

from smg_chaos.engine.media.media_checks import Takes
from smg_chaos.engine.media.media_intake import MediaIntake
from smg_chaos.engine.media.vision_models import MODELS
from smg_chaos.engine.protocol.generate_request import Asked

VIDEO, OPENS, CLOSES, TEXT = 152, 153, 154, 9
GRID = (2, 4, 4)
STEP = [TEXT, OPENS, *[VIDEO] * 4, CLOSES]
TIMED_IDS = [TEXT, OPENS, *STEP, *STEP, CLOSES, TEXT]
FLAT_IDS = [TEXT, OPENS, *[VIDEO] * 8, CLOSES, TEXT]
Change = Callable[[Any, list[int]], object]


def takes(model: str) -> Takes:
    return Takes(
        model=MODELS[model],
        placeholder=151,
        normalizes=True,
        items_max={"video": 1},
        tokens_max=100,
        hashes=True,
        schemes=frozenset(),
        clips={"video": VIDEO},
        opens=OPENS,
        closes=CLOSES,
    )


def tensor(shape: list[int], dtype: str, data: bytes) -> Any:
    return pb.TensorData(shape=shape, dtype=dtype, inline=data)


def request(model: str) -> tuple[Any, list[int]]:
    """Return the tensors of one video of two steps, and its prompt."""
    timed = MODELS[model].timed
    ids = list(TIMED_IDS if timed else FLAT_IDS)
    columns = MODELS[model].columns
    message = pb.MultimodalInputs(
        modality=common_pb2.VIDEO,
        im_token_id=VIDEO,
        mm_hashes=["a"],
        flat_keys={"pixel_values": "patches_per_video"},
        batched_keys=["video_grid_thw", "patches_per_video"],
        pixel_values=tensor([32, columns], "uint8", bytes(32 * columns)),
    )
    sides = message.model_specific_tensors
    sides["video_grid_thw"].CopyFrom(tensor([1, 3], "int64", struct.pack("<3q", *GRID)))
    sides["patches_per_video"].CopyFrom(tensor([1], "int64", struct.pack("<q", 32)))
    if not timed:
        sides["second_per_grid_ts"].CopyFrom(tensor([1], "float32", struct.pack("<f", 0.5)))
    message.mm_placeholders.add(offset=2, length=len(ids) - 4)
    return message, ids


def told(model: str, message: Any, ids: list[int]) -> str:
    """Return what the engine says is wrong, "" for nothing."""
    intake = MediaIntake(takes(model), trusting=False)
    return intake.look(Asked(ids=ids, media={"mm_inputs": message})).message.removeprefix("media: ")


@pytest.mark.parametrize("model", ["qwen3_vl", "qwen2_5_vl"])
def test_a_video_as_it_should_be_has_no_mistake(model: str) -> None:
    message, ids = request(model)
    assert told(model, message, ids) == ""


def renamed(message: Any, old: str, new: str) -> None:
    sides = message.model_specific_tensors
    sides[new].CopyFrom(sides[old])
    del sides[old]


def swapped(ids: list[int], at: int, to: int) -> None:
    ids[at] = to


COMMON: dict[str, Change] = {
    "an image's placeholder": lambda message, _: setattr(message, "im_token_id", 151),
    "a range one short": lambda message, _: setattr(
        message.mm_placeholders[0], "length", message.mm_placeholders[0].length - 4
    ),
    "a placeholder outside": lambda _, ids: ids.append(VIDEO),
    "a hash too many": lambda message, _: message.mm_hashes.append("b"),
    "the grid of a picture": lambda message, _: renamed(
        message, "video_grid_thw", "image_grid_thw"
    ),
    "floats": lambda message, _: setattr(message.pixel_values, "dtype", "float16"),
}
TIMED: dict[str, Change] = {
    "a step without its beginning": lambda _, ids: swapped(ids, ids.index(OPENS, 3), TEXT),
    "a step without its end": lambda _, ids: swapped(ids, ids.index(CLOSES), TEXT),
    "features in one block": lambda _, ids: ids.__setitem__(
        slice(2, 16), [OPENS, *[VIDEO] * 8, CLOSES, *[TEXT] * 4]
    ),
}
FLAT: dict[str, Change] = {
    "no seconds": lambda message, _: message.model_specific_tensors.pop("second_per_grid_ts"),
    "seconds of none": lambda message, _: message.model_specific_tensors[
        "second_per_grid_ts"
    ].CopyFrom(tensor([1], "float32", struct.pack("<f", 0.0))),
}


@pytest.mark.parametrize(
    ("model", "change"),
    [("qwen3_vl", each) for each in (COMMON | TIMED).values()]
    + [("qwen2_5_vl", each) for each in (COMMON | FLAT).values()],
    ids=[f"3 {name}" for name in COMMON | TIMED] + [f"2.5 {name}" for name in COMMON | FLAT],
)
def test_every_mutation_of_it_is_seen(model: str, change: Change) -> None:
    message, ids = request(model)
    change(message, ids)
    assert told(model, message, ids) != ""


def test_more_videos_than_there_may_be_are_seen() -> None:
    intake = MediaIntake(takes("qwen2_5_vl"), trusting=False)
    one, ids = request("qwen2_5_vl")
    other, _ = request("qwen2_5_vl")
    other.mm_placeholders[0].offset += len(ids)
    other.mm_hashes[0] = "b"
    asked = Asked(ids=[*ids, *ids], media={"mm_inputs": one, "extra_mm_inputs": [other]})
    assert "2 videos, at most 1" in intake.look(asked).message
