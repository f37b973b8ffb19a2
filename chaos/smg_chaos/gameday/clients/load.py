"""Load of clients behind a balancer: an open loop of so many requests a second.

Requests are sent when they are due, not when the last answer came: a slow cluster is asked as much
as a fast one. Their delay, and its cost, is measured too, so that a busy load generator is not
taken for a busy cluster.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from smg_chaos.bench.figures.process_accounting import cpu_s
from smg_chaos.gameday.agents.engine_pool import chat_once
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.lab.http_client import Talk
from smg_chaos.statistics import Figure, percentile

OPEN_MAX: Final = 400
"""Two seconds of requests: who is slower than that is asked no more until it answers."""
_SHORT_MAX: Final = 0.02
_CPU_MAX_PERCENT: Final = 60.0
_SHOWN: Final = 100


class Balancer:
    """Nodes that may be sent requests, and the number of open ones at each."""

    def __init__(self, nodes: Sequence[SmgAgent]) -> None:
        self._nodes = list(nodes)
        self._open = {node.name: 0 for node in nodes}
        self._out: set[str] = set()
        self._turn = 0
        self._ended = asyncio.Event()

    def nodes(self) -> list[SmgAgent]:
        """Return the nodes that may be sent requests."""
        return [node for node in self._nodes if node.name not in self._out]

    def next(self) -> SmgAgent:
        """Return the node whose turn it is."""
        self._turn += 1
        served = self.nodes()
        assert served, "one node at a time is taken out"
        return served[self._turn % len(served)]

    def count(self, node: SmgAgent, change: int) -> None:
        """Count a request in or out."""
        self._open[node.name] += change
        assert self._open[node.name] >= 0
        self._ended.set()

    async def take_out(self, node: SmgAgent) -> None:
        """Send it no more requests; return when none is open there."""
        self._out.add(node.name)
        while self._open[node.name]:
            self._ended.clear()
            await self._ended.wait()

    def take_back(self, node: SmgAgent) -> None:
        """Send it requests again."""
        self._out.discard(node.name)


@dataclass
class Tally:
    """Counts of the clients. `late_s` and `took_s` have one number a request; `unsent` was due and
    not sent.
    """

    late_s: list[float] = field(default_factory=list)
    took_s: list[float] = field(default_factory=list)
    unsent: int = 0
    wrong: int = 0
    shown: list[str] = field(default_factory=list)

    @property
    def answers(self) -> int:
        """How many requests came to an end."""
        return len(self.took_s)

    def went(self, node: str, took_s: float, said: tuple[int, str], expected: str) -> None:
        """Count a finished request: its status and text, and the expected text."""
        self.took_s.append(took_s)
        if said != (200, expected):
            self.wrong += 1
            if len(self.shown) < _SHOWN:
                self.shown.append(f"{node} after {took_s:.3f} s: {said[0]} {said[1]}")

    def figures(self, seconds: float, wanted_per_s: float, used_s: float) -> list[Figure]:
        """Return the figures over so many seconds, in which the load generator used `used_s` of a
        core.
        """
        rate = self.answers / seconds
        cpu = 100 * used_s / seconds
        short = wanted_per_s * _SHORT_MAX
        told = f"{rate:.1f} asked, {self.unsent} held back"
        return [
            Figure("wrong or failed answers", self.wrong, "", 0, f"of {self.answers}"),
            Figure("requests/s less than wanted", max(0.0, wanted_per_s - rate), "", short, told),
            Figure("an answer takes, p50", percentile(self.took_s, 0.5), "s"),
            Figure("an answer takes, p99", percentile(self.took_s, 0.99), "s"),
            Figure("load generator: asks late, p99", percentile(self.late_s, 0.99), "s"),
            Figure("load generator: CPU of a core", cpu, "%", _CPU_MAX_PERCENT),
        ]


class Load:
    """Sends `questions` in turn, each time to another node, and compares the answers with
    `expected`.
    """

    def __init__(
        self,
        balancer: Balancer,
        per_s: float,
        questions: Sequence[str],
        expected: Sequence[str],
        *,
        tokens: int,
        now_s: Callable[[], float],
    ) -> None:
        self.tally = Tally()
        self._balancer = balancer
        self._per_s = per_s
        self._asked = list(zip(questions, expected, strict=True))
        self._tokens = tokens
        self._now_s = now_s
        self._idle: dict[str, list[Talk]] = {}
        self._open = 0
        self._begun_s = now_s()
        self._used_s = cpu_s([os.getpid()])

    def figures(self) -> list[Figure]:
        """Return the figures so far."""
        seconds = self._now_s() - self._begun_s
        return self.tally.figures(seconds, self._per_s, cpu_s([os.getpid()]) - self._used_s)

    async def run(self) -> None:
        """Send until cancelled; requests open then get no answer."""
        self._begun_s = self._now_s()
        self._used_s = cpu_s([os.getpid()])
        sent = 0
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    due_s = self._begun_s + sent / self._per_s
                    await asyncio.sleep(max(0.0, due_s - self._now_s()))
                    if self._open < OPEN_MAX:
                        group.create_task(self._ask(sent, due_s))
                    else:
                        self.tally.unsent += 1
                    sent += 1
        finally:
            for talks in self._idle.values():
                for talk in talks:
                    talk.close()

    async def _ask(self, number: int, due_s: float) -> None:
        node = self._balancer.next()
        question, expected = self._asked[number % len(self._asked)]
        idle = self._idle.setdefault(node.name, [])
        talk = idle.pop() if idle else node.client()
        self._balancer.count(node, 1)
        self._open += 1
        begun_s = self._now_s()
        try:
            said = await chat_once(talk, tokens=self._tokens, question=question)
        except ConnectionError as error:
            said = 0, str(error)
        except asyncio.CancelledError:
            talk.close()
            raise
        finally:
            self._balancer.count(node, -1)
            self._open -= 1
        idle.append(talk)
        self.tally.late_s.append(begun_s - due_s)
        self.tally.went(node.name, self._now_s() - begun_s, said, expected)
