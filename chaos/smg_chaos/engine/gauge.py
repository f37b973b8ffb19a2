"""What an engine says of its load: the truth, unless it was told to lie."""

from dataclasses import replace
from typing import TYPE_CHECKING

from smg_chaos.engine.loads import Load, absurd

if TYPE_CHECKING:
    from smg_chaos.engine.engine import Engine


class Gauge:
    """Reads one engine's load."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._first: tuple[float, Load] | None = None

    def load(self, now_s: float) -> Load:
        """Return the load as the engine tells it.

        Stale and frozen loads never change; only a stale one admits its age.
        """
        mode = self._engine.settings.loads
        if mode == "absurd":
            return absurd(self.truth(now_s))
        if mode not in ("stale", "frozen"):
            return self.truth(now_s)
        if self._first is None:
            self._first = (now_s, self.truth(now_s))
        since_s, load = self._first
        return replace(load, age_ms=int((now_s - since_s) * 1000)) if mode == "stale" else load

    def truth(self, now_s: float) -> Load:
        """Return the load as it is."""
        engine = self._engine
        scheduler, table, meter = engine.scheduler, engine.table, engine.meter
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
            prefill_tokens=sum(len(one.call.asked.ids) for one in placed if not one.made),
        )
