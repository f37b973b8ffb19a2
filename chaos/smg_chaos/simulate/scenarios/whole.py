"""Whole scenario: membership, state, limits, routing and failover at once, under traffic."""

from typing import Final

from smg_chaos.simulate.random_faults import Plan
from smg_chaos.simulate.scenarios.scenario import Scenario
from smg_mesh.config import ProfileName


def _plan(seed: int, nodes: int, profile: ProfileName) -> Plan:
    # Imported when it is used: engines and their words are slow to load.
    from smg_chaos.simulate.plans.whole_plans import random_whole_plan

    return random_whole_plan(seed, nodes, profile)


WHOLE: Final = (
    Scenario(
        name="whole",
        about="everything at once: members, state, limits, routing, failover, with traffic",
        plan=_plan,
        nodes=5,
        seeds=100,
    ),
)
