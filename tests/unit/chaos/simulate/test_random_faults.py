from collections.abc import Callable
from dataclasses import replace
from typing import get_args

from smg_chaos.simulate.faults import Crash, Fault, Leave, Pause, Slow, Storm, Twin
from smg_chaos.simulate.outcome import Outcome
from smg_chaos.simulate.random_faults import Plan, random_plan
from smg_chaos.simulate.replicas.state_events import Deed
from smg_chaos.simulate.rights.rights_faults import Ruled
from smg_chaos.simulate.shorten import shortened
from smg_chaos.simulate.trials.trial import live, try_plan
from smg_chaos.simulate.whole.traffic_events import Trouble
from support.mesh.simulated_world import fake_core

PLANS = [random_plan(seed, nodes=2 + seed % 9) for seed in range(300)]


def test_one_seed_has_one_weather() -> None:
    assert random_plan(7, nodes=5) == random_plan(7, nodes=5)
    assert random_plan(7, nodes=5).faults != random_plan(8, nodes=5).faults


def test_every_kind_of_fault_comes_up_in_order_of_time() -> None:
    seen = {type(fault) for plan in PLANS for fault in plan.faults}
    assert seen == set(get_args(Fault))
    for plan in PLANS:
        times = [fault.at_ms for fault in plan.faults]
        assert times == sorted(times)
        assert 3 <= len(times) <= 40


def test_all_faults_are_over_when_all_is_healed() -> None:
    for plan in PLANS:
        for fault in plan.faults:
            if isinstance(fault, Pause | Slow | Storm):
                assert fault.at_ms + fault.for_ms <= plan.heal_ms
        assert plan.heal_ms + plan.settle_ms <= plan.end_ms


def test_the_first_member_always_comes_back() -> None:
    for plan in PLANS:
        final = [fault for fault in plan.faults if isinstance(fault, Crash | Leave | Twin)]
        assert "n0" not in {fault.who for fault in final}


def test_other_profiles_have_the_same_weather_at_their_own_pace() -> None:
    plan = random_plan(1, nodes=5, profile="wan")
    assert plan.heal_ms == 700_000
    assert random_plan(1, nodes=5, profile="local").end_ms == 48_000


def failing(*needed: Fault | Deed | Ruled | Trouble) -> tuple[list[int], Callable[[Plan], Outcome]]:
    """Return an attempt that breaks a promise as long as all of these faults are there."""
    sizes: list[int] = []

    def attempt(plan: Plan) -> Outcome:
        sizes.append(len(plan.faults))
        broken = all(fault in plan.faults for fault in needed)
        return Outcome(seed=plan.seed, broken=("it broke",) if broken else ())

    return sizes, attempt


def test_the_shortest_list_of_faults_holds_those_that_matter() -> None:
    plan = next(plan for plan in PLANS if len(plan.faults) > 20)
    needed = (plan.faults[3], plan.faults[17])
    _, attempt = failing(*needed)
    shortest, outcome, _ = shortened(plan, attempt)
    assert shortest == replace(plan, faults=needed)
    assert outcome.broken == ("it broke",)


def test_shortening_is_bounded() -> None:
    plan = next(plan for plan in PLANS if len(plan.faults) > 20)
    sizes, attempt = failing(*plan.faults)
    shortest, _, tries = shortened(plan, attempt, tries_max=10)
    assert shortest == plan
    assert tries == len(sizes) == 10


def test_what_does_not_fail_is_not_shortened() -> None:
    plan = PLANS[0]
    shortest, outcome, tries = shortened(plan, lambda plan: Outcome(seed=plan.seed))
    assert (shortest, outcome.broken, tries) == (plan, (), 1)


def test_a_plan_is_lived_to_its_end_and_summed_up() -> None:
    plan = replace(random_plan(3, nodes=3), faults=(Crash(at_ms=9_000, who="n1"),))
    world, outcome = live(plan, fake_core, traced=True)
    assert outcome.broken == ()
    assert world.agenda.now_us == 120_000_000
    assert outcome.figures["virtual_s"] == [120.0]
    assert outcome.events == world.events > 1_000
    assert len(outcome.fingerprint) == 32
    assert try_plan(plan, fake_core).fingerprint == ""


def test_a_cluster_that_does_not_come_together_again_has_broken_a_promise() -> None:
    # The simple core buries whoever is silent, and nobody ever greets the dead.
    plan = replace(random_plan(3, nodes=3), faults=(Pause(at_ms=9_000, who="n1", for_ms=9_000),))
    outcome = try_plan(plan, fake_core)
    assert outcome.broken
    assert "not settled after 30 s" in outcome.broken[0]
    assert outcome.figures["settled_s"] == []
