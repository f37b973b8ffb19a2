from array import array
from collections.abc import Sequence

import pytest

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
from smg_node.routing.kv_index.block_hash import chain, root_of
from smg_node.routing.kv_index.kv_event_consumer import RANKS_MAX, KvFollower, Verdict
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from support.fleet.naive_caches import removed, stored

BLOCK, SIZE = 4, 2
PROMPT = (1, 2, 3, 4, 5, 6, 7, 8)
OTHER = (1, 2, 3, 9, 5, 6, 7, 8)


class Scene:
    """One worker's follower, fed batch by batch."""

    def __init__(self, **options: int) -> None:
        self.index = PrefixIndex(block=BLOCK)
        self.follower = KvFollower("w", self.index, root=root, **options)
        self.sequence = 100

    def feed(self, *events: KvEvent, now_s: float = 0.0, rank: int = 0, skip: int = 0) -> Verdict:
        self.sequence += 1 + skip
        return self.follower.feed(KvBatch(self.sequence, events, rank), now_s)

    def known(self, prompt: Sequence[int] = PROMPT, adapter: str = "", now_s: float = 0.0) -> float:
        hashes = chain(root(adapter, ""), array("I", prompt), BLOCK)
        return self.index.match(hashes, now_s).get("w", 0.0)


def root(adapter: str, salt: str) -> int:
    return root_of("m", "d", adapter=adapter, salt=salt, seed=1)


@pytest.fixture
def scene() -> Scene:
    return Scene()


# ── What is stored and removed ───────────────────────────────────────────────


def test_a_block_of_ours_counts_when_all_its_children_are_there(scene: Scene) -> None:
    scene.feed(stored(PROMPT[:2], SIZE))
    assert scene.known() == 0
    scene.feed(stored(PROMPT[:4], SIZE, 1))
    assert scene.known() == 1
    scene.feed(stored(PROMPT, SIZE, 2))
    assert scene.known() == 2
    scene.feed(removed(PROMPT[:6]))
    assert scene.known() == 1
    scene.feed(stored(PROMPT[:6], SIZE, 2))
    assert scene.known() == 2


def test_prompts_may_part_in_the_midst_of_our_block(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE), stored(OTHER, SIZE, 1))
    assert scene.known(PROMPT) == scene.known(OTHER) == 2
    scene.feed(removed(PROMPT[:2]))
    assert scene.known(PROMPT) == scene.known(OTHER) == 0
    scene.feed(stored(PROMPT[:2], SIZE))
    assert scene.known(PROMPT) == scene.known(OTHER) == 2


def test_copies_are_counted(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE), stored(PROMPT, SIZE, 3), stored(PROMPT, SIZE, 3))
    for _ in range(2):
        scene.feed(removed(PROMPT))
        assert scene.known() == 2
    scene.feed(removed(PROMPT, PROMPT))
    assert scene.known() == 1
    scene.feed(stored(PROMPT, SIZE, 3))
    assert scene.known() == 2


def test_a_block_is_as_far_away_as_the_furthest_of_its_children(scene: Scene) -> None:
    scene.feed(stored(PROMPT[:4], SIZE), stored(PROMPT[:4], SIZE, 1, tier=Tier.HOST))
    assert scene.known() == 1.0
    scene.feed(removed(PROMPT[:4]))
    assert scene.known() == 0.6
    scene.feed(stored(PROMPT[:2], SIZE, tier=Tier.EXTERNAL), removed(PROMPT[:2]))
    assert scene.known() == 0.3
    scene.feed(stored(PROMPT[:4], SIZE))
    assert scene.known() == 1.0
    scene.feed(removed(PROMPT[:2], PROMPT[:4]), removed(PROMPT[:4], tier=Tier.HOST))
    assert scene.known() == 0.0


def test_an_unknown_removal_changes_nothing(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE), removed(OTHER), removed(PROMPT, tier=Tier.DISK))
    assert scene.known() == 2


