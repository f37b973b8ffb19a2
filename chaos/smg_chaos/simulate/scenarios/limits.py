"""Limit scenarios: random faults, and one for each kind of load, cut and crash.

The figures are parts of the amount of a window: `unused` of windows that were asked for far more than there is,
`refused_share` of windows that were asked for less. `over_ratio` is what was admitted of what may be.
"""

from collections.abc import Sequence
from typing import Final

from smg_chaos.simulate.base.random_sources import chance
from smg_chaos.simulate.faults import Restart, Storm
from smg_chaos.simulate.hosts.link_faults import Rough
from smg_chaos.simulate.plans.lending_plans import random_lending_plan
from smg_chaos.simulate.plans.rights_plans import random_limits_plan, random_places_plan
from smg_chaos.simulate.random_faults import Plan, name_of
from smg_chaos.simulate.rights.rights_faults import (
    ChangeLimit,
    KillOwner,
    PauseOwner,
    RestartAll,
    Ruled,
)
from smg_chaos.simulate.rights.rights_setting import Flow, RightsSetting
from smg_chaos.simulate.scenarios.scenario import PlanOf, Scenario, Target
from smg_mesh.config import ProfileName
from smg_mesh.escrow.limit_model import Limit, Mode
from smg_mesh.state.limits.limit_rule import limit_key
from smg_mesh.state.limits.limit_scope import Scope

_KEY: Final = "model=m#requests/1000"
_AMOUNT: Final = 1_000
_DAY_KEY: Final = "tenant=a#tokens/300000"
_DAY_MS: Final = 300_000
_PLACES_KEY: Final = "tenant=c#concurrent/0"
_RUNS_KEY: Final = limit_key(Scope(tool="search/*").text, "requests", _DAY_MS)
_RUNS: Final = 100
_HELD_S: Final = 2.0
"""So long an answer is open, on the average."""
_WARM_MS: Final = 8_000
_EVE_MS: Final = 20_000
"""So long before the day begins, the cluster does: a roster is begun once in its life, not within each budget."""
_EXACT: Final = Target("over_ratio", "max", 1.0)
_PACKETS: Final = Target("packets_per_s", "mean", 40.0)


def _even(per_s: float, nodes: int) -> tuple[float, ...]:
    return (per_s / nodes,) * nodes


def _skewed(per_s: float, nodes: int) -> tuple[float, ...]:
    """Return 95 % at one node, the rest elsewhere."""
    rest = per_s * 0.05 / (nodes - 1)
    return (rest,) * (nodes - 1) + (per_s * 0.95,)


def _limit(mode: Mode = "strict", amount: int = _AMOUNT) -> Limit:
    return Limit(key=_KEY, unit="requests", amount=amount, window_ms=1_000, mode=mode)


def _plan(
    seed: int,
    nodes: int,
    profile: ProfileName,
    rates_per_s: tuple[float, ...],
    faults: Sequence[Storm | Restart | Ruled] = (),
    *,
    mode: Mode = "strict",
    end_ms: int = 20_000,
) -> Plan:
    own = chance(seed, "limits-load")
    setting = RightsSetting(
        limits=(_limit(mode),),
        flows=(Flow(key=_KEY, rates_per_s=rates_per_s),),
        expect=nodes,
        phase_ms=own.randrange(1_000),
        clock_wrong_ms=tuple(own.randint(-5, 5) for _ in range(nodes)),
        judged_from_ms=_WARM_MS,
    )
    return Plan(
        seed=seed,
        nodes=nodes,
        profile=profile,
        sealed=False,
        faults=tuple(faults),
        heal_ms=end_ms,
        settle_ms=0,
        end_ms=end_ms,
        rights=setting,
    )


def _load(times: float, *, skewed: bool = False) -> PlanOf:
    """Return a calm history in which a limit is asked for that many times its amount."""

    def _of(seed: int, nodes: int, profile: ProfileName) -> Plan:
        per_s = times * _AMOUNT
        rates = _skewed(per_s, nodes) if skewed else _even(per_s, nodes)
        return _plan(seed, nodes, profile, rates)

    return _of


def _owner_dies(seed: int, nodes: int, profile: ProfileName) -> Plan:
    own = chance(seed, "limits-death")
    dies = KillOwner(at_ms=_WARM_MS + own.randrange(1_000), key=_KEY)
    return _plan(seed, nodes, profile, _even(2.0 * _AMOUNT, nodes), (dies,))


def _owner_stands_still(seed: int, nodes: int, profile: ProfileName) -> Plan:
    own = chance(seed, "limits-still")
    pause = PauseOwner(
        at_ms=_WARM_MS + own.randrange(1_000), key=_KEY, for_ms=own.randint(200, 5_000)
    )
    return _plan(seed, nodes, profile, _even(2.0 * _AMOUNT, nodes), (pause,))


