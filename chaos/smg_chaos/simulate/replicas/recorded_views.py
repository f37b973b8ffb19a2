"""Recorded views: the typed views of one life, over namespaces and tables that note writes."""

from typing import Final, Protocol

from smg_chaos.simulate.hosts.state_write import Cell
from smg_chaos.simulate.replicas.recorded_tables import (
    WitnessedNamespace,
    WitnessedTable,
    WriteWitness,
)
from smg_chaos.simulate.replicas.replica_interface import Replica
from smg_chaos.simulate.replicas.write_ledger import WORKERS
from smg_mesh.config import StateOptions
from smg_mesh.state.settings import SettingsView
from smg_mesh.state.workers.worker_registry import WorkerRegistry

SETTINGS: Final = "settings"
STICKY: Final = "sticky"
LOAD: Final = "sim"
"""The kind of registers that simulated nodes write."""


class ViewedLife(WriteWitness, Protocol):
    """The life whose views these are."""

    replica: Replica

    @property
    def options(self) -> StateOptions:
        """What its replica was told."""
        ...


class Views:
    """The views of shared state that a node's own code reads."""

    def __init__(self, life: ViewedLife) -> None:
        replica = life.replica
        self._spaces = {
            name: WitnessedNamespace(replica.namespace(name), life) for name in (WORKERS, SETTINGS)
        }
        keep_ms = life.options.removed_keep_ms
        self.workers = WorkerRegistry(
            self._spaces[WORKERS], life.name, settle_after_ms=keep_ms // 2
        )
        self.settings = SettingsView(self._spaces[SETTINGS], life.name)
        self.sticky = WitnessedTable(replica.table(STICKY), STICKY, life)
        self.registers = replica.registers

    def space(self, name: str) -> WitnessedNamespace:
        """Return one of the namespaces."""
        return self._spaces[name]

    def latest(self, cell: Cell) -> tuple[int, str, bytes | None] | None:
        """Return what counts in a cell: its time, owner and value (None: removed); None if nothing does."""
        name, key = cell
        if name == STICKY:
            row = self.sticky.get(key)
            return None if row is None else (row.hlc, row.owner, row.content)
        held = self._spaces[name].latest(key)
        return None if held is None else (held.entry.hlc, held.owner, held.value)
