"""Nodes that ask before they run a tool: two services over one store, and how often the tool was run."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Event, Fail, RunEnd, RunStart
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import RunResult
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.reader import ResponsesReader
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.history.turns.response_run import ResponseRun
from smg_storage.store import HistoryStore
from support.answers.served_streams import owned
from support.history.history_world import (
    HistoryWorld,
    TickingClock,
    begin,
    block,
    broken,
    context,
    finish,
    history_world,
)
from support.http.http_node import FakeRun

CLOCK = {"type": "mcp", "server_label": "clock"}
ARGUMENTS = '{"to":1}'


def served_ask(**body: Any) -> ResponseRequest:
    options = ReaderOptions(tool_servers=True)
    asked = {"model": "m", "tools": [CLOCK], **body}
    return ResponsesReader(options).read(asked)


def answer_to(approval: str, *, approve: bool = True) -> list[dict[str, Any]]:
    kind = "mcp_approval_response"
    return [{"type": kind, "approval_request_id": approval, "approve": approve}]


class ApprovingNodes:
    """Services of several nodes; `ran` are the approvals whose calls were run, at any of them.

    `breaks` is where a run breaks: "" for nowhere, before its call begins, or after it. `silent`: what is run is told
    with the model's first word only.
    """

    def __init__(self, *stores: HistoryStore, now_us: int = 0) -> None:
        self.worlds = [
            history_world(self.script, store=store, seed=seed) for seed, store in enumerate(stores)
        ]
        if now_us:
            self.set_clocks(now_us // 1_000)
        self.ran: list[str] = []
        self.breaks = ""
        self.silent = False
        self.may_run = asyncio.Event()
        self.may_run.set()
        self.begun = asyncio.Event()

    async def script(self, run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        """Ask for approval, or run what was approved and say so."""
        serving = run.request.serving
        answered = () if serving is None else serving.answered
        if self.silent and answered:
            self.ran += [one.approval for one in answered]
            self.begun.set()
            await asyncio.Event().wait()
        yield [begin()]
        if self.breaks == "before":
            yield [Fail(broken())]
            return
        number = 0
        for one in answered:
            if not one.approve:
                continue
            owner = ToolOwner(one.server, one.tool, approval=one.approval)
            yield owned(owner, one.arguments, block=number)
            self.begun.set()
            yield [RunStart(0, number)]
            await self.may_run.wait()
            self.ran.append(one.approval)
            yield [RunEnd(0, number, RunResult("set"))]
            number += 1
        if self.breaks == "after":
            yield [Fail(broken())]
        elif answered or serving is None:
            yield [*block(number, "text", "Done."), *finish()]
        else:
            asks = ToolOwner("clock", "set", asks=True)
            yield [*owned(asks, ARGUMENTS), *finish("tool_calls")]

    def set_clocks(self, now_ms: int) -> None:
        """Turn the clocks of all nodes to this time."""
        for world in self.worlds:
            clock = world.desks.responses._parts.clock
            assert isinstance(clock, TickingClock)
            clock.ms = now_ms

    def now_ms(self) -> int:
        """Return the time at the first node."""
        return self.worlds[0].desks.responses._parts.clock.now_ms()

    async def create(self, node: int = 0, **body: Any) -> ResponseRun:
        """Return a response that has not begun."""
        world = self.worlds[node]
        return await world.desks.responses.create(served_ask(**body), context(), world.access)

    async def made(self, node: int = 0, **body: Any) -> ResponseRun:
        run = await self.create(node, **body)
        async for _ in run.told():
            pass
        return run

    async def asked(self, node: int = 0, **body: Any) -> tuple[str, dict[str, Any]]:
        """Return the id of a response that asks for approval, and the item that does so."""
        run = await self.made(node, **{"input": "set it", **body})
        [item] = [item.values() for item in run.teller.output()]
        assert item["type"] == "mcp_approval_request"
        return run.id, item

    async def answers(self, node: int, **body: Any) -> ResponseRun | SmgError:
        """Return the response that answers an approval, or the error that it gets instead."""
        try:
            return await self.made(node, **body)
        except SmgError as error:
            return error

    def world(self, node: int) -> HistoryWorld:
        return self.worlds[node]