def test_what_is_cleared_is_gone_with_what_was_assumed(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE))
    scene.index.assume("w", chain(root("", ""), array("I", OTHER), BLOCK), 0.0)
    scene.feed(KvCleared(), stored(PROMPT[:4], SIZE))
    assert scene.known(PROMPT) == 1
    assert scene.known(OTHER) == 0
    assert scene.follower.blocks == 2


def test_adapters_and_salts_are_prompts_of_their_own(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE, namespace="x"))
    assert scene.known() == 0
    assert scene.known(adapter="x") == 2
    salted = KvStored(None, stored(PROMPT, SIZE).blocks, salt="s")
    scene.feed(salted)
    assert scene.known() == 0
    hashes = chain(root("", "s"), array("I", PROMPT), BLOCK)
    assert scene.index.match(hashes, 0.0) == {"w": 2.0}


def test_nobody_can_match_a_block_that_more_than_ids_went_into(scene: Scene) -> None:
    whole = stored(PROMPT, SIZE)
    with_image = (*whole.blocks[:2], KvBlock(77, array("I", PROMPT[4:6]), plain=False))
    scene.feed(KvStored(None, with_image))
    scene.feed(KvStored(77, (KvBlock(78, array("I", PROMPT[6:])),)))
    assert scene.known() == 1
    assert scene.follower.blocks == 4
    assert scene.follower.orphans == 0
    scene.feed(KvRemoved((77, 78)))
    assert scene.follower.blocks == 2


def test_a_parent_that_is_gone_is_kept_for_its_children_and_no_longer(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE), removed(PROMPT[:2], PROMPT[:4], PROMPT[:6]))
    assert scene.follower.blocks == 4
    scene.feed(removed(PROMPT))
    assert scene.follower.blocks == 0
    scene.feed(stored(PROMPT, SIZE))
    assert scene.known() == 2


# ── Parents that come late ───────────────────────────────────────────────────


def test_children_wait_for_their_parents(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE, 3))
    scene.feed(stored(PROMPT[:6], SIZE, 2))
    assert scene.known() == 0
    scene.feed(stored(PROMPT[:4], SIZE), now_s=4.9)
    assert scene.known() == 2
    assert scene.follower.orphans == 0


def test_children_do_not_wait_for_ever(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE, 2))
    scene.feed(stored(OTHER, SIZE), now_s=5.0)
    assert scene.follower.orphans == 2
    scene.feed(stored(PROMPT[:4], SIZE, 1), now_s=5.1)
    assert scene.known() == 1


def test_what_is_removed_while_it_waits_is_not_there_when_its_parent_comes(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE, 2), removed(PROMPT))
    scene.feed(stored(PROMPT[:4], SIZE))
    assert scene.known() == 1
    assert scene.follower.blocks == 3
    scene.feed(stored(PROMPT, SIZE, 3))
    assert scene.known() == 2


def test_what_is_removed_while_it_waits_still_leads_to_what_follows_it(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE, 2), removed(PROMPT[:6]), stored((*PROMPT, 9, 9), SIZE, 4))
    scene.feed(stored(PROMPT[:4], SIZE))
    assert scene.known() == 1
    scene.feed(stored(PROMPT[:6], SIZE, 2))
    assert scene.known() == 2


def test_only_so_many_wait() -> None:
    scene = Scene()
    for at in range(1100):
        scene.feed(stored((at, at, 1, 2), SIZE, 1))
    assert scene.follower.orphans == 100
    scene.feed(now_s=6.0)
    assert scene.follower.orphans == 1100


# ── Numbers ──────────────────────────────────────────────────────────────────


def test_the_first_number_may_be_any(scene: Scene) -> None:
    assert scene.follower.start == 0
    assert scene.feed(stored(PROMPT, SIZE)) is Verdict.GO_ON
    assert scene.follower.start == 102


