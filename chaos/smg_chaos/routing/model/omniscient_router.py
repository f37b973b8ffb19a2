"""Omniscient router: chooses with the exact present state of every engine, as no real router can.

It has each cache's content, how many tokens each engine has still to compute and when its step
ends, and takes the one that will make the first token soonest; of equals the one with the fewest
requests. It is the only sender, so nothing changes between its decisions.
"""

from collections.abc import Sequence

from smg_chaos.routing.model.engine import Engine
from smg_chaos.routing.model.workload import Turn


def soonest(engines: Sequence[Engine], turn: Turn, now_s: float) -> Engine:
    """Return the engine that would answer this turn first."""

    def first_token_s(engine: Engine) -> tuple[float, int]:
        size = engine.size
        if engine.open >= size.slots:
            return float("inf"), engine.open
        uncached = turn.prompt - engine.overlap(turn.keys, turn.prompt)
        step_s = max(0.0, engine.step_ends_s - now_s)
        return step_s + (engine.pending + uncached) / size.prefill_rate, engine.open

    return min(engines, key=first_token_s)
