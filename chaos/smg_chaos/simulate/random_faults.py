"""Random faults: the plan of a history of membership, drawn by seed.

The first member always comes back, so that a seed is left that can be found: a cluster all of whose
seeds are gone for good is not one that could heal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from smg_chaos.simulate.base.random_sources import chance
from smg_chaos.simulate.faults import (
    ClockJump,
    Crash,
    Fault,
    Garbage,
    Join,
    Leave,
    Meta,
    Move,
    Pause,
    Replay,
    Restart,
    Slow,
    Storm,
    Twin,
)
from smg_chaos.simulate.hosts.link_faults import Rough
from smg_mesh.config import PROFILES, ProfileName

if TYPE_CHECKING:
    from smg_chaos.simulate.replicas.replica_setting import StateSetting
    from smg_chaos.simulate.replicas.state_events import Deed
    from smg_chaos.simulate.rights.rights_faults import Ruled
    from smg_chaos.simulate.rights.rights_setting import RightsSetting
    from smg_chaos.simulate.whole.traffic_events import Trouble
    from smg_chaos.simulate.whole.traffic_setting import TrafficSetting

_FAULTS_MIN: Final = 3
_FAULTS_MAX: Final = 12
_STORMY_FAULTS_MAX: Final = 40
_STORMY_SHARE: Final = 0.3
"""Part of all seeds with far more faults, most of them at the same time."""
_SETTLE_MS: Final = 30_000
"""Seen: 18 s at most, for nodes that were cut off and have to bury somebody afterwards."""
_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A history to be: who is there, and what befalls them. All of it ends at `heal_ms`."""

    seed: int
    nodes: int
    profile: ProfileName
    sealed: bool
    faults: "tuple[Fault | Deed | Ruled | Trouble, ...]"
    heal_ms: int
    settle_ms: int
    """How long it may take from then until all agree."""
    end_ms: int
    state: "StateSetting | None" = None
    """What the nodes share beside the membership, if anything."""
    rights: "RightsSetting | None" = None
    """What is limited, if anything."""
    traffic: "TrafficSetting | None" = None
    """Who asks for answers, and of which engines, if anybody does: with state and rights."""


def random_plan(
    seed: int, *, nodes: int, profile: ProfileName = "lan", sealed: bool = False
) -> Plan:
    """Return the weather of a seed: 120 s in `lan`, and as many probe intervals in other profiles."""
    own = chance(seed, "weather")
    pace = PROFILES[profile].probe_interval_ms / PROFILES["lan"].probe_interval_ms
    heal_ms = int(70_000 * pace)
    stormy = own.random() < _STORMY_SHARE
    count = own.randint(_FAULTS_MIN, _STORMY_FAULTS_MAX if stormy else _FAULTS_MAX)
    names = [name_of(number) for number in range(nodes)]
    faults = [
        _KINDS[own.choices(range(len(_KINDS)), _WEIGHTS)[0]](own, names, at_ms, heal_ms)
        for at_ms in sorted(
            own.randrange(int(5_000 * pace), int(65_000 * pace)) for _ in range(count)
        )
    ]
    return Plan(
        seed=seed,
        nodes=nodes,
        profile=profile,
        sealed=sealed,
        faults=tuple(faults),
        heal_ms=heal_ms,
        settle_ms=int(_SETTLE_MS * pace),
        end_ms=int(120_000 * pace),
    )


def name_of(number: int) -> str:
    """Return the name of a member that is there from the beginning."""
    return f"n{number}"


def _any(own: Random, names: Sequence[str]) -> str:
    return names[own.randrange(len(names))]


def _mortal(own: Random, names: Sequence[str]) -> str:
    """Return a member that need not come back."""
    return names[own.randrange(1, len(names))]


def _span(own: Random, at_ms: int, heal_ms: int, *, at_most_ms: int) -> int:
    """Return a duration that ends before all is healed; short ones are likelier."""
    share = own.random() ** own.choice((1, 2, 3))
    return max(1, min(int(share * at_most_ms), heal_ms - at_ms - 1))


