"""Rights benchmark (`smg-chaos rights`): CPU time and datagrams of limits that hold for the whole
cluster.

Real cores of rights, one for each node, talk to each other in memory and on virtual time: leases,
votes, asks and gives, encoded and decoded, without sockets and sealing. Some keys are *hot*:
charged all the time, at all nodes alike. The others of 10,000 were used once and are idle. Figures
are per node: CPU time of its core in percent of one processor, without what looking at the clock
takes, and datagrams sent. Charging itself is `smg-chaos admission`.

A round of a row is some virtual seconds; the rows take turns, so that what else the machine does
meets all of them alike. What the keys need of memory is measured apart, for one node.
"""

import json
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from random import Random
from statistics import median
from typing import Annotated, Any, Final

import typer

from smg_mesh.escrow.election.slot_leases import WANTED_MS
from smg_mesh.escrow.escrow_core import Escrow
from smg_mesh.escrow.limit_model import Life, Limit
from smg_mesh.escrow.messages.effects import Effect, KeepFounding, KeepRoster, Persist, Send

KEYS: Final = 10_000
HOT: Final = (0, 1, 100)
NODES: Final = (1, 5)
_AMOUNT: Final = 100
_RATE: Final = 50
"""Requests a second for one hot key, over all nodes: half of what it allows."""
_WALL_MS: Final = 1_700_000_000_000
_DELAY_MS: Final = 1
_DISK_MS: Final = 3
_SETTLE_MS: Final = 4_000
_LOOKS: Final = 500
_TOUCHED: Final = 10
"""So many cold keys are used in a millisecond, until all were."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row."""

    nodes: int
    hot: int
    keys: int = KEYS
    rate: int = _RATE


class _Defined:
    """A limit for each of so many tenants."""

    def __init__(self, keys: int) -> None:
        names = [f"tenant=t{at}#requests/1000" for at in range(keys)]
        self.keys: Final = names
        self._limits: Final = {
            name: Limit(name, "requests", _AMOUNT, 1_000, "strict", 0.5) for name in names
        }

    def get(self, key: str) -> Limit | None:
        """See `Limits`."""
        return self._limits.get(key)

    def basis(self) -> bytes:
        """See `Limits`."""
        return b"measured"


class _Node:
    """One core, its CPU time so far, and the time of its next tick."""

    def __init__(self, name: str, scene: "Scene", expect: int) -> None:
        self.name = name
        self.spent_ns = self.looks = 0
        self.packets = 0
        self._scene = scene
        self._due_ms: int | None = None
        self.core = Escrow(
            Life(name, 1),
            limits=scene.limits,
            expect=expect,
            roster=None,
            remembered={},
            rng=Random(name),
            now_ms=scene.now_ms,
            wall_ms=scene.wall_ms,
            called=self._called,
        )

    def charge(self, key: str) -> None:
        """Admit a request, or refuse it."""
        scene = self._scene
        start_ns = time.thread_time_ns()
        share = self.core.share(key, now_ms=scene.now_ms, wall_ms=scene.wall_ms)
        self.spent_ns += time.thread_time_ns() - start_ns
        self.looks += 1
        assert share is not None
        share.offered += 1
        if share.left:
            share.left -= 1
            share.spent += 1
        share.wants_more = share.wants_more or share.left < share.low
        self._plan()

    def step(self, act: Callable[[int, int], Sequence[Effect]]) -> None:
        """Feed the core one input, and perform its effects."""
        scene = self._scene
        start_ns = time.thread_time_ns()
        effects = act(scene.now_ms, scene.wall_ms)
        self.spent_ns += time.thread_time_ns() - start_ns
        self.looks += 1
        for effect in effects:
            if isinstance(effect, Send):
                self.packets += 1
                scene.post(self, effect)
            elif isinstance(effect, Persist | KeepRoster | KeepFounding):
                scene.write(self, effect.token)
        self._plan()

    def _called(self) -> None:
        self.core.hear(now_ms=self._scene.now_ms)

    def _plan(self) -> None:
        due_ms = self.core.due_ms()
        if due_ms is not None and (self._due_ms is None or due_ms < self._due_ms):
            self._due_ms = max(due_ms, self._scene.now_ms)
            self._scene.at(self._due_ms, self._tick)

    def _tick(self) -> None:
        if self._due_ms is not None and self._scene.now_ms >= self._due_ms:
            self._due_ms = None
            self.step(lambda now_ms, wall_ms: self.core.tick(now_ms=now_ms, wall_ms=wall_ms))


