"""One data-parallel rank of an engine: slots, blocks, a cache, a pace and a load of its own."""

import random
from collections.abc import Callable

from smg_chaos.engine.blocks import Blocks, BlockTable, PlainBlocks
from smg_chaos.engine.choice import Choice
from smg_chaos.engine.loads import Meter
from smg_chaos.engine.manners import Manners
from smg_chaos.engine.pacing import Lockstep, Pacer, Step, Wheel
from smg_chaos.engine.scheduler import Scheduler
from smg_chaos.engine.settings import EngineSettings


class Rank:
    """A rank, by its number from 0. `on_over` is told of choices that made their last token."""

    __slots__ = ("meter", "number", "pacer", "scheduler", "table")

    def __init__(
        self,
        number: int,
        settings: EngineSettings,
        manners: Manners,
        meter: Meter,
        rng: random.Random,
        on_over: Callable[[Choice, float], None],
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
        self.pacer: Pacer = Wheel(step) if settings.pace == "each" else Lockstep(step)
        self.scheduler = Scheduler(settings, manners, self.table, self.pacer, meter, on_over)
