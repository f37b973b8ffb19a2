"""Affinity: the least cost by the request's plan; among equals by weight, as all nodes say."""

import random
from collections import Counter
from collections.abc import Mapping

import pytest

from smg_node.core.journey import Ratings
from smg_node.engines.http.vendor_cache import CacheCall, CacheCost, Dollars, Uncached
from smg_node.routing.cache_affinity import DOLLAR_S, Affinity
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.policy_registry import OwnBindings
from smg_node.routing.pool import Pool
from smg_node.routing.route_choices import known_choices
from smg_node.routing.target_costs import UNPRICED
from support.fleet.worker_pools import FakeBeginning, load


class Plan:
    """Costs by worker, as they are told."""

    def __init__(self, costs: Mapping[str, CacheCost]) -> None:
        self.costs = costs

    def cost(
        self, worker: str, *, dollar_seconds: float, price: Dollars | None
    ) -> CacheCost | None:
        return self.costs.get(worker)

    def call(self, worker: str) -> CacheCall:
        return Uncached()


POOL = Pool([load("w0", weight=2.0), load("w1"), load("w2")])


def policy() -> Affinity:
    return Affinity(PolicyParts(OwnBindings()))


def choose(costs: Mapping[str, CacheCost] | None, *, talk: str = "t", pool: Pool = POOL) -> str:
    plan = None if costs is None else Plan(costs)
    asked = Asked("m", conversation=talk, caches=plan)
    return pool.workers[policy().choose(asked, pool, random.Random(1))]


def costs(*seconds: float) -> dict[str, CacheCost]:
    return {f"w{at}": CacheCost(one, 0.0) for at, one in enumerate(seconds)}


def test_a_route_with_that_word_has_it() -> None:
    assert known_choices().get("affinity") is Affinity


@pytest.mark.parametrize(("seconds", "chosen"), [((1, 2, 3), "w0"), ((3, 2.9, 1), "w2")])
def test_the_least_cost_is_chosen(seconds: tuple[float, ...], chosen: str) -> None:
    assert choose(costs(*seconds)) == chosen


def test_equals_share_conversations_by_weight_and_a_conversation_stays() -> None:
    talks = [str(at) for at in range(2_000)]
    first = [choose(costs(1, 1, 1), talk=talk) for talk in talks]
    assert first == [choose(None, talk=talk) for talk in talks]
    shares = Counter(first)
    assert shares["w0"] == pytest.approx(1_000, rel=0.1)
    assert first[:50] == [choose(costs(1.01, 1.0, 1.004), talk=talk) for talk in talks[:50]]


def test_of_equals_only_those_are_taken() -> None:
    found = {choose(costs(1, 1, 5), talk=str(at)) for at in range(50)}
    assert found == {"w0", "w1"}


def test_an_unpriced_target_is_not_cheaper_than_a_priced_one_for_that() -> None:
    dear = CacheCost(0.1 + DOLLAR_S * 0.05, 0.0, 0.05)
    assert choose({"w0": CacheCost(0.5, 0.0), "w1": dear, "w2": CacheCost(0.6, 0.0)}) == "w1"


def test_an_engine_beside_vendors_costs_what_costs_say() -> None:
    found = costs(9.0, 9.0)
    assert choose(found) == "w2"
    pool = Pool([load("w0"), load("w1"), load("w2", inflight=500)])
    asked = Asked("m", ids=[0] * 64, caches=Plan(costs(0.01, 0.02)), beginning=FakeBeginning())
    assert pool.workers[policy().choose(asked, pool, random.Random(1))] == "w0"


def test_costs_and_what_is_expected_are_explained() -> None:
    rated = Ratings()
    found = {"w0": CacheCost(0.1, 1_234.0, 0.5), **{f"w{at}": CacheCost(2.0, 0.0) for at in (1, 2)}}
    policy().choose(Asked("m", rated=rated, caches=Plan(found)), POOL, random.Random(1))
    assert rated[0].worker == "w0"
    assert (rated[0].overlap, rated[0].dollars) == (1_234.0, 0.5)
    assert "1,234 tokens" in rated.note


def test_a_price_counts_with_the_usual_answer_and_the_shares_that_are_read_and_written() -> None:
    seen: list[tuple[str, float | None]] = []

    class Pricing(Plan):
        def cost(
            self, worker: str, *, dollar_seconds: float, price: Dollars | None
        ) -> CacheCost | None:
            seen.append((worker, None if price is None else price(100, 60, 20)))
            return CacheCost(dollar_seconds, 0.0)

    def pricing(worker: str, cached: float, answer: int, written: float = 0.0, /) -> float:
        return 1_000 * cached + 10 * written + answer if worker == "w0" else UNPRICED

    pool = Pool([load("w0"), load("w1"), load("w2")])
    asked = Asked("m", caches=Pricing({}), answer_max=10, pricing=lambda: pricing)
    policy().choose(asked, pool, random.Random(1))
    assert seen == [("w0", 600 + 2 + 10), ("w1", None), ("w2", None)]