def _cut(mode: Mode) -> PlanOf:
    """Return a history in which the smaller half is cut off for ten seconds."""

    def _of(seed: int, nodes: int, profile: ProfileName) -> Plan:
        own = chance(seed, "limits-cut")
        away = tuple(sorted(own.sample([name_of(one) for one in range(nodes)], (nodes - 1) // 2)))
        others = tuple(name for one in range(nodes) if (name := name_of(one)) not in away)
        rough = Rough(sources=away, targets=others, both_ways=True, block=True)
        at_ms = _WARM_MS + own.randrange(1_000)
        cut = Storm(at_ms=at_ms, for_ms=10_000, rough=rough)
        return _plan(
            seed, nodes, profile, _even(2.0 * _AMOUNT, nodes), (cut,), mode=mode, end_ms=26_000
        )

    return _of


def _changes(seed: int, nodes: int, profile: ProfileName) -> Plan:
    """Lower and raise a limit again and again while it is asked for too much."""
    own = chance(seed, "limits-change")
    changes = tuple(
        ChangeLimit(
            at_ms=at_ms + own.randrange(1_000),
            who=name_of(own.randrange(nodes)),
            key=_KEY,
            amount=own.choice((200, 500, 1_000, 2_000)),
            standing=own.choice((None, None, 0.2, 0.8)),
        )
        for at_ms in range(_WARM_MS, 24_000, 2_500)
    )
    return _plan(seed, nodes, profile, _even(4.0 * _AMOUNT, nodes), changes, end_ms=28_000)


def _day(seed: int, nodes: int, profile: ProfileName) -> Plan:
    """Spend one long budget while its owner dies three times and all nodes once."""
    own = chance(seed, "limits-day")
    amount = 120_000
    times = sorted(_EVE_MS + own.randrange(_DAY_MS // 10, _DAY_MS * 8 // 10) for _ in range(4))
    deaths = [KillOwner(at_ms=at_ms, key=_DAY_KEY, back_ms=2_000) for at_ms in times[:3]]
    everybody = RestartAll(at_ms=times[3], back_ms=500)
    per_s = 3.0 * amount / (_DAY_MS / 1_000) / 25.0
    setting = RightsSetting(
        limits=(
            Limit(key=_DAY_KEY, unit="tokens", amount=amount, window_ms=_DAY_MS, mode="strict"),
        ),
        flows=(Flow(key=_DAY_KEY, rates_per_s=_even(per_s, nodes), cost=(10, 40)),),
        expect=nodes,
        phase_ms=_DAY_MS - _EVE_MS,
        beat_ms=25,
    )
    return Plan(
        seed=seed,
        nodes=nodes,
        profile=profile,
        sealed=False,
        faults=(*deaths, everybody),
        heal_ms=_EVE_MS + _DAY_MS,
        settle_ms=0,
        end_ms=_EVE_MS + _DAY_MS,
        rights=setting,
    )


def _runs_of_tools(seed: int, nodes: int, profile: ProfileName) -> Plan:
    """Ask for ten times the runs of a budget of all tools of a server; one node is cut off meanwhile."""
    own = chance(seed, "limits-runs")
    away = (name_of(own.randrange(nodes)),)
    others = tuple(name for one in range(nodes) if (name := name_of(one)) not in away)
    rough = Rough(sources=away, targets=others, both_ways=True, block=True)
    at_ms = _EVE_MS + own.randrange(_DAY_MS // 10)
    cut = Storm(at_ms=at_ms, for_ms=_DAY_MS // 2, rough=rough)
    limit = Limit(key=_RUNS_KEY, unit="requests", amount=_RUNS, window_ms=_DAY_MS, mode="strict")
    setting = RightsSetting(
        limits=(limit,),
        flows=(Flow(key=_RUNS_KEY, rates_per_s=_even(10.0 * _RUNS * 1_000 / _DAY_MS, nodes)),),
        expect=nodes,
        phase_ms=_DAY_MS - _EVE_MS,
        beat_ms=25,
    )
    return Plan(
        seed=seed,
        nodes=nodes,
        profile=profile,
        sealed=False,
        faults=(cut,),
        heal_ms=_EVE_MS + _DAY_MS,
        settle_ms=0,
        end_ms=_EVE_MS + _DAY_MS,
        rights=setting,
    )


def _permits(seed: int, nodes: int, profile: ProfileName) -> Plan:
    """Ask one node for nearly all places of a limit, twice as many as there are."""
    own = chance(seed, "limits-permits")
    amount = 40
    limit = Limit(key=_PLACES_KEY, unit="concurrent", amount=amount, window_ms=0, mode="strict")
    flow = Flow(
        key=_PLACES_KEY,
        rates_per_s=_skewed(2.0 * amount / _HELD_S, nodes),
        holds_ms=(500, int(_HELD_S * 2_000) - 500),
    )
    setting = RightsSetting(
        limits=(limit,),
        flows=(flow,),
        expect=nodes,
        phase_ms=own.randrange(1_000),
        clock_wrong_ms=tuple(own.randint(-5, 5) for _ in range(nodes)),
        judged_from_ms=_WARM_MS,
    )
    return Plan(
        seed=seed,
        nodes=nodes,
        profile=profile,
        sealed=False,
        faults=(),
        heal_ms=20_000,
        settle_ms=0,
        end_ms=20_000,
        rights=setting,
    )


def _scenario(name: str, about: str, plan: PlanOf, *targets: Target, seeds: int = 50) -> Scenario:
    return Scenario(
        name=name, about=about, plan=plan, limited=True, nodes=5, seeds=seeds, targets=targets
    )


LIMITS: Final = (
    _scenario(
        "limits",
        "random limits, load and weather: loss, cuts, crashes, pauses, clocks, changes; by seed",
        random_limits_plan,
        _EXACT,
        seeds=200,
    ),
    _scenario(
        "limit-lending",
        "bursts at one node of long windows, in the same weather and more of it; by seed",
        random_lending_plan,
        _EXACT,
        seeds=200,
    ),
    _scenario(
        "limit-even-2x",
        "twice a limit, evenly",
        _load(2.0),
        _EXACT,
        Target("unused", "max", 0.01),
        _PACKETS,
    ),
    _scenario(
        "limit-even-10x",
        "ten times a limit, evenly",
        _load(10.0),
        _EXACT,
        Target("unused", "max", 0.01),
        _PACKETS,
    ),
    _scenario(
        "limit-skew-2x",
        "twice a limit, 95 % of it at one node",
        _load(2.0, skewed=True),
        _EXACT,
        Target("unused", "max", 0.05),
        _PACKETS,
    ),
    _scenario(
        "limit-skew-10x",
        "ten times a limit, 95 % of it at one node",
        _load(10.0, skewed=True),
        _EXACT,
        Target("unused", "max", 0.05),
        _PACKETS,
    ),
    _scenario(
        "limit-even-0.9x",
        "nine tenths of a limit, evenly: nobody is refused",
        _load(0.9),
        _EXACT,
        Target("refused_share", "max", 0.0),
        _PACKETS,
    ),
    _scenario(
        "limit-skew-0.9x",
        "nine tenths of a limit, 95 % of it at one node: hardly anybody is refused",
        _load(0.9, skewed=True),
        _EXACT,
        Target("refused_share", "p99", 0.005),
        _PACKETS,
    ),
    _scenario(
        "limit-owner-dies",
        "the owner of a limit is killed and does not come back",
        _owner_dies,
        _EXACT,
        Target("takeover_s", "p99", 1.4),
        Target("unused_at_once", "max", 0.6),
        Target("unused_3s_later", "max", 0.15),
    ),
    _scenario(
        "limit-owner-still",
        "the owner of a limit stands still for up to five seconds",
        _owner_stands_still,
        _EXACT,
    ),
    _scenario("limit-cut-strict", "the smaller half is cut off for 10 s", _cut("strict"), _EXACT),
    _scenario(
        "limit-cut-balanced",
        "the same, and it may borrow its fair part",
        _cut("balanced"),
        _EXACT,
        Target("used_ratio", "max", 1.2),
    ),
    _scenario(
        "limit-cut-available",
        "the same, and either side may have all of it",
        _cut("available"),
        _EXACT,
        Target("used_ratio", "max", 1.5),
    ),
    _scenario(
        "limit-changes",
        "a limit is lowered and raised while it is asked for too much",
        _changes,
        _EXACT,
    ),
    _scenario(
        "limit-permits",
        "places for twice as many as there are, 95 % of them asked for at one node",
        _permits,
        Target("places_unused", "mean", 0.1),
        _PACKETS,
    ),
    _scenario(
        "limit-places",
        "random limits on what is open at a time, in the same weather; by seed",
        random_places_plan,
        seeds=200,
    ),
    _scenario(
        "limit-day",
        "a long budget over three deaths of its owner and one of everybody",
        _day,
        _EXACT,
        Target("unused", "max", 0.03),
        seeds=10,
    ),
    _scenario(
        "limit-tool-runs",
        "ten times the runs of a server's tools that a budget allows, one node cut off for half of it",
        _runs_of_tools,
        _EXACT,
        Target("unused", "max", 0.1),
        seeds=10,
    ),
)
