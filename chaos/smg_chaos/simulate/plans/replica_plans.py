"""Replica plans: random histories of shared state, by seed: options, faults, writes.

A seed has one of several tempers. `calm` options are those of a real cluster with fewer documents;
`epochs` begins documents anew every few seconds; `full` has so little room that writes are refused;
`forgetful` remembers removals for so short a time that absences are longer than that; `wild` has clocks
that are wrong by hours. What happens in it is drawn alike for all.

Cuts are shorter than removals are kept: a node that runs all the time and hears no peer for a week
is outside what is promised. So are removals that are forgotten before an old document is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from smg_chaos.simulate.base.random_sources import chance
from smg_chaos.simulate.faults import Fault, Pause, Restart, Slow, Storm
from smg_chaos.simulate.hosts.link_faults import Rough
from smg_chaos.simulate.random_faults import Plan, mortal_fault, name_of
from smg_chaos.simulate.replicas.replica_setting import StateSetting
from smg_chaos.simulate.replicas.state_events import (
    AddWorker,
    Away,
    BindKey,
    ChangeWorker,
    Deed,
    DrainWorker,
    DropWorker,
    ListWorkers,
    Publish,
    RemoveSetting,
    RemoveWorker,
    SetClock,
    SetSetting,
    Spoken,
    TouchKey,
)
from smg_mesh.config import ProfileName, StateOptions
from smg_mesh.state.workers.worker_keys import Listing

Temper: TypeAlias = Literal["calm", "epochs", "full", "forgetful", "wild"]
TEMPERS: Final[tuple[Temper, ...]] = ("calm", "epochs", "full", "forgetful", "wild")
_WEIGHTS: Final = (3, 4, 1, 2, 1)

HEAL_MS: Final = 32_000
_FIRST_MS: Final = 2_500
"""Members find each other; some deeds come before that."""
_SETTLE_MS: Final = 30_000
_WORKERS: Final = 7
_SETTINGS: Final = 6
_KEYS: Final = 5
_SKEW_MS: Final = 20_000
"""Wrong clocks of tame seeds: two of them are less than a minute apart."""
_WEEK_MS: Final = 7 * 86_400_000
_GRACE_MS: Final = 8_000
_HOUR_MS: Final = 3_600_000
_HAPPENINGS: Final = (25, 110)
_SPOKEN_SOURCES: Final[tuple[Spoken, ...]] = ("api", "api", "api", "kubernetes", "dns")
_LISTED_SOURCES: Final[tuple[Listing, ...]] = ("static", "static", "file")


@dataclass(frozen=True, slots=True)
class _Lot:
    """What one happening is drawn with."""

    own: Random
    names: Sequence[str]
    at_ms: int
    temper: Temper
    keep_ms: int

    def who(self) -> str:
        """Return a member."""
        return self.names[self.own.randrange(len(self.names))]

    def worker(self) -> str:
        """Return a worker, the first ones more often."""
        return f"w{int(_WORKERS * self.own.random() ** 1.5)}"

    def span(self, most_ms: int) -> int:
        """Return a duration that ends before all is healed; short ones are likelier."""
        share = self.own.random() ** self.own.choice((1, 2, 3))
        return max(1, min(int(share * most_ms), HEAL_MS - self.at_ms - 1))


def random_state_plan(seed: int, *, nodes: int, profile: ProfileName = "lan") -> Plan:
    """Return the history of a seed, of 3 to `nodes` members."""
    own = chance(seed, "state")
    count = min(nodes, 3 + int((nodes - 2) * own.random() ** 2))
    temper = own.choices(TEMPERS, _WEIGHTS)[0]
    options = _options(own, temper)
    names = [name_of(number) for number in range(count)]
    happenings = own.randint(*_HAPPENINGS)
    rough = own.random() ** 2
    drawn = []
    for at_ms in sorted(own.randrange(_FIRST_MS, HEAL_MS - 100) for _ in range(happenings)):
        lot = _Lot(own, names, at_ms, temper, options.removed_keep_ms)
        faulty = own.random() < 0.05 + 0.3 * rough
        kinds, weights = (_FAULTS, _FAULT_WEIGHTS) if faulty else (_DEEDS, _DEED_WEIGHTS)
        drawn.append(own.choices(kinds, weights)[0](lot))
    return Plan(
        seed=seed,
        nodes=count,
        profile=profile,
        sealed=False,
        faults=tuple(drawn),
        heal_ms=HEAL_MS,
        settle_ms=_SETTLE_MS,
        end_ms=HEAL_MS + _SETTLE_MS,
        state=StateSetting(options=options, wild=temper == "wild"),
    )


def _options(own: Random, temper: Temper) -> StateOptions:
    documents = own.choice((1, 2, 4))
    spread = {"settings": documents, "workers": own.choice((1, 2, 4)), "audit": 1, "cluster": 1}
    keep_ms = own.choice((8_000, 15_000)) if temper == "forgetful" else _WEEK_MS
    tight = temper == "epochs" or (temper != "calm" and own.random() < 0.5)
    return StateOptions(
        documents=MappingProxyType(spread),
        tables=MappingProxyType({"sticky": own.choice((1, 2))}),
        document_bytes_max=3_000 if temper == "full" else 262_144,
        removed_keep_ms=keep_ms,
        save_apart_ms=own.choice((500, 3_000, 10_000)),
        join_grace_ms=_GRACE_MS,
        union_ms=min(own.choice((1_000, 4_000, 15_000)), keep_ms // 4),
        rumor_bytes_per_s=own.choice((16_384, 16_384, 200)),
        epoch_bytes=own.choice((600, 1_500, 5_000)) if tight else 196_608,
        epoch_clients=own.choice((3, 6, 500)) if tight else 500,
        epoch_deletions=own.choice((10, 40, 20_000)) if tight else 20_000,
        epoch_age_ms=own.choice((6_000, 20_000, _WEEK_MS)) if tight else _WEEK_MS,
    )


# ── What people do ───────────────────────────────────────────────────────────


def _add(lot: _Lot) -> Deed:
    source = lot.own.choice(_SPOKEN_SOURCES)
    priority = lot.own.randrange(100)
    return AddWorker(
        at_ms=lot.at_ms, who=lot.who(), worker=lot.worker(), source=source, priority=priority
    )


def _list(lot: _Lot) -> Deed:
    count = lot.own.randrange(4)
    workers = tuple(sorted({lot.worker() for _ in range(count)}))
    source = lot.own.choice(_LISTED_SOURCES)
    return ListWorkers(at_ms=lot.at_ms, who=lot.who(), source=source, workers=workers)


def _remove(lot: _Lot) -> Deed:
    return RemoveWorker(at_ms=lot.at_ms, who=lot.who(), worker=lot.worker())


def _drop(lot: _Lot) -> Deed:
    source = lot.own.choice(_SPOKEN_SOURCES)
    return DropWorker(at_ms=lot.at_ms, who=lot.who(), worker=lot.worker(), source=source)


def _drain(lot: _Lot) -> Deed:
    on = lot.own.random() < 0.6
    return DrainWorker(at_ms=lot.at_ms, who=lot.who(), worker=lot.worker(), on=on)


def _change(lot: _Lot) -> Deed:
    priority = lot.own.randrange(100)
    return ChangeWorker(at_ms=lot.at_ms, who=lot.who(), worker=lot.worker(), priority=priority)


def _set(lot: _Lot) -> Deed:
    size = lot.own.choice((10, 10, 10, 100, 400, 900))
    return SetSetting(
        at_ms=lot.at_ms,
        who=lot.who(),
        key=f"s{lot.own.randrange(_SETTINGS)}",
        size=size,
        checked=lot.own.random() < 0.3,
    )


def _unset(lot: _Lot) -> Deed:
    return RemoveSetting(at_ms=lot.at_ms, who=lot.who(), key=f"s{lot.own.randrange(_SETTINGS)}")


def _bind(lot: _Lot) -> Deed:
    key = f"{lot.own.randrange(_KEYS):016x}"
    return BindKey(at_ms=lot.at_ms, who=lot.who(), key=key, worker=lot.worker())


def _touch(lot: _Lot) -> Deed:
    return TouchKey(at_ms=lot.at_ms, who=lot.who(), key=f"{lot.own.randrange(_KEYS):016x}")


def _publish(lot: _Lot) -> Deed:
    return Publish(at_ms=lot.at_ms, who=lot.who(), key=f"p{lot.own.randrange(2)}")


_DEEDS: Final[tuple[Callable[[_Lot], Deed], ...]] = (
    _add,
    _list,
    _remove,
    _drop,
    _drain,
    _change,
    _set,
    _unset,
    _bind,
    _touch,
    _publish,
)
_DEED_WEIGHTS: Final = (6, 2, 4, 1, 2, 3, 7, 2, 3, 1, 2)

# ── What befalls them ────────────────────────────────────────────────────────


def _away(lot: _Lot) -> Deed:
    own = lot.own
    long = lot.temper == "forgetful" and own.random() < 0.5
    for_ms = lot.keep_ms + own.randrange(500, 6_000) if long else lot.span(12_000)
    return Away(
        at_ms=lot.at_ms,
        who=lot.who(),
        for_ms=max(1, min(for_ms, HEAL_MS - lot.at_ms - 1)),
        disk=own.choice(("kept", "kept", "kept", "lost", "old")),
        old_ms=own.choice((0, 3_000, 10_000)),
    )


def _restart(lot: _Lot) -> Fault:
    own = lot.own
    return Restart(
        at_ms=lot.at_ms,
        who=lot.who(),
        new_address=own.random() < 0.3,
        lost_disk=own.random() < 0.3,
    )


def _everybody(lot: _Lot) -> Deed:
    """Kill a node for a moment; a few of these at once are a whole cluster that goes down."""
    return Away(at_ms=lot.at_ms, who=lot.who(), for_ms=lot.span(2_000))


def _pause(lot: _Lot) -> Fault:
    for_ms = lot.span(8_000)
    first = lot.own.random() < 0.5
    return Pause(at_ms=lot.at_ms, who=lot.who(), for_ms=for_ms, timers_first=first)


def _slow(lot: _Lot) -> Fault:
    busy_ms = lot.own.choice((20, 90, 300))
    return Slow(at_ms=lot.at_ms, who=lot.who(), for_ms=lot.span(10_000), busy_ms=busy_ms)


def _clock(lot: _Lot) -> Deed:
    own = lot.own
    if lot.temper == "wild" and own.random() < 0.5:
        return SetClock(at_ms=lot.at_ms, who=lot.who(), wrong_ms=own.randrange(-_HOUR_MS, _HOUR_MS))
    most_ms = 300 if lot.temper == "forgetful" else _SKEW_MS
    return SetClock(at_ms=lot.at_ms, who=lot.who(), wrong_ms=own.randrange(-most_ms, most_ms))


def _cut(lot: _Lot) -> Fault:
    own, names = lot.own, lot.names
    shuffled = own.sample(names, len(names))
    first = own.randint(1, len(names) - 1)
    second = own.randint(first + 1, len(names)) if own.random() < 0.4 else len(names)
    rough = Rough(
        sources=tuple(sorted(shuffled[:first])),
        targets=tuple(sorted(shuffled[first:second])),
        both_ways=own.random() < 0.6,
        block=True,
    )
    return Storm(at_ms=lot.at_ms, for_ms=lot.span(min(20_000, lot.keep_ms // 2)), rough=rough)


def _storm(lot: _Lot) -> Fault:
    own = lot.own
    one = (lot.who(),)
    side = own.randrange(4)
    rough = Rough(
        sources=one if side in (1, 3) else (),
        targets=one if side == 2 else (),
        both_ways=side == 3,
        loss=own.choice((0.0, 0.05, 0.2, 0.4)),
        duplicate=own.choice((0.0, 0.0, 0.2)),
        reorder=own.choice((0.0, 0.3)),
        delay_us=own.choice((0, 0, 5_000, 60_000)),
        jitter_us=own.choice((0, 2_000, 80_000)),
    )
    return Storm(at_ms=lot.at_ms, for_ms=lot.span(20_000), rough=rough)


def _member(lot: _Lot) -> Fault:
    return mortal_fault(lot.own, lot.names, lot.at_ms, HEAL_MS)


_FAULTS: Final[tuple[Callable[[_Lot], Fault | Deed], ...]] = (
    _away,
    _restart,
    _everybody,
    _pause,
    _slow,
    _clock,
    _cut,
    _storm,
    _member,
)
_FAULT_WEIGHTS: Final = (5, 3, 2, 3, 2, 2, 6, 4, 2)
