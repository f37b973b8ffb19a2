import pytest

from smg_node.engines.kv_events import Tier
from smg_node.native.block_table import BlockTable
from smg_node.routing.kv_index.prefix_index import PrefixIndex

A, B = [11, 12, 13, 14], [11, 12, 23, 24]


@pytest.fixture
def index() -> PrefixIndex:
    return PrefixIndex()


def test_nothing_is_known_of_nothing(index: PrefixIndex) -> None:
    assert index.match([], 0.0) == {}
    assert index.match(A, 0.0) == {}
    index.removed("w", A, Tier.DEVICE)
    index.clear("w")
    index.unlearn("w")
    index.untell("w", A)
    index.untell_all("w")
    index.forget("w")
    index.set_stale("w", 0.0)
    index.stored("w", [], Tier.DEVICE, 0.0)
    assert index.match(A, 0.0) == {}
    assert index.held("w") == []
    assert index.figures().entries == 0


def test_a_match_ends_with_the_first_block_that_is_missing(index: PrefixIndex) -> None:
    index.stored("w", A, Tier.DEVICE, 0.0)
    index.stored("v", B[:3], Tier.DEVICE, 0.0)
    assert index.match(A, 0.0) == {"w": 4.0, "v": 2.0}
    assert index.match(B, 0.0) == {"w": 2.0, "v": 3.0}
    index.removed("w", [A[1]], Tier.DEVICE)
    assert index.match(A, 0.0) == {"w": 1.0, "v": 2.0}
    index.removed("w", [A[0]], Tier.DEVICE)
    assert index.match(A, 0.0) == {"v": 2.0}


def test_what_is_further_away_counts_less(index: PrefixIndex) -> None:
    index.stored("w", A[:1], Tier.DEVICE, 0.0)
    index.stored("w", A[1:2], Tier.HOST, 0.0)
    index.stored("w", A[2:3], Tier.DISK, 0.0)
    index.stored("w", A[3:], Tier.EXTERNAL, 0.0)
    assert index.match(A, 0.0)["w"] == pytest.approx(1.0 + 0.6 + 0.3 + 0.3)
    index.stored("w", A[1:2], Tier.DEVICE, 0.0)
    assert index.match(A[:2], 0.0) == {"w": 2.0}
    index.removed("w", A[1:2], Tier.DEVICE)
    assert index.match(A[:2], 0.0) == {"w": 1.6}


def test_an_assumption_counts_half_and_ends_by_itself(index: PrefixIndex) -> None:
    index.assume("w", A, 100.0)
    assert index.match(A, 100.0) == {"w": 2.0}
    assert index.match(A, 234.0) == {"w": 2.0}
    assert index.match(A, 100.0 + 180.0) == {}


def test_an_assumption_lasts_longer_when_it_is_made_again(index: PrefixIndex) -> None:
    for now_s in (10.0, 100.0, 190.0, 280.0):
        index.assume("w", A, now_s)
    assert index.match(A, 400.0) == {"w": 2.0}
    assert index.match(A, 460.0) == {}


def test_a_long_pause_ends_all_assumptions(index: PrefixIndex) -> None:
    for now_s in (0.0, 50.0, 100.0, 150.0):
        index.assume("w", [int(now_s) + 1], now_s)
    index.tick(1e6)
    assert [index.match([at], 1e6) for at in (1, 51, 101, 151)] == [{}] * 4


def test_better_news_replace_worse(index: PrefixIndex) -> None:
    index.assume("w", A, 0.0)
    index.stored("w", A, Tier.DEVICE, 0.0)
    assert index.match(A, 0.0) == {"w": 4.0}
    index.removed("w", A, Tier.DEVICE)
    assert index.match(A, 0.0) == {}
    index.stored("w", A, Tier.DISK, 0.0)
    index.assume("w", A, 0.0)
    index.tell("w", A, 0.0)
    index.removed("w", A, Tier.DISK)
    assert index.match(A, 0.0) == {}


def test_what_others_tell_counts_until_they_take_it_back(index: PrefixIndex) -> None:
    index.tell("w", A, 0.0)
    index.tell("w", A, 0.0)
    assert index.match(A, 1e6) == {"w": 4.0}
    index.untell("w", A[3:])
    assert index.match(A, 1e6) == {"w": 3.0}
    index.untell_all("w")
    assert index.match(A, 1e6) == {}


