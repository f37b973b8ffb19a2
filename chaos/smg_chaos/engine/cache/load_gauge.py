"""Load gauge: reads an engine's load per rank; a fault makes it stale, frozen or absurd."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from smg_chaos.engine.cache.blocks import Blocks
from smg_chaos.engine.cache.loads import Load, Meter, absurd
from smg_chaos.engine.protocol.servicer_behaviours import Manners
from smg_chaos.engine.settings import EngineSettings


class GaugedScheduler(Protocol):
    """The scheduler of a rank, as far as its load is concerned."""

    @property
    def running(self) -> int:
        """How many choices have a slot."""
        ...

    @property
    def waiting(self) -> int:
        """How many choices wait for one."""
        ...

    def waiting_tokens(self) -> int:
        """Return the prompt tokens of those that wait."""
        ...

    def prefill_tokens(self) -> int:
        """Return the prompt tokens of those that have a slot and made no token yet."""
        ...


class GaugedRank(Protocol):
    """A rank of an engine, as far as its load is concerned."""

    number: int
    table: Blocks
    meter: Meter

    @property
    def scheduler(self) -> GaugedScheduler:
        """Who runs on it."""
        ...


class GaugedEngine(Protocol):
    """An engine, as far as its load is concerned."""

    settings: EngineSettings
    manners: Manners
    started_s: float

    @property
    def ranks(self) -> Sequence[GaugedRank]:
        """Its ranks, by number."""
        ...


def _mode(engine: GaugedEngine) -> str:
    role = engine.settings.role
    return "null" if role == "regular" else role


class Gauge:
    """Reads one engine's load, rank by rank."""

    def __init__(self, engine: GaugedEngine) -> None:
        self._engine = engine
        self._first: dict[int, tuple[float, Load]] = {}

    def loads(self, now_s: float) -> list[Load]:
        """Return the loads of all ranks, in their order."""
        return [self.load(rank.number, now_s) for rank in self._engine.ranks]

    def load(self, rank: int, now_s: float) -> Load:
        """Return a rank's load as the engine reports it.

        Stale and frozen loads never change; only a stale one admits its age.
        """
        mode = self._engine.settings.loads
        if mode == "absurd":
            return absurd(self.truth(rank, now_s))
        if mode not in ("stale", "frozen"):
            return self.truth(rank, now_s)
        since_s, load = self._first.setdefault(rank, (now_s, self.truth(rank, now_s)))
        return replace(load, age_ms=int((now_s - since_s) * 1000)) if mode == "stale" else load

    def truth(self, rank: int, now_s: float) -> Load:
        """Return a rank's real load."""
        engine, one = self._engine, self._engine.ranks[rank]
        scheduler, table, meter = one.scheduler, one.table, one.meter
        running = scheduler.running
        last_s = meter.last_output_s if meter.last_output_s is not None else engine.started_s
        return Load(
            running=running,
            waiting=scheduler.waiting,
            running_max=engine.settings.slots,
            waiting_tokens=scheduler.waiting_tokens(),
            used_tokens=table.used * table.size,
            resident_tokens=table.resident * table.size if engine.manners.load_retained else 0,
            total_tokens=table.count * table.size,
            tokens_per_s=meter.tokens_per_s(now_s),
            hit_rate=meter.hit_rate(),
            silence_ms=int((now_s - last_s) * 1000) if running else None,
            prefill_tokens=scheduler.prefill_tokens(),
            mode=_mode(engine),
        )
