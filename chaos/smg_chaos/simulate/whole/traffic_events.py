"""Traffic events: faults of engines and crowds of clients, as values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from smg_chaos.simulate.base.virtual_clock import MS
from smg_chaos.simulate.hosts.ports import HasAgenda, HasChronicle

if TYPE_CHECKING:
    from smg_chaos.simulate.whole.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDies:
    """The process of an engine is gone, with all its calls; another one begins after `for_ms`."""

    at_ms: int
    engine: str
    for_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStalls:
    """An engine stands still: it says nothing and refuses nothing."""

    at_ms: int
    engine: str
    for_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUnreached:
    """One node cannot reach an engine, whatever the others can."""

    at_ms: int
    engine: str
    who: str
    for_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """So many times more clients come than usually."""

    at_ms: int
    times: float
    for_ms: int


Trouble: TypeAlias = EngineDies | EngineStalls | EngineUnreached | Crowd


class TroubledWorld(HasAgenda, HasChronicle, Protocol):
    """The world in which something befalls engines."""

    @property
    def traffic(self) -> "Traffic | None":
        """Its requests, if anybody asks."""
        ...


def plan_trouble(world: TroubledWorld, trouble: Trouble) -> None:
    """Put an event on the world's agenda, with its end."""
    assert world.traffic is not None
    for on, at_ms in ((True, trouble.at_ms), (False, trouble.at_ms + trouble.for_ms)):
        world.agenda.deed(at_ms * MS, _happen, world, world.traffic, trouble, on)


def _happen(world: TroubledWorld, traffic: "Traffic", trouble: Trouble, on: bool) -> None:
    if traffic.calm:
        return
    said, whom = "", "clients"
    match trouble:
        case EngineDies(engine=name):
            engine, whom = traffic.engines[name], name
            (engine.die if on else engine.begin)()
            said = "dies" if on else "is there again"
        case EngineStalls(engine=name):
            traffic.engines[name].stall(on=on)
            whom, said = name, "stands still" if on else "goes on"
        case EngineUnreached(engine=name, who=who):
            traffic.engines[name].cut_off(who, on=on)
            whom, said = name, f"is {'not reached' if on else 'reached again'} by {who}"
        case Crowd(times=times):
            traffic.crowd = times if on else 1.0
            said = f"come {traffic.crowd:g} times as often"
    world.chronicle.deed(world.agenda.now_us, whom, said)