def test_others_cannot_make_it_remember_workers_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("smg_node.routing.kv_index.prefix_index._WORKERS_MAX", 3)
    index = PrefixIndex()
    for at in range(9):
        index.tell(f"w{at}", A, 0.0)
    assert sorted(index.match(A, 0.0)) == ["w0", "w1", "w2"]
    index.untell_all("w0")
    index.sweep(100)
    index.tell("w9", A, 0.0)
    assert sorted(index.match(A, 0.0)) == ["w1", "w2", "w9"]


def test_a_cleared_worker_has_nothing_at_once_and_may_have_it_again(index: PrefixIndex) -> None:
    index.stored("w", A[:2], Tier.DEVICE, 0.0)
    index.assume("w", A, 0.0)
    index.stored("v", A, Tier.DEVICE, 0.0)
    index.clear("w")
    assert index.match(A, 0.0) == {"v": 4.0}
    index.stored("w", A[:1], Tier.HOST, 0.0)
    assert index.match(A, 0.0) == {"v": 4.0, "w": 0.6}


def test_whose_events_were_missed_keeps_what_others_say(index: PrefixIndex) -> None:
    index.stored("w", A, Tier.DEVICE, 0.0)
    index.tell("w", [31], 0.0)
    index.assume("w", [41], 0.0)
    index.unlearn("w")
    assert index.match(A, 0.0) == {}
    assert index.match([31], 0.0) == {"w": 1.0}
    assert index.match([41], 0.0) == {"w": 0.5}


def test_a_worker_whose_events_are_missing_for_long_counts_half(index: PrefixIndex) -> None:
    index.stored("w", A, Tier.DEVICE, 0.0)
    index.stored("v", A, Tier.DEVICE, 0.0)
    index.set_stale("w", 10.0)
    index.set_stale("w", 20.0)  # it was missing all the time
    assert index.match(A, 24.9) == {"w": 4.0, "v": 4.0}
    assert index.match(A, 25.0) == {"w": 2.0, "v": 4.0}
    index.set_stale("w", None)
    assert index.match(A, 30.0) == {"w": 4.0, "v": 4.0}


def test_a_worker_is_as_good_as_its_best_rank(index: PrefixIndex) -> None:
    index.stored("w", A[:2], Tier.DEVICE, 0.0, rank=0)
    index.stored("w", A[2:], Tier.DEVICE, 0.0, rank=1)
    assert index.match(A, 0.0) == {"w": 2.0}
    index.stored("w", A[:2], Tier.DEVICE, 0.0, rank=1)
    assert index.match(A, 0.0) == {"w": 4.0}
    index.clear("w", rank=1)
    assert index.match(A, 0.0) == {"w": 2.0}


def test_what_is_assumed_of_a_worker_may_lie_on_any_rank(index: PrefixIndex) -> None:
    index.assume("w", A, 0.0)
    assert index.match(A, 0.0) == {"w": 2.0}
    index.stored("w", A[:1], Tier.DEVICE, 0.0, rank=3)
    assert index.match(A, 0.0) == {"w": 2.5}
    index.set_stale("w", 0.0)
    assert index.match(A, 15.0) == {"w": 1.25}


def test_each_rank_of_a_worker_has_its_own_blocks(index: PrefixIndex) -> None:
    index.stored("w", A[:2], Tier.DEVICE, 0.0, rank=0)
    index.stored("w", A, Tier.HOST, 0.0, rank=2)
    index.stored("w", A[1:], Tier.DEVICE, 0.0, rank=1)
    index.stored("v", A, Tier.DEVICE, 0.0, rank=1)
    assert index.match_ranks("w", A, 0.0) == {0: 2.0, 2: pytest.approx(2.4)}
    assert index.match_ranks("v", A, 0.0) == {1: 4.0}
    assert index.match_ranks("w", [], 0.0) == {}
    assert index.match_ranks("w", [99], 0.0) == {}
    assert index.match_ranks("u", A, 0.0) == {}
    index.set_stale("w", 0.0)
    assert index.match_ranks("w", A, 15.0) == {0: 1.0, 2: pytest.approx(1.2)}


def test_what_is_known_of_a_worker_and_of_no_rank_is_not_said_of_any(index: PrefixIndex) -> None:
    index.tell("w", A, 0.0)
    index.assume("w", B, 0.0)
    assert index.match(A, 0.0) == {"w": 4.0}
    assert index.match_ranks("w", A, 0.0) == {}


