"""Crashes: whenever a node dies, whoever finds its journal of runs sends nothing more often than may be."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import RunResult
from smg_node.mcp.failures import Failure, lost
from smg_node.mcp.run_record import RunState, recovery
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.loop_world import Model, Servers, calls, heard, request, said, serving, speech

Replay = Literal["never", "always"]


class Disk:
    """A journal on a disk that takes a few turns for each writing."""

    def __init__(self, turns: int) -> None:
        self.states: dict[str, RunState] = {}
        self.sends: Counter[str] = Counter()
        self._turns = turns

    async def meant(self, key: str, owner: ToolOwner, arguments: str) -> None:
        await self._written()
        self.states[key] = "meant"

    def sent(self, key: str) -> None:
        self.states[key] = "sent"
        self.sends[key] += 1

    async def done(self, key: str, result: RunResult) -> None:
        await self._written()
        self.states[key] = "done"

    async def _written(self) -> None:
        for _ in range(self._turns):
            await asyncio.sleep(0)


class Server:
    """A server that counts what it is sent, by key; some of its answers are lost on the way."""

    def __init__(self, loses: Sequence[bool]) -> None:
        self.begun: Counter[str] = Counter()
        self._loses = iter(loses)

    async def __call__(
        self, tool: str, arguments: str, options: CallOptions
    ) -> CallResult | Failure:
        assert options.sending is not None
        await asyncio.sleep(0)
        options.sending()
        self.begun[options.key] += 1
        for _ in range(3):
            await asyncio.sleep(0)
        if next(self._loses, False):
            return lost("reset", sent=True)
        return CallResult(({"type": "text", "text": "fine"},))


def found(disk: Disk, server: Server, replay: Replay) -> Counter[str]:
    """Return how often each call has run when whoever finds the journal now has done what it says."""
    begun = Counter(server.begun)
    for key, state in disk.states.items():
        todo = recovery(state, repeats=replay == "always", sends=disk.sends[key])
        if todo in ("run", "repeat"):
            begun[key] += 1
        if todo == "run":
            assert server.begun[key] == 0, "what is begun once more has never begun"
        if todo == "show":
            assert server.begun[key] >= 1
    return begun


@pytest.mark.parametrize("replay", ["never", "always"])
@given(loses=st.lists(st.booleans(), max_size=6), turns=st.integers(0, 3))
def test_a_crash_at_any_turn_has_nothing_run_more_often_than_may_be(
    replay: Replay, loses: list[bool], turns: int
) -> None:
    async def lived() -> None:
        model = Model(
            speech(calls("read", '{"n":1}'), calls("read", '{"n":2}', block=1)),
            speech(calls("write")),
            speech(said("done")),
        )
        disk, server = Disk(turns), Server(loses)
        servers = Servers({"a": ["read", "write"]}, server, specs={"a": {"replay": replay}})
        most = 2 if replay == "always" else 1
        async with asyncio.TaskGroup() as group:
            life = heard(model, servers, request(serving("a")), journal=disk)
            living = group.create_task(life)
            while not living.done():
                # Each turn is one at which everything may be dropped.
                assert max(found(disk, server, replay).values(), default=0) <= most
                await asyncio.sleep(0)
        assert len(server.begun) == 3
        assert set(disk.states.values()) == {"done"}

    asyncio.run(lived())
