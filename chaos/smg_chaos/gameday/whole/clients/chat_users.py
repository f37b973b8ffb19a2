"""Chat users: conversations and response chains through the balancer, with a record of all answers.

Each user asks again as soon as it has its answer, in words not used before, so that what is kept in
the end can be held against what was acknowledged (`history.final_check`).
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

from smg_chaos.gameday.agents.engine_pool import MODEL
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.history.chat_clients import Kept, Ledger
from smg_chaos.gameday.history.response_request import CONVERSATIONS, RESPONSES, Answer, ask
from smg_chaos.gameday.lab.lab import Lab
from smg_chaos.gameday.whole.clients.balancer import TRIES, Balancer
from smg_chaos.gameday.whole.excuses import CROWD, STORE, Excuses, disk_of
from smg_chaos.gameday.whole.surprises import Surprises

KINDS: Final = ("conversation", "chain", "streamed", "alone")
_BETWEEN_S: Final = 1.0
_CHAIN_MAX: Final = 8
"""So many responses, and a new chain begins: what is asked does not grow for ever."""
_NAMED: Final = re.compile(r"the node '([^']+)' may still have to store")
_ENDED: Final = ("completed", "incomplete")
_SHOWN: Final = 40
_TOKENS: Final = 12
_ANSWER_S: Final = 60.0


def needs_store(answer: Answer) -> bool:
    """Return whether an answer says that the store is away.

    A stream that had begun ends as failed where the turn can be put neither into the store nor on the node's disk.
    """
    if answer.status == 200 and answer.said.get("status") == "failed":
        return "store" in str(answer.said["error"]["message"])
    return answer.code == "store_unavailable"


def named_in(answer: Answer) -> str:
    """Return the node that may have on its disk what was asked for, as an answer names it; "" if it names none."""
    error = answer.said.get("error")
    named = _NAMED.search(str(error.get("message"))) if isinstance(error, dict) else None
    return named[1] if named is not None and needs_store(answer) else ""


class People:
    """So many people, in turn of each kind."""

    def __init__(
        self,
        lab: Lab,
        balancer: Balancer[SmgAgent],
        excuses: Excuses,
        people: int,
        *,
        now_s: Callable[[], float],
        surprises: Surprises | None = None,
    ) -> None:
        self.ledger = Ledger()
        self.denials: list[str] = []
        """Who said that there is no such response, of one that was acknowledged."""
        self._lab = lab
        self._balancer = balancer
        self._excuses = excuses
        self._people = people
        self._now_s = now_s
        self._surprises = surprises or Surprises()
        self._numbers = count(1)
        self._over = False

    async def run(self) -> None:
        """Chat until told to `stop`; return when the last answer has come."""
        async with asyncio.TaskGroup() as group:
            for person in range(self._people):
                group.create_task(self._chat(KINDS[person % len(KINDS)]))

    def stop(self) -> None:
        """Ask for nothing more."""
        self._over = True

    async def _chat(self, kind: str) -> None:
        conversation, previous, length = "", "", 0
        while not self._over:
            if length >= _CHAIN_MAX:
                conversation, previous, length = "", "", 0
            if kind == "conversation" and not conversation:
                conversation = await self._conversation()
            words = f"turn {next(self._numbers)} of many"
            body: dict[str, Any] = {
                "model": MODEL,
                "input": words,
                "truncation": "auto",
                "max_output_tokens": _TOKENS,
                "stream": kind == "streamed",
            }
            if conversation:
                body["conversation"] = conversation
            elif kind == "chain" and previous:
                body["previous_response_id"] = previous
            said = await self._turn(body, words, conversation)
            length += 1
            if said is not None and kind == "chain":
                previous = str(said["id"])
            await asyncio.sleep(_BETWEEN_S)

    async def _conversation(self) -> str:
        """Return a new conversation, or "" if there is none to be had just now."""
        begun_s = self._now_s()
        try:
            node, answer = await self._sent(CONVERSATIONS, {})
        except ConnectionError as error:
            self._dropped(str(error), begun_s)
            return ""
        if answer.status == 200:
            return str(answer.said["id"])
        self._refused(node, answer, begun_s)
        return ""

    async def _turn(
        self, body: Mapping[str, Any], words: str, conversation: str
    ) -> Mapping[str, Any] | None:
        """Ask for one turn and note what came of it; return the response if it was acknowledged."""
        begun_s = self._now_s()
        try:
            node, answer = await self._sent(RESPONSES, body)
        except ConnectionError as error:
            self._dropped(str(error), begun_s)
            return None
        self.ledger.took_s.append(self._now_s() - begun_s)
        if answer.status != 200 or answer.said.get("status") not in _ENDED:
            if answer.status == 503 and answer.code == "store_unavailable":
                self.ledger.refused.append((conversation, words))
            self._refused(node, answer, begun_s)
            return None
        self.ledger.spooled += answer.spooled
        self.ledger.kept.append(Kept(answer.said, words, conversation, node))
        return answer.said

    def _refused(self, node: str, answer: Answer, begun_s: float) -> None:
        """Note an answer that is none; it is a failure where nothing excuses it."""
        now_s = self._now_s()
        if answer.code == "previous_response_not_found":
            self.ledger.denied += 1
            self.denials.append(f"{node}: {answer.said['error']['message']}")
            self._surprises.note("denied", node, self.denials[-1], begun_s)
            return
        if needs_store(answer) and self._excuses.cover(STORE, begun_s, now_s):
            return
        if (named := named_in(answer)) and self._excuses.cover(disk_of(named), begun_s, now_s):
            self.ledger.unsure += 1
            return
        if answer.status in (429, 503) and self._excuses.cover(CROWD, begun_s, now_s):
            return
        if self._excuses.cover(node, begun_s, now_s):
            self.ledger.lost += 1
            return
        self._wrong(node, f"{node}: {answer.status} {str(answer.said)[:300]}", begun_s)

    def _dropped(self, why: str, begun_s: float) -> None:
        """Note a request without an answer; `why` begins with the name of its node."""
        node = why.partition(":")[0]
        if self._excuses.cover(node, begun_s, self._now_s()):
            self.ledger.lost += 1
        else:
            self._wrong(node, f"{why} (after {self._now_s() - begun_s:.1f} s)", begun_s)

    def _wrong(self, node: str, what: str, begun_s: float) -> None:
        self._surprises.note("turn", node, what, begun_s)
        self.ledger.failed.append(what if len(self.ledger.failed) < _SHOWN else "")

    async def _sent(self, path: str, body: Mapping[str, Any]) -> tuple[str, Answer]:
        """Return who answered, and what. ConnectionError begins with the name of who took it and did not."""
        tried: list[str] = []
        answer: Answer | None = None
        while len(tried) < TRIES and (node := self._balancer.next(tried)) is not None:
            tried.append(node.name)
            attempt = self._balancer.attempt(node)
            try:
                answer = await ask(
                    *(self._lab, node, "POST", path, body),
                    timeout_s=_ANSWER_S,
                    connect=attempt.connect,
                )
            except ConnectionError as error:
                if attempt.reached:
                    raise ConnectionError(f"{node.name}: {error}") from error
                continue
            if answer.status != 503 or answer.code == "store_unavailable":
                break
        if answer is None:
            raise ConnectionError("nobody: no node takes a connection")
        return tried[-1], answer
