"""Every named scenario over real cores: few seeds, its own targets."""

import pytest

from smg_chaos.simulate.batch import Task, run_task
from smg_chaos.simulate.outcome import gathered
from smg_chaos.simulate.scenarios.catalogue import ACCEPTANCE, SCENARIOS

# Scenario: (nodes, seeds) where its own would take longer than a quick test may; none where another
# file of this folder lives through it. A third of them for each change, all of them for `make test-long`;
# `make simulate` lives through all of them at full size.
SMALL = {
    "crash": (6, 20),
    "host-crash": (6, 20),
    "leave": (6, 15),
    "restart": (6, 15),
    "join": (24, 1),
    "grow": (6, 10),
    "seed-late": (4, 10),
    "seed-dead": (3, 20),
    "restart-alone": (3, 15),
    "twins": (4, 10),
    "clock-jump": (4, 10),
    "stalls": (12, 2),
    "stalls-stable": (12, 2),
    "paused": (12, 2),
    "paused-25s": (3, 12),
    "loss-20": (12, 1),
    "loss-30": (12, 1),
    "loss-40": (8, 2),
    "sick": (8, 4),
    "sick-mute": (8, 4),
    "half-cut": (6, 4),
    "partition-60s": (6, 6),
    "partition-10min": (4, 2),
    "partition-26h": (3, 0),
    "rumor": (10, 10),
    "meta": (4, 5),
    "idle": (10, 1),
    "state-calm": (10, 4),
    "state-weather": (8, 10),
    "registrar-dies": (3, 6),
    "state-restart-all": (5, 6),
    "state-away": (4, 6),
    "state-join-10k": (3, 1),
    "state-50k": (3, 0),
    "limits": (5, 8),
    "limit-lending": (5, 6),
    "limit-even-2x": (5, 2),
    "limit-even-10x": (5, 2),
    "limit-skew-2x": (5, 2),
    "limit-skew-10x": (5, 2),
    "limit-even-0.9x": (5, 2),
    "limit-skew-0.9x": (5, 2),
    "limit-owner-dies": (5, 4),
    "limit-owner-still": (5, 3),
    "limit-cut-strict": (5, 2),
    "limit-cut-balanced": (5, 2),
    "limit-cut-available": (5, 2),
    "limit-changes": (5, 3),
    "limit-day": (5, 1),
    "limit-tool-runs": (5, 3),
    "limit-permits": (5, 1),
    "limit-places": (5, 3),
    "whole": (5, 0),
}


def test_every_scenario_has_a_size_here_and_most_a_row_of_acceptance() -> None:
    assert SMALL.keys() == SCENARIOS.keys()
    rows = {row.scenario.name for row in ACCEPTANCE}
    assert SCENARIOS.keys() - rows == {"grow", "meta", "whole"}


@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", [name for name, (_, seeds) in SMALL.items() if seeds])
def test_a_scenario_goes_as_it_should(name: str, share: int) -> None:
    scenario = SCENARIOS[name]
    nodes, seeds = SMALL[name]
    seeds = -(-seeds // share)
    outcomes = [
        run_task(Task(seed=seed, nodes=nodes, profile=scenario.profile, scenario=name))
        for seed in range(seeds)
    ]
    broken = [(outcome.seed, outcome.broken) for outcome in outcomes if outcome.broken]
    assert not broken
    figures = gathered(outcomes)
    missed = [
        f"{target.figure} {target.of}: {target.reached(figures)}, wanted {target.most}"
        for target in scenario.targets
        if not target.met(figures)
    ]
    assert not missed