@pytest.mark.parametrize("skip", [1, -1, -50, 1000])
def test_after_a_hole_nothing_is_known_and_all_begins_anew(scene: Scene, skip: int) -> None:
    scene.feed(stored(PROMPT, SIZE))
    assert scene.feed(stored(OTHER, SIZE), skip=skip) is Verdict.RESYNC
    assert scene.known(PROMPT) == scene.known(OTHER) == 0
    assert scene.follower.start == 0
    assert (scene.follower.gaps, scene.follower.resyncs) == (1, 1)
    assert scene.feed(stored(OTHER, SIZE), skip=5) is Verdict.GO_ON
    assert scene.known(OTHER) == 2


def test_what_was_assumed_outlives_a_hole(scene: Scene) -> None:
    scene.feed(stored(OTHER, SIZE))
    scene.index.assume("w", chain(root("", ""), array("I", PROMPT), BLOCK), 0.0)
    scene.feed(skip=3)
    assert scene.known() == 1.0


def test_a_batch_that_only_carries_load_has_no_number(scene: Scene) -> None:
    scene.follower.feed(KvBatch(0, load_only=True), 0.0)
    scene.feed(stored(PROMPT, SIZE))
    for sequence in (101, 0, 7):
        batch = KvBatch(sequence, (KvCleared(),), load_only=True)
        assert scene.follower.feed(batch, 0.0) is Verdict.GO_ON
    assert scene.feed(stored(OTHER, SIZE)) is Verdict.GO_ON
    assert scene.known(PROMPT) == scene.known(OTHER) == 2


@pytest.mark.parametrize("code", [CURSOR_CODE, LOST_CODE])
def test_a_refused_cursor_and_a_lost_history_end_what_is_known(scene: Scene, code: str) -> None:
    scene.feed(stored(PROMPT, SIZE))
    scene.follower.lost(code)
    assert scene.known() == 0
    assert scene.follower.start == 0
    assert scene.feed(stored(PROMPT, SIZE), skip=-90) is Verdict.GO_ON


def test_any_other_error_ends_nothing(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE))
    scene.follower.lost("unreachable")
    assert scene.known() == 2
    assert scene.follower.start == 102


def test_while_the_stream_is_away_a_worker_is_unknown_and_not_empty(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE))
    scene.follower.closed(10.0)
    assert scene.known(now_s=24.0) == 2
    assert scene.known(now_s=26.0) == 1
    assert scene.feed(now_s=30.0) is Verdict.GO_ON
    assert scene.known(now_s=31.0) == 2


def test_a_load_record_shows_that_the_stream_is_back(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE))
    scene.follower.closed(10.0)
    scene.follower.feed(KvBatch(101, load_only=True), 30.0)
    assert scene.known(now_s=31.0) == 2


# ── Ranks ────────────────────────────────────────────────────────────────────


def test_every_rank_has_numbers_and_a_cache_of_its_own(scene: Scene) -> None:
    scene.feed(stored(PROMPT[:4], SIZE))
    scene.sequence = 7
    scene.feed(stored(OTHER, SIZE), rank=1)
    assert scene.feed(removed(OTHER), rank=1) is Verdict.GO_ON
    assert scene.known(PROMPT) == scene.known(OTHER) == 1
    assert scene.feed(stored(PROMPT, SIZE), rank=1) is Verdict.GO_ON
    assert scene.known(PROMPT) == 2
    scene.feed(KvCleared(), rank=1)
    assert scene.known(PROMPT) == 1


def test_a_hole_on_one_rank_ends_all_of_them(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE))
    scene.feed(stored(OTHER, SIZE), rank=1)
    assert scene.feed(rank=1, skip=1) is Verdict.RESYNC
    assert scene.known(PROMPT) == scene.known(OTHER) == 0


def test_several_ranks_have_no_common_cursor_so_a_break_begins_anew(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE))
    scene.feed(stored(OTHER, SIZE), rank=1)
    scene.follower.closed(0.0)
    assert scene.follower.start == 0
    assert scene.known(now_s=1.0) == 2
    assert scene.feed(stored(OTHER, SIZE), skip=40, rank=1) is Verdict.GO_ON
    assert scene.known(PROMPT) == 0
    assert scene.known(OTHER) == 2
    assert scene.follower.gaps == 0


