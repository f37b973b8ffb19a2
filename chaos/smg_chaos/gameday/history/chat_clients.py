"""Chat clients while a store and a node die: their acknowledged turns are kept, to be compared with
the store later.

Each sends a request as soon as it has its answer. Some continue a conversation, some a chain of
responses, which need the store before anything runs; some ask for one response at a time, streamed
or not, which a node can keep until the store is back; some want nothing kept. No two turns have the
same words.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from smg_chaos.gameday.agents.engine_pool import MODEL
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.clients.load import Balancer
from smg_chaos.gameday.history.response_request import CONVERSATIONS, RESPONSES, Answer, ask
from smg_chaos.gameday.lab.lab import Lab

KINDS: Final = ("conversation", "chain", "streamed", "alone", "forgotten")
_BETWEEN_S: Final = 0.05
_ENDED: Final = ("completed", "incomplete")
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Kept:
    """An acknowledged turn: the object as it was answered, and its conversation."""

    said: Mapping[str, Any]
    words: str
    conversation: str
    node: str


@dataclass(slots=True)
class Ledger:
    """What all clients received."""

    kept: list[Kept] = field(default_factory=list)
    spooled: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Conversation and words of turns that were refused because the store was away."""
    forgotten: int = 0
    denied: int = 0
    """Turns that continue one that was acknowledged, and were told that there is none."""
    unsure: int = 0
    """Turns that were told that this cannot be known now, because it may wait on a node's disk."""
    failed: list[str] = field(default_factory=list)
    """What went wrong and should not have."""
    lost: int = 0
    """Turns whose node died before it answered: they may be there or not."""
    took_s: list[float] = field(default_factory=list)


class Callers:
    """Clients, in turn of each kind; `dying` are nodes that may drop requests just now."""

    def __init__(
        self,
        lab: Lab,
        balancer: Balancer,
        people: int,
        *,
        now_s: Callable[[], float],
        dying: set[str],
    ) -> None:
        self.ledger = Ledger()
        self._lab = lab
        self._balancer = balancer
        self._people = people
        self._now_s = now_s
        self._dying = dying
        self._numbers = count(1)
        self._over = False

    @property
    def conversations(self) -> list[str]:
        """The conversations in use."""
        return list(dict.fromkeys(one.conversation for one in self.ledger.kept if one.conversation))

    async def begin(self) -> list[str]:
        """Make a conversation for each client that needs one; return all of them, in order of
        clients.
        """
        made = []
        for person in range(self._people):
            if KINDS[person % len(KINDS)] != "conversation":
                made.append("")
                continue
            answer = await self._sent(self._balancer.next(), "POST", CONVERSATIONS, {})
            made.append(str(answer.said["id"]))
        return made

    async def run(self, conversations: list[str]) -> None:
        """Chat until `stop`; return when the last answer has come."""
        async with asyncio.TaskGroup() as group:
            for person, conversation in enumerate(conversations):
                group.create_task(self._chat(KINDS[person % len(KINDS)], conversation))

    def stop(self) -> None:
        """Send no more requests."""
        self._over = True

    async def _chat(self, kind: str, conversation: str) -> None:
        previous = ""
        while not self._over:
            words = f"turn {next(self._numbers)} of many"
            body: dict[str, Any] = {"model": MODEL, "input": words, "truncation": "auto"}
            if conversation:
                body["conversation"] = conversation
            elif kind == "chain" and previous:
                body["previous_response_id"] = previous
            elif kind == "streamed":
                body["stream"] = True
            elif kind == "forgotten":
                body["store"] = False
            said = await self._turn(body, words, conversation)
            if said is not None and kind == "chain":
                previous = str(said["id"])
            await asyncio.sleep(_BETWEEN_S)

    async def _turn(
        self, body: Mapping[str, Any], words: str, conversation: str
    ) -> Mapping[str, Any] | None:
        """Ask for one turn and record the result; return the response if it was acknowledged."""
        node = self._balancer.next()
        begun_s = self._now_s()
        self._balancer.count(node, 1)
        try:
            answer = await self._sent(node, "POST", RESPONSES, body)
        except ConnectionError as error:
            self._dropped(node, str(error))
            return None
        finally:
            self._balancer.count(node, -1)
        self.ledger.took_s.append(self._now_s() - begun_s)
        if answer.status == 503 and answer.code == "store_unavailable" and body.get("store", True):
            self.ledger.refused.append((conversation, words))
            return None
        if answer.code == "previous_response_not_found":
            self.ledger.denied += 1
            return None
        if answer.status != 200 or answer.said.get("status") not in _ENDED:
            self._wrong(f"{node.name}: {answer.status} {str(answer.said)[:300]}")
            return None
        if not body.get("store", True):
            self.ledger.forgotten += 1
            return None
        self.ledger.spooled += answer.spooled
        self.ledger.kept.append(Kept(answer.said, words, conversation, node.name))
        return answer.said

    def _dropped(self, node: SmgAgent, why: str) -> None:
        if node.name in self._dying:
            self.ledger.lost += 1
        else:
            self._wrong(f"{node.name}: {why}")

    def _wrong(self, what: str) -> None:
        self.ledger.failed.append(what if len(self.ledger.failed) < _SHOWN else "")

    async def _sent(
        self, node: SmgAgent, method: str, path: str, body: Mapping[str, Any]
    ) -> Answer:
        return await ask(self._lab, node, method, path, body)
