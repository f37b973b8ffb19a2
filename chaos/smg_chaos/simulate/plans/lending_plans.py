"""Lending plans: bursts at one node of limits with long windows, which need what stands with the others.

The weather is that of `random_limits_plan`, with more restarts, newcomers, deaths of owners and changes of
limits: each may come between a call for rights, their release on disk, its news and their being minted again.
"""

from dataclasses import replace
from random import Random
from typing import Final

from smg_chaos.simulate.base.random_sources import chance
from smg_chaos.simulate.faults import Fault, Join, Restart
from smg_chaos.simulate.plans.rights_plans import HEAL_MS, random_limits_plan
from smg_chaos.simulate.random_faults import Plan, name_of
from smg_chaos.simulate.rights.rights_faults import (
    ChangeLimit,
    KillLender,
    KillOwner,
    PauseOwner,
    Ruled,
)
from smg_chaos.simulate.rights.rights_setting import Flow
from smg_mesh.config import ProfileName
from smg_mesh.escrow.limit_model import Limit

_EVE_MS: Final = 20_000
_FIRST_MS: Final = _EVE_MS + 3_000
_LAST_MS: Final = _EVE_MS + HEAL_MS - 500
_WINDOWS_MS: Final = (20_000, 20_000, 60_000)


def random_lending_plan(seed: int, nodes: int, profile: ProfileName = "lan") -> Plan:
    """Return the history of a seed, of 3 to `nodes` members."""
    plan = random_limits_plan(seed, nodes, profile)
    assert plan.rights is not None
    own = chance(seed, "limits-lending")
    limits = tuple(_limit(own, f"tenant={name}") for name in "abc"[: own.randint(1, 3)])
    flows = tuple(flow for limit in limits for flow in _bursts(own, limit, plan.nodes))
    kept = [
        replace(fault, at_ms=fault.at_ms + _EVE_MS)
        for fault in plan.faults
        if not isinstance(fault, ChangeLimit | KillOwner | PauseOwner)
    ]
    drawn = [_happening(own, limits, plan.nodes) for _ in range(own.randint(3, 10))]
    drawn += [_lender_dies(own, flow) for flow in flows if flow.from_ms and own.random() < 0.3]
    # A whole window passes with a roster before it matters: only then what stands is whole.
    phase_ms = 60_000 - own.randrange(2_500, 5_000)
    setting = replace(plan.rights, limits=limits, flows=flows, disks=True, phase_ms=phase_ms)
    faults = sorted([*kept, *drawn], key=lambda happening: happening.at_ms)
    end_ms = HEAL_MS + _EVE_MS
    return replace(plan, faults=tuple(faults), rights=setting, heal_ms=end_ms, end_ms=end_ms)


def _limit(own: Random, scope: str) -> Limit:
    window_ms = own.choice(_WINDOWS_MS)
    return Limit(
        key=f"{scope}#requests/{window_ms}",
        unit="requests",
        amount=own.choice((6, 60, 60, 600, 2_000)),
        window_ms=window_ms,
        mode=own.choice(("strict", "strict", "balanced", "available")),
        standing=own.choice((0.5, 0.5, 0.5, 0.9, 0.2)),
    )


def _bursts(own: Random, limit: Limit, nodes: int) -> list[Flow]:
    """Draw a few bursts, each of more than there is, at one node, and a little at some others all the time."""
    steady_per_s = limit.amount / limit.window_ms * 1_000
    little = tuple(steady_per_s * own.choice((0.0, 0.1, 2.0)) for _ in range(nodes))
    flows = [Flow(key=limit.key, rates_per_s=little)]
    for _ in range(own.randint(2, 5)):
        busy = own.randrange(nodes)
        for_ms = own.choice((200, 1_000, 4_000))
        per_s = limit.amount * own.choice((0.5, 1.5, 3.0)) / for_ms * 1_000
        rates = tuple(per_s if number == busy else 0.0 for number in range(nodes))
        from_ms = own.randrange(_FIRST_MS, _LAST_MS)
        flows.append(
            Flow(key=limit.key, rates_per_s=rates, from_ms=from_ms, until_ms=from_ms + for_ms)
        )
    return flows


def _lender_dies(own: Random, burst: Flow) -> KillLender:
    """Let one of those die that release what a burst needs."""
    return KillLender(at_ms=burst.from_ms, key=burst.key, back_ms=own.choice((100, 500, 2_000)))


def _happening(own: Random, limits: tuple[Limit, ...], nodes: int) -> Fault | Ruled:
    at_ms = own.randrange(_FIRST_MS, _LAST_MS)
    who = name_of(own.randrange(nodes))
    limit = own.choice(limits)
    kind = own.randrange(6)
    if kind == 0:
        back_ms = own.choice((200, 1_000, 3_000))
        return KillOwner(at_ms=at_ms, key=limit.key, back_ms=back_ms)
    if kind == 1:
        for_ms = max(1, min(own.choice((500, 3_000)), _LAST_MS - at_ms))
        return PauseOwner(at_ms=at_ms, key=limit.key, for_ms=for_ms)
    if kind == 2:
        amount = max(1, int(limit.amount * own.choice((0.1, 0.5, 2.0, 3.0))))
        standing = own.choice((None, None, 0.1, 0.8))
        return ChangeLimit(at_ms=at_ms, who=who, key=limit.key, amount=amount, standing=standing)
    if kind == 3:
        return Join(at_ms=at_ms, who=f"new{own.randrange(3)}")
    return Restart(at_ms=at_ms, who=who, lost_disk=own.random() < 0.25)
