"""What simulated engines publish of prompts with pictures is what the node looks the next such prompt up by."""

from array import array

import pytest

from smg_node.engines.contracts.wire import MediaWire
from smg_node.engines.engine import Contract
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.media.engine_media import MediaRange, Tensor, TensorBatch
from smg_node.routing.kv_index.prompt_lookup import PromptLookups
from smg_node.routing.pool import Pool
from support.engine_media.media_requests import digest, filled, ints, request_of
from support.engines.simulated_engine import Simulation, bundle
from support.fleet.kv_event_consumer import BLOCK, ROOT, Hearing
from support.fleet.worker_pools import load

COLUMNS = 3 * 2 * 16 * 16
TOKENS = 100


def chat(*pictures: str, turns: int = 1, before: int = 70) -> tuple[list[int], TensorBatch]:
    """A prompt with text, these pictures of a hundred features each, and more text a turn."""
    mark = bundle("qwen3_vl").placeholder
    assert mark is not None
    ids = [20 + at % 9 for at in range(before)]
    ranges = []
    for name in pictures:
        ranges.append(MediaRange(len(ids), TOKENS, TOKENS, digest(name), "p"))
        ids += [mark] * TOKENS + [30, 31]
    ids += [40 + at % 11 for at in range(60 * turns)]
    count = len(pictures)
    shape = (4 * TOKENS, COLUMNS)
    pieces = tuple(filled(shape, "uint8", sum(name.encode())) for name in pictures)
    media = TensorBatch(
        modality="image",
        pixel_key="pixel_values",
        pixels=Tensor((4 * TOKENS * count, COLUMNS), "uint8", pieces),
        sides={
            "image_grid_thw": ints((count, 3), *[1, 20, 20] * count),
            "patches_per_image": ints((count,), *[4 * TOKENS] * count),
        },
        flat_keys={"pixel_values": "patches_per_image"},
        batched_keys=("image_grid_thw", "patches_per_image"),
        cpu_keys=("image_grid_thw",),
        placeholder=mark,
        ranges=tuple(ranges),
    )
    return ids, media


def asks(hearing: Hearing, ids: list[int], media: TensorBatch, name: str) -> None:
    wire = WIRES[Contract.VLLM]()
    assert isinstance(wire, MediaWire)
    request = request_of(ids, media, name=name, max_tokens=4)
    body = wire.generate_media(request, bias_width=None).joined()
    call = hearing.simulation.run(hearing.simulation.call("Generate", body))
    assert call.end is not None
    assert call.end.code == 0, call.end
    hearing.hear()


def known(hearing: Hearing, ids: list[int], media: TensorBatch) -> float:
    places = [(one.digest, one.offset) for one in media.ranges]
    lookup = PromptLookups(hearing.index).of(ROOT, array("I", ids), 0.0, places)
    return lookup.overlaps(Pool([load("w")]))[0]


@pytest.fixture(params=[("python", 16), ("python", 32), ("rust", 32), ("python", 64)])
def hearing(request: pytest.FixtureRequest) -> Hearing:
    servicer, size = request.param
    return Hearing(
        Simulation("vllm", servicer, vision="qwen3_vl", block_size=size, blocks=4096 // size)
    )


def test_the_next_turn_about_the_same_picture_finds_all_of_the_one_before(hearing: Hearing) -> None:
    ids, media = chat("cat")
    asks(hearing, ids, media, "first")
    longer, same = chat("cat", turns=3)
    assert known(hearing, longer, same) >= len(ids) // BLOCK * BLOCK
    asks(hearing, longer, same, "second")
    assert known(hearing, longer, same) == len(longer) // BLOCK * BLOCK
    assert hearing.simulation.engine.tally.media_mistakes == 0
    assert hearing.follower.confused == 0


def test_another_picture_counts_the_text_before_it_and_no_more(hearing: Hearing) -> None:
    """Row 16 of the acceptance table."""
    ids, media = chat("cat")
    asks(hearing, ids, media, "first")
    others, other = chat("dog", turns=3)
    assert known(hearing, others, other) == 64
    asks(hearing, others, other, "second")
    assert known(hearing, others, other) == len(others) // BLOCK * BLOCK
    assert known(hearing, ids, media) == len(ids) // BLOCK * BLOCK


def test_two_pictures_are_told_apart_by_their_order(hearing: Hearing) -> None:
    asks(hearing, *chat("cat", "dog"), "first")
    ids, media = chat("cat", "dog", turns=2)
    swapped_ids, swapped = chat("dog", "cat", turns=2)
    assert known(hearing, ids, media) >= 320
    assert known(hearing, swapped_ids, swapped) == 64
    second_ids, second = chat("cat", "bird")
    place = second.ranges[1].offset
    assert known(hearing, second_ids, second) == place // BLOCK * BLOCK


def test_a_flush_forgets_pictures_too(hearing: Hearing) -> None:
    ids, media = chat("cat")
    asks(hearing, ids, media, "first")
    assert hearing.simulation.engine.flush(hearing.simulation.face.now_s)
    asks(hearing, *chat("dog", before=5), "second")
    assert known(hearing, ids, media) == 0
