"""Measurement of storing: the same node asked with `store:false` and `store:true` in turn, and the
difference.

CPU is the scheduler's account of all threads of the node's processes (and of the store's server)
over a slice, per answer; latency is from the request's first byte to the answer's last. A slice is
cut into parts of a quarter of a second, in which the two kinds take turns, each as often first as
the other, so that what else the machine does meets both alike.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from smg_chaos.bench.children import BenchError
from smg_chaos.bench.figures.process_accounting import tree_scheduled_s
from smg_chaos.bench.gateways.gateways import Gateway
from smg_chaos.history.response_clients import Callers, Heard, check_kept
from smg_chaos.statistics import percentile

_PART_S: Final = 0.25
_US: Final = 1e6
_MS: Final = 1e3


@dataclass(frozen=True, slots=True)
class Case:
    """One case: which store, how requests are sent, and by how many clients at once."""

    store: str
    streamed: bool
    clients: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Figures of some seconds of one kind, per answer."""

    answers: int
    seconds: float
    p50_ms: float
    p99_ms: float
    node_us: float
    server_us: float


@dataclass(slots=True)
class _Used:
    """Sums over the parts of a slice so far."""

    took_s: list[float] = field(default_factory=list)
    seconds: float = 0.0
    node_s: float = 0.0
    server_s: float = 0.0

    def add(self, heard: Heard, node_s: float, server_s: float) -> None:
        self.took_s += heard.took_s
        self.seconds += heard.seconds
        self.node_s += node_s
        self.server_s += server_s

    def slice(self) -> Slice:
        count = len(self.took_s)
        return Slice(
            count,
            self.seconds,
            _MS * percentile(self.took_s, 0.5),
            _MS * percentile(self.took_s, 0.99),
            _US * self.node_s / count,
            _US * self.server_s / count,
        )


@dataclass(slots=True)
class Cell:
    """A case, and its slices by round."""

    case: Case
    plain: list[Slice] = field(default_factory=list)
    stored: list[Slice] = field(default_factory=list)

    def added(self, of: Callable[[Slice], float]) -> tuple[float, float, float]:
        """Return median, least and most over the rounds of what storing adds to a figure."""
        found = [of(late) - of(early) for early, late in zip(self.plain, self.stored, strict=True)]
        return median(found), min(found), max(found)

    def row(self) -> dict[str, Any]:
        """Return the figures for machines."""
        names: dict[str, Callable[[Slice], float]] = {
            "added_p50_ms": lambda one: one.p50_ms,
            "added_p99_ms": lambda one: one.p99_ms,
            "added_node_us": lambda one: one.node_us,
        }
        figures = {
            name: dict(zip(("median", "least", "most"), self.added(of), strict=True))
            for name, of in names.items()
        }
        return {
            "store": self.case.store,
            "streamed": self.case.streamed,
            "clients": self.case.clients,
            "rounds": len(self.stored),
            "answers": sum(one.answers for one in (*self.plain, *self.stored)),
            "plain_p50_ms": median(one.p50_ms for one in self.plain),
            "plain_p99_ms": median(one.p99_ms for one in self.plain),
            "plain_node_us": median(one.node_us for one in self.plain),
            "server_us": median(one.server_us for one in self.stored),
            "stored_per_s": median(one.answers / one.seconds for one in self.stored),
            **figures,
        }


async def measure(
    cell: Cell,
    node: Gateway,
    server_pid: int,
    callers: Callers,
    *,
    seconds: float,
) -> None:
    """Add one round to a cell; BenchError where an answer is wrong, or not kept as it should be."""
    parts = max(2, round(seconds / _PART_S))
    used = {False: _Used(), True: _Used()}
    for number in range(parts):
        for stored in (False, True) if number % 2 else (True, False):
            before = _used(node.pid), _used(server_pid)
            heard = await callers.ask(seconds / parts, stored=stored, streamed=cell.case.streamed)
            after = _used(node.pid), _used(server_pid)
            if heard.problems or not heard.took_s:
                raise BenchError(f"{node.label}: {'; '.join(heard.problems) or 'no answer'}")
            used[stored].add(heard, after[0] - before[0], after[1] - before[1])
            if number == 0:
                await check_kept(node.port, heard, stored=stored)
    cell.plain.append(used[False].slice())
    cell.stored.append(used[True].slice())


def _used(pid: int) -> float:
    return tree_scheduled_s(pid) if pid else 0.0
