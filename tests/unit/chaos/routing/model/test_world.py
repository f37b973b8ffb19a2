"""Trials on virtual time: nothing is lost, one seed gives one result, and knowing caches is worth something."""

from dataclasses import replace

import pytest

from smg_chaos.engine.cache.blocks import Change
from smg_chaos.routing.model.cache_knowledge import Indexed, batch_of
from smg_chaos.routing.model.prefix_hints import Hints
from smg_chaos.routing.model.trial_plan import (
    CACHE_AWARE,
    OMNISCIENT,
    OWN,
    POLICIES,
    THRESHOLD,
    Plan,
)
from smg_chaos.routing.model.trial_result import Result, Seen, spread
from smg_chaos.routing.model.workload import Workload
from smg_chaos.routing.model.world import World, tried
from smg_chaos.routing.report import as_json, table, trials

PLAN = Plan("round_robin", engine_count=4, per_engine_s=2.0, seconds=60.0, warm_s=20.0)


def result(policy: str, nodes: int = 1, *, seconds: float = 60.0) -> Result:
    return tried(replace(PLAN, policy=policy, node_count=nodes, seconds=seconds))


@pytest.mark.parametrize("policy", POLICIES)
def test_every_request_is_answered_under_every_policy(policy: str) -> None:
    one = result(policy, 1 if policy == OMNISCIENT else 4, seconds=40.0)
    assert one.requests > 30
    assert one.unanswered == 0
    assert 0 < one.hits <= one.possible
    assert 0 < one.ttft_p50_s <= one.ttft_p99_s
    assert one.spread >= 1.0
    assert one.busiest >= 1.0


def test_one_seed_gives_one_result() -> None:
    plan = replace(PLAN, policy=CACHE_AWARE, node_count=4, seconds=40.0)
    assert tried(plan) == tried(plan)
    assert tried(replace(plan, seed=2)) != tried(plan)


def test_who_knows_the_caches_hits_more_and_answers_sooner() -> None:
    blind, knowing, seeing = (result(one) for one in ("round_robin", CACHE_AWARE, OMNISCIENT))
    assert blind.possible == knowing.possible == seeing.possible
    assert knowing.hits > 1.3 * blind.hits
    assert knowing.ttft_mean_s < 0.7 * blind.ttft_mean_s
    assert knowing.hits >= 0.95 * seeing.hits


@pytest.mark.parametrize("nodes", [1, 5])
def test_every_node_knows_in_the_end_what_the_engines_have(nodes: int) -> None:
    plan = replace(PLAN, policy=CACHE_AWARE, node_count=nodes)
    world = World(plan)
    world.run()
    turns = [
        turn
        for number in range(5, 15)
        for turn in Workload(plan.seed, plan.sessions_per_s, plan.seconds, plan.size).session(
            number
        )
        if turn.due_s < plan.seconds
    ]
    assert turns
    for turn in turns:
        usable = turn.ids[: turn.prompt - 1]
        have = [engine.overlap(turn.keys, turn.prompt) for engine in world.engines]
        for node in world.nodes.values():
            assert node.overlaps(usable, world.now_s) == have


def test_what_is_known_by_own_dispatches_is_told_to_the_others() -> None:
    own, threshold = Plan(OWN, node_count=2), Plan(THRESHOLD, node_count=2)
    assert (own.shares, threshold.shares, replace(own, node_count=1).shares) == (True, False, False)
    one, other = Indexed("m", []), Indexed("m", [])
    hints = Hints(one, None)
    turn = next(Workload(1, 1.0, 5.0, own.size).session(0))
    prompt = one.of(turn.ids, 1.0)
    assert prompt is not None
    one.dispatched(prompt, "w", 1.0)
    hints.taken()(other, 1.1)
    hashes = prompt.hashes()
    assert one.index.match(hashes, 1.2) == other.index.match(hashes, 1.2) != {}


def test_hints_come_in_order_and_not_to_those_who_follow_themselves() -> None:
    speaker, listener, follower = Indexed("m", ["w"]), Indexed("m", []), Indexed("m", ["w"])
    hints = Hints(speaker, ["w"])
    world = World(replace(PLAN, policy="random", seconds=30.0))
    changes: list[Change] = []
    world.engines[0].heard = lambda _, more: changes.extend(more)
    world.run()
    for number, change in enumerate(changes):
        speaker.heard("w", batch_of(number + 1, [change]), 1.0)
    tell = hints.taken()
    tell(listener, 1.0)
    tell(follower, 1.0)
    assert speaker.index.held("w")
    assert speaker.index.figures().entries == listener.index.figures().entries
    assert follower.index.figures().entries == 0
    hints.taken()(listener, 2.0)
    assert speaker.index.figures().entries == listener.index.figures().entries


def test_an_even_load_has_no_spread_and_an_uneven_one_has() -> None:
    assert spread([[3, 3]] * 40) == 1.0
    assert spread([[4, 0]] * 20 + [[0, 4]] * 20) == 2.0
    assert spread([[0, 0]] * 20) == 1.0


def test_an_endless_cache_hits_whole_blocks_that_anybody_asked_before() -> None:
    seen = Seen("p", 1, PLAN.size.block)
    turns = list(Workload(3, 1.0, 20.0, PLAN.size).session(0))
    for turn in turns:
        seen.asks(turn, counts=True)
        seen.answered(0, 0.1)
    seen.looks.append([1, 1])
    known = [len(one.ids) // 64 * 64 for one in turns[:-1]]
    assert seen.result().possible == pytest.approx(sum(known) / sum(one.prompt for one in turns))
    assert seen.result().hits == 0.0


def test_an_omniscient_router_is_tried_once_and_rows_are_compared() -> None:
    plans = list(trials(PLAN, ["round_robin", OMNISCIENT], [1, 5]))
    assert [(one.policy, one.node_count) for one in plans] == [
        ("round_robin", 1),
        ("round_robin", 5),
        (OMNISCIENT, 1),
    ]
    figures = dict.fromkeys(("possible", "spread", "busiest", "open_mean"), 1.0)
    base = Result(
        "round_robin", 1, 10, 0, 0.4, ttft_mean_s=0.2, ttft_p50_s=0.1, ttft_p99_s=1.0, **figures
    )
    best = replace(base, policy=OMNISCIENT, hits=0.8, ttft_mean_s=0.1, ttft_p99_s=0.5, unanswered=2)
    lines = table(PLAN, [base, best]).splitlines()
    assert "an endless cache would hit 100.0 %" in lines[0]
    assert lines[3].split()[:6] == ["round_robin", "1", "40.0", "%", "50.0", "%"]
    assert "-50 %" in lines[4]
    assert lines[4].endswith("10 (2 unanswered)")
    told = as_json(PLAN, [base, best])
    assert told["plan"]["engine_count"] == 4
    assert [one["hits"] for one in told["results"]] == [0.4, 0.8]
