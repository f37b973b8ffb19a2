"""Copied rates of a data process: rows of vendors' limits of all others, and its own as its control process is told."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from smg_mesh.shared import SharedBucket, SharedPause
from smg_node.processes.ipc.data_uplink import Uplink
from smg_node.processes.replication.rate_relay import RATES, Rates, Rows
from smg_node.processes.replication.state_messages import read, write


class CopiedRates:
    """Rows of one data process; what `VendorRates` is for a node of one process."""

    def __init__(self, uplink: Uplink) -> None:
        self._uplink: Final = uplink
        self._own: Rows = {}
        self._of_others: dict[str, SharedBucket | SharedPause] = {}
        self._watchers: list[Callable[[Sequence[str]], None]] = []
        uplink.opened(self._begin)
        uplink.on(RATES, self._hear)

    def publish(self, rows: Rows) -> None:
        """Let the others know these, and nothing else."""
        if rows != self._own:
            self._own = dict(rows)
            self._say()

    def others(self) -> Rows:
        """Return what all others say, as one."""
        return self._of_others

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell `heard` of every change of `others` from now on."""
        self._watchers.append(heard)

    def _begin(self) -> None:
        self._change(dict.fromkeys(self._of_others))
        if self._own:
            self._say()

    def _say(self) -> None:
        self._uplink.tell(RATES, write(Rates(dict(self._own))))

    def _hear(self, content: bytes) -> None:
        self._change(read(content, Rates).rows)

    def _change(self, changes: Mapping[str, SharedBucket | SharedPause | None]) -> None:
        for name, row in changes.items():
            if row is None:
                self._of_others.pop(name, None)
            else:
                self._of_others[name] = row
        if changes:
            for heard in self._watchers:
                heard(sorted(changes))
