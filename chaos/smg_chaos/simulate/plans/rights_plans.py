"""Rights plans: random histories of limits, by seed: limits, load, clocks, disks, faults."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final, TypeAlias

from smg_chaos.simulate.base.random_sources import chance
from smg_chaos.simulate.faults import (
    ClockJump,
    Crash,
    Fault,
    Join,
    Leave,
    Pause,
    Restart,
    Slow,
    Storm,
)
from smg_chaos.simulate.hosts.link_faults import Rough
from smg_chaos.simulate.random_faults import Plan, name_of
from smg_chaos.simulate.rights.rights_faults import (
    ChangeLimit,
    KillOwner,
    PauseOwner,
    RestartAll,
    Ruled,
)
from smg_chaos.simulate.rights.rights_setting import Flow, RightsSetting
from smg_mesh.config import ProfileName
from smg_mesh.escrow.limit_model import Limit, Mode

HEAL_MS: Final = 16_000
_FIRST_MS: Final = 2_500
_SETTLE_MS: Final = 30_000
_SKEW_MS: Final = 100
_PACE_PPM: Final = 10_000
_FAULTS: Final = (2, 14)
_MODES: Final[tuple[Mode, ...]] = ("strict", "strict", "strict", "balanced", "available")
_FORGIVEN_MS: Final = 10_000
"""Windows up to that length are over before a voter without memory votes on them."""
_SHORT_JUMP_MS: Final = 1_500
_LONG_JUMP_MS: Final = 600_000

_Happening: TypeAlias = Fault | Ruled


@dataclass(frozen=True, slots=True)
class _Lot:
    """What one happening is drawn with."""

    own: Random
    names: Sequence[str]
    keys: Sequence[Limit]
    at_ms: int

    def who(self) -> str:
        """Return a member."""
        return self.names[self.own.randrange(len(self.names))]

    def mortal(self) -> str:
        """Return a member that need not come back: not the first, whom others know."""
        return self.names[self.own.randrange(1, len(self.names))]

    def key(self) -> str:
        """Return the key of a limit."""
        return self.keys[self.own.randrange(len(self.keys))].key

    def span(self, most_ms: int) -> int:
        """Return a duration that ends before all is healed; short ones are likelier."""
        return max(1, min(int(self.own.random() ** 2 * most_ms), HEAL_MS - self.at_ms - 1))


def random_limits_plan(seed: int, nodes: int, profile: ProfileName = "lan") -> Plan:
    """Return the history of a seed, of 3 to `nodes` members."""
    own = chance(seed, "limits")
    count = min(nodes, 3 + int(max(1, nodes - 2) * own.random()))
    names = [name_of(number) for number in range(count)]
    limits = _limits(own)
    drawn: list[_Happening] = []
    for at_ms in sorted(
        own.randrange(_FIRST_MS, HEAL_MS - 100) for _ in range(own.randint(*_FAULTS))
    ):
        lot = _Lot(own, names, limits, at_ms)
        drawn.append(own.choices(_KINDS, _WEIGHTS)[0](lot))
    calm_clocks = own.random() < 0.4
    places, holds, changes = _places(seed, names)
    drawn = sorted([*drawn, *changes], key=lambda happening: happening.at_ms)
    setting = RightsSetting(
        limits=(*limits, *places),
        flows=(*(_flow(own, limit, count) for limit in limits), *holds),
        expect=count // 2 + 1 if own.random() < 0.5 else count,
        phase_ms=own.randrange(60_000),
        clock_wrong_ms=tuple(
            0 if calm_clocks else own.randint(-_SKEW_MS, _SKEW_MS) for _ in range(count)
        ),
        pace_ppm=tuple(
            0 if calm_clocks else own.randint(-_PACE_PPM, _PACE_PPM) for _ in range(count)
        ),
        disks=own.random() < 0.8 or any(limit.window_ms > _FORGIVEN_MS for limit in limits),
        failing_writes=own.choice((0.0, 0.0, 0.0, 0.05, 0.5)),
        judged_from_ms=6_000,
    )
    return Plan(
        seed=seed,
        nodes=count,
        profile=profile,
        sealed=False,
        faults=tuple(drawn),
        heal_ms=HEAL_MS,
        settle_ms=_SETTLE_MS,
        end_ms=HEAL_MS,
        rights=setting,
    )


def random_places_plan(seed: int, nodes: int, profile: ProfileName = "lan") -> Plan:
    """Return a history of the same weather in which all limits are on what is open at a time."""
    plan = random_limits_plan(seed, nodes, profile)
    assert plan.rights is not None
    names = [name_of(number) for number in range(plan.nodes)]
    drawn = [_places(seed, names, scope) for scope in ("tenant=a", "tenant=b", "tenant=c")]
    kept = [
        fault
        for fault in plan.faults
        if not isinstance(fault, ChangeLimit | KillOwner | PauseOwner)
    ]
    own = chance(seed, "limits-places")
    more: list[_Happening] = [
        Restart(
            at_ms=own.randrange(_FIRST_MS, HEAL_MS - 100),
            who=names[own.randrange(len(names))],
            lost_disk=own.random() < 0.5,
        )
        for _ in range(own.randint(0, 4))
    ]
    changes = [change for _, _, several in drawn for change in several]
    setting = replace(
        plan.rights,
        limits=tuple(limit for limits, _, _ in drawn for limit in limits),
        flows=tuple(flow for _, flows, _ in drawn for flow in flows),
    )
    faults = sorted([*kept, *more, *changes], key=lambda happening: happening.at_ms)
    return replace(plan, faults=tuple(faults), rights=setting)


def _limits(own: Random) -> tuple[Limit, ...]:
    """Draw two to four limits; the first has short windows, and some have one scope."""
    limits = [_limit(own, "model=m", 1_000)]
    for _ in range(own.randint(1, 3)):
        scope = own.choice(("model=m", "tenant=a", "tenant=b"))
        limits.append(
            _limit(own, scope, own.choice((1_000, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000)))
        )
    return tuple({limit.key: limit for limit in limits}.values())


def _places(
    seed: int, names: Sequence[str], scope: str = "tenant=c"
) -> tuple[tuple[Limit, ...], tuple[Flow, ...], list[ChangeLimit]]:
    """Draw a limit on what is open at a time, who asks for it, and how it changes; by chance of its own."""
    own = chance(seed, "limits-places", scope)
    if own.random() < 0.2:
        return (), (), []
    amount = own.choice((1, 3, 8, 8, 40, 40, 200))
    key = f"{scope}#concurrent/0"
    limit = Limit(
        key=key,
        unit="concurrent",
        amount=amount,
        window_ms=0,
        mode=_MODES[own.randrange(len(_MODES))],
    )
    longest_ms = own.choice((200, 1_000, 8_000))
    per_s = min(400.0, amount * own.choice((0.5, 1.0, 2.0, 4.0)) / longest_ms * 2_000)
    busy = own.randrange(len(names))
    even = own.random() < 0.3
    weights = [1.0 if even or number == busy else 0.02 for number in range(len(names))]
    whole = sum(weights)
    rates = tuple(per_s * weight / whole for weight in weights)
    other = own.randrange(len(names))
    later = (*rates[other:], *rates[:other])
    turn_ms = own.randrange(_FIRST_MS, HEAL_MS)
    holds = (longest_ms // 20, longest_ms)
    flows = (
        Flow(key=key, rates_per_s=rates, holds_ms=holds, until_ms=turn_ms),
        Flow(key=key, rates_per_s=later, holds_ms=holds, from_ms=turn_ms),
    )
    changes = [
        ChangeLimit(
            at_ms=own.randrange(_FIRST_MS, HEAL_MS - 100),
            who=names[own.randrange(len(names))],
            key=key,
            amount=max(1, int(amount * own.choice((0.2, 0.5, 2.0)))),
        )
        for _ in range(own.choice((0, 0, 0, 1, 2)))
    ]
    return (limit,), flows, changes


def _limit(own: Random, scope: str, window_ms: int) -> Limit:
    tokens = own.random() < 0.3
    amount = own.choice((5, 40, 300, 1_000)) * (20 if tokens else 1)
    unit = "tokens" if tokens else "requests"
    return Limit(
        key=f"{scope}#{unit}/{window_ms}",
        unit="tokens" if tokens else "requests",
        amount=amount * max(1, window_ms // 2_000),
        window_ms=window_ms,
        mode=_MODES[own.randrange(len(_MODES))],
        standing=own.choice((0.5, 0.5, 0.5, 0.2, 0.8, 0.0)),
        # What is on no disk may be spent again after all have restarted, longer windows so: not judged.
        volatile=own.random() < 0.3 and window_ms <= _FORGIVEN_MS,
    )


def _flow(own: Random, limit: Limit, nodes: int) -> Flow:
    """Draw who asks for how much: evenly, nearly all at one node, by chance, or only at some."""
    per_s = limit.amount / limit.window_ms * 1_000 * own.choice((0.5, 0.9, 2.0, 2.0, 4.0, 10.0))
    cost = (1, 1)
    settles = False
    used = (0.2, 1.0)
    if limit.unit == "tokens":
        low = max(1, limit.amount // own.choice((200, 50)))
        cost = (low, low * own.randint(1, 4))
        per_s = min(400.0, per_s * 2 / sum(cost))
        settles = own.random() < 0.6
        used = (0.2, own.choice((1.0, 1.0, 1.3)))
    shape = own.randrange(4)
    if shape == 0:
        weights = [1.0] * nodes
    elif shape == 1:
        chosen = own.randrange(nodes)
        weights = [95.0 if number == chosen else 5.0 / max(1, nodes - 1) for number in range(nodes)]
    elif shape == 2:
        weights = [own.random() ** 2 + 0.01 for _ in range(nodes)]
    else:
        weights = [float(own.random() < 0.5) for _ in range(nodes)]
        weights[own.randrange(nodes)] = 1.0
    whole = sum(weights)
    rates = tuple(per_s * weight / whole for weight in weights)
    return Flow(key=limit.key, rates_per_s=rates, cost=cost, settles=settles, used=used)


# ── Happenings ───────────────────────────────────────────────────────────────


def _crash(lot: _Lot) -> _Happening:
    return Crash(at_ms=lot.at_ms, who=lot.mortal())


def _restart(lot: _Lot) -> _Happening:
    return Restart(at_ms=lot.at_ms, who=lot.who(), lost_disk=lot.own.random() < 0.15)


def _pause(lot: _Lot) -> _Happening:
    return Pause(
        at_ms=lot.at_ms, who=lot.who(), for_ms=lot.span(5_000), timers_first=lot.own.random() < 0.5
    )


def _slow(lot: _Lot) -> _Happening:
    busy_ms = lot.own.choice((20, 200, 800))
    return Slow(at_ms=lot.at_ms, who=lot.who(), for_ms=lot.span(10_000), busy_ms=busy_ms)


def _jump(lot: _Lot) -> _Happening:
    most_ms = lot.own.choice((_SHORT_JUMP_MS, _SHORT_JUMP_MS, _LONG_JUMP_MS))
    return ClockJump(at_ms=lot.at_ms, who=lot.who(), by_ms=lot.own.randint(-most_ms, most_ms))


def _cut(lot: _Lot) -> _Happening:
    shuffled = lot.own.sample(lot.names, len(lot.names))
    first = lot.own.randint(1, len(lot.names) - 1)
    rough = Rough(
        sources=tuple(sorted(shuffled[:first])),
        targets=tuple(sorted(shuffled[first:])),
        both_ways=lot.own.random() < 0.7,
        block=True,
    )
    return Storm(at_ms=lot.at_ms, for_ms=lot.span(14_000), rough=rough)


def _storm(lot: _Lot) -> _Happening:
    one = (lot.who(),) if lot.own.random() < 0.5 else ()
    rough = Rough(
        sources=one,
        both_ways=True,
        loss=lot.own.choice((0.0, 0.05, 0.2, 0.3)),
        duplicate=lot.own.choice((0.0, 0.1, 0.3)),
        reorder=lot.own.choice((0.0, 0.3)),
        delay_us=lot.own.choice((0, 0, 5_000, 60_000)),
        jitter_us=lot.own.choice((0, 2_000, 80_000)),
    )
    return Storm(at_ms=lot.at_ms, for_ms=lot.span(14_000), rough=rough)


def _join(lot: _Lot) -> _Happening:
    return Join(at_ms=lot.at_ms, who=f"new{lot.own.randrange(3)}")


def _leave(lot: _Lot) -> _Happening:
    return Leave(at_ms=lot.at_ms, who=lot.mortal())


def _change(lot: _Lot) -> _Happening:
    limit = lot.keys[lot.own.randrange(len(lot.keys))]
    amount = max(1, int(limit.amount * lot.own.choice((0.1, 0.5, 0.5, 2.0, 3.0))))
    standing = lot.own.choice((None, None, None, 0.2, 0.8))
    return ChangeLimit(
        at_ms=lot.at_ms, who=lot.who(), key=limit.key, amount=amount, standing=standing
    )


def _kill(lot: _Lot) -> _Happening:
    back_ms = lot.own.choice((200, 1_000, 3_000))
    return KillOwner(at_ms=lot.at_ms, key=lot.key(), back_ms=back_ms)


def _hold(lot: _Lot) -> _Happening:
    return PauseOwner(at_ms=lot.at_ms, key=lot.key(), for_ms=lot.span(5_000))


def _everybody(lot: _Lot) -> _Happening:
    return RestartAll(at_ms=lot.at_ms, back_ms=lot.own.choice((100, 1_000)))


_KINDS: Final[tuple[Callable[[_Lot], _Happening], ...]] = (
    _crash,
    _restart,
    _pause,
    _slow,
    _jump,
    _cut,
    _storm,
    _join,
    _leave,
    _change,
    _kill,
    _hold,
    _everybody,
)
_WEIGHTS: Final = (2, 4, 3, 2, 3, 5, 5, 1, 1, 4, 3, 3, 1)
