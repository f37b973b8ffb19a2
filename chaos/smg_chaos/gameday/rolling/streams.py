"""Streams of chats, a constant number open at a time, each compared with its expected text by
character.

A balancer gives each to the next node of those that are in, and does nothing else: what a node
refuses, even before a byte, is an error that a client has seen.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import MODEL
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.clients.stream_check import Hearing, problems
from smg_chaos.gameday.clients.stream_client import listen
from smg_chaos.gameday.whole.clients.balancer import Balancer

_QUESTIONS: Final = 12
TOKENS_PER_S: Final = 10
"""What engines are told to say."""
_SHORTEST: Final = 0.3
"""Of the longest stream."""
_STREAM_S: Final = 300.0
_SPREAD_S: Final = 3.0
"""Streams begin within this time, so that they do not end all at once."""
_NOBODY_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Ended:
    """One ended stream: its node, and in words what was wrong with it."""

    node: str
    lasted_s: float
    problem: str


def questions(longest_s: float) -> list[dict[str, Any]]:
    """Return the prompts in turn: answers of different lengths, the longest of which takes so
    long.
    """
    shares = [
        _SHORTEST + (1 - _SHORTEST) * number / (_QUESTIONS - 1) for number in range(_QUESTIONS)
    ]
    return [
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": f"What comes after {number}?"}],
            "max_tokens": max(1, round(longest_s * share * TOKENS_PER_S)),
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        for number, share in enumerate(shares)
    ]


class Streams:
    """Clients that each start a stream as soon as the last has ended."""

    def __init__(
        self,
        balancer: Balancer[SmgAgent],
        count: int,
        longest_s: float,
        *,
        now_s: Callable[[], float],
    ) -> None:
        self.ended: list[Ended] = []
        self.open: dict[str, int] = {}
        """By node."""
        self._balancer = balancer
        self._count = count
        self._now_s = now_s
        self._asked = questions(longest_s)
        self._rights: list[Hearing] = []
        self._over = False

    @property
    def open_now(self) -> int:
        """How many are open, at all nodes together."""
        return sum(self.open.values())

    async def learn(self) -> None:
        """Ask every question twice, undisturbed; ClusterError if the answers are not alike."""
        first, again = [
            await asyncio.gather(*(self._heard(one) for one in self._asked)) for _ in range(2)
        ]
        for (_, right), (_, other) in zip(first, again, strict=True):
            found = problems(right, right) + problems(other, right)
            if found or not right.characters:
                raise ClusterError(f"an undisturbed stream is not right: {found}")
        self._rights = [heard for _, heard in first]

    async def run(self) -> None:
        """Keep so many streams open until `stop`; return when the last has ended."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._count):
                group.create_task(self._ask(number, number * _SPREAD_S / self._count))

    def stop(self) -> None:
        """Start no more streams."""
        self._over = True

    async def _ask(self, number: int, after_s: float) -> None:
        await asyncio.sleep(after_s)
        while not self._over:
            which = number % len(self._asked)
            node, heard = await self._heard(self._asked[which])
            found = problems(heard, self._rights[which])
            lasted_s = heard.ended_s - heard.begun_s
            told = f"{node}, after {lasted_s:.1f} s: {heard.request} {'; '.join(found)}"
            self.ended.append(Ended(node, lasted_s, told if found else ""))
            if not node:
                await asyncio.sleep(_NOBODY_S)
            number += 1

    async def _heard(self, asked: Mapping[str, Any]) -> tuple[str, Hearing]:
        """Return the node that took it, or none, and what came."""
        heard = Hearing(self._now_s())
        node = self._balancer.next()
        if node is None:
            heard.broken, heard.ended_s = "no node is in", self._now_s()
            return "", heard
        self.open[node.name] = self.open.get(node.name, 0) + 1
        try:
            await listen(
                self._balancer.attempt(node).connect,
                asked,
                now_s=self._now_s,
                limit_s=_STREAM_S,
                hearing=heard,
            )
        finally:
            self.open[node.name] -= 1
        return node.name, heard
