"""The tensors of each picture are slices of those of the batch, wherever the batch's own pieces end."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from smg_node.engines.contracts.media.item_cuts import items_of
from smg_node.media.engine_media import Tensor
from support.engine_media.media_requests import llava_batch, qwen_batch


def content(tensor: Tensor) -> bytes:
    return b"".join(tensor.pieces)


@given(cuts=st.lists(st.integers(0, 24 * 12 * 4), max_size=6))
def test_pieces_may_end_anywhere(cuts: list[int]) -> None:
    _, media = qwen_batch()
    whole = content(media.pixels)
    bounds = [0, *sorted(cuts), len(whole)]
    pieces = tuple(whole[a:b] for a, b in pairwise(bounds))
    items = items_of(replace(media, pixels=replace(media.pixels, pieces=pieces)))
    assert [content(item.pixels) for item in items] == [whole[: 8 * 48], whole[8 * 48 :]]
    assert [item.pixels.shape for item in items] == [(8, 12), (16, 12)]


def test_rows_of_a_batch_keep_their_axis() -> None:
    _, media = llava_batch()
    items = items_of(media)
    assert [item.pixels.shape for item in items] == [(1, 3, 4, 4)] * 2
    assert b"".join(content(item.pixels) for item in items) == content(media.pixels)
    assert [item.sides["image_sizes"].shape for item in items] == [(1, 2)] * 2


def test_what_is_not_cut_belongs_to_every_picture() -> None:
    _, media = llava_batch()
    media = replace(media, batched_keys=(media.pixel_key,))
    assert [item.sides["image_sizes"] for item in items_of(media)] == [
        media.sides["image_sizes"]
    ] * 2