def test_more_ranks_than_an_engine_can_have_are_refused(scene: Scene) -> None:
    for rank in range(RANKS_MAX + 5):
        assert scene.feed(rank=rank) is Verdict.GO_ON
    assert scene.follower.refused == 5


# ── Snapshots ────────────────────────────────────────────────────────────────


def snapshot(sequence: int, index: int, count: int, *events: KvEvent) -> KvBatch:
    return KvBatch(sequence, events, snapshot=KvSnapshot(index, count, unknown_before=4))


def test_a_snapshot_is_all_there_is(scene: Scene) -> None:
    scene.feed(stored(OTHER, SIZE))
    scene.index.assume("w", chain(root("", ""), array("I", (5,) * 8), BLOCK), 0.0)
    follower = scene.follower
    assert (
        follower.feed(snapshot(7, 0, 2, KvCleared(), stored(PROMPT[:4], SIZE)), 0.0)
        is Verdict.GO_ON
    )
    assert follower.start == 0
    assert scene.known(OTHER) == 0
    assert follower.feed(snapshot(8, 1, 2, stored(PROMPT, SIZE, 2)), 0.0) is Verdict.GO_ON
    assert scene.known() == 2
    assert follower.start == 9
    assert follower.unknown_before == 4
    assert follower.feed(KvBatch(9, (removed(PROMPT),)), 0.0) is Verdict.GO_ON
    assert scene.known() == 1
    # Nothing was flushed, so what was sent there may still be there.
    assert scene.known((5,) * 8) == 1.0


@pytest.mark.parametrize(
    "wrong", [snapshot(9, 2, 3), snapshot(9, 1, 3), KvBatch(8), snapshot(8, 2, 3)]
)
def test_a_snapshot_with_a_hole_is_worth_nothing(scene: Scene, wrong: KvBatch) -> None:
    scene.follower.feed(snapshot(7, 0, 3, stored(PROMPT, SIZE)), 0.0)
    assert scene.follower.feed(wrong, 0.0) is Verdict.RESYNC
    assert scene.known() == 0


def test_a_broken_snapshot_begins_again(scene: Scene) -> None:
    scene.follower.feed(snapshot(7, 0, 3, stored(PROMPT, SIZE)), 0.0)
    scene.follower.closed(0.0)
    assert scene.follower.start == 0
    scene.follower.feed(snapshot(7, 0, 1, stored(OTHER, SIZE)), 1.0)
    assert scene.known(PROMPT) == 0
    assert scene.known(OTHER) == 2


# ── Bounds and nonsense ──────────────────────────────────────────────────────


def test_an_engine_with_too_many_blocks_has_some_unknown_to_us() -> None:
    scene = Scene(blocks_max=3)
    scene.feed(stored(PROMPT, SIZE))
    assert scene.known() == 1
    assert (scene.follower.blocks, scene.follower.refused) == (3, 1)
    scene.feed(removed(PROMPT[:6]), stored((9, 9, 9, 9), SIZE))
    assert scene.follower.blocks == 3
    assert scene.follower.refused == 2


def test_a_name_that_stands_for_two_blocks_is_believed_once(scene: Scene) -> None:
    scene.feed(stored(PROMPT, SIZE))
    first, last = stored(PROMPT, SIZE).blocks[0], stored(PROMPT, SIZE).blocks[-1]
    scene.feed(KvStored(first.hash, (KvBlock(last.hash, array("I", (3, 3))),)))
    assert scene.follower.confused == 1
    assert scene.known() == 2


def test_blocks_without_ids_and_endless_ones_are_refused(scene: Scene) -> None:
    scene.feed(KvStored(None, (KvBlock(1, array("I")), KvBlock(2, array("I", (1, 2))))))
    scene.feed(KvStored(None, (KvBlock(3, array("I", bytes(4 << 14))),)))
    assert scene.follower.refused == 2
    assert scene.follower.blocks == 0