def _crash(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    return Crash(at_ms=at_ms, who=_mortal(own, names))


def _restart(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    back = own.random() < 0.3
    return Restart(
        at_ms=at_ms,
        who=_any(own, names),
        new_address=own.random() < 0.5,
        lost_disk=own.random() < 0.4,
        clock_back_ms=own.randrange(1, _HOUR_MS) if back else 0,
    )


def _leave(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    return Leave(at_ms=at_ms, who=_mortal(own, names))


def _join(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    return Join(at_ms=at_ms, who=f"new{own.randrange(4)}")


def _twin(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    return Twin(at_ms=at_ms, who=_mortal(own, names))


def _pause(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    for_ms = _span(own, at_ms, heal_ms, at_most_ms=12_000)
    who = _any(own, names)
    return Pause(at_ms=at_ms, who=who, for_ms=for_ms, timers_first=own.random() < 0.5)


def _slow(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    for_ms = _span(own, at_ms, heal_ms, at_most_ms=20_000)
    busy_ms = own.choice((20, 90, 200, 800))
    return Slow(at_ms=at_ms, who=_any(own, names), for_ms=for_ms, busy_ms=busy_ms)


def _clock_jump(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    by_ms = own.randrange(-_HOUR_MS, _HOUR_MS)
    return ClockJump(at_ms=at_ms, who=_any(own, names), by_ms=by_ms)


def _cut(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    """Cut the cluster in two parts, which need not be all of it, perhaps in one direction only."""
    shuffled = own.sample(names, len(names))
    first = own.randint(1, len(names) - 1)
    second = own.randint(first + 1, len(names)) if own.random() < 0.4 else len(names)
    rough = Rough(
        sources=tuple(sorted(shuffled[:first])),
        targets=tuple(sorted(shuffled[first:second])),
        both_ways=own.random() < 0.6,
        block=True,
    )
    for_ms = _span(own, at_ms, heal_ms, at_most_ms=40_000)
    return Storm(at_ms=at_ms, for_ms=for_ms, rough=rough)


def _storm(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    """Make all links rough, or those from or to one member."""
    one = (_any(own, names),)
    side = own.randrange(4)
    rough = Rough(
        sources=one if side in (1, 3) else (),
        targets=one if side == 2 else (),
        both_ways=side == 3,
        loss=own.choice((0.0, 0.05, 0.2, 0.4, 0.8 if side else 0.4)),
        duplicate=own.choice((0.0, 0.0, 0.1)),
        reorder=own.choice((0.0, 0.0, 0.3)),
        delay_us=own.choice((0, 0, 5_000, 60_000)),
        jitter_us=own.choice((0, 2_000, 80_000)),
    )
    for_ms = _span(own, at_ms, heal_ms, at_most_ms=40_000)
    return Storm(at_ms=at_ms, for_ms=for_ms, rough=rough)


def _garbage(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    return Garbage(at_ms=at_ms, who=_any(own, names), count=own.randint(1, 40))


def _replay(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    return Replay(at_ms=at_ms, who=_any(own, names), count=own.randint(1, 40))


def _meta(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    return Meta(at_ms=at_ms, who=_any(own, names))


def _move(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    return Move(at_ms=at_ms, who=_any(own, names))


def mortal_fault(own: Random, names: Sequence[str], at_ms: int, heal_ms: int) -> Fault:
    """Return something that befalls the membership: a member goes for good, comes, moves, has a twin."""
    return own.choice(_MORTAL)(own, names, at_ms, heal_ms)


_MORTAL: Final = (_crash, _leave, _join, _twin, _meta, _move)
_KINDS: Final[tuple[Callable[[Random, Sequence[str], int, int], Fault], ...]] = (
    _crash,
    _restart,
    _leave,
    _join,
    _twin,
    _pause,
    _slow,
    _clock_jump,
    _cut,
    _storm,
    _garbage,
    _replay,
    _meta,
    _move,
)
_WEIGHTS: Final = (3, 4, 1, 2, 1, 4, 3, 1, 5, 4, 1, 1, 1, 1)