class Scene:
    """State of one case, which continues from round to round."""

    def __init__(self, case: Case, limits: _Defined | None = None) -> None:
        self.case = case
        self.now_ms = 0
        self.limits = _Defined(case.keys) if limits is None else limits
        self._order = count()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._asked = 0
        self._owed = 0.0
        names = [f"node-{at}" for at in range(case.nodes)]
        self.nodes = {name: _Node(name, self, case.nodes) for name in names}
        alive = [Life(name, 1) for name in names]
        for node in self.nodes.values():
            node.core.members(alive, (), now_ms=0)
            node.step(lambda _now, _wall: ())
        self._pass(_SETTLE_MS)
        for at, key in enumerate(self.limits.keys):
            self.nodes[names[at % len(names)]].charge(key)
            if at % _TOUCHED == 0:
                self._pass(1)
        # What was used once falls asleep, and its slots are released.
        self._pass(WANTED_MS + 2 * _SETTLE_MS)

    @property
    def wall_ms(self) -> int:
        """Time of all wall clocks."""
        return _WALL_MS + self.now_ms

    def at(self, at_ms: int, act: Callable[[], None]) -> None:
        """Schedule something for a time."""
        heappush(self._queue, (at_ms, next(self._order), act))

    def post(self, sender: _Node, send: Send) -> None:
        """Carry a datagram."""
        node = self.nodes[send.to]
        self.at(
            self.now_ms + _DELAY_MS,
            lambda: node.step(
                lambda now_ms, wall_ms: node.core.handle(
                    send.data, sender.name, now_ms=now_ms, wall_ms=wall_ms
                )
            ),
        )

    def write(self, node: _Node, token: int) -> None:
        """Complete a write to disk."""
        self.at(
            self.now_ms + _DISK_MS,
            lambda: node.step(
                lambda now_ms, wall_ms: node.core.persisted(token, now_ms=now_ms, wall_ms=wall_ms)
            ),
        )

    def round(self, seconds: int) -> tuple[float, float, float]:
        """Let virtual seconds pass; return (mean CPU, CPU of the busiest node, datagrams) of a node and second."""
        nodes = list(self.nodes.values())
        for node in nodes:
            node.spent_ns = node.looks = node.packets = 0
        look_ns = _look_ns()
        self._pass(1_000 * seconds)
        percent = [(node.spent_ns - node.looks * look_ns) / 1e7 / seconds for node in nodes]
        packets = sum(node.packets for node in nodes)
        return sum(percent) / len(nodes), max(percent), packets / seconds / len(nodes)

    def _pass(self, ms: int) -> None:
        nodes = list(self.nodes.values())
        hot = self.limits.keys[: self.case.hot]
        for _ in range(ms):
            self.now_ms += 1
            while self._queue and self._queue[0][0] <= self.now_ms:
                heappop(self._queue)[2]()
            self._owed += len(hot) * self.case.rate / 1000
            while self._owed >= 1:
                self._owed -= 1
                node = nodes[self._asked % len(nodes)]
                node.charge(hot[self._asked // len(nodes) % len(hot)])
                self._asked += 1


def _look_ns() -> float:
    """Return the time between two consecutive looks at the clock, now: part of all that is measured
    with it.
    """
    found = []
    for _ in range(_LOOKS):
        start_ns = time.thread_time_ns()
        found.append(time.thread_time_ns() - start_ns)
    return median(found)


def measure(cases: Sequence[Case], *, rounds: int, seconds: int) -> list[dict[str, Any]]:
    """Return a row for each case: the median of its rounds, the best and the worst."""
    scenes = [Scene(case) for case in cases]
    found: list[list[tuple[float, float, float]]] = [[] for _ in scenes]
    for _ in range(rounds):
        for scene, figures in zip(scenes, found, strict=True):
            figures.append(scene.round(seconds))
    return [
        {
            "nodes": case.nodes,
            "keys": case.keys,
            "hot": case.hot,
            "cpu_percent": median(mean for mean, _, _ in figures),
            "best_percent": min(mean for mean, _, _ in figures),
            "worst_percent": max(mean for mean, _, _ in figures),
            "busiest_percent": median(busiest for _, busiest, _ in figures),
            "packets_per_s": median(packets for _, _, packets in figures),
        }
        for case, figures in zip(cases, found, strict=True)
    ]


def memory_mib(case: Case) -> tuple[float, float]:
    """Return the memory of one node while its keys are used, at most, and once they are idle; in
    MiB, without the limits.
    """
    limits = _Defined(case.keys)
    tracemalloc.start()
    try:
        scene = Scene(case, limits)
        held, most = tracemalloc.get_traced_memory()
        assert scene.limits is limits
        return most / 2**20, held / 2**20
    finally:
        tracemalloc.stop()


def table(rows: Sequence[dict[str, Any]], memory: tuple[float, float] | None) -> str:
    """Return the figures as text."""
    lines = [
        "CPU of rights in percent of a processor, per node: median of the rounds (best to worst)"
    ]
    for row in rows:
        spread = f"{row['best_percent']:.2f} to {row['worst_percent']:.2f}"
        lines.append(
            f"  {row['nodes']} nodes, {row['hot']:3} hot of {row['keys']:6} keys "
            f"{row['cpu_percent']:6.2f} ({spread:12}), busiest node {row['busiest_percent']:5.2f}, "
            f"{row['packets_per_s']:6.1f} datagrams/s"
        )
    if memory is not None:
        lines.append(f"memory of one node: {memory[0]:.1f} MiB at most, {memory[1]:.1f} MiB asleep")
    return "\n".join(lines)


def rights(
    nodes: Annotated[
        list[int] | None, typer.Option("--nodes", help="only clusters of so many")
    ] = None,
    hot: Annotated[list[int] | None, typer.Option("--hot", help="only so many hot keys")] = None,
    keys: Annotated[int, typer.Option(help="keys in all", min=1)] = KEYS,
    rounds: Annotated[int, typer.Option(help="rounds in which all rows take turns", min=1)] = 5,
    seconds: Annotated[int, typer.Option(help="virtual seconds of a round of a row", min=1)] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """Measure what the limits of a cluster cost its nodes, with 0, 1 and 100 hot keys among 10,000."""
    cases = [Case(many, warm, keys) for many in nodes or NODES for warm in hot or HOT]
    assert all(case.hot <= case.keys for case in cases), "more hot keys than keys"
    rows = measure(cases, rounds=rounds, seconds=seconds)
    memory = memory_mib(Case(1, max(case.hot for case in cases), keys))
    if as_json:
        print(json.dumps({"rows": rows, "memory_mib": memory}, indent=2))
    else:
        print(table(rows, memory))


app: Final = typer.Typer(add_completion=False)
app.command(name="rights")(rights)
