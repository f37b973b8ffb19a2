"""Process faults: faults of a whole engine, set as timers when it starts."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from smg_chaos.engine.protocol.faults import Fault, Faults, Where


class FaultyEngine(Protocol):
    """An engine, as far as faults of its process are concerned."""

    faults: Faults
    model: str
    vocabulary: int
    serving: bool
    down: bool
    started_s: float

    def at(self, when_s: float, do: Callable[[float], None]) -> None:
        """Do something at a moment."""
        ...

    def die(self, code: int) -> None:
        """End the process."""
        ...

    def come_back(self, *, model: str, vocabulary: int, now_s: float) -> None:
        """Lose everything and be another process."""
        ...


def arm(engine: FaultyEngine, now_s: float) -> None:
    """Schedule the engine's process faults at their times, counted from `now_s`."""
    for fault in engine.faults.of(Where.PROCESS):
        if fault.name == "die" and "at" in fault.values:
            engine.at(now_s + fault.seconds("at"), partial(_die, engine, fault))
        elif fault.name == "slow-start":
            engine.serving = False
            engine.faults.hit(fault)
            engine.at(now_s + fault.seconds(), partial(_serve, engine))
        elif fault.name == "flap":
            engine.at(now_s + fault.seconds("at"), partial(_flap, engine, fault))
        elif fault.name == "restart":
            engine.at(now_s + fault.seconds("at"), partial(_restart, engine, fault))


def _serve(engine: FaultyEngine, now_s: float) -> None:
    engine.serving = True


def _die(engine: FaultyEngine, fault: Fault, now_s: float) -> None:
    engine.faults.hit(fault)
    engine.die(fault.number("code"))


def _flap(engine: FaultyEngine, fault: Fault, now_s: float) -> None:
    engine.faults.hit(fault)
    engine.serving = False
    engine.at(now_s + fault.seconds(), partial(_serve, engine))


def _restart(engine: FaultyEngine, fault: Fault, now_s: float) -> None:
    engine.faults.hit(fault)
    engine.come_back(
        model=str(fault.values.get("model", engine.model)),
        vocabulary=fault.number("vocabulary", engine.vocabulary),
        now_s=now_s,
    )
    engine.at(now_s + fault.seconds(), partial(_up, engine))


def _up(engine: FaultyEngine, now_s: float) -> None:
    engine.down = False
    engine.started_s = now_s
