"""One table of bindings as several nodes have it: the later write counts, once it has arrived."""

from dataclasses import dataclass, field


@dataclass
class World:
    """What was written, in order, and what is still on its way."""

    tables: "list[NodeBindings]" = field(default_factory=list)
    written: int = 0
    held: bool = False
    """While set, nothing arrives anywhere."""
    waiting: list[tuple[int, str, str | None]] = field(default_factory=list)

    def node(self) -> "NodeBindings":
        table = NodeBindings(self)
        self.tables.append(table)
        return table

    def write(self, key: str, worker: str | None, by: "NodeBindings") -> None:
        self.written += 1
        row = (self.written, key, worker)
        by.take(row)
        self.waiting.append(row)
        if not self.held:
            self.deliver()

    def deliver(self) -> None:
        for row in self.waiting:
            for table in self.tables:
                table.take(row)
        self.waiting.clear()


class NodeBindings:
    """The table as one node has it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.rows: dict[str, tuple[int, str | None]] = {}
        self.why: dict[str, str] = {}
        self.touched: list[str] = []

    def take(self, row: tuple[int, str, str | None]) -> None:
        number, key, worker = row
        if number >= self.rows.get(key, (0, None))[0]:
            self.rows[key] = (number, worker)

    def worker_of(self, key: str) -> str | None:
        return self.rows.get(key, (0, None))[1]

    def keys_at(self, worker_id: str) -> int:
        return sum(worker == worker_id for _, worker in self.rows.values())

    def bind(self, key: str, worker_id: str, why: str) -> None:
        self.why[key] = why
        self._world.write(key, worker_id, self)

    def touch(self, key: str) -> None:
        self.touched.append(key)

    def release(self, key: str) -> None:
        self._world.write(key, None, self)

    @property
    def bound(self) -> dict[str, str]:
        return {key: worker for key, (_, worker) in self.rows.items() if worker is not None}
