"""Whole trial: one history under traffic: faults, healing, calm, quiet, final checks.

Safety is looked at all the time. When all is healed the members have to agree, then their replicas;
every engine is registered again; in calm weather requests succeed; and when no client asks any
more, nothing is held anywhere.
"""

from typing import Final

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.cluster import put_up, settle
from smg_chaos.simulate.faults import plan_fault
from smg_chaos.simulate.outcome import Figures
from smg_chaos.simulate.random_faults import Plan
from smg_chaos.simulate.replicas.agreement import differences
from smg_chaos.simulate.replicas.state_events import AddWorker, Deed, DrainWorker, do_now, plan_deed
from smg_chaos.simulate.rights.rights_faults import ChangeLimit, Ruled, plan_ruled
from smg_chaos.simulate.whole.client_request import Request
from smg_chaos.simulate.whole.traffic import Traffic
from smg_chaos.simulate.whole.traffic_events import Trouble, plan_trouble
from smg_chaos.simulate.whole.traffic_setting import KEY
from smg_chaos.simulate.world.world import World

ALIKE_S: Final = 15.0
"""From when the members agree until all replicas are alike."""
RECOVERED_S: Final = 8.0
"""From then until limits are given out again, and breakers closed."""
LISTENS_S: Final = 5.0
MEASURED_S: Final = 3.0
QUIET_S: Final = 8.0
"""Nothing is said of an open request for longer than its repeats: then nothing is left."""
_LOST_MAX: Final = 0.05
_PLENTY: Final = 1_000
"""A limit that is not felt."""


def lived(world: World, plan: Plan) -> Figures:
    """Let it all happen; return what became of the requests."""
    assert world.commons is not None
    assert world.market is not None
    assert world.traffic is not None
    put_up(world, plan.nodes)
    for fault in plan.faults:
        if isinstance(fault, Deed):
            plan_deed(world, fault)
        elif isinstance(fault, Ruled):
            plan_ruled(world, fault)
        elif isinstance(fault, Trouble):
            plan_trouble(world, fault)
        else:
            plan_fault(world, fault)
    world.run(plan.heal_ms * MS)
    stormy = list(world.traffic.asked)
    _heal(world, world.traffic)
    figures: Figures = {}
    settled_s = settle(world, limit_s=plan.settle_ms / 1_000, announced=False)
    if settled_s is not None and _alike(world, "after the healing"):
        figures |= _calm(world, world.traffic)
    world.traffic.end()
    world.run_for(int(QUIET_S * SECOND))
    world.traffic.judge.quiet()
    _alike(world, "after some quiet")
    for teller in world.market.tellers():
        teller.end()
    world.market.books.close()
    return figures | _figures(world.traffic, stormy)


def _heal(world: World, traffic: Traffic) -> None:
    """End the weather.

    Members that are gone for good stay so, and every engine is a worker again.
    """
    assert world.market is not None
    world.network.heal()
    for host in world.hosts.values():
        host.clock_wrong_ms = world.market.wrong_ms(host.number)
    traffic.calm = True
    traffic.crowd = 1.0
    for engine in traffic.engines.values():
        engine.heal()
    text = "is over: links, clocks and engines are well"
    world.chronicle.deed(world.agenda.now_us, "weather", text)


def _alike(world: World, when: str) -> bool:
    """Let time pass until all replicas are alike; after the limit it is a broken promise."""
    commons = world.commons
    assert commons is not None

    def well() -> bool:
        return commons.agreed() and all(life.arrival.held for life in commons.lives())

    took_us = world.run_until(well, limit_us=int(ALIKE_S * SECOND), step_us=50 * MS)
    if took_us is None:
        world.broken(f"replicas not alike {ALIKE_S:g} s {when}")
        return False
    wrong = differences(commons, leftovers=True)
    for one in wrong:
        world.broken(f"alike {when}: {one}")
    return not wrong


def _calm(world: World, traffic: Traffic) -> Figures:
    """Let an operator put all in order; then requests have to succeed."""
    assert world.market is not None
    who = _who_listens(world)
    at_ms = world.agenda.now_us // MS
    for engine in traffic.engines:
        add = AddWorker(at_ms=at_ms, who=who, worker=engine, source="api", priority=50)
        undrain = DrainWorker(at_ms=at_ms, who=who, worker=engine, on=False)
        if not (do_now(world, add) and do_now(world, undrain)):
            world.broken(f"{who} does not take {engine} from an operator")
    plan_ruled(world, ChangeLimit(at_ms=at_ms, who=who, key=KEY, amount=_PLENTY))
    world.run_for(int(RECOVERED_S * SECOND))
    for front in traffic.fronts():
        assert front.node.life is not None
        known = {record.id for record in front.node.life.views.workers.records()}
        missing = sorted(traffic.engines.keys() - known)
        if missing:
            world.broken(f"{front.node.host.label} lacks {missing}, which are registered")
    first = len(traffic.asked)
    world.run_for(int(MEASURED_S * SECOND))
    last = len(traffic.asked)
    world.run_for(2 * SECOND)
    asked = traffic.asked[first:last]
    unlucky = ("", "failed", "refused", *(("limited",) if _is_quorate(world) else ()))
    lost = [one for one in asked if one.ending in unlucky]
    if len(lost) > max(1, _LOST_MAX * len(asked)):
        why = sorted({f"{one.ending}: {one.why}" for one in lost})
        world.broken(f"long after all was well {len(lost)} of {len(asked)} got nothing: {why}")
    return {"calm_lost": [len(lost) / len(asked)] if asked else []}


def _who_listens(world: World) -> str:
    """Let time pass until a node takes words: one that is busy answers its operator later."""

    def listening() -> list[str]:
        return [node.host.label for node in world.nodes() if not node.stopped]

    took_us = world.run_until(
        lambda: bool(listening()), limit_us=int(LISTENS_S * SECOND), step_us=50 * MS
    )
    if took_us is None:
        world.broken(f"no node listens for {LISTENS_S:g} s after all was well")
        return world.nodes()[0].host.label
    return listening()[0]


def _is_quorate(world: World) -> bool:
    """Return whether more than half of those who vote about rights live: else only what stands may be spent."""
    assert world.market is not None
    tellers = world.market.tellers()
    rosters = [roster for teller in tellers if (roster := teller.core.roster) is not None]
    if not rosters:
        return False
    roster = max(rosters, key=lambda one: one.version)
    return sum(teller.me.name in roster.names for teller in tellers) >= roster.majority


def _figures(traffic: Traffic, stormy: list[Request]) -> Figures:
    ends = dict.fromkeys(("whole", "failed", "limited", "cut", "refused"), 0)
    for request in stormy:
        if request.ending:
            ends[request.ending] += 1
    figures: Figures = {f"{name}_requests": [float(count)] for name, count in ends.items()}
    return figures | {"moved_requests": [float(traffic.moved)]}
