"""What is assumed before anybody looks is what would have been assumed at once, whatever else is said meanwhile."""

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.engines.kv_events import Tier
from smg_node.routing.kv_index.block_hash import chain, root_of
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from support.tools.example_counts import example_count

BLOCK = 2
ROOT = root_of("m", "d", seed=1)
WORKERS = ("a", "b")
PROMPTS = [array("I", ids) for ids in ([0] * 9, [0] * 4 + [1] * 5, [1] * 130)]
ACTS = (
    "answered",
    "answered",
    "answered",
    "sent",
    "stored",
    "removed",
    "clear",
    "unlearn",
    "forget",
    "doubt",
    "doubt_told",
    "tell",
    "untell",
    "untell_all",
    "stale",
    "sweep",
    "tick",
    "look",
)


def seen(index: PrefixIndex, now_s: float, what: str) -> object:
    hashes = [chain(ROOT, prompt, BLOCK) for prompt in PROMPTS]
    match what:
        case "match":
            return [index.match(one, now_s) for one in hashes]
        case "ranks":
            return [index.match_ranks(at, one, now_s) for one in hashes for at in WORKERS]
        case "knows":
            return [index.knows(one) for several in hashes for one in several]
        case "held":
            return [sorted(index.held(worker)) for worker in WORKERS]
        case "blocks":
            return [index.blocks(worker) for worker in WORKERS]
        case _:
            return index.figures().entries


LOOKS = ("match", "ranks", "knows", "held", "blocks", "figures")


def act(index: PrefixIndex, what: str, worker: str, hashes: list[int], now_s: float) -> None:
    match what:
        case "sent":
            index.assume(worker, hashes, now_s, rank=1)
        case "stored":
            index.stored(worker, hashes, Tier.DEVICE, now_s)
        case "removed":
            index.removed(worker, hashes, Tier.DEVICE)
        case "clear" | "unlearn" | "forget" | "untell_all":
            getattr(index, what)(worker)
        case "doubt" | "doubt_told":
            getattr(index, what)(worker, now_s)
        case "tell":
            index.tell(worker, hashes, now_s)
        case "untell":
            index.untell(worker, hashes)
        case "stale":
            index.set_stale(worker, now_s)
        case "sweep":
            index.sweep()
        case _:
            index.tick(now_s)


@settings(max_examples=example_count(300), deadline=None)
@given(st.data())
def test_late_is_as_good_as_at_once(data: st.DataObject) -> None:
    late, at_once, now_s = PrefixIndex(block=BLOCK), PrefixIndex(block=BLOCK), 0.0
    for _ in range(data.draw(st.integers(1, 30))):
        now_s += data.draw(st.sampled_from([0.0, 0.0, 1.0, 50.0]))
        what, worker = data.draw(st.sampled_from(ACTS)), data.draw(st.sampled_from(WORKERS))
        ids = data.draw(st.sampled_from(PROMPTS))
        if what == "answered":
            prompt, said = data.draw(st.integers(0, BLOCK - 1)), data.draw(st.integers(1, 140))
            late.assume_late(worker, ROOT, ids[:prompt], ids[prompt : prompt + said], now_s)
            at_once.assume(worker, chain(ROOT, ids[: prompt + said], BLOCK), now_s)
        elif what == "look":
            how = data.draw(st.sampled_from(LOOKS))
            assert seen(late, now_s, how) == seen(at_once, now_s, how)
        else:
            for index in (late, at_once):
                act(index, what, worker, chain(ROOT, ids, BLOCK)[:3], now_s)
    for how in data.draw(st.permutations(LOOKS)):
        assert seen(late, now_s, how) == seen(at_once, now_s, how)


def test_so_many_are_taken_in_together() -> None:
    index = PrefixIndex(block=BLOCK)
    for number in range(64):
        assert index._holders.known("a") is None
        index.assume_late("a", ROOT, array("I", [number]), array("I", [7]), 0.0)
    assert index._holders.known("a") is not None
    assert index.figures().entries == 64
