"""Would the judge notice? Rights that are right, wasteful, naive, and broken in small ways."""

from dataclasses import replace

import pytest

from smg_chaos.simulate.batch import real_core
from smg_chaos.simulate.outcome import Outcome
from smg_chaos.simulate.plans.rights_plans import random_limits_plan
from smg_chaos.simulate.rights.escrow import RightsFactory
from smg_chaos.simulate.scenarios.catalogue import SCENARIOS
from smg_chaos.simulate.trials.trial import live
from support.rights.simple_rights import (
    CopyingRights,
    FixedRights,
    ForgetfulRights,
    LyingRights,
    NaiveRights,
)


def lived(name: str, rights: RightsFactory, seed: int = 1, *, watchful: bool = True) -> Outcome:
    """Live through a scenario, without the weather's last look: fixed parts waste much."""
    plan = SCENARIOS[name].plan
    assert plan is not None
    history = plan(seed, 5, "lan")
    assert history.rights is not None
    setting = replace(history.rights, make_core=rights, watchful=watchful)
    return live(replace(history, rights=setting, settle_ms=0), real_core())[1]


def test_fixed_parts_hold_in_any_weather_and_waste() -> None:
    for seed in range(12):
        assert lived("limits", FixedRights, seed).broken == ()
    skewed = lived("limit-skew-2x", FixedRights).figures
    assert max(skewed["over_ratio"]) <= 1.0
    assert min(skewed["unused"]) > 0.6
    even = lived("limit-even-2x", FixedRights).figures
    assert max(even["unused"]) == 0.0


def test_all_of_it_at_every_node_is_noticed_by_who_counts_and_by_who_adds_up() -> None:
    counted = lived("limit-even-10x", NaiveRights, watchful=False)
    assert "5000 of 1000" in "".join(counted.broken) or "were admitted" in counted.broken[0]
    assert max(counted.figures["over_ratio"]) > 4.0
    added = lived("limit-even-10x", NaiveRights)
    assert "rights to model=m#requests/1000 exist" in added.broken[0]


def test_a_life_that_has_what_the_life_before_it_spent_is_noticed() -> None:
    broken = [lived("limits", ForgetfulRights, seed).broken for seed in range(12)]
    assert any("exist in window" in promise for promises in broken for promise in promises)


@pytest.mark.parametrize(
    ("rights", "said"),
    [(CopyingRights, "became of the"), (LyingRights, "were spent, it says 0")],
)
def test_books_that_do_not_add_up_are_noticed(rights: RightsFactory, said: str) -> None:
    assert said in lived("limit-even-2x", rights).broken[0]


def test_a_limit_that_is_not_used_again_after_the_weather_is_noticed() -> None:
    plan = random_limits_plan(18, 5)
    assert plan.rights is not None
    places = {limit.key for limit in plan.rights.limits if not limit.window_ms}
    setting = replace(
        plan.rights,
        make_core=FixedRights,
        limits=tuple(limit for limit in plan.rights.limits if limit.window_ms),
        flows=tuple(flow for flow in plan.rights.flows if flow.key not in places),
    )
    faults = tuple(fault for fault in plan.faults if getattr(fault, "key", "") not in places)
    outcome = live(replace(plan, rights=setting, faults=faults), real_core())[1]
    assert "long after all was well only" in outcome.broken[0]


def test_a_mistake_that_raises_is_a_broken_promise() -> None:
    class Raising(FixedRights):
        def due_ms(self) -> int | None:
            raise ZeroDivisionError

    assert "raised ZeroDivisionError" in lived("limit-even-2x", Raising).broken[0]


def test_a_history_is_the_same_twice() -> None:
    plan = random_limits_plan(3, 5)
    assert plan.rights is not None
    plan = replace(plan, rights=replace(plan.rights, make_core=FixedRights))
    first, again = (live(plan, real_core(), traced=True)[1] for _ in range(2))
    assert first.fingerprint == again.fingerprint
    assert first.figures == again.figures
