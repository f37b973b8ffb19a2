"""Cluster of agents of one system in one lab, and waiting for conditions on all of their views."""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from smg_chaos.gameday.agents.agent import Agent, Announced, Kind, View
from smg_chaos.gameday.lab.lab import Lab
from smg_node.core.ports import Clock

Views: TypeAlias = Mapping[str, View | None]
_EVERY_S: Final = 0.1
_START_S: Final = 240.0  # forty nodes that start at once on two cores take their time


class ClusterError(Exception):
    """A cluster did not form, so that there is nothing to measure; with the agents' last output."""


class Cluster:
    """The agents, in the order of their places."""

    def __init__(self, lab: Lab, agents: Sequence[Agent], clock: Clock) -> None:
        self.lab = lab
        self.agents = tuple(agents)
        self.names = tuple(agent.name for agent in agents)
        self._clock = clock

    def __getitem__(self, name: str) -> Agent:
        """Return an agent by name."""
        return self.agents[self.names.index(name)]

    def others(self, *but: Agent) -> list[Agent]:
        """Return all agents but these."""
        return [agent for agent in self.agents if agent not in but]

    def now_ms(self) -> int:
        """Return the time on the clock of announcements."""
        return self._clock.now_ms()

    def monotonic_us(self) -> int:
        """Return the time on the switch's clock."""
        return round(self._clock.monotonic_s() * 1_000_000)

    async def start_apart(self, agents: Iterable[Agent], seeds: Sequence[str] = ()) -> None:
        """Start agents and return when each of them answers; ClusterError if one does not."""
        started = list(agents)
        for agent in started:
            agent.start(seeds)
        await self.answering(started)

    async def answering(self, agents: Sequence[Agent]) -> None:
        """Return when each of these answers; ClusterError if one ends, or does not for too long."""

        def answered(views: Views) -> bool:
            for name, view in views.items():
                if view is None and (code := self[name].ended()) is not None:
                    words = self[name].last_words()
                    raise ClusterError(f"{name} ended with status {code}; it said:\n{words}")
            return None not in views.values()

        if await self.seconds_until(answered, _START_S, agents) is None:
            raise ClusterError(f"some of {[agent.name for agent in agents]} do not answer")

    async def form(self) -> None:
        """Start all agents, joining through the first; return when all see all."""
        first, *rest = self.agents
        await self.start_apart([first])
        await self.start_apart(rest, [first.mesh_address])
        if await self.until_whole(_START_S) is None:
            raise ClusterError(f"they do not find each other: {await self.describe()}")

    async def until_whole(self, limit_s: float, agents: Sequence[Agent] = ()) -> float | None:
        """Return the seconds until all of these (of all agents) see each other, and no others,
        alive.
        """
        whole = list(agents or self.agents)
        names = {agent.name for agent in whole}
        return await self.seconds_until(lambda views: all_alive(views, names), limit_s, whole)

    async def seconds_until(
        self,
        true: Callable[[Views], bool],
        limit_s: float,
        agents: Sequence[Agent] = (),
        *,
        every_s: float = _EVERY_S,
    ) -> float | None:
        """Return how long it takes until `true` holds for the views of `agents`; None after `limit_s`."""
        since_s = self._clock.monotonic_s()
        while True:
            views = await self.views(agents or self.agents)
            taken_s = self._clock.monotonic_s() - since_s
            if true(views):
                return taken_s
            if taken_s > limit_s:
                return None
            await asyncio.sleep(every_s)

    async def views(self, agents: Sequence[Agent]) -> Views:
        """Return the view of each of these, asked at once."""
        seen = await together([agent.view() for agent in agents])
        return {agent.name: view for agent, view in zip(agents, seen, strict=True)}

    async def until_announced(
        self, observers: Sequence[Agent], kind: Kind, name: str, since_ms: int, limit_s: float
    ) -> list[float] | None:
        """Return, sorted, the seconds until each observer first announced it; None if one never
        does.
        """
        end_s = self._clock.monotonic_s() + limit_s
        while self._clock.monotonic_s() < end_s:
            first: dict[str, int] = {}
            for said in self.announced(kind, [name], since_ms, observers):
                first.setdefault(said.observer, said.at_ms)
            if len(first) == len(observers):
                return sorted((at_ms - since_ms) / 1000 for at_ms in first.values())
            await asyncio.sleep(_EVERY_S / 2)
        return None

    def announced(
        self,
        kind: Kind,
        about: Collection[str],
        since_ms: int,
        observers: Sequence[Agent] = (),
    ) -> list[Announced]:
        """Return the announcements of this kind about these members, in order of time."""
        said = [
            one
            for agent in observers or self.agents
            for one in agent.announced
            if one.kind == kind and one.at_ms >= since_ms and one.name in about
        ]
        return sorted(said, key=lambda one: one.at_ms)

    async def quiet(self, seconds: float) -> None:
        """Wait for so long without asking any agent."""
        for agent in self.agents:
            agent.watched = False
        await asyncio.sleep(seconds)
        for agent in self.agents:
            agent.watched = True

    async def describe(self) -> str:
        """Return in one line how many members each agent sees in which state."""
        views = await self.views(self.agents)
        return "; ".join(f"{name}: {_summary(view)}" for name, view in views.items())


@asynccontextmanager
async def watched(cluster: Cluster) -> AsyncIterator[Cluster]:
    """Watch all agents' announcements while inside; an error is raised as it is, not in a group."""
    try:
        async with asyncio.TaskGroup() as group:
            watching = [group.create_task(agent.watch()) for agent in cluster.agents]
            yield cluster
            for watch in watching:
                watch.cancel()
    except BaseExceptionGroup as errors:
        raise _first(errors) from errors
    finally:
        for agent in cluster.agents:
            agent.close()


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return one of the errors that came together: they have one cause."""
    first: BaseException = errors
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first


def all_alive(views: Views, names: Collection[str]) -> bool:
    """Return whether each of these views has exactly these names alive."""
    return all(
        view is not None
        and {name for name, seen in view.items() if seen.state == "alive"} == set(names)
        for view in views.values()
    )


async def together(waits: Sequence[Awaitable[View | None]]) -> list[View | None]:
    """Return the results of all of these, in order."""

    async def one(wait: Awaitable[View | None]) -> View | None:
        return await wait

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(wait)) for wait in waits]
    return [task.result() for task in tasks]


def _summary(view: View | None) -> str:
    if view is None:
        return "silent"
    states = sorted({seen.state for seen in view.values()})
    return " ".join(
        f"{sum(seen.state == state for seen in view.values())} {state}" for state in states
    )
