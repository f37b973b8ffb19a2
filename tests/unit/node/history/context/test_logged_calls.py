"""Logged calls: a run begins when its call is in the log, and what an adopter would say is true at every turn."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import RunStart
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.events.orphan_ending import closing
from smg_node.dialects.responses.events.served.served_events import INTERRUPTED
from smg_node.dialects.responses.request.reader import ResponsesReader
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.history.context.logged_calls import LoggedCalls
from smg_node.history.runs.event_codec import unpacked
from smg_node.mcp.failures import Failure
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.tool_result import CallResult
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from smg_storage.records import EventBlob
from smg_storage.store_wrapper import Call, StoreWrapper
from support.history.history_world import context, history_world
from support.history.keyed_responses import running
from support.mcp.loop_world import Model, Servers, calls, loop, said, speech

T = TypeVar("T")
TOOLS = [{"type": "mcp", "server_label": "a", "require_approval": "never"}]


async def test_it_is_open_until_there_is_a_log() -> None:
    gate = LoggedCalls()
    assert not gate.waits
    assert await gate.passed(0)
    gate.close()
    assert not await gate.passed(0)


async def test_a_call_passes_when_it_was_heard_and_is_kept() -> None:
    gate, kept = LoggedCalls(), asyncio.Event()

    async def written() -> bool:
        await kept.wait()
        return True

    gate.wait_for(written)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        passing = [group.create_task(gate.passed(block)) for block in (0, 1)]
        kept.set()
        await asyncio.sleep(0)
        gate.heard([RunStart(0, 0)])
        assert await passing[0]
        assert not passing[1].done()
        gate.close()
    assert not passing[1].result()


def ask_of(**body: Any) -> ResponseRequest:
    """Return a request in the background, of a node that has servers of tools."""
    reader = ResponsesReader(ReaderOptions(tool_servers=True))
    return reader.read({"model": "m", "input": "hi", "background": True, **body})


class SlowStore(StoreWrapper):
    """A store in memory that takes some turns before it writes into a log, and some after."""

    def __init__(self, before: int, after: int) -> None:
        # At the beginning of time nothing that is kept is over.
        super().__init__(MemoryStore(Bounds(), lambda: 0))
        self._before, self._after = before, after
        self.appends = 0

    async def _through(self, call: Call, run: Callable[[], Awaitable[T]]) -> T:
        if call.operation != "append_events":
            return await run()
        self.appends += 1
        for _ in range(self._before):
            await asyncio.sleep(0)
        result = await run()
        for _ in range(self._after):
            await asyncio.sleep(0)
        return result


class Server:
    """A server that counts what it is sent, by arguments."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    async def __call__(
        self, tool: str, arguments: str, options: CallOptions
    ) -> CallResult | Failure:
        assert options.sending is not None
        options.sending()
        self.begun.append(arguments)
        for _ in range(5):
            await asyncio.sleep(0)
        return CallResult(({"type": "text", "text": "fine"},))


def truth(row: bytes, log: Sequence[EventBlob], begun: Sequence[str]) -> set[str]:
    """Check what would be said of all calls if the node died now; return the words of that."""
    told = [one for blob in log for one in unpacked(blob)]
    items: list[dict[str, Any]] = [json.loads(one.document) for one in closing(row, told).output]
    shown = {item["arguments"]: item for item in items if item["type"] == "mcp_call"}
    words = set[str]()
    for arguments in {*shown, *begun}:
        item = shown.get(arguments)
        if item is None or item["status"] == "incomplete":
            assert arguments not in begun, "what has begun is said to have"
            words.add("not sent")
        elif item["status"] == "completed":
            assert arguments in begun
            words.add("done")
        else:
            assert (item["status"], item["error"]["message"]) == ("failed", INTERRUPTED)
            words.add("may have run")
    return words


@settings(max_examples=20, deadline=None)
@given(before=st.integers(0, 8), after=st.integers(0, 8))
def test_what_an_adopter_would_say_is_true_at_every_turn(before: int, after: int) -> None:
    async def lived() -> set[str]:
        model = Model(
            speech(calls("read", '{"n":1}'), calls("read", '{"n":2}', block=1)),
            speech(calls("read", '{"n":3}')),
            speech(said("done")),
        )
        server, store = Server(), SlowStore(before, after)
        world = history_world(
            generations=loop(model, Servers({"a": ["read"]}, server)), store=store
        )
        words = set[str]()
        async with running(world):
            made = await world.desks.responses.register(
                ask_of(tools=TOOLS), context(), world.access
            )
            row = await store.inner.get_response(world.access, made.id)
            assert row is not None
            while not made.made.over:
                log = await store.inner.read_events(world.access, made.id, after=-1, limit=10_000)
                words |= truth(row.response, log, server.begun)
                await asyncio.sleep(0)
        assert made.outcome == "completed"
        assert sorted(server.begun) == ['{"n":1}', '{"n":2}', '{"n":3}']
        # Two runs at once have one write between them: one for each pass with calls, and one at the end.
        assert store.appends <= 4
        return words

    assert asyncio.run(lived()) >= {"may have run", "done"}


async def test_an_answer_without_tools_is_written_as_often_as_ever() -> None:
    store = SlowStore(0, 0)
    world = history_world(generations=loop(Model(speech(said("hello"))), None), store=store)
    async with running(world):
        made = await world.desks.responses.register(ask_of(), context(), world.access)
        assert made.made.calls is None
        await made.ended()
    assert store.appends == 1


async def test_what_cannot_be_kept_is_not_sent() -> None:
    class Refusing(SlowStore):
        async def _through(self, call: Call, run: Callable[[], Awaitable[T]]) -> T:
            if call.operation == "append_events":
                raise StoreError(StoreErrorKind.REJECTED, "not this one")
            return await run()

    server = Server()
    model = Model(speech(calls("read", '{"n":1}')), speech(said("done")))
    world = history_world(
        generations=loop(model, Servers({"a": ["read"]}, server)), store=Refusing(0, 0)
    )
    async with running(world):
        made = await world.desks.responses.register(ask_of(tools=TOOLS), context(), world.access)
        await made.ended()
    assert (made.outcome, server.begun) == ("failed", [])
