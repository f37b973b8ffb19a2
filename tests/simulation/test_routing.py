"""What routing promises, on virtual time: engines of a 70B model, chats of many turns, nodes that gossip."""

from dataclasses import replace

import pytest

from smg_chaos.routing.model.trial_plan import CACHE_AWARE, OMNISCIENT, Plan
from smg_chaos.routing.model.trial_result import Result
from smg_chaos.routing.model.world import tried

PLAN = Plan("round_robin", engine_count=8, per_engine_s=2.5, seconds=240.0, warm_s=100.0)


@pytest.fixture(scope="module")
def omniscient() -> Result:
    return tried(replace(PLAN, policy=OMNISCIENT))


@pytest.fixture(scope="module")
def round_robin() -> Result:
    return tried(replace(PLAN, node_count=5))


@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_gateways_hit_the_caches_as_often_as_one_that_sees_everything(
    nodes: int, omniscient: Result, round_robin: Result
) -> None:
    found = tried(replace(PLAN, policy=CACHE_AWARE, node_count=nodes))
    assert found.unanswered == 0
    assert found.hits >= 0.98 * omniscient.hits
    # Others claim 23 % and 28 % less than round robin; here it is three quarters.
    assert found.ttft_mean_s <= 0.4 * round_robin.ttft_mean_s
    assert found.ttft_p99_s <= 0.5 * round_robin.ttft_p99_s


@pytest.mark.parametrize("policy", ["power_of_two", "least_load"])
def test_five_gateways_do_not_herd(policy: str) -> None:
    found = tried(replace(PLAN, policy=policy, node_count=5))
    assert found.unanswered == 0
    assert found.busiest <= 1.3
    assert found.spread <= 1.3
