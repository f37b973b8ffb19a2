"""Tables of several nodes, whose clocks, rumors and exchanges a test decides about."""

from collections.abc import Sequence

from smg_mesh.config import StateOptions
from smg_mesh.crdt.hybrid_clock import HybridClock
from smg_mesh.crdt.tables.lww_table import Row, Table
from smg_mesh.sync.bound_views import BoundTable


class TableNode:
    """One node: its table, its clock, and what it wrote."""

    def __init__(self, world: "TableWorld", name: str, options: StateOptions) -> None:
        self.name = name
        self.skew_ms = 0
        self.wrote: list[Row] = []
        self.changed: list[tuple[str, ...]] = []
        self._world = world
        self.table = Table(
            "sticky",
            name,
            shards=options.tables["sticky"],
            options=options,
            clock=HybridClock(future_ms=options.future_ms),
            wrote=self.wrote.append,
        )
        self.table.watch(lambda keys: self.changed.append(tuple(keys)))
        self.bound = BoundTable(self.table, self.wall_ms)

    def wall_ms(self) -> int:
        """What the clock of this node says."""
        return self._world.now_ms + self.skew_ms

    def hear(self, row: Row) -> str | None:
        """Hear a rumor of that row."""
        return self.table.hear(self.table.pack(row), self.wall_ms())

    def held(self) -> dict[str, bytes]:
        """Return what counts here."""
        return {row.key: row.content for row in self.bound.items()}


class TableWorld:
    """Nodes that hear nothing unless a test says so."""

    def __init__(self, *names: str, options: StateOptions | None = None, shards: int = 4) -> None:
        self.now_ms = 1_700_000_000_000
        options = options or StateOptions(tables={"sticky": shards})
        self.nodes = {name: TableNode(self, name, options) for name in names}

    def __getitem__(self, name: str) -> TableNode:
        return self.nodes[name]

    def exchange(self, one: str, other: str) -> int:
        """Let two nodes exchange what differs, both ways; return how many bytes that took."""
        left, right = self.nodes[one], self.nodes[other]
        took = 0
        for shard, _, _ in [*left.table.pieces(), *right.table.pieces()]:
            if left.table.digest(shard) == right.table.digest(shard):
                continue
            summary = left.table.summary(shard)
            update = right.table.missing(shard, summary)
            back = left.table.missing(shard, right.table.summary(shard))
            for node, data in ((left, update), (right, back)):
                if data:
                    node.table.merge(shard, data, node.wall_ms())
            took += len(summary) + len(update) + len(back)
        return took

    def differing(self) -> Sequence[int]:
        """Return the shards that are not the same on all nodes."""
        digests = [
            {shard: digest for shard, digest, _ in node.table.pieces()}
            for node in self.nodes.values()
        ]
        shards = sorted({shard for found in digests for shard in found})
        return [shard for shard in shards if len({found.get(shard) for found in digests}) > 1]