def test_what_was_sent_to_a_rank_is_assumed_there_and_nowhere_else(index: PrefixIndex) -> None:
    index.assume("w", A, 0.0)
    index.assume("w", A[:3], 0.0, rank=5)
    assert index.match_ranks("w", A, 0.0) == {5: 1.5}
    # The fourth one may be anywhere, also there.
    assert index.match(A, 0.0) == {"w": 2.0}
    assert index.match_ranks("w", A, 180.0) == {}
    assert index.match(A, 180.0) == {}


def test_what_one_rank_says_ends_what_was_assumed_of_it_and_of_no_other(index: PrefixIndex) -> None:
    for rank in (0, 1):
        index.assume("w", A, 0.0, rank=rank)
    index.stored("w", A[:1], Tier.DISK, 0.0, rank=0)
    index.removed("w", A[3:], Tier.DEVICE, rank=0)
    assert index.match_ranks("w", A, 0.0) == {0: pytest.approx(0.3 + 2 * 0.5), 1: 2.0}
    index.clear("w", rank=1)
    assert index.match_ranks("w", A, 0.0) == {0: pytest.approx(0.3 + 2 * 0.5)}
    index.clear("w")
    assert index.match_ranks("w", A, 0.0) == {}


def test_a_rank_that_others_may_have_told_of_is_still_the_one_it_was_sent_to(
    index: PrefixIndex,
) -> None:
    index.tell("w", A, 0.0)
    index.assume("w", A, 0.0, rank=1)
    assert index.match(A, 0.0) == {"w": 4.0}
    assert index.match_ranks("w", A, 0.0) == {1: 2.0}
    index.tell("w", A, 1.0)
    assert index.match_ranks("w", A, 1.0) == {1: 2.0}
    index.untell("w", A)
    assert index.match_ranks("w", A, 1.0) == {}


@pytest.mark.parametrize("held", [31, 32, 33, 500])
def test_a_long_prompt_is_looked_up_for_ranks_as_far_as_one_has_it(
    index: PrefixIndex, held: int
) -> None:
    index.stored("w", range(1, 1 + held), Tier.DEVICE, 0.0, rank=3)
    index.stored("w", range(1, 20), Tier.DEVICE, 0.0, rank=1)
    assert index.match_ranks("w", range(1, 1000), 0.0) == {3: float(held), 1: 19.0}


def test_a_forgotten_worker_leaves_room_for_another(index: PrefixIndex) -> None:
    for at in range(2000):
        index.stored(f"w{at}", A, Tier.DEVICE, 0.0)
        index.assume(f"w{at}", B, 0.0, rank=at % 3)
        index.forget(f"w{at}")
    index.stored("v", A, Tier.DEVICE, 0.0)
    assert index.match(A, 0.0) == {"v": 4.0}
    index.sweep(10_000)
    index.sweep(10_000)
    assert index.figures().sets <= 3


def test_void_blocks_are_swept(index: PrefixIndex) -> None:
    index.stored("w", range(1000), Tier.DEVICE, 0.0)
    index.stored("v", range(500), Tier.DEVICE, 0.0)
    index.clear("w")
    for _ in range(30):
        index.sweep(100)
    assert index.figures().entries == 500
    assert index.figures().evicted == 0
    assert index.match(range(500), 0.0) == {"v": 500.0}


def test_what_was_looked_for_outlives_what_was_not() -> None:
    index = PrefixIndex(entries_max=100)
    index.stored("w", range(50), Tier.DEVICE, 0.0)
    index.stored("w", range(50, 100), Tier.DEVICE, 0.0)
    for start in range(1000, 3000, 10):
        assert index.match(range(50), 0.0) == {"w": 50.0}
        index.stored("w", range(start, start + 10), Tier.DEVICE, 0.0)
        assert index.figures().entries <= 100
    assert index.match(range(50, 100), 0.0) == {}
    # Room is made for a few more than need it.
    assert 2000 <= index.figures().evicted <= 2000 + 16


def test_more_than_there_is_room_for_is_kept_from_the_beginning() -> None:
    index = PrefixIndex(entries_max=10)
    index.stored("w", range(100), Tier.DEVICE, 0.0)
    assert index.match(range(100), 0.0) == {"w": 10.0}
    index.stored("w", range(100, 120), Tier.DEVICE, 0.0)
    assert index.match(range(100, 120), 0.0) == {"w": 10.0}


def test_a_smaller_bound_holds_after_some_sweeps() -> None:
    index = PrefixIndex(entries_max=1000)
    index.stored("w", range(1000), Tier.DEVICE, 0.0)
    index.match(range(1000), 0.0)
    index.resize(100)
    for _ in range(8):
        index.sweep(1000)
    assert index.figures().entries <= 100
    index.stored("w", [5000], Tier.DEVICE, 0.0)
    assert index.match([5000], 0.0) == {"w": 1.0}


