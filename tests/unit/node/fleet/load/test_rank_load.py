"""Which data-parallel rank of a worker a call goes to, and what is counted where."""

from collections import Counter
from dataclasses import replace

import pytest

from smg_node.engines.load import Load
from smg_node.fleet.load.rank_load import OWNER_S, RANKS_MAX, Ranks, rank_of
from smg_node.fleet.load.worker_load import WorkerLoad
from support.fleet.worker_loads import IDLE

RATE = 8_000


def ranked(count: int, *, first: int = 0, slots: int | None = None) -> WorkerLoad:
    made = WorkerLoad("w")
    made.sized(slots)
    made.ranked(count, first=first)
    return made


def said(rank: int, **what: int | float | None) -> Load:
    return replace(IDLE, rank=rank, running_max=64, **what)  # type: ignore[arg-type]  # fields of Load


# ── Nothing to choose ────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [-1, 0, 1])
def test_an_engine_with_one_rank_leaves_nothing_to_choose(count: int) -> None:
    one = ranked(count)
    assert one.choose_rank({0: 640.0}, 1000, "alice") is None
    assert WorkerLoad("w").choose_rank({}, 1000, "alice") is None


def test_an_engine_that_claims_a_million_ranks_is_asked_for_some() -> None:
    one = ranked(10**6)
    assert {one.choose_rank({}, 100, str(key)) for key in range(5000)} <= set(range(RANKS_MAX))
    assert one.choose_rank({RANKS_MAX + 5: 100.0, -1: 100.0}, 100, "") == 0


# ── A routing key ────────────────────────────────────────────────────────────


def test_a_key_has_its_rank_on_every_node_whatever_is_under_way() -> None:
    """The numbers are part of what nodes of different versions agree about."""
    keys = ("alice", "bob", "", "\ud800", "x" * 256)
    assert [rank_of(key, 8) for key in keys] == [3, 2, 1, 7, 0]
    idle, busy = ranked(8), ranked(8, first=5)
    for at in range(40):
        busy.begin(5000, at % 3)
    for key in keys[:2]:
        assert idle.choose_rank({}, 10, key) == busy.choose_rank({7: 9.0}, 10, key)
        assert idle.choose_rank({}, 10, key) == rank_of(key, 8)


def test_keys_are_spread_over_all_ranks() -> None:
    got = Counter(rank_of(f"user-{number}", 8) for number in range(8000))
    assert sorted(got) == list(range(8))
    assert max(got.values()) < 1.15 * 1000


# ── The fewest tokens ────────────────────────────────────────────────────────


def test_without_knowledge_of_prefixes_the_rank_with_the_fewest_tokens_in_flight_gets_it() -> None:
    one = ranked(4)
    for rank, tokens in enumerate((900, 500, 4000, 1500)):
        one.begin(tokens, rank)
    assert one.choose_rank({}, 1000, "") == 1
    one.begin(1000, 1)
    assert one.choose_rank({}, 1000, "") == 0


def test_ranks_without_work_take_turns_and_each_node_begins_somewhere_else() -> None:
    for first in (0, 2, 7):
        one, order = ranked(3, first=first), []
        for _ in range(6):
            rank = one.choose_rank({}, 100, "")
            assert rank is not None
            one.begin(100, rank)
            one.end(100, rank=rank)
            order.append(rank)
        assert order == [(first + at) % 3 for at in range(6)]


def test_among_ranks_with_as_many_tokens_the_one_with_the_fewest_requests_gets_it() -> None:
    one = ranked(3)
    # A slot in use costs little enough to be a tie here: there are thousands of them.
    one.sized(30_000)
    for rank, requests in ((0, 2), (1, 1), (2, 3)):
        for _ in range(requests):
            one.begin(100, rank)
            one.prefilled(100, rank)
    assert one.choose_rank({}, 1000, "") == 1


def test_answers_under_way_weigh_as_slots_of_their_rank() -> None:
    one = ranked(2, slots=16)
    for _ in range(4):
        one.begin(0, 0)
    one.begin(1000, 1)
    # Four of eight slots are half a second; a thousand tokens and a slot are a quarter.
    assert one.choose_rank({}, 1000, "") == 1


