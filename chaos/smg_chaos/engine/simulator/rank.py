"""Rank of a data-parallel engine: its own slots, blocks, cache, pace and load."""

import random
from collections.abc import Callable
from typing import Generic

from smg_chaos.engine.cache.blocks import Blocks, BlockTable, PlainBlocks
from smg_chaos.engine.cache.loads import Meter
from smg_chaos.engine.protocol.servicer_behaviours import Manners
from smg_chaos.engine.settings import EngineSettings
from smg_chaos.engine.simulator.choice import CallT, Choice
from smg_chaos.engine.simulator.pacing import Lockstep, Pacer, Step, Wheel
from smg_chaos.engine.simulator.scheduler import Scheduler


class Rank(Generic[CallT]):
    """A rank, by its number from 0. `on_over` is called with choices that made their last token."""

    __slots__ = ("meter", "number", "pacer", "scheduler", "table")

    def __init__(
        self,
        number: int,
        settings: EngineSettings,
        manners: Manners,
        meter: Meter,
        rng: random.Random,
        on_over: Callable[[Choice[CallT], float], None],
    ) -> None:
        self.number = number
        self.meter = meter
        size = settings.block_tokens()
        self.table: Blocks = (
            BlockTable(settings.blocks, size, copies=manners.kv_copies)
            if settings.caches()
            else PlainBlocks(settings.blocks, size)
        )
        step = Step(settings.step_s, settings.jitter, settings.growth, rng)
        self.pacer: Pacer[Choice[CallT]] = (
            Wheel(step) if settings.pace == "each" else Lockstep(step)
        )
        self.scheduler: Scheduler[CallT] = Scheduler(
            settings, manners, self.table, self.pacer, meter, on_over
        )
