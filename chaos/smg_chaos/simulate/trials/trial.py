"""Trial of one plan: the cluster starts, faults happen, all is healed, all members must agree."""

import traceback
from collections.abc import Callable
from time import process_time
from typing import Final

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.cluster import put_up, settle
from smg_chaos.simulate.faults import Garbage, Replay, plan_fault
from smg_chaos.simulate.hosts.core_interface import CoreFactory
from smg_chaos.simulate.outcome import Figures, Outcome
from smg_chaos.simulate.random_faults import Plan
from smg_chaos.simulate.replicas.replica_interface import ReplicaFactory
from smg_chaos.simulate.world.checkers import disagreements
from smg_chaos.simulate.world.world import Setting, World

_HELD_DOWN_S: Final = 130.0
"""Longest time a member that came back is held down before it is announced, and some."""


def live(
    plan: Plan,
    make_core: CoreFactory,
    make_replica: ReplicaFactory | None = None,
    *,
    traced: bool = False,
) -> tuple[World, Outcome]:
    """Live through a plan from beginning to end; return the world it left, and the sum of it."""
    begun_s = process_time()
    setting = Setting(
        seed=plan.seed,
        profile=plan.profile,
        sealed=plan.sealed,
        traced=traced,
        state=plan.state,
        rights=plan.rights,
        traffic=plan.traffic,
    )
    world = World(setting, make_core, make_replica)
    if plan.traffic is not None:
        figures: Figures = _guarded(world, lambda: _whole(world, plan))
    elif plan.rights is not None:
        figures = _guarded(world, lambda: _limited(world, plan))
    elif plan.state is None:
        settled_s = _weathered(world, plan)
        figures = {"settled_s": [] if settled_s is None else [settled_s]}
    else:
        figures = _guarded(world, lambda: _shared(world, plan))
    return world, Outcome(
        seed=plan.seed,
        broken=tuple(world.broken_promises),
        figures=figures | {"virtual_s": [world.agenda.now_us / SECOND]},
        events=world.events,
        cpu_s=process_time() - begun_s,
        fingerprint="" if world.trace is None else world.trace.fingerprint(),
    )


def _shared(world: World, plan: Plan) -> Figures:
    # Imported when it is used: what nodes share takes a while to load, and most worlds do without.
    from smg_chaos.simulate.trials.replica_trial import weathered

    return weathered(world, plan)


def _limited(world: World, plan: Plan) -> Figures:
    from smg_chaos.simulate.trials.rights_trial import limited

    return limited(world, plan)


def _whole(world: World, plan: Plan) -> Figures:
    from smg_chaos.simulate.trials.whole_trial import lived

    return lived(world, plan)


def _guarded(world: World, happen: Callable[[], Figures]) -> Figures:
    """Let a plan happen; a mistake that raises is a broken promise like any other."""
    try:
        return happen()
    except Exception as error:
        # A door: whatever a part raises belongs to this seed, and others are to be lived through.
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__} {error}".rstrip()
        world.broken(f"raised {said} in {where.name} ({where.filename}:{where.lineno})")
        return {}


def _weathered(world: World, plan: Plan) -> float | None:
    """Let the weather come and go; return how long after it all agreed, None if they did not."""
    if any(isinstance(fault, Replay | Garbage) for fault in plan.faults):
        world.listen_in()
    put_up(world, plan.nodes)
    for fault in plan.faults:
        plan_fault(world, fault)  # type: ignore[arg-type]  # plans without state have no deeds
    world.run(plan.heal_ms * MS)
    world.network.heal()
    world.chronicle.deed(world.agenda.now_us, "weather", "is over: all links are well")
    settled_s = settle(world, limit_s=plan.settle_ms / 1_000, announced=False)
    if settled_s is not None:
        world.run(max(plan.end_ms * MS, world.agenda.now_us))
        for wrong in disagreements(world, announced=False):
            world.broken(f"settled, and did not stay so: {wrong}")
        if not world.broken_promises:
            settle(world, limit_s=_HELD_DOWN_S)
    return settled_s


def try_plan(
    plan: Plan,
    make_core: CoreFactory,
    make_replica: ReplicaFactory | None = None,
    *,
    traced: bool = False,
) -> Outcome:
    """Live through a plan and keep only the sum of it."""
    return live(plan, make_core, make_replica, traced=traced)[1]
