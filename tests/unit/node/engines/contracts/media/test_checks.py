"""No request leaves whose pictures contradict each other, the prompt, or what the engine takes."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from smg_node.core.errors import ErrorKind
from smg_node.engines.contracts.media.checks import MediaCheckError, check_media, shapes
from smg_node.engines.engine import MediaCard
from smg_node.media.engine_media import (
    Dtype,
    EncodedBatch,
    MediaReference,
    ReferenceBatch,
    Tensor,
    TensorBatch,
)
from support.engine_media.media_requests import (
    PLACEHOLDER,
    ints,
    llava_batch,
    qwen_batch,
    request_of,
)

CARD = MediaCard(
    ways=frozenset({"tensors", "references"}),
    items_max={"image": 2, "video": 0},
    tokens_max=4,
    schemes=frozenset({"https", "data"}),
)
FETCHES = '{"do_remote_prefill":true}'
WORKS = '{"do_remote_decode":true,"do_remote_prefill":false}'
Mutation = Callable[[list[int], TensorBatch], tuple[list[int], TensorBatch]]


def refusal(ids: list[int], media: Any, card: MediaCard | None = CARD) -> MediaCheckError:
    with pytest.raises(MediaCheckError) as caught:
        check_media(request_of(ids, media), card)
    assert caught.value.kind is ErrorKind.INTERNAL
    assert caught.value.code == "media_check_failed"
    return caught.value


def first(media: TensorBatch, **fields: Any) -> TensorBatch:
    changed = replace(media.ranges[0], **fields)
    return replace(media, ranges=(changed, *media.ranges[1:]))


def side(media: TensorBatch, **tensors: Tensor) -> TensorBatch:
    return replace(media, sides={**media.sides, **tensors})


def pixels(media: TensorBatch, **fields: Any) -> TensorBatch:
    return replace(media, pixels=replace(media.pixels, **fields))


MUTATIONS: dict[str, Mutation] = {
    "a range one short": lambda ids, media: (ids, first(media, length=media.ranges[0].length - 1)),
    "a range one short that says so": lambda ids, media: (
        ids,
        first(media, length=media.ranges[0].length - 1, tokens=media.ranges[0].tokens - 1),
    ),
    "a placeholder missing": lambda ids, media: (
        [*ids[: media.ranges[1].offset], 7, *ids[media.ranges[1].offset + 1 :]],
        media,
    ),
    "ten ids cut off": lambda ids, media: (ids[:-10], media),
    "no ranges": lambda ids, media: (ids, replace(media, ranges=())),
    "a range too many": lambda ids, media: (
        [*ids, PLACEHOLDER],
        replace(
            media,
            ranges=(*media.ranges, replace(media.ranges[0], offset=len(ids), length=1, tokens=1)),
        ),
    ),
    "ranges in the other order": lambda ids, media: (
        ids,
        replace(media, ranges=media.ranges[::-1]),
    ),
    "a placeholder outside": lambda ids, media: ([*ids, PLACEHOLDER], media),
    "no digest": lambda ids, media: (ids, first(media, digest="")),
    "a client's word as digest": lambda ids, media: (ids, first(media, digest="my picture")),
    "one digest for both": lambda ids, media: (ids, first(media, digest=media.ranges[1].digest)),
    "a grid of another size": lambda ids, media: (
        ids,
        side(media, image_grid_thw=ints((2, 3), 1, 2, 4, 1, 4, 8)),
    ),
    "a grid with a row too many": lambda ids, media: (
        ids,
        side(media, image_grid_thw=ints((3, 3), 1, 2, 4, 1, 4, 4, 1, 2, 4)),
    ),
    "grid and prompt swapped": lambda ids, media: (
        ids,
        side(media, image_grid_thw=ints((2, 3), 1, 4, 4, 1, 2, 4)),
    ),
    "a grid of zero": lambda ids, media: (
        ids,
        side(media, image_grid_thw=ints((2, 3), 1, 0, 4, 1, 4, 4)),
    ),
    "lengths that do not add up": lambda ids, media: (
        ids,
        side(media, patches_per_image=ints((2,), 8, 15)),
    ),
    "lengths of other items": lambda ids, media: (
        ids,
        side(media, patches_per_image=ints((2,), 16, 8)),
    ),
    "lengths that are no whole numbers": lambda ids, media: (
        ids,
        side(media, patches_per_image=Tensor((2,), "float32", (struct.pack("<2f", 8, 16),))),
    ),
    "bytes missing": lambda ids, media: (ids, pixels(media, pieces=media.pixels.pieces[:1])),
    "another shape": lambda ids, media: (ids, pixels(media, shape=(24, 11))),
    "another width": lambda ids, media: (ids, pixels(media, dtype="float16")),
    "8-bit values for an engine that does not normalise": lambda ids, media: (
        ids,
        pixels(media, dtype="uint8", shape=(24, 48)),
    ),
    "a key of nothing": lambda ids, media: (ids, replace(media, batched_keys=("video_grid_thw",))),
    "a key that is cut twice": lambda ids, media: (
        ids,
        replace(media, batched_keys=(*media.batched_keys, "pixel_values")),
    ),
    "pixels that are not cut": lambda ids, media: (ids, replace(media, flat_keys={})),
}


def test_what_families_make_passes() -> None:
    for ids, media in (qwen_batch(), qwen_batch([(1, 2, 4)]), llava_batch()):
        check_media(request_of(ids, media), CARD)
        check_media(request_of(ids, media), None)


def test_one_picture_twice_passes() -> None:
    ids, media = qwen_batch([(1, 2, 4), (1, 2, 4)])
    check_media(request_of(ids, first(media, digest=media.ranges[1].digest)), CARD)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_found(name: str) -> None:
    error = refusal(*MUTATIONS[name](*qwen_batch()))
    assert error.found
    assert "engine" in error.message
    assert error.found not in error.message


@pytest.mark.parametrize("name", [name for name in MUTATIONS if "8-bit" not in name])
def test_a_mutation_is_found_without_a_card(name: str) -> None:
    refusal(*MUTATIONS[name](*qwen_batch()), card=None)


def test_the_range_that_is_wrong_is_named() -> None:
    ids, media = qwen_batch()
    error = refusal(*MUTATIONS["a range one short"](ids, media))
    assert error.where == "messages[0].content[0]"


def test_an_engine_that_normalises_gets_bytes_and_no_other_one() -> None:
    card = MediaCard(ways=frozenset({"tensors"}), device_normalizes=True)
    check_media(request_of(*qwen_batch(dtype="uint8")), card)
    assert "normalises" in refusal(*qwen_batch(dtype="bfloat16"), card=card).found
    assert "normalise" in refusal(*qwen_batch(dtype="uint8")).found


def test_an_engine_that_fetches_a_prompt_need_not_take_pixels_as_its_partner_does() -> None:
    card = MediaCard(ways=frozenset({"tensors"}), device_normalizes=True)
    kinds: list[tuple[Dtype, MediaCard]] = [("uint8", CARD), ("bfloat16", card)]
    for dtype, taker in kinds:
        asked = replace(request_of(*qwen_batch(dtype=dtype)), transfer=FETCHES)
        check_media(asked, taker)
        working = replace(asked, transfer=WORKS)
        with pytest.raises(MediaCheckError, match="could not be made ready"):
            check_media(working, taker)
    with pytest.raises(MediaCheckError):
        check_media(replace(request_of(*qwen_batch(dtype="int64")), transfer=FETCHES), card)


def test_limits_of_the_engine_hold() -> None:
    assert "3 items" in refusal(*qwen_batch([(1, 2, 2)] * 3)).found
    assert "5 tokens" not in refusal(*qwen_batch([(1, 2, 12)])).found
    assert "6 tokens, at most 4" in refusal(*qwen_batch([(1, 2, 12)])).found
    assert "video" in refusal(*qwen_batch(modality="video")).found
    assert "encoded" in refusal([1], EncodedBatch((b"x",))).found


def test_references_and_files_are_checked_too() -> None:
    good = MediaReference("image", "https://a.example/x.png", "p")
    check_media(request_of([1], ReferenceBatch((good,))), CARD)
    bad = MediaReference("image", "file:///etc/passwd", "messages[0].content[1]")
    error = refusal([1], ReferenceBatch((good, bad)))
    assert error.where == "messages[0].content[1]"
    assert "passwd" not in error.found
    refusal([1], ReferenceBatch(()))
    refusal([1], ReferenceBatch((good,) * 3))
    encoded = MediaCard(ways=frozenset({"encoded"}))
    check_media(request_of([1], EncodedBatch((b"x",))), encoded)
    refusal([1], EncodedBatch((b"",)), card=encoded)
    refusal([1], EncodedBatch(()), card=encoded)


def test_the_line_for_the_log_has_shapes_and_no_content() -> None:
    _, media = qwen_batch()
    line = shapes(media)
    assert "pixel_values float32[24, 12]" in line
    assert "4+2(2)" in line
    url = MediaReference("image", "https://a.example/secret?token=1", "p")
    assert shapes(ReferenceBatch((url,))) == "1 references"
    assert shapes(EncodedBatch((b"abc",))) == "1 files of [3] bytes"
