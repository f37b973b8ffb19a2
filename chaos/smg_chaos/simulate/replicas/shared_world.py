"""Shared state of one world: options, lives, ledger of writes, and checkers."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Protocol

from smg_chaos.simulate.base.virtual_clock import MS
from smg_chaos.simulate.hosts.host import EPOCH_MS, Node
from smg_chaos.simulate.hosts.ports import HasNodes
from smg_chaos.simulate.hosts.state_write import Cell
from smg_chaos.simulate.replicas.checkers import (
    HLC_COUNTER_BITS,
    StateCheckers,
    is_old_removal,
)
from smg_chaos.simulate.replicas.replica_interface import ReplicaFactory
from smg_chaos.simulate.replicas.replica_life import ReplicaLife, ReplicaWorld
from smg_chaos.simulate.replicas.replica_setting import StateSetting
from smg_chaos.simulate.replicas.write_ledger import Ledger


class SharingWorld(ReplicaWorld, HasNodes, Protocol):
    """The world whose nodes share state."""


class Commons:
    """One world's replicated state."""

    def __init__(
        self, world: SharingWorld, setting: StateSetting, make_replica: ReplicaFactory
    ) -> None:
        self.world = world
        self.options = setting.options
        self.wild = setting.wild
        self.watchful = setting.watchful
        self.make_replica = make_replica
        self.ledger = Ledger()
        self.checkers = StateCheckers(self)
        self._cells: dict[str, dict[Cell, None]] = {}
        self._lives: dict[Node, ReplicaLife] = {}
        self._numbered = 0
        self.forgot = 0
        """How often a node dropped everything because it was away for too long."""

    def number(self) -> int:
        """Return a number that no other life has."""
        self._numbered += 1
        return self._numbered

    def born(self, node: Node) -> ReplicaLife:
        """Begin a life's replica, from what the disk of its host holds."""
        life = ReplicaLife(self, node)
        node.life = self._lives[node] = life
        life.begin()
        return life

    def lives(self) -> list[ReplicaLife]:
        """Return all that live now, in the order of their hosts."""
        return [self._lives[node] for node in self.world.nodes() if node in self._lives]

    def life(self, node: Node) -> ReplicaLife | None:
        """Return the life of a node, None before it began."""
        return self._lives.get(node)

    def note_cell(self, cell: Cell) -> None:
        """Look at a cell from now on."""
        self._cells.setdefault(cell[0], {})[cell] = None

    def cells_of(self, space: str) -> Iterable[Cell]:
        """Return all cells of a namespace or table that were ever written."""
        return self._cells.get(space, ())

    def doubtful(self, cell: Cell) -> bool:
        """Return whether wrong clocks decide what counts in a cell."""
        return self.wild and any(
            abs((write.hlc >> HLC_COUNTER_BITS) - EPOCH_MS - write.at_us // MS)
            > self.options.future_ms // 2
            for write in self.ledger.writes(cell)
        )

    def uncertain(self, cell: Cell) -> bool:
        """Return whether it is not known for sure which writes of a cell are still held somewhere."""
        ledger = self.ledger
        if self.wild or self.forgot or cell in ledger.lost or cell in ledger.blurred:
            return True
        now_ms = EPOCH_MS + self.world.agenda.now_us // MS
        keep_ms = self.options.removed_keep_ms // 2
        return any(
            is_old_removal(write, now_ms, keep_ms) or self.ledger.is_beaten(write)
            for write in self.ledger.writes(cell)
        )

    def agreed(self) -> bool:
        """Return whether all living nodes have one digest: quick, for looking often."""
        return all(
            one.replica.digest() == other.replica.digest() for one, other in pairwise(self.lives())
        )
