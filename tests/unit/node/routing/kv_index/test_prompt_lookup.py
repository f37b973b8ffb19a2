from array import array
from collections.abc import Sequence

import pytest

from smg_node.engines.kv_events import Tier
from smg_node.routing.kv_index.block_hash import chain, root_of
from smg_node.routing.kv_index.prefix_index import ASSUMED_S, PrefixIndex
from smg_node.routing.kv_index.prompt_lookup import PromptLookups
from smg_node.routing.policy import Beginning
from smg_node.routing.pool import Pool
from support.fleet.worker_pools import load

ROOT = root_of("m", "d", seed=1)


def ids(tokens: int) -> "array[int]":
    return array("I", range(tokens))


@pytest.fixture
def index() -> PrefixIndex:
    return PrefixIndex()


def pool(*names: str) -> Pool:
    return Pool([load(name) for name in sorted(names)])


def test_a_prompt_knows_how_much_of_it_each_candidate_has(index: PrefixIndex) -> None:
    hashes = chain(ROOT, ids(1000))
    index.stored("b", hashes, Tier.DEVICE, 0.0)
    index.stored("c", hashes[:2], Tier.DEVICE, 0.0)
    index.stored("gone", hashes, Tier.DEVICE, 0.0)
    prompt: Beginning = PromptLookups(index).of(ROOT, ids(1000), 0.0)
    assert prompt.overlaps(pool("a", "b", "c")) == [0.0, 15 * 64.0, 128.0]


def test_a_prompt_knows_how_much_of_it_each_rank_of_a_worker_has(index: PrefixIndex) -> None:
    hashes = chain(ROOT, ids(64 * 300))
    index.stored("b", hashes, Tier.DEVICE, 0.0, rank=1)
    index.stored("b", hashes[:2], Tier.DEVICE, 0.0, rank=3)
    prompt: Beginning = PromptLookups(index).of(ROOT, ids(64 * 300), 0.0)
    assert prompt.by_rank("b") == {1: 300 * 64.0, 3: 128.0}
    assert prompt.by_rank("a") == {}
    assert prompt.overlaps(pool("a", "b")) == [0.0, 300 * 64.0]
    assert PromptLookups(index).of(ROOT, ids(63), 0.0).by_rank("b") == {}


def test_a_prompt_is_assumed_on_the_rank_it_was_for_and_so_is_its_answer(
    index: PrefixIndex,
) -> None:
    beginnings = PromptLookups(index)
    prompt = beginnings.of(ROOT, ids(650), 0.0)
    beginnings.dispatched(prompt, "a", 1.0, rank=2)
    assert beginnings.of(ROOT, ids(700), 1.0).by_rank("a") == {2: 320.0}
    beginnings.answered(prompt, ids(900)[650:], "a", 2.0, rank=2)
    assert beginnings.of(ROOT, ids(1000), 3.0).by_rank("a") == {2: 14 * 32.0}


