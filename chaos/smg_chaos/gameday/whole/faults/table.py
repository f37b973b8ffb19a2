"""Table of faults: the class of each fault by the name that a plan uses."""

from collections.abc import Mapping
from typing import Final

from smg_chaos.gameday.whole.faults.crowd import Crowd
from smg_chaos.gameday.whole.faults.disk import FullDisk
from smg_chaos.gameday.whole.faults.engines import EngineDies, EngineStalls
from smg_chaos.gameday.whole.faults.fault import Fault
from smg_chaos.gameday.whole.faults.keys import Rotation
from smg_chaos.gameday.whole.faults.network import Isolate, OneWay, Partition, Weather
from smg_chaos.gameday.whole.faults.nodes import Kill, Pause, Rolling
from smg_chaos.gameday.whole.faults.skewed import ClockJumps, SlowDisk
from smg_chaos.gameday.whole.faults.stores import StoreDies, StoreStalls

FAULTS: Final[Mapping[str, type[Fault]]] = {
    "kill": Kill,
    "pause": Pause,
    "partition": Partition,
    "one-way": OneWay,
    "isolate": Isolate,
    "full-disk": FullDisk,
    "slow-disk": SlowDisk,
    "clock": ClockJumps,
    "rolling": Rolling,
    "keys": Rotation,
    "weather": Weather,
    "engine": EngineDies,
    "engine-stall": EngineStalls,
    "store": StoreDies,
    "store-stall": StoreStalls,
    "crowd": Crowd,
}
