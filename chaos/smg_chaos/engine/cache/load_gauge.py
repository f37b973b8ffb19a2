"""What an engine says of its load: the truth, unless it was told to lie."""

from dataclasses import replace
from typing import TYPE_CHECKING

from smg_chaos.engine.cache.loads import Load, absurd

if TYPE_CHECKING:
    from smg_chaos.engine.simulator.engine import Engine


def _mode(engine: "Engine") -> str:
    role = engine.settings.role
    return "null" if role == "regular" else role


class Gauge:
    """Reads one engine's load, rank by rank."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._first: dict[int, tuple[float, Load]] = {}

    def loads(self, now_s: float) -> list[Load]:
        """Return the loads of all ranks, in their order."""
        return [self.load(rank.number, now_s) for rank in self._engine.ranks]

    def load(self, rank: int, now_s: float) -> Load:
        """Return a rank's load as the engine tells it.

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
        """Return a rank's load as it is."""
        engine, one = self._engine, self._engine.ranks[rank]
        scheduler, table, meter = one.scheduler, one.table, one.meter
        placed = scheduler.placed()
        last_s = meter.last_output_s if meter.last_output_s is not None else engine.started_s
        return Load(
            running=len(placed),
            waiting=scheduler.waiting,
            running_max=engine.settings.slots,
            waiting_tokens=scheduler.waiting_tokens(),
            used_tokens=table.used * table.size,
            resident_tokens=table.resident * table.size if engine.manners.load_retained else 0,
            total_tokens=table.count * table.size,
            tokens_per_s=meter.tokens_per_s(now_s),
            hit_rate=meter.hit_rate(),
            silence_ms=int((now_s - last_s) * 1000) if placed else None,
            prefill_tokens=sum(len(made.call.asked.ids) for made in placed if not made.made),
            mode=_mode(engine),
        )
