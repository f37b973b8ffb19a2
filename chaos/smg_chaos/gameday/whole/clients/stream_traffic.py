"""Stream traffic: streamed chats at a fixed rate, each compared with its expected text.

Every id that an engine says follows from all before it, so there is one right answer to each question, whichever
engines gave parts of it. Streams begin when they are due, whatever became of the others.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from smg_chaos.gameday.agents.engine_pool import MODEL
from smg_chaos.gameday.clients.stream_check import Hearing, problems
from smg_chaos.gameday.clients.stream_client import listen
from smg_chaos.gameday.whole.clients.balancer import TRIES, Balancer
from smg_chaos.gameday.whole.excuses import CROWD, Excuses
from smg_chaos.gameday.whole.surprises import Surprises

Verdict: TypeAlias = Literal["exact", "excused", "lost", "wrong", "refused", "turned away"]
"""excused: cut off at a node that was hurt. lost: cut off at one that was not. turned away: refused in a crowd."""
FAILURES: Final[tuple[Verdict, ...]] = ("lost", "wrong", "refused")
OPEN_MAX: Final = 2000
_QUESTIONS: Final = 12
_TOKENS: Final = (30, 15)
"""So many for the first question, and so many more for each further one: from half a second to four."""
_STREAM_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Stream:
    """The outcome of one stream.

    Times are seconds on the cluster's clock; `spoken_s` 0: no text ever came.
    """

    begun_s: float
    spoken_s: float
    ended_s: float
    node: str
    verdict: Verdict
    tries: int
    says: str = ""


def questions() -> list[dict[str, Any]]:
    """Return what is asked, in turn."""
    return [
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": f"What follows from {number}?"}],
            "max_tokens": _TOKENS[0] + number * _TOKENS[1],
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        for number in range(_QUESTIONS)
    ]


def is_truthful(heard: Hearing, right: Hearing) -> bool:
    """Return whether a stream that was cut off says nothing wrong: a beginning of what is right, and no end made up."""
    begun = all(
        right.texts.get(index, "").startswith((text, text.removesuffix("\ufffd")))
        for index, text in heard.texts.items()
    )
    ended = any(heard.finishes.get(i) for i, t in right.texts.items() if heard.texts.get(i) != t)
    return begun and not ended


def judged(heard: Hearing, right: Hearing, *, hurt: bool, crowded: bool) -> tuple[Verdict, str]:
    """Return the verdict on a stream that some node took, and what is wrong with it in words."""
    found = problems(heard, right)
    if not found:
        return "exact", ""
    says = f"{heard.request}: {'; '.join(found)}"
    if not is_truthful(heard, right) or not (heard.errors or heard.broken):
        return "wrong", says
    if heard.status in (429, 503):
        return ("turned away" if crowded else "refused"), says
    return ("excused" if hurt else "lost"), says


class Traffic:
    """So many streams a second, times `factor`."""

    def __init__(
        self,
        balancer: Balancer[Any],
        excuses: Excuses,
        per_s: float,
        *,
        now_s: Callable[[], float],
        surprises: Surprises | None = None,
    ) -> None:
        self.streams: list[Stream] = []
        self.factor = 1.0
        self.held_back = 0
        self.open = 0
        self._balancer = balancer
        self._excuses = excuses
        self._per_s = per_s
        self._now_s = now_s
        self._surprises = surprises or Surprises()
        self._asked = questions()
        self._rights: list[Hearing] = []
        self._over = False

    async def learn(self) -> None:
        """Ask every question twice, undisturbed; AssertionError if the answers are not alike."""
        first, again = await self._all(), await self._all()
        for right, other in zip(first, again, strict=True):
            found = problems(right, right) + problems(other, right)
            assert not found, f"an undisturbed stream is not right: {found}"
            assert right.characters
        self._rights = first

    async def _all(self) -> list[Hearing]:
        told = await asyncio.gather(*(self._tried(one) for one in self._asked))
        return [heard for _, heard, _ in told]

    async def run(self) -> None:
        """Begin streams until told to `stop`; return when the last has ended."""
        due_s, number = self._now_s(), 0
        async with asyncio.TaskGroup() as group:
            while not self._over:
                await asyncio.sleep(max(0.0, due_s - self._now_s()))
                if self.open < OPEN_MAX:
                    group.create_task(self._ask(number))
                else:
                    self.held_back += 1
                number += 1
                due_s += 1 / (self._per_s * self.factor)

    def stop(self) -> None:
        """Begin no more."""
        self._over = True

    async def _ask(self, number: int) -> None:
        which = number % len(self._asked)
        begun_s = self._now_s()
        self.open += 1
        try:
            node, heard, tries = await self._tried(self._asked[which])
        finally:
            self.open -= 1
        ended_s = self._now_s()
        crowded = self._excuses.cover(CROWD, begun_s, ended_s)
        hurt = self._excuses.cover(node, begun_s, ended_s)
        verdict, says = judged(heard, self._rights[which], hurt=hurt, crowded=crowded)
        told = f"{node}, {ended_s - begun_s:.1f} s: {says}" if says else ""
        self.streams.append(Stream(begun_s, heard.spoken_s, ended_s, node, verdict, tries, told))
        if verdict in FAILURES:
            self._surprises.note(verdict, node, told, begun_s)

    async def _tried(self, asked: Mapping[str, Any]) -> tuple[str, Hearing, int]:
        """Return who took it, what came, and at how many nodes it was tried."""
        tried: list[str] = []
        heard = Hearing(self._now_s(), status=503, errors=["503 no node is in"])
        while len(tried) < TRIES and (node := self._balancer.next(tried)) is not None:
            tried.append(node.name)
            attempt = self._balancer.attempt(node)
            heard = Hearing(self._now_s())
            await listen(
                attempt.connect, asked, now_s=self._now_s, limit_s=_STREAM_S, hearing=heard
            )
            if attempt.reached and heard.status != 503:
                break
            if not attempt.reached:
                heard.status = 503
        return (tried[-1] if tried else "nobody"), heard, len(tried)
