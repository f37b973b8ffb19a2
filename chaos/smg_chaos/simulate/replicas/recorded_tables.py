"""Recorded tables and namespaces: the product's own, each acknowledged write noted."""

from collections.abc import Callable, Sequence
from typing import Protocol

from smg_chaos.simulate.hosts.state_write import Cell, Write
from smg_chaos.simulate.replicas.replica_interface import Row, Table
from smg_mesh.crdt.entry import Held
from smg_mesh.crdt.namespace import Heard, Namespace


class WriteWitness(Protocol):
    """The life whose writes are written down."""

    name: str

    @property
    def now_us(self) -> int:
        """The world's time."""
        ...

    def wall_ms(self) -> int:
        """Return what the node's wall clock shows."""
        ...

    def wrote(self, write: Write) -> None:
        """Something was acknowledged here."""
        ...

    def retired(self, cell: Cell) -> None:
        """An own entry was taken away here."""
        ...

    def broken(self, promise: str) -> None:
        """Note that something happened which must not."""
        ...


class WitnessedNamespace:
    """A namespace of one life; everything it does is the real one's."""

    def __init__(self, real: Namespace, life: WriteWitness) -> None:
        self._real = real
        self._life = life

    @property
    def name(self) -> str:
        """Which one."""
        return self._real.name

    def get(self, key: str) -> Held | None:
        """Return the live winner."""
        return self._real.get(key)

    def latest(self, key: str) -> Held | None:
        """Return the winner even if it is a removal."""
        return self._real.latest(key)

    def items(self, prefix: str = "") -> Sequence[Held]:
        """Return the live winners."""
        return self._real.items(prefix)

    def conflicts(self, key: str) -> Sequence[Held]:
        """Return what is concurrent with the winner."""
        return self._real.conflicts(key)

    def put(self, key: str, value: bytes, *, seen: int | None = None) -> Held:
        """Write, and note that it was acknowledged."""
        return self._wrote(key, value, self._real.put(key, value, seen=seen))

    def remove(self, key: str, *, seen: int | None = None) -> Held:
        """Write a removal, and note that it was acknowledged."""
        return self._wrote(key, None, self._real.remove(key, seen=seen))

    def retire(self, key: str) -> None:
        """Take an own entry away for good, and note it."""
        self._real.retire(key)
        self._life.retired((self.name, key))

    def watch(self, heard: Heard) -> None:
        """Tell of changes."""
        self._real.watch(heard)

    def digest(self) -> bytes:
        """Return 8 bytes over what counts."""
        return self._real.digest()

    def __len__(self) -> int:
        return len(self._real)

    def _wrote(self, key: str, value: bytes | None, held: Held) -> Held:
        if (held.owner, held.value) != (self._life.name, value):
            self._life.broken(f"wrote {key} = {value!r:.40}, and {held!r:.200} counts")
        entry, cell = held.entry, (self.name, key)
        at_us = self._life.now_us
        self._life.wrote(
            Write(cell, held.owner, entry.hlc, entry.seen, entry.value, at_us, entry.boot)
        )
        return held


class WitnessedTable:
    """A table of one life; everything it does is the real one's."""

    def __init__(self, real: Table, name: str, life: WriteWitness) -> None:
        self._real = real
        self._name = name
        self._life = life
        self.wall_ms: Callable[[], int] = life.wall_ms

    def get(self, key: str) -> Row | None:
        """Return the row."""
        return self._real.get(key)

    def put(self, key: str, content: bytes, *, ttl_ms: int | None = None) -> Row:
        """Write, and note that it was acknowledged."""
        row = self._real.put(key, content, ttl_ms=ttl_ms)
        self._wrote(key, row)
        return row

    def touch(self, key: str) -> Row | None:
        """Keep a row alive, and note the write if it was one."""
        row = self._real.touch(key)
        if row is not None:
            self._wrote(key, row)
        return row

    def items(self, prefix: str = "") -> Sequence[Row]:
        """Return the rows."""
        return self._real.items(prefix)

    def __len__(self) -> int:
        return len(self._real)

    def _wrote(self, key: str, row: Row) -> None:
        if row.owner == self._life.name:
            cell = (self._name, key)
            self._life.wrote(Write(cell, row.owner, row.hlc, 0, row.content, self._life.now_us))
