"""Scenario with a name: its play or plan, its targets, and the run of one history of it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import process_time
from typing import Literal, TypeAlias

from smg_chaos.simulate.hosts.core_interface import CoreFactory
from smg_chaos.simulate.outcome import STATISTICS, Figures, Outcome
from smg_chaos.simulate.random_faults import Plan
from smg_chaos.simulate.replicas.replica_interface import ReplicaFactory
from smg_chaos.simulate.replicas.replica_setting import StateSetting
from smg_chaos.simulate.trials.trial import live
from smg_chaos.simulate.world.world import Setting, World
from smg_mesh.config import ProfileName

Play: TypeAlias = Callable[[World, int], Figures]
"""Let it happen in a world of that many members; what must not happen becomes a broken promise."""


PlanOf: TypeAlias = Callable[[int, int, ProfileName], Plan]
"""From (seed, members, profile) to a history to be."""


@dataclass(frozen=True, slots=True)
class Target:
    """A statistic of a figure over all seeds, and the most it may be."""

    figure: str
    of: Literal["p50", "p99", "max", "mean", "sum"]
    most: float

    def reached(self, figures: Figures) -> float:
        """Return what was measured; nan if nothing was."""
        return STATISTICS[self.of](figures.get(self.figure, ()))

    def met(self, figures: Figures) -> bool:
        """Return whether it is."""
        reached = self.reached(figures)
        return not math.isnan(reached) and reached <= self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario and how it is usually run: what happens in it is a `play`, or by seed a `plan`."""

    name: str
    about: str
    play: Play | None = None
    plan: PlanOf | None = None
    state: StateSetting | None = None
    """What the nodes share in it beside the membership."""
    limited: bool = False
    """Whether its plan is about limits, and nothing else is shared."""
    nodes: int = 10
    seeds: int = 100
    profile: ProfileName = "lan"
    targets: Sequence[Target] = ()

    @property
    def shares(self) -> bool:
        """Whether its nodes have replicated state."""
        return self.state is not None or (self.plan is not None and not self.limited)


def play(
    scenario: Scenario,
    setting: Setting,
    make_core: CoreFactory,
    make_replica: ReplicaFactory | None = None,
    *,
    nodes: int,
) -> tuple[World, Outcome]:
    """Live through one history of a scenario; return the world it left, and the sum of it."""
    if scenario.plan is not None:
        plan = scenario.plan(setting.seed, nodes, setting.profile)
        return live(plan, make_core, make_replica, traced=setting.traced)
    assert scenario.play is not None
    begun_s = process_time()
    world = World(replace(setting, state=scenario.state), make_core, make_replica)
    figures = scenario.play(world, nodes)
    return world, Outcome(
        seed=setting.seed,
        broken=tuple(world.broken_promises),
        figures=figures,
        events=world.events,
        cpu_s=process_time() - begun_s,
        fingerprint="" if world.trace is None else world.trace.fingerprint(),
    )
