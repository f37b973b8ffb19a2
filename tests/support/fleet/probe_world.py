"""Many nodes watching many workers on a clock of their own: who looks, how often, and what each makes of it."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from smg_mesh.state.prober_selection import probers
from smg_node.fleet.health.peer_verdicts import Sight
from smg_node.fleet.health.probe_schedule import ProbeOptions, ProbeSchedule

STEP_S = 0.05
TRAVEL_S = 0.2
"""How long a verdict takes to be heard."""
LASTS_S = 15.0
OPTIONS = ProbeOptions(interval_s=2.0, down_after=3, up_after=2)


@dataclass
class Watch:
    """A cluster of `nodes` that looks after `workers`. `fine(node, worker)` is what a look there sees."""

    nodes: list[str]
    workers: list[str]
    fine: Callable[[str, str], bool] = lambda node, worker: True
    now_s: float = 100.0
    looks: Counter[str] = field(default_factory=Counter)
    said: dict[str, dict[str, tuple[float, bool]]] = field(default_factory=dict)
    """By worker and node: when, and whether it is up."""
    heard: dict[str, list[Sight]] = field(default_factory=dict)
    travelling: list[tuple[float, str, str, bool]] = field(default_factory=list)
    mute: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.rng = random.Random(11)
        self.living = list(self.nodes)
        self.vigils = {
            (node, worker): ProbeSchedule(node, OPTIONS, now_s=self.now_s, rng=self.rng)
            for node in self.nodes
            for worker in self.workers
        }
        for worker in self.workers:
            self.hear(worker)

    def in_charge(self, worker: str) -> tuple[str, ...]:
        return probers(worker, [(node, "") for node in self.living])

    def sights(self, worker: str) -> list[Sight]:
        return [
            Sight(node, up)
            for node, (when_s, up) in sorted(self.said.get(worker, {}).items())
            if self.now_s < when_s + LASTS_S
        ]

    def hear(self, worker: str) -> None:
        sights, names = self.sights(worker), self.in_charge(worker)
        for node in self.living:
            self.vigils[node, worker].hear(sights, names, self.now_s)

    def die(self, node: str) -> None:
        """The others have noticed that it is dead."""
        self.living.remove(node)
        for worker in self.workers:
            self.said.get(worker, {}).pop(node, None)
            self.hear(worker)

    def join(self, node: str) -> None:
        self.living.append(node)
        for worker in self.workers:
            self.vigils[node, worker] = ProbeSchedule(node, OPTIONS, now_s=self.now_s, rng=self.rng)
            self.hear(worker)

    def run(self, lasting_s: float) -> None:
        until_s = self.now_s + lasting_s
        while self.now_s < until_s:
            self.now_s = round(self.now_s + STEP_S, 6)
            self._deliver()
            for (node, worker), vigil in self.vigils.items():
                if node in self.living and vigil.due_s <= self.now_s:
                    self._look(node, worker, vigil)

    def _look(self, node: str, worker: str, vigil: ProbeSchedule) -> None:
        self.looks[node] += 1
        vigil.looked(self.now_s, good=self.fine(node, worker))
        if vigil.on_duty and node not in self.mute:
            row = (self.now_s + TRAVEL_S, worker, node, vigil.tally.up)
            self.travelling.append(row)

    def _deliver(self) -> None:
        """Let verdicts arrive, and lapse."""
        arrived = [row for row in self.travelling if row[0] <= self.now_s]
        self.travelling = self.travelling[len(arrived) :]
        for _, worker, node, up in arrived:
            if node in self.living:
                self.said.setdefault(worker, {})[node] = (self.now_s, up)
        for worker in {row[1]: None for row in arrived} if self.now_s % 1 else self.workers:
            sights = self.sights(worker)
            if sights != self.heard.get(worker):
                self.heard[worker] = sights
                self.hear(worker)

    def up(self, worker: str) -> dict[str, bool]:
        return {node: self.vigils[node, worker].up for node in self.living}
