"""The prefix index against naive models of what it ought to know: never more, and usually the same."""

from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.engines.kv_events import (
    CURSOR_CODE,
    LOST_CODE,
    KvBatch,
    KvBlock,
    KvCleared,
    KvEvent,
    KvRemoved,
    KvSnapshot,
    KvStored,
    Tier,
)
from smg_node.engines.load import Load
from smg_node.routing.kv_index.block_hash import chain, link, raw_ids, root_of
from smg_node.routing.kv_index.kv_event_consumer import KvFollower, Verdict
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from support.fleet.naive_caches import NaiveCache, Path
from support.fleet.naive_index import ASSUMED, CONFIRMED, NaiveIndex
from support.tools.compiled_forms import twins
from support.tools.example_counts import example_count

BLOCK = 6
ROOT = root_of("m", "d", seed=1)
TIERS = st.sampled_from([Tier.DEVICE, Tier.HOST, Tier.DISK, Tier.EXTERNAL])
# Two letters: prompts then share beginnings all the time, and part in the middle of blocks.
PROMPTS = st.lists(st.integers(0, 1), max_size=40).map(tuple)


def score(index: PrefixIndex, prompt: Sequence[int], now_s: float = 0.0) -> dict[str, float]:
    return index.match(chain(ROOT, array("I", prompt), BLOCK), now_s)


# ── Chains ───────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(0, 2**32 - 1), max_size=40), st.integers(1, 9), st.integers(0, 12))
def test_a_chain_is_its_links_and_every_part_of_it_a_chain(
    ids: list[int], block: int, upto: int
) -> None:
    whole = chain(ROOT, array("I", ids), block)
    assert len(whole) == len(ids) // block
    ends = range(0, len(ids) + 1, block)
    for at, (start, end) in enumerate(pairwise(ends)):
        above = whole[at - 1] if at else ROOT
        assert whole[at] == link(above, bytes(raw_ids(array("I", ids[start:end]))))
    assert chain(ROOT, array("I", ids), block, upto) == whole[:upto]
    if whole:
        assert chain(whole[0], array("I", ids[block:]), block) == whole[1:]


# ── One engine, followed ─────────────────────────────────────────────────────


