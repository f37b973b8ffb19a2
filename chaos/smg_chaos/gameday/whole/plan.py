"""Plan of a whole game day from one seed: kind, time, length and targets of every fault. Pure.

Faults run in two lanes side by side: one hurts nodes, the other what is around them (engines, the store, the
network's quality, the crowd). Within a lane one fault is over, and has had time to heal, before the next begins. So
never more nodes are hurt at once than one fault takes, and that is always less than half of them: what is promised
to clients is promised for as long as a majority of the nodes can talk.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal, TypeAlias

Lane: TypeAlias = Literal["nodes", "world"]
Excuse: TypeAlias = Literal["none", "victims", "store", "refusals"]

WARM_S: Final = 5.0
"""So long nothing is hurt in the beginning: what is measured then is what all later is compared with."""
CALM_S: Final = 10.0
"""So long before the end the last fault is over."""
SHORT_S: Final = 600.0
"""A shorter day has shorter faults, down to each kind's least."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault: how long it lasts, at least and at most, and how long until the next one may begin.

    `excuse` says what clients may see of it. none: nothing. victims: a stream or an answer cut off at the node that was
    hurt, never a wrong one. store: `store_unavailable` for what needs the store. refusals: 429 or 503, before a byte.
    `takes`: how many nodes, or engines, it hurts at most; minority: any number below half of the nodes.
    """

    name: str
    says: str
    lane: Lane
    least_s: float
    most_s: float
    heals_s: float
    excuse: Excuse
    takes: Literal["none", "one", "minority", "engine"]
    store_only: bool = False
    """Whether it needs a store that is a server."""


KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("kill", "SIGKILL, and started again", "nodes", 3, 15, 8, "victims", "one"),
        Kind("pause", "SIGSTOP, then SIGCONT", "nodes", 1.5, 8, 6, "none", "one"),
        Kind("partition", "a minority cut off", "nodes", 4, 40, 8, "none", "minority"),
        Kind("one-way", "heard by no other node", "nodes", 4, 30, 8, "none", "one"),
        Kind("isolate", "cut off from everybody", "nodes", 4, 20, 10, "victims", "one"),
        Kind("full-disk", "its data folder is full", "nodes", 4, 30, 4, "none", "one"),
        Kind("slow-disk", "its writes take long", "nodes", 4, 30, 6, "none", "one"),
        Kind("clock", "its wall clock jumps", "nodes", 4, 30, 8, "none", "one"),
        Kind("rolling", "all restarted in turn", "nodes", 1, 1, 10, "none", "none"),
        Kind("keys", "the mesh's key rotated", "nodes", 1, 1, 6, "none", "none"),
        Kind("weather", "late, lost, double packets", "world", 5, 40, 5, "none", "none"),
        Kind("engine", "SIGKILL of an engine", "world", 2, 15, 6, "none", "engine"),
        Kind("engine-stall", "SIGSTOP of an engine", "world", 3, 10, 6, "none", "engine"),
        Kind("store", "the store is killed", "world", 3, 20, 10, "store", "none", True),
        Kind("store-stall", "the store stands still", "world", 2, 8, 10, "store", "none", True),
        Kind("crowd", "ten times the streams", "world", 3, 20, 6, "refusals", "none"),
    )
}


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault that will happen: when (seconds after the beginning), for how long, and to whom, in order."""

    at_s: float
    kind: Kind
    seconds: float
    victims: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """What a timeline calls it."""
        whom = f" of {', '.join(self.victims)}" if self.victims else ""
        return f"{self.kind.name}{whom}, {self.seconds:.1f} s"


def chosen(names: Sequence[str], *, store: bool) -> tuple[Kind, ...]:
    """Return the kinds of these names, or all that can be, with or without a store that is a server.

    ValueError names one that does not exist, or cannot be, and says what to do.
    """
    for name in names:
        if name not in KINDS:
            raise ValueError(f"no fault is called {name!r}; there are {', '.join(KINDS)}")
        if KINDS[name].store_only and not store:
            raise ValueError(f"the fault {name!r} needs a store server: say --store postgresql")
    if names:
        return tuple(KINDS[name] for name in dict.fromkeys(names))
    return tuple(kind for kind in KINDS.values() if store or not kind.store_only)


def plan(
    rng: Random,
    length_s: float,
    nodes: Sequence[str],
    engines: Sequence[str],
    kinds: Sequence[Kind],
) -> tuple[Planned, ...]:
    """Return the faults of a day that is so long, in order of their beginning.

    In each lane every kind comes once before one comes again, as far as the time goes. A cluster of fewer than three
    nodes has no minority, so nothing of the kind happens in it.
    """
    planned: list[Planned] = []
    for lane in ("nodes", "world"):
        own = [kind for kind in kinds if kind.lane == lane and _has_victims(kind, nodes, engines)]
        planned += _lane(rng, length_s, nodes, engines, own)
    return tuple(sorted(planned, key=lambda one: (one.at_s, one.kind.name)))


def _has_victims(kind: Kind, nodes: Sequence[str], engines: Sequence[str]) -> bool:
    if kind.takes == "engine":
        return len(engines) > 1
    return len(nodes) > 2 or kind.lane == "world"


def _lane(
    rng: Random,
    length_s: float,
    nodes: Sequence[str],
    engines: Sequence[str],
    kinds: Sequence[Kind],
) -> list[Planned]:
    found: list[Planned] = []
    left: list[Kind] = []
    at_s = WARM_S + rng.uniform(0.0, 2.0)
    share = min(1.0, length_s / SHORT_S)
    while kinds:
        if not left:
            left = rng.sample(list(kinds), len(kinds))
        kind = left.pop()
        seconds = kind.least_s + rng.random() * share * (kind.most_s - kind.least_s)
        if at_s + seconds > length_s - CALM_S:
            break
        found.append(
            Planned(round(at_s, 3), kind, round(seconds, 3), _victims(rng, kind, nodes, engines))
        )
        at_s += seconds + kind.heals_s + rng.uniform(0.0, 4.0 * share)
    return found


def _victims(
    rng: Random, kind: Kind, nodes: Sequence[str], engines: Sequence[str]
) -> tuple[str, ...]:
    match kind.takes:
        case "none":
            return ()
        case "engine":
            return (rng.choice(list(engines)),)
        case "one":
            return (rng.choice(list(nodes)),)
        case "minority":
            return tuple(sorted(rng.sample(list(nodes), rng.randint(1, (len(nodes) - 1) // 2))))