def test_a_rank_whose_slots_are_taken_makes_wait() -> None:
    one = ranked(2, slots=4)
    one.retune(replace(one.options, busy_weight_s=0.0))
    one.begin(0, 0)
    assert one.begin(700, 0) == 0
    assert one.choose_rank({0: 8000.0}, 8000, "") == 1
    assert one.begin(10, 0) == -1
    assert one.begin(10, 1) == 0


# ── Prefixes ─────────────────────────────────────────────────────────────────


def test_the_rank_that_has_the_prefix_wins_while_it_saves_more_than_it_makes_wait() -> None:
    one = ranked(4)
    one.retune(replace(one.options, busy_weight_s=0.0))
    assert one.choose_rank({2: 640.0}, 1000, "") == 2
    one.begin(500, 2)
    assert one.choose_rank({2: 640.0}, 1000, "") == 2
    one.begin(500, 2)
    assert one.choose_rank({2: 640.0}, 1000, "") != 2
    one.prefilled(500, 2)
    assert one.choose_rank({2: 640.0}, 1000, "") == 2


def test_of_several_ranks_that_have_some_of_it_the_one_that_is_done_first_gets_it() -> None:
    one = ranked(4)
    assert one.choose_rank({1: 640.0, 3: 1280.0}, 2000, "") == 3
    one.begin(1000, 3)
    assert one.choose_rank({1: 640.0, 3: 1280.0}, 2000, "") == 1


def test_nothing_is_saved_beyond_the_prompt() -> None:
    one = ranked(2)
    one.begin(4000, 1)
    # Whoever says that 100,000 tokens of a prompt of 1,000 are cached saves 1,000.
    assert one.choose_rank({1: 100_000.0}, 1000, "") == 0


def test_a_beginning_that_nobody_has_goes_to_its_owner_unless_that_one_is_50_ms_worse() -> None:
    one = ranked(4, slots=400)
    first = (6).to_bytes(8, "big")
    assert one.choose_rank({}, 1000, "", first=first) == 2
    one.begin(0, 0)
    one.begin(0, 2)
    assert one.choose_rank({2: 63.0}, 1000, "", first=first) == 2
    one.begin(int(OWNER_S * RATE), 2)
    assert one.choose_rank({}, 1000, "", first=first) != 2
    # What somebody has goes by what it costs.
    assert one.choose_rank({3: 640.0}, 1000, "", first=first) == 3


# ── What engines and other nodes say ─────────────────────────────────────────


def test_what_the_engine_says_of_a_rank_counts_beyond_the_own_calls_and_is_worked_off() -> None:
    one = ranked(2)
    one.begin(4000, 0)
    one.sample(said(0, waiting=1, waiting_uncached_tokens=4000), 10.0)
    one.sample(said(1, waiting=1, waiting_uncached_tokens=8000), 10.0)
    assert one.choose_rank({}, 100, "", now_s=10.0) == 0
    assert one.begin(0, 1) == 8000
    # Within a second rank 1 has worked its 8,000 tokens off; without a clock that shows at the next tick.
    assert one.choose_rank({}, 100, "", now_s=11.0) == 1
    assert ranked(2).choose_rank({}, 100, "") == 0


def test_time_that_goes_by_without_a_choice_works_off_as_well() -> None:
    one = ranked(2)
    one.begin(1000, 0)
    one.sample(said(1, waiting_uncached_tokens=8000), 10.0)
    assert one.choose_rank({}, 100, "") == 0
    one.tick(10.5)
    assert one.choose_rank({}, 100, "") == 0
    one.tick(11.0)
    assert one.choose_rank({}, 100, "") == 1
    # A clock that stands still, or a late word, brings no work back.
    assert one.choose_rank({}, 100, "", now_s=5.0) == 1


def test_requests_that_others_run_there_and_full_memory_count_against_a_rank() -> None:
    one = ranked(3)
    one.sample(said(0, running=32), 1.0)
    one.sample(said(1, running=1, kv_usage=0.9), 1.0)
    one.sample(said(2, running=16), 1.0)
    assert one.choose_rank({}, 100, "") == 2
    # Memory that only keeps what may be forgotten is no pressure.
    one.sample(said(1, kv_usage=0.9), 2.0)
    assert one.choose_rank({}, 100, "") == 1


