"""Replica trial: one random history of shared state: faults and writes, healing, final checks.

In the end all is healed and every clock is right. First the members have to agree, then their replicas,
then both have to stay as they are. Then a few more writes are made in calm weather, and how long it takes
until they are everywhere is measured; and what nodes publish of themselves has to be known to all.
"""

from typing import Final

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.cluster import put_up, settle
from smg_chaos.simulate.faults import Garbage, Replay, plan_fault
from smg_chaos.simulate.outcome import Figures
from smg_chaos.simulate.random_faults import Plan
from smg_chaos.simulate.replicas.agreement import differences, registers_differ, sums_agree
from smg_chaos.simulate.replicas.shared_world import Commons
from smg_chaos.simulate.replicas.state_events import (
    AddWorker,
    Deed,
    Publish,
    RemoveWorker,
    SetSetting,
    do_now,
    plan_deed,
)
from smg_chaos.simulate.world.world import World

HEALED_S: Final = 12.0
"""From the end of the last fault until all replicas are alike, once the members agree."""
CALM_S: Final = 2.0
"""In calm weather all are alike that soon after the last write: a target, measured."""
_CALM_LIMIT_S: Final = 8.0
"""So long it never takes."""
_RIPE_S: Final = 65.0
_QUIET_S: Final = 6.0
_CALM_WRITES: Final = 4
_ROUNDS: Final = 4
"""Rounds of publishing, a second apart: as a node does that has something to say."""


def weathered(world: World, plan: Plan) -> Figures:
    """Let it all happen; return how long it took until all were alike, and after the last writes."""
    assert world.commons is not None
    if any(isinstance(fault, Replay | Garbage) for fault in plan.faults):
        world.listen_in()
    put_up(world, plan.nodes)
    for fault in plan.faults:
        if isinstance(fault, Deed):
            plan_deed(world, fault)
        else:
            plan_fault(world, fault)  # type: ignore[arg-type]  # plans of state have no deeds of limits
    world.run(plan.heal_ms * MS)
    _heal(world)
    healed_us = world.agenda.now_us
    if settle(world, limit_s=plan.settle_ms / 1_000, announced=False) is None:
        return {}
    settled_us = world.agenda.now_us
    # What is left of an earlier epoch may wait for the end of its time.
    healed_s = HEALED_S + world.commons.options.union_ms / 1_000
    if world.commons.wild:
        # What was from the future by a clock that is right again now is looked at with the next round.
        world.run_for(int(_RIPE_S * SECOND))
    if not _alike(world, world.commons, "after the healing", healed_s):
        return {}
    alike_us = world.agenda.now_us
    world.run_for(int(_QUIET_S * SECOND))
    if not _alike(world, world.commons, "after some quiet", healed_s):
        return {}
    if world.notes.get("refused", 0):
        world.broken(f"members refused {world.notes['refused']} packets of each other")
    figures: Figures = {
        "settled_s": [(settled_us - healed_us) / SECOND],
        "alike_s": [] if world.commons.wild else [(alike_us - settled_us) / SECOND],
        "nodes": [float(len(world.nodes()))],
        "writes": [float(world.commons.ledger.written)],
    }
    return figures | _calm(world, world.commons)


def _heal(world: World) -> None:
    world.network.heal()
    for host in world.hosts.values():
        host.clock_wrong_ms = 0
    world.chronicle.deed(world.agenda.now_us, "weather", "is over: links and clocks are well")


def _alike(
    world: World, commons: Commons, when: str, limit_s: float, *, leftovers: bool = False
) -> bool:
    """Let time pass until all replicas are alike; after the limit it is a broken promise.

    `leftovers`: some nodes may hold entries of an earlier epoch that others lack, and that count for nothing.
    """

    def well() -> bool:
        lives = commons.lives()
        if not commons.agreed() or not all(life.arrival.held for life in lives):
            return False
        return leftovers or commons.wild or sums_agree(lives)

    took_us = world.run_until(well, limit_us=int(limit_s * SECOND), step_us=20 * MS)
    if took_us is None:
        world.broken(f"replicas not alike {limit_s:g} s {when}")
    return _look(world, when, leftovers=leftovers) and took_us is not None


def _look(world: World, when: str, *, leftovers: bool) -> bool:
    assert world.commons is not None
    wrong = differences(world.commons, leftovers=leftovers)
    for one in wrong:
        world.broken(f"alike {when}: {one}")
    return not wrong


def _calm(world: World, commons: Commons) -> Figures:
    """Write a little more, and see how long it takes."""
    for _ in range(_CALM_WRITES):
        _write(world)
        world.run_for(int(world.chance.random() * 300 * MS))
    since_us = world.agenda.now_us
    if not _alike(
        world, commons, "after the last write in calm weather", _CALM_LIMIT_S, leftovers=True
    ):
        return {}
    figures: Figures = {"calm_s": [(world.agenda.now_us - since_us) / SECOND]}
    _publish(world, commons)
    return figures


def _write(world: World) -> None:
    own = world.chance
    nodes = [node for node in world.nodes() if not node.leaving and not node.superseded]
    who = nodes[own.randrange(len(nodes))].host.label
    at_ms = world.agenda.now_us // MS
    worker = f"w{own.randrange(4)}"
    deeds: tuple[Deed, ...] = (
        SetSetting(at_ms=at_ms, who=who, key=f"s{own.randrange(4)}", size=20, checked=False),
        AddWorker(at_ms=at_ms, who=who, worker=worker, source="api", priority=own.randrange(100)),
        RemoveWorker(at_ms=at_ms, who=who, worker=worker),
    )
    do_now(world, deeds[own.randrange(len(deeds))])


def _publish(world: World, commons: Commons) -> None:
    """Let every node say something of itself a few times; then all must know all of it."""
    since_us = world.agenda.now_us
    for _ in range(_ROUNDS):
        for life in commons.lives():
            for key in sorted({"p", *life.published}):
                deed = Publish(at_ms=world.agenda.now_us // MS, who=life.node.host.label, key=key)
                do_now(world, deed)
        world.run_for(SECOND)
    world.run_for(SECOND)
    for wrong in registers_differ(commons, since_us=since_us):
        world.broken(wrong)