def test_one_decision_looks_a_prompt_up_once(
    index: PrefixIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[float] = []
    match = PrefixIndex.match

    def counted(self: PrefixIndex, hashes: Sequence[int], now_s: float) -> dict[str, float]:
        looked.append(now_s)
        return match(self, hashes, now_s)

    monkeypatch.setattr(PrefixIndex, "match", counted)
    prompt, one = PromptLookups(index).of(ROOT, ids(640), 0.0), pool("a", "b")
    assert prompt.overlaps(one) is prompt.overlaps(one)
    prompt.overlaps(pool("a"))
    prompt.now_s = 5.0
    index.assume("a", chain(ROOT, ids(640)), 5.0)
    assert prompt.overlaps(pool("a")) == [320.0]
    assert looked == [0.0, 0.0, 5.0]


def test_a_prompt_without_a_whole_block_has_no_beginning(index: PrefixIndex) -> None:
    beginnings = PromptLookups(index)
    prompt = beginnings.of(ROOT, ids(63), 0.0)
    assert prompt.first() == b""
    assert prompt.overlaps(pool("a")) == [0.0]
    beginnings.dispatched(prompt, "a", 0.0)
    assert index.figures().entries == 0


def test_prompts_with_the_same_first_block_share_eight_bytes(index: PrefixIndex) -> None:
    beginnings = PromptLookups(index)
    one, two = beginnings.of(ROOT, ids(64), 0.0), beginnings.of(ROOT, ids(9000), 0.0)
    assert one.first() == two.first() == chain(ROOT, ids(64))[0].to_bytes(8, "big")
    assert beginnings.of(ROOT + 1, ids(64), 0.0).first() != one.first()


def test_what_was_sent_somewhere_is_assumed_there_and_told(index: PrefixIndex) -> None:
    told: list[tuple[str, int, float]] = []

    def on_assumed(worker: str, hashes: Sequence[int], now_s: float) -> None:
        told.append((worker, len(hashes), now_s))

    beginnings = PromptLookups(index, on_assumed=on_assumed)
    prompt = beginnings.of(ROOT, ids(640), 5.0)
    assert prompt.overlaps(pool("a", "b")) == [0.0, 0.0]
    beginnings.dispatched(prompt, "b", 6.0)
    assert told == [("b", 10, 6.0)]
    assert beginnings.of(ROOT, ids(700), 7.0).overlaps(pool("a", "b")) == [0.0, 320.0]


def test_a_later_attempt_sees_what_has_changed(index: PrefixIndex) -> None:
    prompt = PromptLookups(index).of(ROOT, ids(640), 0.0)
    assert prompt.overlaps(pool("a")) == [0.0]
    index.assume("a", chain(ROOT, ids(640)), 0.0)
    assert prompt.overlaps(pool("a")) == [320.0]
    prompt.now_s = 200.0
    assert prompt.overlaps(pool("a")) == [0.0]


@pytest.mark.parametrize("held", [0, 1, 95, 96, 97, 191, 192, 193, 1000])
def test_a_long_prompt_is_hashed_as_far_as_somebody_has_it(index: PrefixIndex, held: int) -> None:
    long = ids(64 * 1000)
    index.stored("a", chain(ROOT, long)[:held], Tier.DEVICE, 0.0)
    prompt = PromptLookups(index).of(ROOT, long, 0.0)
    assert prompt.overlaps(pool("a")) == [64.0 * held]
    assert prompt.hashes() == chain(ROOT, long)


def test_a_prompt_nobody_has_is_hashed_a_little(
    index: PrefixIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[int | None] = []

    def counted(root: int, ids: "array[int]", block: int, upto: int | None = None) -> list[int]:
        hashed.append(upto)
        return chain(root, ids, block, upto)

    monkeypatch.setattr("smg_node.routing.kv_index.prompt_lookup.chain", counted)
    prompt = PromptLookups(index).of(ROOT, ids(64 * 1000), 0.0)
    assert hashed == []
    prompt.overlaps(pool("a"))
    prompt.first()
    assert hashed == [96]


def test_a_long_prompt_that_comes_again_is_not_hashed_again(
    index: PrefixIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[int] = []

    def counted(root: int, ids: "array[int]", block: int, upto: int | None = None) -> list[int]:
        found = chain(root, ids, block, upto)
        hashed.append(len(found))
        return found

    monkeypatch.setattr("smg_node.routing.kv_index.prompt_lookup.chain", counted)
    beginnings, long = PromptLookups(index), ids(64 * 200)
    for prompt in [beginnings.of(ROOT, long, 0.0) for _ in range(3)]:
        # The first one alone is asked for a part.
        prompt.first()
        assert prompt.hashes() == chain(ROOT, long)
    assert hashed == [96, 104]
    # Another adapter, and other ids that are equal, are other prompts.
    assert beginnings.of(ROOT + 1, long, 0.0).hashes() == chain(ROOT + 1, long)
    assert beginnings.of(ROOT, long[:], 0.0).hashes() == chain(ROOT, long)
    assert beginnings.of(ROOT, long, 0.0).hashes() == chain(ROOT, long)
    assert hashed == [96, 104, 200, 200, 200]
    # Short ones are hashed sooner than looked up.
    short = ids(2_047)
    for _ in range(2):
        beginnings.of(ROOT, short, 0.0).hashes()
    assert hashed[5:] == [31, 31]


def test_of_prompts_that_are_kept_the_oldest_go_first(
    index: PrefixIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smg_node.routing.kv_index.prompt_lookup._KEPT_TOKENS_MAX", 3 * 64 * 100)
    beginnings, prompts = PromptLookups(index), [ids(64 * 100) for _ in range(4)]
    first = [beginnings.of(ROOT, one, 0.0).hashes() for one in prompts[:3]]
    # The first one is asked for again, so the second is the oldest when a fourth comes.
    assert beginnings.of(ROOT, prompts[0], 0.0).hashes() is first[0]
    beginnings.of(ROOT, prompts[3], 0.0)
    assert beginnings.of(ROOT, prompts[0], 0.0).hashes() is first[0]
    assert beginnings.of(ROOT, prompts[2], 0.0).hashes() is first[2]
    again = beginnings.of(ROOT, prompts[1], 0.0).hashes()
    assert again == first[1]
    assert again is not first[1]


def test_there_is_an_end_to_what_is_looked_at(index: PrefixIndex) -> None:
    prompt = PromptLookups(index).of(ROOT, array("I", bytes(4 * 64 * 9000)), 0.0)
    assert len(prompt.hashes()) == 8192


def test_an_answer_is_assumed_with_its_prompt_because_the_next_turn_begins_with_both(
    index: PrefixIndex,
) -> None:
    beginnings = PromptLookups(index)
    prompt = beginnings.of(ROOT, ids(650), 0.0)
    prompt.first()
    beginnings.dispatched(prompt, "a", 1.0)
    beginnings.answered(prompt, ids(900)[650:], "a", 2.0)
    assert beginnings.of(ROOT, ids(1000), 3.0).overlaps(pool("a")) == [14 * 32.0]
    assert prompt.hashes() == chain(ROOT, ids(650))


@pytest.mark.parametrize(("asked", "said", "blocks"), [(10, 20, 0), (10, 60, 1), (10, 150, 2)])
def test_a_prompt_without_a_whole_block_gets_its_first_one_from_its_answer(
    index: PrefixIndex, asked: int, said: int, blocks: int
) -> None:
    beginnings = PromptLookups(index)
    prompt = beginnings.of(ROOT, ids(asked), 0.0)
    prompt.first()
    beginnings.dispatched(prompt, "a", 1.0)
    beginnings.answered(prompt, ids(asked + said)[asked:], "a", 2.0)
    assert beginnings.of(ROOT, ids(1000), 3.0).overlaps(pool("a")) == [blocks * 32.0]


def test_of_an_answer_only_what_is_new_is_assumed_unless_time_or_place_have_changed(
    index: PrefixIndex,
) -> None:
    told: list[tuple[str, int]] = []
    beginnings = PromptLookups(
        index, on_assumed=lambda worker, hashes, _: told.append((worker, len(hashes)))
    )
    prompt = beginnings.of(ROOT, ids(650), 0.0)
    beginnings.dispatched(prompt, "a", 1.0)
    beginnings.answered(prompt, ids(700)[650:], "a", 2.0)
    assert told == [("a", 10)], "no block was filled"
    beginnings.answered(prompt, ids(900)[650:], "a", 2.0)
    assert told[1:] == [("a", 4)]
    beginnings.answered(prompt, ids(900)[650:], "b", 2.0)
    beginnings.answered(prompt, ids(900)[650:], "a", 2.0, rank=1)
    beginnings.answered(prompt, ids(900)[650:], "a", 1.0 + ASSUMED_S / 2)
    assert told[2:] == [("b", 14), ("a", 14), ("a", 14)]
    assert beginnings.of(ROOT, ids(1000), 1.4 * ASSUMED_S).overlaps(pool("a")) == [14 * 32.0]


@pytest.mark.parametrize("asked", [0, 1, 63, 64, 65, 127, 64 * 8191 + 5, 64 * 8192, 64 * 8193])
def test_with_fewer_ids_than_its_room_behind_it_a_prompt_gets_no_more_whole_blocks(
    index: PrefixIndex, asked: int
) -> None:
    prompt = PromptLookups(index).of(ROOT, array("I", bytes(4 * asked)), 0.0)
    for said in (0, 1, 58, 59, 62, 63, 64, 65, 128):
        more = min((asked + said) // 64, 8192) - min(asked // 64, 8192)
        assert (said >= prompt.room) is (more > 0)
        assert len(prompt.hashes_behind(array("I", bytes(4 * said)))) == more
