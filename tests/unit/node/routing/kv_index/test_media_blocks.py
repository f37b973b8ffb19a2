"""Blocks after a picture are the same for the same picture only, whoever names them: the prompt's side or an engine's."""

from array import array
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.engines.kv_events import KvBatch, KvBlock, KvStored, Tier
from smg_node.routing.kv_index.block_hash import chain, chain_with_media, root_of
from smg_node.routing.kv_index.kv_event_consumer import KvFollower
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from smg_node.routing.kv_index.prompt_lookup import PromptLookups
from smg_node.routing.pool import Pool
from support.engine_media.media_requests import digest
from support.fleet.worker_pools import load

ROOT = root_of("m", "d", seed=1)
BLOCK = 64
Places = list[tuple[str, int, int]]
"""Pictures of a prompt: identity, offset, length."""


def prompt_of(places: Places, tokens: int) -> "array[int]":
    ids = array("I", range(1, tokens + 1))
    for _, offset, length in places:
        for at in range(offset, min(offset + length, tokens)):
            ids[at] = 151_655
    return ids


def starts(places: Places) -> list[tuple[str, int]]:
    return [(name, offset) for name, offset, _ in places]


def stored(ids: "array[int]", places: Places, size: int, first: int = 0) -> list[KvBlock]:
    """The blocks of an engine that publishes them as vLLM does, less what the reader leaves out."""
    found = []
    for at in range(len(ids) // size):
        begin = at * size
        media = tuple(
            (name, offset - begin) for name, offset, _ in places if begin <= offset < begin + size
        )
        found.append(KvBlock(first + at, ids[begin : begin + size], media=media))
    return found


def heard(*runs: Sequence[KvBlock]) -> PrefixIndex:
    index = PrefixIndex(block=BLOCK)
    follower = KvFollower("w", index, root=lambda adapter, salt: ROOT)
    for number, blocks in enumerate(runs):
        follower.feed(KvBatch(number, (KvStored(None, tuple(blocks)),)), 0.0)
    assert not follower.confused
    return index


def matched(index: PrefixIndex, ids: "array[int]", places: Places) -> float:
    lookup = PromptLookups(index).of(ROOT, ids, 0.0, starts(places))
    return lookup.overlaps(Pool([load("w")]))[0]


places_of_prompts = st.lists(st.tuples(st.integers(0, 90), st.integers(1, 150)), max_size=6).map(
    lambda gaps: [
        (digest(at), sum(g + n for g, n in gaps[:at]) + gap, length)
        for at, (gap, length) in enumerate(gaps)
        for gap, length in [(gap, length)]
    ]
)


@given(
    places=places_of_prompts,
    size=st.sampled_from([1, 16, 32, 48, 64, 128]),
    extra=st.integers(0, 200),
)
def test_both_sides_name_the_same_blocks(places: Places, size: int, extra: int) -> None:
    end = max((offset + length for _, offset, length in places), default=0)
    ids = prompt_of(places, end + extra)
    index = heard(stored(ids, places, size))
    known = len(ids) // size * size // BLOCK * BLOCK
    assert matched(index, ids, places) == known


@given(places=places_of_prompts.filter(bool), size=st.sampled_from([16, 32, 128]), data=st.data())
def test_another_picture_has_nothing_behind_the_text_before_it(
    places: Places, size: int, data: st.DataObject
) -> None:
    end = max(offset + length for _, offset, length in places)
    ids = prompt_of(places, end + 130)
    index = heard(stored(ids, places, size))
    which = data.draw(st.integers(0, len(places) - 1))
    name, offset, length = places[which]
    others = [*places[:which], (digest("other"), offset, length), *places[which + 1 :]]
    assert matched(index, ids, others) == offset // BLOCK * BLOCK
    assert matched(index, ids, places[:which] + places[which + 1 :]) == offset // BLOCK * BLOCK
    assert name != digest("other")


def test_a_picture_elsewhere_in_the_same_block_is_another_block() -> None:
    ids = prompt_of([], 64)
    hashes = {
        tuple(chain_with_media(ROOT, ids, media))
        for media in (
            [],
            [("a", 0)],
            [("a", 1)],
            [("b", 0)],
            [("a", 0), ("b", 1)],
            [("a", 1), ("b", 0)],
        )
    }
    assert len(hashes) == 6


@given(tokens=st.integers(0, 700), upto=st.none() | st.integers(0, 12))
def test_without_pictures_the_chain_is_the_one_of_text(tokens: int, upto: int | None) -> None:
    ids = prompt_of([], tokens)
    assert chain_with_media(ROOT, ids, [], BLOCK, upto) == chain(ROOT, ids, BLOCK, upto)


@given(places=places_of_prompts, cut=st.integers(0, 15))
def test_a_chain_may_be_hashed_in_two_steps(places: Places, cut: int) -> None:
    ids = prompt_of(places, 1000)
    whole = chain_with_media(ROOT, ids, starts(places), BLOCK)
    first = chain_with_media(ROOT, ids, starts(places), BLOCK, cut)
    assert first == whole[:cut]
    begin = cut * BLOCK
    rest = [(name, offset - begin) for name, offset in starts(places) if offset >= begin]
    assert first + chain_with_media(first[-1] if first else ROOT, ids[begin:], rest, BLOCK) == whole


def test_a_picture_begun_in_one_batch_goes_on_in_the_next() -> None:
    places = [(digest(1), 10, 300)]
    ids = prompt_of(places, 512)
    blocks = stored(ids, places, 16)
    index = PrefixIndex(block=BLOCK)
    follower = KvFollower("w", index, root=lambda adapter, salt: ROOT)
    for number, block in enumerate(blocks):
        parent = blocks[number - 1].hash if number else None
        follower.feed(KvBatch(number, (KvStored(parent, (block,)),)), 0.0)
    assert matched(index, ids, places) == 512


@pytest.mark.parametrize("tokens", [40, 640, 64 * 200])
def test_what_was_sent_and_answered_is_assumed_with_its_pictures(tokens: int) -> None:
    index = PrefixIndex(block=BLOCK)
    lookups = PromptLookups(index)
    places = [(digest(1), 5, 20)]
    ids = prompt_of(places, tokens)
    prompt = lookups.of(ROOT, ids, 0.0, starts(places))
    lookups.dispatched(prompt, "w", 0.0)
    more = array("I", range(5000, 5130))
    lookups.answered(prompt, more, "w", 0.0)
    longer = ids + more + array("I", [1, 2, 3])
    pool = Pool([load("w")])
    again = PromptLookups(index).of(ROOT, longer, 0.1, starts(places))
    assert again.overlaps(pool)[0] > 0
    for other in ([(digest(2), 5)], []):
        assert PromptLookups(index).of(ROOT, longer, 0.1, other).overlaps(pool)[0] == 0


def test_the_first_block_tells_pictures_apart_for_sticky_routing() -> None:
    lookups = PromptLookups(PrefixIndex(block=BLOCK))
    ids = prompt_of([], 128)
    firsts = {lookups.of(ROOT, ids, 0.0, media).first() for media in ([], [("a", 3)], [("b", 3)])}
    assert len(firsts) == 3


def test_a_removed_block_with_a_picture_is_forgotten() -> None:
    places = [(digest(1), 10, 40)]
    ids = prompt_of(places, 256)
    index = heard(stored(ids, places, 64))
    index.removed("w", chain_with_media(ROOT, ids, starts(places))[1:2], Tier.DEVICE)
    assert matched(index, ids, places) == 64
