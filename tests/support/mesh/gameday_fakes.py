"""A cluster that is not there, on time that does not pass: what scenarios of the gameday are tested on.

`Manners` say how its members take what is done to them. Sleeping costs nothing: the loop's selector moves
the clock instead of waiting.
"""

import asyncio
import selectors
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from smg_chaos.gameday.agents.agent import Agent, Announced, Kind, Seen, State, View
from smg_chaos.gameday.agents.cluster import Cluster
from smg_chaos.gameday.lab.lab import Lab, Program
from smg_chaos.gameday.lab.link_rules import Rules
from smg_chaos.gameday.stage import Play, Stage
from smg_chaos.statistics import Figure

T = TypeVar("T")


class VirtualClock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, as it has them."""
        return round(self.now_s * 1000)

    def monotonic_s(self) -> float:
        """Return its seconds."""
        return self.now_s


class _Selector(selectors.DefaultSelector):
    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now; if nothing is, the time goes on."""
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everyone waits for ever"
            self._clock.now_s += max(timeout, 0)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        self._own_clock = clock
        super().__init__(_Selector(clock))

    def time(self) -> float:
        """Return virtual seconds."""
        return self._own_clock.now_s


def on_virtual_time(clock: VirtualClock, wait: Callable[[], Awaitable[T]]) -> T:
    """Run something to its end, in no time."""

    async def run() -> T:
        return await wait()

    with asyncio.Runner(loop_factory=lambda: _Loop(clock)) as runner:
        return runner.run(run())


@dataclass(frozen=True)
class Manners:
    """After how many seconds members take notice; None: never. And what they do wrong."""

    notice_death_s: float | None = 2.5
    notice_leave_s: float | None = 0.2
    notice_start_s: float | None = 0.4
    notice_heal_s: float | None = 1.5
    notice_join_s: float | None = 1.0
    takes_new_address: bool = True
    accuses_paused: bool = False
    accuses_others_when_paused: bool = False
    accuses_under_loss: int = 0
    doubts_leavers: bool = False
    flaps: bool = False