@settings(max_examples=80, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 3, 4, 5, 6, 7, 9, 12, 18]))
def test_a_followed_cache_is_known_exactly_whatever_the_engines_block_size(
    data: st.DataObject, size: int
) -> None:
    index = PrefixIndex(block=BLOCK)
    follower = KvFollower("w", index, root=lambda adapter, salt: ROOT)
    cache = NaiveCache(size)
    prompts = data.draw(st.lists(PROMPTS, min_size=1, max_size=5))
    for sequence in range(data.draw(st.integers(1, 25))):
        event: KvEvent
        what = data.draw(st.sampled_from(["store", "store", "store", "remove", "clear"]))
        if what == "store":
            prompt = data.draw(st.sampled_from(prompts))
            # An engine tells only what is new to it: behind something that it has.
            known = [at for at in range(len(prompt) // size + 1) if _has(cache, prompt, at)]
            event = cache.store(prompt, data.draw(st.sampled_from(known)), data.draw(TIERS))
        elif what == "remove" and cache.copies:
            event = cache.remove(data.draw(st.sampled_from(sorted(cache.copies))), data.draw(TIERS))
        else:
            cache.copies.clear()
            event = KvCleared()
        assert follower.feed(KvBatch(sequence, (event,)), 0.0) is Verdict.GO_ON
        for prompt in prompts:
            known_score = score(index, prompt).get("w", 0.0)
            assert known_score == pytest.approx(cache.score(prompt, BLOCK))
    assert follower.orphans == follower.refused == follower.confused == 0


def _has(cache: NaiveCache, prompt: Path, blocks: int) -> bool:
    return not blocks or prompt[: blocks * cache.size] in cache.copies


@settings(max_examples=example_count(100), deadline=None)
@given(st.data(), st.sampled_from([1, 3, 4, 6, 12]))
def test_events_in_any_order_lead_to_no_more_than_is_held(data: st.DataObject, size: int) -> None:
    """Children before parents, removals of what waits, batches that never arrive."""
    index = PrefixIndex(block=BLOCK)
    follower = KvFollower("w", index, root=lambda adapter, salt: ROOT)
    cache, sequence, now_s = NaiveCache(size), 0, 0.0
    prompts = data.draw(st.lists(PROMPTS, min_size=1, max_size=4))
    for _ in range(data.draw(st.integers(1, 25))):
        now_s += data.draw(st.sampled_from([0.0, 0.1, 3.0]))
        prompt = data.draw(st.sampled_from(prompts))
        blocks = len(prompt) // size
        event: KvEvent
        if data.draw(st.booleans()):
            event = cache.store(prompt, data.draw(st.integers(0, blocks)), Tier.DEVICE)
        else:
            end = data.draw(st.integers(0, blocks)) * size
            event = cache.remove(prompt[:end], Tier.DEVICE)
        sequence += 1
        if data.draw(st.sampled_from([False, False, False, True])):
            continue  # lost on the way
        if follower.feed(KvBatch(sequence, (event,)), now_s) is Verdict.RESYNC:
            assert follower.start == 0
            assert not score(index, prompt, now_s)
            # It begins anew with an engine that tells all it holds, as a snapshot does.
            cache.copies.clear()
        for one in prompts:
            assert score(index, one, now_s).get("w", 0.0) <= cache.score(one, BLOCK) + 1e-9


# ── Many engines, and a small house ──────────────────────────────────────────


CHAINS = [
    chain(ROOT, array("I", [*start, *rest]), 2)
    for start in ([0] * 6, [0] * 3 + [1] * 3)
    for rest in ([2] * 8, [3] * 9, [2] * 4 + [4] * 4)
]
WORKERS = ("a", "b", "c")
KINDS = {Tier.DEVICE: "device", Tier.HOST: "host", Tier.DISK: "far", Tier.EXTERNAL: "far"}


class Watcher:
    """What one who watches believes to be confirmed."""

    def __init__(self, index: PrefixIndex) -> None:
        self.held: dict[str, set[int]] = {worker: set() for worker in WORKERS}
        index.watch(self._add, self._remove, self._clear)

    def _add(self, worker: str, one: int) -> None:
        assert one not in self.held[worker]
        self.held[worker].add(one)

    def _remove(self, worker: str, one: int) -> None:
        self.held[worker].remove(one)

    def _clear(self, worker: str, *, perhaps: bool) -> None:  # is confirmed no more either way
        self.held[worker].clear()


def _drive(data: st.DataObject, index: PrefixIndex, *, exact: bool, entries_max: int) -> None:
    naive, watcher, now_s = NaiveIndex(exact=exact), Watcher(index), 0.0
    for _ in range(data.draw(st.integers(1, 40))):
        now_s += data.draw(st.sampled_from([0.0, 0.0, 1.0, 50.0]))
        worker, rank = data.draw(st.sampled_from(WORKERS)), data.draw(st.integers(0, 1))
        hashes = data.draw(st.sampled_from(CHAINS))
        hashes = hashes[data.draw(st.integers(0, 2)) : data.draw(st.integers(3, 7))]
        _act(data, index, naive, worker, rank, hashes, now_s)
        index.sweep(data.draw(st.sampled_from([0, 3, 1000])))
        assert index.figures().entries <= entries_max
        for one in WORKERS:
            held = index.held(one)
            assert len(held) == len(set(held))
            assert set(held) == watcher.held[one] <= naive.confirmed(one)
        for prompt in CHAINS:
            found = index.match(prompt, now_s)
            for one in WORKERS:
                expected, said = naive.score(one, prompt, now_s), found.get(one, 0.0)
                assert said == pytest.approx(expected) if exact else said <= expected + 1e-9
                ranks = naive.by_rank(one, prompt, now_s, whole=False)
                had = index.match_ranks(one, prompt, now_s)
                assert not exact or had == pytest.approx(ranks)
                assert all(score <= ranks.get(at, 0.0) + 1e-9 for at, score in had.items())
                assert all(score <= said + 1e-9 for score in had.values())


def _act(
    data: st.DataObject,
    index: PrefixIndex,
    naive: NaiveIndex,
    worker: str,
    rank: int,
    hashes: Sequence[int],
    now_s: float,
) -> None:
    acts = ["stored", "stored", "removed", "clear", "sent", "other", "other"]
    what = data.draw(st.sampled_from(acts))
    tier = data.draw(TIERS)
    kind = f"{KINDS[tier]}{rank}"
    if what == "stored":
        index.stored(worker, hashes, tier, now_s, rank=rank)
        naive.drop(worker, hashes, "assumed", f"assumed{rank}", "told")
        naive.put(worker, hashes, kind)
    elif what == "removed":
        index.removed(worker, hashes, tier, rank=rank)
        naive.drop(worker, hashes, "assumed", f"assumed{rank}", "told", kind)
    elif what == "clear":
        index.clear(worker, rank=rank)
        kinds = [f"{kind}{rank}" for kind in ("assumed", "device", "host", "far")]
        naive.drop_all(worker, "told", "assumed", *kinds)
    elif what == "sent":
        index.assume(worker, hashes, now_s, rank=rank)
        naive.guess(worker, hashes, f"assumed{rank}", (now_s // 45 + 4) * 45)
    else:
        _hear_others(data, index, naive, worker, hashes, now_s)


_OF_OTHERS = (
    "assume",
    "tell",
    "untell",
    "untell_all",
    "unlearn",
    "forget",
    "doubt",
    "doubt_told",
)


def _hear_others(
    data: st.DataObject,
    index: PrefixIndex,
    naive: NaiveIndex,
    worker: str,
    hashes: Sequence[int],
    now_s: float,
) -> None:
    what = data.draw(st.sampled_from(_OF_OTHERS))
    if what == "assume":
        index.assume(worker, hashes, now_s)
        naive.guess(worker, hashes, "assumed", (now_s // 45 + 4) * 45)
    elif what == "tell":
        index.tell(worker, hashes, now_s)
        naive.guess(worker, hashes, "told")
    elif what == "untell":
        index.untell(worker, hashes)
        naive.drop(worker, hashes, "told", *ASSUMED)
    elif what == "untell_all":
        index.untell_all(worker)
        naive.drop_all(worker, "told")
    elif what == "unlearn":
        index.unlearn(worker)
        naive.drop_all(worker, *CONFIRMED)
    elif what == "doubt":
        index.doubt(worker, now_s)
        naive.doubt(worker, CONFIRMED, (now_s // 45 + 4) * 45)
    elif what == "doubt_told":
        index.doubt_told(worker, now_s)
        naive.doubt(worker, ("told",), (now_s // 45 + 4) * 45)
    else:
        index.forget(worker)
        naive.drop_all(worker, "told", *ASSUMED, *CONFIRMED)


FORMS = [module.BlockTable for module in twins("native.block_table")]


@settings(max_examples=80, deadline=None)
@given(st.data(), st.sampled_from(FORMS))
def test_an_index_with_room_knows_exactly_what_was_said(data: st.DataObject, form: Any) -> None:
    _drive(data, PrefixIndex(block=2, table=form()), exact=True, entries_max=10**6)


@settings(max_examples=80, deadline=None)
@given(st.data(), st.sampled_from(FORMS), st.integers(1, 12), st.integers(3, 8))
def test_an_index_without_room_knows_less_and_nothing_false(
    data: st.DataObject, form: Any, entries_max: int, sets_max: int
) -> None:
    index = PrefixIndex(block=2, entries_max=entries_max, sets_max=sets_max, table=form())
    _drive(data, index, exact=False, entries_max=entries_max)


# ── Garbage ──────────────────────────────────────────────────────────────────

NAMES = st.one_of(st.integers(0, 5), st.integers(-(2**63), 2**64))
BLOCKS = st.builds(
    KvBlock,
    NAMES,
    st.lists(st.integers(0, 3), max_size=20).map(lambda ids: array("I", ids)),
    st.booleans(),
)
EVENTS = st.one_of(
    st.builds(
        KvStored,
        st.one_of(st.none(), NAMES),
        st.lists(BLOCKS, max_size=4).map(tuple),
        TIERS,
        st.sampled_from(["", "x"]),
        st.text(max_size=3),
    ),
    st.builds(KvRemoved, st.lists(NAMES, max_size=4).map(tuple), TIERS),
    st.just(KvCleared()),
)
LOAD = Load(0, 1, 2, None, None, 0.5, None, None)
BATCHES = st.builds(
    KvBatch,
    st.one_of(st.integers(0, 6), st.integers(0, 2**64 - 1)),
    st.lists(EVENTS, max_size=4).map(tuple),
    st.integers(0, 2),
    st.sampled_from([None, LOAD]),
    st.booleans(),
    st.one_of(
        st.none(), st.builds(KvSnapshot, st.integers(0, 3), st.integers(0, 3), st.integers(0, 9))
    ),
)


@settings(max_examples=example_count(200), deadline=None)
@given(
    st.lists(
        st.one_of(BATCHES, st.sampled_from([CURSOR_CODE, LOST_CODE, "other", "closed"])),
        max_size=30,
    )
)
def test_garbage_from_an_engine_is_taken_in_or_refused_and_never_raises(
    said: list[KvBatch | str],
) -> None:
    index = PrefixIndex(block=2, entries_max=20)
    watcher = Watcher(index)
    follower = KvFollower("a", index, root=lambda adapter, salt: len(adapter + salt), blocks_max=8)
    for at, one in enumerate(said):
        if isinstance(one, str):
            follower.closed(float(at)) if one == "closed" else follower.lost(one)
        elif follower.feed(one, float(at)) is Verdict.RESYNC:
            assert index.held("a") == []
        assert follower.blocks <= 8
        assert follower.start >= 0
        assert set(index.held("a")) == watcher.held["a"]
        assert index.figures().entries <= 20