def test_with_too_many_sets_others_are_forgotten_and_nothing_is_false() -> None:
    index = PrefixIndex(sets_max=6)
    for at in range(8):
        index.stored(f"w{at}", A, Tier.DEVICE, 0.0)
        # Who was heard last is known in any case.
        assert index.match(A, 0.0)[f"w{at}"] == 4.0
    assert index.figures().sets < 2 * 6
    assert index.figures().narrowed > 0
    assert len(index.match(A, 0.0)) < 8


def test_room_for_sets_comes_back_when_old_ones_are_out_of_use() -> None:
    index = PrefixIndex(sets_max=8)
    for at in range(200):
        index.stored(f"w{at % 5}", A, Tier.DEVICE, 0.0)
        index.removed(f"w{(at + 3) % 5}", A, Tier.DEVICE)
        index.sweep(100)
    assert index.figures().narrowed == 0
    assert sorted(index.match(A, 0.0)) == ["w3", "w4"]


def test_who_watches_hears_of_what_is_confirmed_and_of_nothing_else(index: PrefixIndex) -> None:
    heard: list[tuple[object, ...]] = []
    index.watch(
        lambda worker, one: heard.append(("+", worker, one)),
        lambda worker, one: heard.append(("-", worker, one)),
        lambda worker, *, perhaps: heard.append(("?" if perhaps else "0", worker)),
    )
    index.assume("w", [1], 0.0)
    index.tell("w", [2], 0.0)
    index.untell_all("w")
    assert heard == []
    index.stored("w", [1, 2], Tier.DEVICE, 0.0)
    index.stored("w", [2, 3], Tier.HOST, 0.0)
    index.stored("w", [3], Tier.DEVICE, 0.0, rank=1)
    assert heard == [("+", "w", 1), ("+", "w", 2), ("+", "w", 3)]
    heard.clear()
    index.removed("w", [2, 3], Tier.HOST)
    assert heard == []
    index.clear("w", rank=0)
    assert heard == [("-", "w", 1), ("-", "w", 2)]
    assert index.held("w") == [3]
    heard.clear()
    index.unlearn("w")
    assert heard == [("0", "w")]
    assert index.held("w") == []
    index.unlearn("w")
    index.forget("w")
    assert heard == [("0", "w")] * 3


def test_hashes_that_come_twice_count_once(index: PrefixIndex) -> None:
    index.stored("w", [1, 2, 1, 2, 2], Tier.DEVICE, 0.0)
    assert index.match([1, 2], 0.0) == {"w": 2.0}
    assert index.blocks("w") == 2
    assert index.figures().entries == 2
    index.removed("w", [2, 2], Tier.DEVICE)
    assert index.blocks("w") == 1


def test_a_sweep_costs_no_more_than_its_places() -> None:
    looked: list[int] = []

    class Counting(BlockTable):
        def turn(self, places: int, judge: object) -> bool:
            looked.append(places)
            return super().turn(places, judge)  # type: ignore[arg-type]  # it is a Judge

        def skip(self, places: int) -> bool:
            looked.append(places)
            return super().skip(places)

    index = PrefixIndex(table=Counting())
    index.stored("w", range(100), Tier.DEVICE, 0.0)
    index.sweep(7)
    index.clear("w")
    index.sweep(9)
    assert looked == [7, 9]
    assert index.figures().entries == 91


def test_a_worker_that_holds_nothing_any_more_is_forgotten_by_itself(index: PrefixIndex) -> None:
    for at in range(50):
        index.assume(f"gone{at}", A, 0.0)
    index.tick(1000.0)
    for _ in range(4):
        index.sweep(1000)
    index.stored("w", A, Tier.DEVICE, 1000.0)
    assert index.match(A, 1000.0) == {"w": 4.0}
    assert [index.blocks(f"gone{at}") for at in range(50)] == [0] * 50


@pytest.mark.parametrize("way", ["stored", "assume", "tell"])
def test_a_block_that_is_named_twice_in_one_word_lies_there_once(way: str) -> None:
    index = PrefixIndex(entries_max=100)
    if way == "stored":
        index.stored("w", [5, 5, 6, 5], Tier.DEVICE, 1.0)
    else:
        getattr(index, way)("w", [5, 5, 6, 5], 1.0)
    assert index.figures().entries == 2
    index.forget("w")
    for _ in range(4):
        index.sweep()
    assert index.figures().entries == 0