@dataclass
class FakeLab(Lab):
    """A lab without places: signals go to the agents, and rules are remembered and reacted to."""

    places: tuple[str, ...]
    clock: VirtualClock
    manners: Manners
    agents: dict[str, "FakeAgent"] = field(default_factory=dict)
    history: list[Rules] = field(default_factory=list)

    def ask(
        self, do: str, given: Sequence[int] = (), handed: list[int] | None = None, **more: Any
    ) -> dict[str, Any]:
        """Be the keeper."""
        agent = self.agents[self.places[int(more["pid"]) - 1]]
        if do == "poll":
            return {"code": agent.code}
        agent.feel(signal.Signals(more["number"]))
        return {}

    def set_rules(self, rules: Rules) -> None:
        """Let the weather change."""
        before = self.history[-1] if self.history else {}
        self.history.append(rules)
        cut_off = {link.partition(">")[0] for link, rule in rules.items() if rule.block}
        was_cut_off = {link.partition(">")[0] for link, rule in before.items() if rule.block}
        half = set(self.places[: len(self.places) // 2])
        for agent in self.agents.values():
            beyond = [name for name in self.places if (name in half) != (agent.name in half)]
            if cut_off:
                agent.later(self.manners.notice_death_s, "down", beyond)
            elif was_cut_off:
                agent.later(self.manners.notice_heal_s, "up", beyond)
        if not rules and any(rule.loss for rule in before.values()):
            for agent in self.agents.values():
                agent.later(self.manners.notice_heal_s, "up", self.places)
        if any(rule.loss for rule in rules.values()):
            for name in self.places[: self.manners.accuses_under_loss]:
                next(a for a in self.agents.values() if a.name != name).later(3.0, "down", [name])

    def spoken_us(self, address: str) -> int | None:
        """Say that each sends its first packet as soon as it is started."""
        (agent,) = (one for one in self.agents.values() if one.address == address)
        return None if agent.code is not None else round(agent.started_s * 1e6)

    def mark(self) -> None:
        """Nothing to forget."""


class FakeAgent(Agent):
    """A member that only pretends."""

    def __init__(self, lab: FakeLab, name: str, folder: Path) -> None:
        super().__init__(lab, name, folder, lab.clock)
        self.code: int | None = -1
        self.started_s = 0.0
        self.seeds: list[str] = []
        self.table: dict[str, Seen] = {}
        self._fake_lab = lab
        lab.agents[name] = self

    @property
    def peers(self) -> list["FakeAgent"]:
        """All others that live."""
        agents = self._fake_lab.agents.values()
        return [one for one in agents if one is not self and one.code is None]

    def _start(self, seeds: Sequence[str]) -> Program:
        self.code = None
        self.started_s = self._clock.monotonic_s()
        self.table = {self.name: Seen("alive", self.mesh_address)}
        self.seeds = list(seeds)
        if {peer.mesh_address for peer in self.peers} & set(seeds):
            self._meet(self._fake_lab.manners.notice_start_s)
        for waiting in self.peers:
            if self.mesh_address in waiting.seeds and len(waiting.table) == 1:
                waiting._meet(self._fake_lab.manners.notice_start_s)
        return Program(self._fake_lab.places.index(self.name) + 1, self.name, self._fake_lab)

    def _meet(self, after_s: float | None) -> None:
        manners = self._fake_lab.manners
        for peer in self.peers:
            self.later(after_s, "up", [peer.name])
            moved = self.address != self._fake_lab.address(self.name)
            if manners.takes_new_address or not moved:
                peer.later(after_s, "up", [self.name])

    def feel(self, number: signal.Signals) -> None:
        """Take a signal."""
        manners = self._fake_lab.manners
        if number == signal.SIGKILL:
            self.code = -9
            for peer in self.peers:
                peer.later(manners.notice_death_s, "down", [self.name])
        elif number == signal.SIGTERM:
            self.code = 0
            for peer in self.peers:
                peer.later(0.05 if manners.doubts_leavers else None, "suspect", [self.name])
                peer.later(manners.notice_leave_s, "left", [self.name])
        elif number == signal.SIGSTOP:
            for peer in self.peers:
                peer.later(0.2 if manners.accuses_paused else None, "down", [self.name])
            wrong = [peer.name for peer in self.peers][:1]
            self.later(0.3 if manners.accuses_others_when_paused else None, "down", wrong)
        elif number == signal.SIGCONT and manners.flaps:
            for peer in self.peers:
                peer.later(0.1, "up", [self.name])

    def later(self, after_s: float | None, kind: Kind, names: Sequence[str]) -> None:
        """Notice something after a while, or never."""
        if after_s is not None:
            lives = {name: self._fake_lab.agents[name].started_s for name in names}
            loop = asyncio.get_running_loop()
            loop.call_later(after_s, self._notice, self.started_s, kind, lives)

    def _notice(self, life: float, kind: Kind, lives: Mapping[str, float]) -> None:
        states: Mapping[Kind, State] = {"up": "alive", "down": "dead", "left": "left"}
        if self.code is not None or life != self.started_s:
            return
        for name, started_s in lives.items():
            is_back = self._fake_lab.agents[name].started_s != started_s
            if kind == "down" and is_back and self._fake_lab.manners.takes_new_address:
                continue
            if kind in states:
                address = self._fake_lab.agents[name].mesh_address
                self.table[name] = Seen(states[kind], address)
            self.announced.append(Announced(self._clock.now_ms(), self.name, kind, name))

    async def view(self) -> View | None:
        """Say what it has noticed."""
        return dict(self.table) if self.code is None else None

    async def watch(self) -> None:
        """Nothing to read."""

    async def join(self, seeds: Sequence[str]) -> None:
        """Meet everyone."""
        assert seeds
        self._meet(self._fake_lab.manners.notice_join_s)

    def close(self) -> None:
        """Nothing to close."""


def played(
    play: Play,
    manners: Manners,
    folder: Path,
    *,
    nodes: int = 6,
    seconds: float = 60.0,
    rounds: int = 3,
) -> tuple[dict[str, Figure], FakeLab, list[str]]:
    """Play a scenario with members of such manners; return figures by metric, the lab, and what was said."""
    clock = VirtualClock()
    names = tuple(f"n{number}" for number in range(nodes))
    lab = FakeLab(names, clock, manners)
    agents = [FakeAgent(lab, name, folder / name) for name in names]
    said: list[str] = []
    stage = Stage(Cluster(lab, agents, clock), seconds, rounds, Random(1), said.append)

    async def run() -> list[Figure]:
        return list(await play(stage))

    figures = on_virtual_time(clock, run)
    return {figure.metric: figure for figure in figures}, lab, said
