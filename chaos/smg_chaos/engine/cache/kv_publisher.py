"""KV publisher: sends the block changes of a step to an engine's subscribers, with heartbeats and
faults.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from smg_chaos.engine.cache.blocks import Blocks
from smg_chaos.engine.cache.kv import HEARTBEAT_TICK_S, Batch, Publisher
from smg_chaos.engine.cache.load_gauge import Gauge
from smg_chaos.engine.protocol.faults import Faults
from smg_chaos.engine.protocol.rpc_call import Call, End
from smg_chaos.engine.protocol.servicer_behaviours import LoadRecords, Manners


class PublishingRank(Protocol):
    """A rank of an engine: its blocks."""

    table: Blocks


class PublishingEngine(Protocol):
    """An engine, as far as its KV events are concerned."""

    manners: Manners
    faults: Faults
    gauge: Gauge

    @property
    def ranks(self) -> Sequence[PublishingRank]:
        """Its ranks, by number."""
        ...

    def wall_s(self, now_s: float) -> float:
        """Return the wall-clock time of a moment, in seconds since the epoch."""
        ...

    def at(self, when_s: float, do: Callable[[float], None]) -> None:
        """Do something at a moment."""
        ...


class Relay:
    """Carries an engine's block changes to its subscribers."""

    def __init__(self, engine: PublishingEngine) -> None:
        self._engine = engine
        self._publisher = Publisher(
            engine.manners,
            [rank.table for rank in engine.ranks],
            wall_s=engine.wall_s,
            load=engine.gauge.load,
        )
        self._beats = engine.manners.load_records is not LoadRecords.NONE
        self._beating = False

    def subscribe(self, start: int, now_s: float, *, early_load: bool) -> Call:
        """Return a subscription, or its refusal."""
        call = self._publisher.subscribe(start, now_s, early_load=early_load)
        if self._beats and not self._beating and self._publisher.subscriptions:
            self._beating = True
            self._engine.at(now_s + HEARTBEAT_TICK_S, self._beat)
        return call

    def _beat(self, now_s: float) -> None:
        self._beating = bool(self._publisher.subscriptions)
        if self._beating:
            for call in self._publisher.heartbeats(now_s):
                call.bell(call)
            self._engine.at(now_s + HEARTBEAT_TICK_S, self._beat)

    def publish(self, now_s: float) -> None:
        """Send the changes since the last call as one batch, altered by the faults."""
        faults = self._engine.faults
        for batch in self._publisher.batches(now_s):
            gap, late = faults.named("kv-gap"), faults.named("kv-late")
            if gap is not None and not batch.sequence % gap.number("every"):
                faults.hit(gap)
            elif late is not None:
                faults.hit(late)
                self._engine.at(now_s + late.seconds(), partial(self._deliver, batch))
            else:
                self._deliver(batch, now_s)
            again = faults.named("kv-restart")
            if again is not None and self._publisher.published == again.number("after"):
                faults.hit(again)
                _ring(self._publisher.restart())

    def _deliver(self, batch: Batch, now_s: float) -> None:
        if self._publisher.subscriptions:
            _ring(self._publisher.deliver(batch, now_s))

    def cut_all(self, end: End) -> Sequence[Call]:
        """End every subscription; return them, for the caller to ring their bells."""
        return self._publisher.cut_all(end)


def _ring(calls: Sequence[Call]) -> None:
    for call in calls:
        call.bell(call)
