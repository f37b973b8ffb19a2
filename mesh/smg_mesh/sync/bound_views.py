"""Bound views: registers and tables with the clock bound, as typed views use them."""

from collections.abc import Callable, Sequence
from typing import Final

from smg_mesh.crdt.registers.ephemeral_registers import Register, Registers
from smg_mesh.crdt.tables.lww_table import Row, Table


class BoundRegisters:
    """The ephemeral registers of all living nodes; this node writes its own."""

    def __init__(
        self, registers: Registers, now_ms: Callable[[], int], wake: Callable[[int], None]
    ) -> None:
        self._registers: Final = registers
        self.now_ms: Final = now_ms
        self.wake: Final = wake
        """Asks to be called again then: for views that say something again after a while."""

    def set(self, kind: str, key: str, content: bytes, *, ttl_ms: int) -> None:
        """Write; all nodes hear it soon, of many writes the last."""
        self._registers.set(kind, key, content, ttl_ms=ttl_ms, now_ms=self.now_ms())
        self._wake()

    def clear(self, kind: str, key: str) -> None:
        """Take this node's own register away."""
        self._registers.clear(kind, key, now_ms=self.now_ms())
        self._wake()

    def get(self, kind: str, key: str) -> Sequence[Register]:
        """Return what each owner says about a key, by owner."""
        return self._registers.get(kind, key)

    def items(self, kind: str) -> Sequence[Register]:
        """Return all registers of a kind, sorted by key and owner."""
        return self._registers.items(kind)

    def watch(self, kind: str, heard: Callable[[Register, bool], None]) -> None:
        """Tell `heard(register, gone)` of every change."""
        self._registers.watch(kind, heard)

    def _wake(self) -> None:
        due_ms = self._registers.due_ms()
        if due_ms is not None:
            self.wake(due_ms)


class BoundTable:
    """One table that all nodes write."""

    def __init__(self, table: Table, wall_ms: Callable[[], int]) -> None:
        self._table: Final = table
        self.wall_ms: Final = wall_ms

    def get(self, key: str) -> Row | None:
        """Return the row, None if there is none or it is over."""
        return self._table.get(key, self.wall_ms())

    def put(self, key: str, content: bytes, *, ttl_ms: int | None = None) -> Row:
        """Write a row."""
        return self._table.put(key, content, self.wall_ms(), ttl_ms=ttl_ms)

    def touch(self, key: str) -> Row | None:
        """Keep a row alive that is used."""
        return self._table.touch(key, self.wall_ms())

    def remove(self, key: str) -> None:
        """Take a row away, on all nodes."""
        self._table.remove(key, self.wall_ms())

    def items(self, prefix: str = "") -> Sequence[Row]:
        """Return the rows whose keys begin so, sorted by key."""
        return self._table.items(prefix, self.wall_ms())

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell `heard` of keys whose rows changed."""
        self._table.watch(heard)

    def __len__(self) -> int:
        return len(self._table)
