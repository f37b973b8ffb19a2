"""Rate relay: rows of vendors' limits between the processes of this node, and between them and other nodes.

    data process ──its own rows──▶ relay ──▶ other nodes      all rows of the node as one
    data process ◀──rows of others── relay ◀── other nodes    those of this node's other processes among them

A process says all of its own rows at once; it is told what changed, and everything there is when its link begins.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from smg_mesh.shared import SharedBucket, SharedPause, VendorRates, merged_rows
from smg_node.processes.ipc.control_bus import Bus
from smg_node.processes.replication.state_messages import read, write

RATES: Final = "rates.told"
Rows: TypeAlias = Mapping[str, SharedBucket | SharedPause]
ME: Final = "control"


class Rates(msgspec.Struct, frozen=True, array_like=True):
    """Rows by name, None for one that is no more."""

    rows: dict[str, SharedBucket | SharedPause | None]


class RateRelay:
    """Relay of one control process; for this process it is what `VendorRates` is for a node of one process."""

    def __init__(self, rates: VendorRates, bus: Bus) -> None:
        self._rates: Final = rates
        self._bus: Final = bus
        self._of: dict[str, Rows] = {}
        """What each process of this node says."""
        self._watchers: list[Callable[[Sequence[str]], None]] = []
        rates.watch(self._heard_nodes)
        bus.on(RATES, self._hear)
        bus.opened(self._begin)
        bus.died(lambda process: self._take(process, {}))

    def publish(self, rows: Rows) -> None:
        """Let all others know what the control process itself says."""
        self._take(ME, rows)

    def others(self) -> Rows:
        """Return what all but the control process say, as one."""
        return self._others(ME)

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell `heard` of every change of `others` from now on."""
        self._watchers.append(heard)

    def _hear(self, process: str, content: bytes) -> None:
        said = read(content, Rates).rows
        self._take(process, {name: row for name, row in said.items() if row is not None})

    def _take(self, process: str, rows: Rows) -> None:
        before = self._of.pop(process, {})
        if rows:
            self._of[process] = rows
        names = sorted(name for name in {*before, *rows} if before.get(name) != rows.get(name))
        if names:
            self._rates.publish(merged_rows(self._of.values()))
            self._tell(names, said_by=process)

    def _heard_nodes(self, names: Sequence[str]) -> None:
        self._tell(names, said_by="")

    def _tell(self, names: Sequence[str], *, said_by: str) -> None:
        for process in self._bus.processes:
            if process != said_by:
                others = self._others(process, names)
                said = Rates({name: others.get(name) for name in names})
                self._bus.tell(process, RATES, write(said))
        if said_by != ME:
            for heard in self._watchers:
                heard(names)

    def _begin(self, process: str) -> None:
        if others := self._others(process):
            self._bus.tell(process, RATES, write(Rates(dict(others))))

    def _others(self, process: str, names: Iterable[str] | None = None) -> Rows:
        """Return what all but that process say, of these things or of all."""
        parts = [self._rates.others(), *(rows for one, rows in self._of.items() if one != process)]
        if names is not None:
            parts = [{name: rows[name] for name in names if name in rows} for rows in parts]
        return merged_rows(parts)
