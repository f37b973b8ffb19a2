from collections.abc import Iterator
from typing import get_args

from smg_chaos.simulate.faults import Pause, Slow, Storm
from smg_chaos.simulate.plans.replica_plans import HEAL_MS, TEMPERS, random_state_plan
from smg_chaos.simulate.replicas.replica_setting import StateSetting
from smg_chaos.simulate.replicas.state_events import Away, Deed, SetClock, described
from smg_chaos.simulate.scenarios.catalogue import SCENARIOS
from smg_chaos.simulate.trials.replica_trial import CALM_S

PLANS = [random_state_plan(seed, nodes=20) for seed in range(300)]


def states() -> Iterator[StateSetting]:
    for plan in PLANS:
        assert plan.state is not None
        yield plan.state


def test_one_seed_has_one_history_to_be() -> None:
    assert random_state_plan(7, nodes=9) == random_state_plan(7, nodes=9)
    assert random_state_plan(7, nodes=9).faults != random_state_plan(8, nodes=9).faults


def test_sizes_are_from_three_to_as_many_as_said() -> None:
    assert {plan.nodes for plan in PLANS} >= {3, 12, 19}
    assert max(plan.nodes for plan in PLANS) <= 20
    assert {random_state_plan(seed, nodes=3).nodes for seed in range(50)} == {3}


def test_every_temper_comes_up() -> None:
    keeps = {state.options.removed_keep_ms for state in states()}
    assert keeps == {8_000, 15_000, 7 * 86_400_000}
    assert {state.options.document_bytes_max for state in states()} == {3_000, 262_144}
    assert {state.options.epoch_bytes for state in states()} > {600, 196_608}
    assert any(state.wild for state in states())
    assert len(TEMPERS) == 5


def test_every_kind_of_deed_comes_up_in_order_of_time_and_is_over_before_all_heals() -> None:
    seen = set()
    for plan in PLANS:
        times = [fault.at_ms for fault in plan.faults]
        assert times == sorted(times)
        assert 25 <= len(times) <= 110
        for fault in plan.faults:
            seen.add(type(fault))
            if isinstance(fault, Pause | Slow | Storm | Away):
                assert fault.at_ms + fault.for_ms < HEAL_MS
    assert seen >= set(get_args(Deed))


def test_clocks_of_tame_seeds_are_wrong_by_less_than_nodes_put_up_with() -> None:
    for plan in PLANS:
        assert plan.state is not None
        wrong = [abs(fault.wrong_ms) for fault in plan.faults if isinstance(fault, SetClock)]
        if wrong and not plan.state.wild:
            assert 2 * max(wrong) < plan.state.options.future_ms


def test_cuts_are_shorter_than_removals_are_kept() -> None:
    for plan in PLANS:
        assert plan.state is not None
        for fault in plan.faults:
            if isinstance(fault, Storm) and fault.rough.block:
                assert 2 * fault.for_ms <= plan.state.options.removed_keep_ms


def test_a_deed_is_told_in_words() -> None:
    deed = Away(at_ms=1, who="n0", for_ms=5)
    assert described(deed) == "Away: for_ms 5 disk kept old_ms 0"


def test_calm_convergence_is_a_target_of_the_scenario() -> None:
    (target,) = SCENARIOS["state-weather"].targets
    assert (target.figure, target.of, target.most) == ("calm_s", "p99", CALM_S)
