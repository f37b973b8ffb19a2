"""Every field of a vLLM request as the `smg` gateway 1.13.0 made it of the same two pictures, for families it has.

`support/media/smg_requests.json` was recorded once from that gateway in front of an engine that only writes down; long
side tensors are there as digests. Its ids begin with the two of a template, the places of both pictures behind them
(for Qwen between start and end), and end with three words.
"""

import hashlib
import json
from array import array
from typing import Any

import pytest

from smg_node.media.engine_media import Tensor, TensorBatch
from smg_node.media.expand import PlacedPicture, expand
from smg_node.media.family import FinishedFor
from smg_node.media.picture import Picture
from support.house.tree import ROOT
from support.media.checkpoints import family, vocabulary
from support.media.programs.picture_judge import pattern

RECORDED: dict[str, Any] = json.loads(
    (ROOT / "tests" / "support" / "media" / "smg_requests.json").read_text()
)
AROUND = {"qwen3_vl": ((151652,), (151653,))}
# Which tensors stay on the CPU changes no answer. vLLM's own processor keeps these there, so ours does;
# `video_grid_thw` is no tensor of a request with pictures.
CPU_KEYS = {
    "qwen3_vl": ("image_grid_thw",),
    "llava_next": ("image_sizes",),
    "llama4": ("aspect_ratios", "patches_per_image"),
    "kimi_k25": ("grid_thws",),
}
# Features of 97x64 and 600x410 in LLaVA-NeXT: that gateway foresees 976 and 2242. These are what the model makes of
# the tiles that it is sent as well, by transformers and by vLLM.
FEATURES = {"llava_next": [[2, 1464], [1466, 2144]]}


def made(name: str, recorded: Any) -> tuple["array[int]", TensorBatch]:
    ours = family(name)
    plans = [ours.plan(width, height) for width, height in recorded["sizes"]]
    patches = [
        ours.patches(Picture(pattern(plan.width, plan.height, seed)), plan)
        for seed, plan in enumerate(plans)
    ]
    pictures = [
        PlacedPicture(
            layout=ours.layout(plan, vocabulary(name)),
            tokens=plan.tokens,
            digest=f"{at:064x}",
            where=f"messages[0].content[{at}]",
        )
        for at, plan in enumerate(plans)
    ]
    anchor = vocabulary(name).token_id(ours.anchor)
    assert anchor is not None
    start, end = AROUND.get(name, ((), ()))
    prompt = array("I", [7, 6, *(*start, anchor, *end) * len(plans), 3, 4, 5])
    ids, ranges = expand(prompt, anchor, pictures)
    wanted = FinishedFor(dtype="float32", device_normalizes=recorded["normalizes"])
    batch = ours.batch(plans, patches, ranges, wanted)
    assert batch is not None
    return ids, batch


def data_of(tensor: Tensor) -> str:
    content = b"".join(tensor.pieces)
    return content.hex() if len(content) < 400 else hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("name", RECORDED)
def test_a_request_is_field_by_field_that_of_the_other_gateway(name: str) -> None:
    recorded = RECORDED[name]
    ids, batch = made(name, recorded)
    ranges = FEATURES.get(name, recorded["ranges"])
    assert [[each.offset, each.length] for each in batch.ranges] == ranges
    if name not in FEATURES:
        assert list(ids) == [token for token, times in recorded["runs"] for _ in range(times)]
    assert batch.placeholder == recorded["im"]
    assert batch.pixel_key == "pixel_values"
    assert list(batch.pixels.shape) == recorded["pixels"]["shape"]
    assert batch.pixels.dtype == recorded["pixels"]["dtype"]
    assert dict(batch.flat_keys) == recorded["flat"]
    assert sorted(batch.batched_keys) == sorted(recorded["batched"])
    assert batch.cpu_keys == CPU_KEYS.get(name, ())
    assert batch.sides.keys() == recorded["sides"].keys()
    for key, told in recorded["sides"].items():
        side = batch.sides[key]
        assert (list(side.shape), side.dtype) == (told["shape"], told["dtype"]), key
        assert data_of(side) == told["data"], key
