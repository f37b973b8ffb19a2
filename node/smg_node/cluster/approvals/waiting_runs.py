"""Waiting runs of one process: each waits for an operator's word until its time is over, and is answered once.

A run is known here while it waits; of those that were answered the ids are kept, so that a second operator learns that
somebody was faster. Nothing of it is stored: the answer that a client waits for ends with its process.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from smg_node.cluster.approvals.approval_messages import (
    NOTHING,
    SHOWN_CHARACTERS_MAX,
    Reply,
    listed,
    pack,
    read_question,
    shortened,
)
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.ids import IdSource
from smg_node.core.ports import Clock
from smg_node.core.request_context import RequestContext
from smg_node.http.ports.tool_approvals import WaitingRun
from smg_node.mcp.failures import plain_text
from smg_node.pipeline.tool_loop.ports import OperatorAnswer
from smg_node.telemetry.metrics.declared import mcp as declared
from smg_node.telemetry.metrics.meters import Meters

LOOK_S: Final = 0.5
"""So soon a run that waits finds that its node drains."""
ANSWERED_MAX: Final = 1_000
"""Ids of runs that were answered."""
_NAME_CHARACTERS_MAX: Final = 256
REASON_CHARACTERS_MAX: Final = 500

IN_TIME: Final = "nobody allowed it in time"
SHARE: Final = 4
"""A tenant may have one in so many of the runs that wait: none fills the list that operators read."""
TOO_MANY: Final = "too many runs wait for approval already"
DRAINED: Final = f"{IN_TIME}: the node stops taking work"
DENIED: Final = "an operator did not allow it"


class WaitingRuns:
    """Runs that wait in this process: `waiting_max` at most, a quarter of them of one tenant.

    `draining` says whether the node waits for nobody any more.
    """

    def __init__(
        self,
        node: str,
        ids: IdSource,
        clock: Clock,
        meters: Meters,
        draining: Callable[[], bool],
        *,
        waiting_max: int,
    ) -> None:
        self._node = node
        self._ids = ids
        self._clock = clock
        self._cells = meters.cells
        self._draining = draining
        self._waiting_max = waiting_max
        self._open: dict[str, tuple[WaitingRun, asyncio.Future[OperatorAnswer]]] = {}
        self._answered: dict[str, None] = {}
        meters.watch(declared.MCP_APPROVALS_WAITING, lambda: {(): len(self._open)})

    async def wait(
        self,
        owner: ToolOwner,
        arguments: str,
        context: RequestContext,
        *,
        model: str,
        until_s: float,
    ) -> OperatorAnswer:
        """See `Approvals`."""
        why = self._crowded(context.tenant)
        if why:
            return self._ended("refused", OperatorAnswer(approve=False, why=why, crowded=True))
        run = self._run(owner, arguments, context, model, until_s)
        answered: asyncio.Future[OperatorAnswer] = asyncio.get_running_loop().create_future()
        self._open[run.id] = (run, answered)
        try:
            return await self._heard(answered, until_s)
        except asyncio.CancelledError:
            self._count("cancelled")
            raise
        finally:
            self._open.pop(run.id, None)

    def _crowded(self, tenant: str) -> str:
        """Return why no further run may wait, "" if one may. Where there are no tenants, nobody has a share."""
        if len(self._open) >= self._waiting_max:
            return TOO_MANY
        if not tenant:
            return ""
        most = max(1, self._waiting_max // SHARE)
        theirs = sum(run.tenant == tenant for run, _ in self._open.values())
        if theirs < most:
            return ""
        return f"{TOO_MANY}, {theirs} of this tenant, and no tenant may have more than {most}"

    def reply(self, question: bytes) -> bytes:
        """Return what is answered here to a question, and take its word on a run that waits here."""
        asked = read_question(question)
        if asked is None:
            return b""
        if not asked.id:
            return pack(listed(run for run, _ in self._open.values()))
        if asked.id in self._answered:
            return pack(Reply(before=True))
        run, answered = self._open.get(asked.id, (None, None))
        if run is None or answered is None:
            return pack(NOTHING)
        shown = shortened(run, SHOWN_CHARACTERS_MAX)
        if asked.approve is None:
            return pack(Reply((shown,)))
        answered.set_result(_answer(asked.reason, approve=asked.approve))
        del self._open[asked.id]
        self._answered[asked.id] = None
        if len(self._answered) > ANSWERED_MAX:
            del self._answered[next(iter(self._answered))]
        return pack(Reply((shown,), done=True))

    async def _heard(
        self, answered: asyncio.Future[OperatorAnswer], until_s: float
    ) -> OperatorAnswer:
        """Return the answer, or that there is none."""
        while not answered.done():
            left_s = until_s - self._clock.monotonic_s()
            if left_s <= 0:
                return self._ended("timeout", OperatorAnswer(approve=False, why=IN_TIME))
            if self._draining():
                return self._ended("drained", OperatorAnswer(approve=False, why=DRAINED))
            await asyncio.wait((answered,), timeout=min(LOOK_S, left_s))
        answer = answered.result()
        return self._ended("approved" if answer.approve else "denied", answer)

    def _ended(self, word: str, answer: OperatorAnswer) -> OperatorAnswer:
        self._count(word)
        return answer

    def _count(self, word: str) -> None:
        self._cells.tally(declared.MCP_APPROVALS, word).value += 1

    def _run(
        self,
        owner: ToolOwner,
        arguments: str,
        context: RequestContext,
        model: str,
        until_s: float,
    ) -> WaitingRun:
        now_ms = self._clock.now_ms()
        left_s = max(0.0, until_s - self._clock.monotonic_s())
        most = _NAME_CHARACTERS_MAX
        return WaitingRun(
            id=self._ids.new("mcpa_"),
            node=self._node,
            tenant=context.tenant,
            key_id=context.key_id,
            server=owner.server[:most],
            tool=owner.tool[:most],
            arguments=arguments,
            cut=False,
            model=model[:most],
            request_id=context.request_id[:most],
            since_ms=now_ms,
            until_ms=now_ms + round(left_s * 1000),
        )


def _answer(reason: str, *, approve: bool) -> OperatorAnswer:
    if approve:
        return OperatorAnswer(approve=True)
    said = plain_text(reason, REASON_CHARACTERS_MAX)
    return OperatorAnswer(approve=False, why=f"{DENIED}: {said}" if said else DENIED)