def test_a_sample_older_than_15_s_says_nothing_of_its_rank() -> None:
    one = ranked(2)
    one.sample(said(0, running=32), 100.0)
    assert one.choose_rank({}, 100, "") == 1
    one.tick(115.1)
    assert one.choose_rank({}, 100, "") == 0


def test_ranks_that_nobody_expected_are_heard_and_not_chosen() -> None:
    one = ranked(2)
    for rank in (2, 255, 256, -3, 10**9):
        one.sample(said(rank, running=1), 1.0)
    one.tick(2.0)
    one.tick(20.0)
    assert one.choose_rank({}, 100, "") in (0, 1)


def test_what_other_nodes_have_open_lies_where_the_rule_puts_it() -> None:
    one = ranked(2)
    one.retune(replace(one.options, busy_weight_s=0.0))
    one.begin(2000, 0)
    assert one.choose_rank({0: 1500.0}, 2000, "") == 1
    # Two thousand tokens of others are on the emptier rank, as far as anybody can tell: both are alike then.
    one.hear(2, 2000)
    assert one.choose_rank({0: 1500.0}, 2000, "") == 0
    assert one.choose_rank({}, 2000, "") == 1
    # The engine has said where they are.
    one.sample(said(0, waiting=3, waiting_uncached_tokens=4000), 1.0)
    assert one.choose_rank({0: 1500.0}, 2000, "") == 1


def test_a_call_is_told_what_is_before_it_on_its_rank_and_its_share_of_what_lies_anywhere() -> None:
    one = ranked(4)
    one.begin(900, 1)
    assert one.begin(10, 1) == 900
    assert one.begin(10, 2) == 0
    one.hear(4, 4000)
    assert one.begin(10, 2) == 1010
    # One that is for no rank has a quarter of all before it.
    assert one.begin(10) == (900 + 3 * 10 + 4000) // 4


def test_all_ranks_together_work_off_as_much_as_they_are() -> None:
    one = ranked(4)
    one.begin(8000, 0)
    assert one.wait_s == pytest.approx(0.25)
    assert one.prefill_rate == RATE


# ── Engines that change ──────────────────────────────────────────────────────


def test_calls_leave_the_rank_they_came_to_also_when_the_engine_has_fewer_by_then() -> None:
    one = ranked(4)
    one.begin(1000, 3)
    one.begin(2000, 0)
    one.ranked(2)
    one.renewed(5.0)
    assert {one.choose_rank({}, 100, "") for _ in range(4)} == {1}
    one.end(1000, rank=3)
    one.prefilled(2000, 0)
    one.end(2000, prefilled=True, rank=0)
    assert (one.inflight, one.tokens) == (0, 0)
    one.ranked(4)
    assert one.choose_rank({}, 100, "") in range(4)


def test_a_call_for_a_rank_of_an_engine_with_one_is_counted_there_if_it_becomes_several() -> None:
    one = WorkerLoad("w")
    one.begin(1000, 0)
    one.ranked(2)
    assert one.choose_rank({}, 100, "") == 1
    one.end(1000, rank=0)
    assert one.choose_rank({}, 100, "") in (0, 1)


def test_another_engine_has_not_what_the_one_before_said() -> None:
    one = ranked(2)
    one.sample(said(0, running=32, kv_usage=0.9), 1.0)
    assert one.choose_rank({}, 100, "") == 1
    one.renewed(2.0)
    assert one.choose_rank({}, 100, "") == 0


def test_a_rank_never_has_fewer_calls_than_none() -> None:
    ranks = Ranks(2)
    ranks.begin(0, 100)
    with pytest.raises(AssertionError):
        ranks.end(1, 0)
    with pytest.raises(AssertionError):
        ranks.prefilled(0, 101)
    with pytest.raises(AssertionError):
        ranks.begin(RANKS_MAX, 1)
    with pytest.raises(AssertionError):
        ranks.begin(-1, 1)
