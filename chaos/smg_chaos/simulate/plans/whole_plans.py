"""Whole plans: random histories by seed: faults of nodes, links, clocks, engines and limits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from smg_chaos.simulate.replicas.replica_setting import StateSetting
from smg_chaos.simulate.replicas.state_events import (
    AddWorker,
    BindKey,
    ChangeWorker,
    Deed,
    DrainWorker,
    RemoveWorker,
    SetSetting,
)
from smg_chaos.simulate.rights.rights_faults import ChangeLimit, KillOwner, PauseOwner, Ruled
from smg_chaos.simulate.rights.rights_setting import RightsSetting
from smg_chaos.simulate.whole.traffic_events import (
    Crowd,
    EngineDies,
    EngineStalls,
    EngineUnreached,
    Trouble,
)
from smg_chaos.simulate.whole.traffic_setting import KEY, TrafficSetting
from smg_mesh.config import ProfileName, StateOptions
from smg_mesh.escrow.limit_model import Limit, Mode

HEAL_MS: Final = 20_000
_FIRST_MS: Final = 4_000
_ADDED_MS: Final = 1_500
_SETTLE_MS: Final = 30_000
_FAULTS: Final = (4, 24)
_SKEW_MS: Final = 30
_SHORT_JUMP_MS: Final = 300
_MODES: Final[tuple[Mode, ...]] = ("strict", "strict", "balanced", "available")
Happening: TypeAlias = Fault | Deed | Ruled | Trouble


@dataclass(frozen=True, slots=True)
class _Lot:
    """What one happening is drawn with."""

    own: Random
    names: Sequence[str]
    engines: Sequence[str]
    at_ms: int

    def who(self) -> str:
        """Return a member."""
        return self.names[self.own.randrange(len(self.names))]

    def mortal(self) -> str:
        """Return a member that need not come back: not the first two, whom others know."""
        return self.names[self.own.randrange(min(2, len(self.names) - 1), len(self.names))]

    def engine(self) -> str:
        """Return an engine."""
        return self.engines[self.own.randrange(len(self.engines))]

    def span(self, most_ms: int) -> int:
        """Return a duration that ends before all is healed; short ones are likelier."""
        return max(1, min(int(self.own.random() ** 2 * most_ms), HEAL_MS - self.at_ms - 1))


def random_whole_plan(seed: int, nodes: int, profile: ProfileName = "lan") -> Plan:
    """Return the history of a seed, of 3 to `nodes` members and 2 to 5 engines."""
    own = chance(seed, "whole")
    count = min(nodes, 3 + int(max(1, nodes - 2) * own.random()))
    names = [name_of(number) for number in range(count)]
    engines = tuple(f"w{number}" for number in range(own.randint(2, 5)))
    added: list[Happening] = [
        AddWorker(
            at_ms=_ADDED_MS + own.randrange(1_000), who="n0", worker=one, source="api", priority=50
        )
        for one in engines
    ]
    drawn: list[Happening] = []
    for at_ms in sorted(
        own.randrange(_FIRST_MS, HEAL_MS - 100) for _ in range(own.randint(*_FAULTS))
    ):
        lot = _Lot(own, names, engines, at_ms)
        drawn += own.choices(_KINDS, _WEIGHTS)[0](lot)
    limit = Limit(
        key=KEY,
        unit="requests",
        amount=own.choice((10, 30, 60, 200)),
        window_ms=1_000,
        mode=own.choice(_MODES),
        standing=own.choice((0.5, 0.5, 0.2)),
    )
    rights = RightsSetting(
        limits=(limit,),
        flows=(),
        expect=count,
        phase_ms=own.randrange(1_000),
        clock_wrong_ms=tuple(own.randint(-_SKEW_MS, _SKEW_MS) for _ in range(count)),
    )
    traffic = TrafficSetting(
        engines=engines,
        requests_per_s=own.choice((4.0, 8.0, 12.0)),
        policy=own.choice(("cache_aware", "cache_aware", "least_load", "power_of_two")),
    )
    return Plan(
        seed=seed,
        nodes=count,
        profile=profile,
        sealed=False,
        faults=tuple(sorted([*added, *drawn], key=lambda happening: happening.at_ms)),
        heal_ms=HEAL_MS,
        settle_ms=_SETTLE_MS,
        end_ms=HEAL_MS,
        state=StateSetting(options=StateOptions()),
        rights=rights,
        traffic=traffic,
    )


# ── Happenings ───────────────────────────────────────────────────────────────


def _crash(lot: _Lot) -> list[Happening]:
    return [Crash(at_ms=lot.at_ms, who=lot.mortal())]


def _restart(lot: _Lot) -> list[Happening]:
    lost = lot.own.random() < 0.2
    return [Restart(at_ms=lot.at_ms, who=lot.who(), lost_disk=lost)]


def _pause(lot: _Lot) -> list[Happening]:
    first = lot.own.random() < 0.5
    return [Pause(at_ms=lot.at_ms, who=lot.who(), for_ms=lot.span(5_000), timers_first=first)]


def _slow(lot: _Lot) -> list[Happening]:
    busy_ms = lot.own.choice((20, 200, 800))
    return [Slow(at_ms=lot.at_ms, who=lot.who(), for_ms=lot.span(8_000), busy_ms=busy_ms)]


def _jump(lot: _Lot) -> list[Happening]:
    by_ms = lot.own.randint(-_SHORT_JUMP_MS, _SHORT_JUMP_MS)
    return [ClockJump(at_ms=lot.at_ms, who=lot.who(), by_ms=by_ms)]


def _cut(lot: _Lot) -> list[Happening]:
    shuffled = lot.own.sample(lot.names, len(lot.names))
    first = lot.own.randint(1, len(lot.names) - 1)
    rough = Rough(
        sources=tuple(sorted(shuffled[:first])),
        targets=tuple(sorted(shuffled[first:])),
        both_ways=lot.own.random() < 0.7,
        block=True,
    )
    return [Storm(at_ms=lot.at_ms, for_ms=lot.span(12_000), rough=rough)]


def _storm(lot: _Lot) -> list[Happening]:
    rough = Rough(
        sources=(lot.who(),) if lot.own.random() < 0.5 else (),
        both_ways=True,
        loss=lot.own.choice((0.0, 0.05, 0.2, 0.3)),
        duplicate=lot.own.choice((0.0, 0.1, 0.3)),
        reorder=lot.own.choice((0.0, 0.3)),
        delay_us=lot.own.choice((0, 0, 5_000, 60_000)),
        jitter_us=lot.own.choice((0, 2_000, 80_000)),
    )
    return [Storm(at_ms=lot.at_ms, for_ms=lot.span(12_000), rough=rough)]


def _join(lot: _Lot) -> list[Happening]:
    return [Join(at_ms=lot.at_ms, who=f"new{lot.own.randrange(2)}")]


def _leave(lot: _Lot) -> list[Happening]:
    return [Leave(at_ms=lot.at_ms, who=lot.mortal())]


def _dies(lot: _Lot) -> list[Happening]:
    return [EngineDies(at_ms=lot.at_ms, engine=lot.engine(), for_ms=lot.span(8_000))]


def _stalls(lot: _Lot) -> list[Happening]:
    return [EngineStalls(at_ms=lot.at_ms, engine=lot.engine(), for_ms=lot.span(8_000))]


def _unreached(lot: _Lot) -> list[Happening]:
    who = lot.who()
    return [EngineUnreached(at_ms=lot.at_ms, engine=lot.engine(), who=who, for_ms=lot.span(8_000))]


def _crowd(lot: _Lot) -> list[Happening]:
    times = lot.own.choice((3.0, 6.0))
    return [Crowd(at_ms=lot.at_ms, times=times, for_ms=lot.span(3_000))]


def _remove(lot: _Lot) -> list[Happening]:
    """Remove a worker, and add it again a while later, mostly elsewhere."""
    worker, back_ms = lot.engine(), min(HEAL_MS - 50, lot.at_ms + lot.span(6_000) + 1)
    return [
        RemoveWorker(at_ms=lot.at_ms, who=lot.who(), worker=worker),
        AddWorker(at_ms=back_ms, who=lot.who(), worker=worker, source="api", priority=50),
    ]


def _drain(lot: _Lot) -> list[Happening]:
    worker, who = lot.engine(), lot.who()
    back_ms = min(HEAL_MS - 50, lot.at_ms + lot.span(6_000) + 1)
    return [
        DrainWorker(at_ms=lot.at_ms, who=who, worker=worker, on=True),
        DrainWorker(at_ms=back_ms, who=who, worker=worker, on=False),
    ]


def _state(lot: _Lot) -> list[Happening]:
    key = f"s{lot.own.randrange(4)}"
    return [
        SetSetting(at_ms=lot.at_ms, who=lot.who(), key=key, size=20, checked=False),
        BindKey(
            at_ms=lot.at_ms, who=lot.who(), key=f"k{lot.own.randrange(4)}", worker=lot.engine()
        ),
        ChangeWorker(
            at_ms=lot.at_ms, who=lot.who(), worker=lot.engine(), priority=lot.own.randrange(100)
        ),
    ]


def _limit(lot: _Lot) -> list[Happening]:
    amount = lot.own.choice((3, 10, 40, 200))
    return [ChangeLimit(at_ms=lot.at_ms, who=lot.who(), key=KEY, amount=amount)]


def _owner(lot: _Lot) -> list[Happening]:
    if lot.own.random() < 0.5:
        return [PauseOwner(at_ms=lot.at_ms, key=KEY, for_ms=lot.span(4_000))]
    return [KillOwner(at_ms=lot.at_ms, key=KEY, back_ms=lot.own.choice((200, 1_000, 3_000)))]


_KINDS: Final[tuple[Callable[[_Lot], list[Happening]], ...]] = (
    _crash, _restart, _pause, _slow, _jump, _cut, _storm, _join, _leave, _dies, _stalls, _unreached,
    _crowd, _remove, _drain, _state, _limit, _owner,
)  # fmt: skip
_WEIGHTS: Final = (2, 4, 3, 2, 2, 4, 4, 1, 1, 5, 3, 3, 3, 4, 2, 3, 3, 2)
