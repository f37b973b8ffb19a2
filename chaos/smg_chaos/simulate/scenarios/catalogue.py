"""Catalogue of all named scenarios, and the acceptance table of targets the mesh must reach."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from smg_chaos.simulate.scenarios.limits import LIMITS
from smg_chaos.simulate.scenarios.links import LINKS
from smg_chaos.simulate.scenarios.lives import LIVES
from smg_chaos.simulate.scenarios.loops import LOOPS
from smg_chaos.simulate.scenarios.scenario import Scenario, Target
from smg_chaos.simulate.scenarios.state import STATE
from smg_chaos.simulate.scenarios.whole import WHOLE
from smg_mesh.config import ProfileName

SCENARIOS: Final = MappingProxyType(
    {one.name: one for one in (*LIVES, *LOOPS, *LINKS, *STATE, *LIMITS, *WHOLE)}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the acceptance table: a scenario at a size, with so many seeds, and its targets."""

    scenario: Scenario
    nodes: int
    seeds: int
    targets: Sequence[Target]


def _row(name: str, nodes: int, seeds: int, *targets: Target) -> Row:
    scenario = SCENARIOS[name]
    return Row(
        scenario=scenario, nodes=nodes, seeds=seeds, targets=targets or tuple(scenario.targets)
    )


ACCEPTANCE: Final = (
    _row("crash", 5, 1000),
    _row("crash", 10, 1000),
    _row("crash", 100, 200, Target("first_s", "p99", 6.5), Target("healthy_deaths", "sum", 0)),
    _row("crash", 1000, 4, Target("first_s", "p99", 7.0), Target("healthy_deaths", "sum", 0)),
    _row("host-crash", 5, 1000),
    _row("host-crash", 10, 1000),
    _row("host-crash", 100, 200, Target("first_s", "p99", 6.5), Target("healthy_deaths", "sum", 0)),
    _row("leave", 10, 1000),
    _row("restart", 10, 1000),
    _row("loss-20", 100, 20),
    _row("loss-30", 100, 20),
    _row("loss-40", 10, 20),
    _row("stalls", 20, 100),
    _row("stalls-stable", 20, 100),
    _row("paused", 24, 20),
    _row("sick", 10, 200),
    _row("sick-mute", 10, 100),
    _row("half-cut", 10, 100),
    _row("rumor", 10, 1000, Target("heard_s", "p99", 0.5)),
    _row("rumor", 100, 200, Target("heard_s", "p99", 0.6)),
    _row("rumor", 1000, 4, Target("heard_s", "p99", 1.0)),
    _row("idle", 10, 5),
    _row("partition-60s", 10, 200),
    _row("partition-10min", 6, 50),
    _row("partition-26h", 4, 4),
    _row("join", 40, 20),
    _row("seed-late", 5, 200),
    _row("seed-dead", 3, 200),
    _row("restart-alone", 3, 200),
    _row("paused-25s", 3, 200),
    _row("twins", 5, 200),
    _row("clock-jump", 5, 200),
    _row("state-calm", 10, 200),
    _row("state-weather", 20, 1000),
    _row("registrar-dies", 3, 200),
    _row("state-restart-all", 5, 200),
    _row("state-away", 4, 50),
    _row("state-join-10k", 3, 2),
    _row("state-50k", 4, 2),
    _row("limits", 5, 1000),
    _row("limit-even-2x", 5, 20),
    _row("limit-even-10x", 5, 20),
    _row("limit-skew-2x", 5, 20),
    _row("limit-skew-10x", 5, 20),
    _row("limit-even-0.9x", 5, 20),
    _row("limit-skew-0.9x", 5, 20),
    _row("limit-owner-dies", 5, 200),
    _row("limit-owner-still", 5, 100),
    _row("limit-cut-strict", 5, 50),
    _row("limit-cut-balanced", 5, 50),
    _row("limit-cut-available", 5, 50),
    _row("limit-changes", 5, 100),
    _row("limit-day", 5, 10),
    _row("limit-tool-runs", 5, 10),
    _row("limit-permits", 5, 20),
    _row("limit-places", 5, 300),
    _row("limit-lending", 5, 300),
)


def targets_of(scenario: Scenario, *, nodes: int, profile: ProfileName) -> Sequence[Target]:
    """Return what a scenario has to reach at that size: as in the table, else its own; none elsewhere.

    Targets belong to a profile: with other timers nothing is promised here.
    """
    if profile != scenario.profile:
        return ()
    rows = [row for row in ACCEPTANCE if (row.scenario, row.nodes) == (scenario, nodes)]
    return rows[0].targets if rows else scenario.targets
