"""Runs of responses whose tools run here: adopted wherever their node died, followed, and cancelled in the middle of a call."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from smg_node.core.generation.events import Event, RunEnd, RunStart
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.events.served.served_events import INTERRUPTED
from support.answers.generations import text, whole
from support.answers.responses import checked
from support.answers.served_streams import RESULT, owned, run
from support.history.history_world import ask_of, begin, context, finish, history_world
from support.history.keyed_responses import running
from support.history.orphan_world import OrphanWorld
from support.http.http_node import FakeRun
from support.http.raw_http import until

STORY = whole(
    owned(),
    [RunStart(0, 0)],
    owned(block=1),
    run(1),
    [RunEnd(0, 0, RESULT)],
    text("So.", block=2),
)


async def test_a_run_of_a_dead_node_ends_truthfully_wherever_it_was_cut(tmp_path: Path) -> None:
    world = OrphanWorld(tmp_path)
    node = world.node("a")
    node.peers.since["b"] = 1
    seen: set[tuple[str, ...]] = set()
    for cut in range(22):
        row = await world.run_of("b/0", events=STORY, cut=cut, blobs=3)
        node.peers.since["b"] += 1
        await node.adopter.look()
        shown = await world.ended(row)
        calls = [item for item in shown["output"] if item["type"] == "mcp_call"]
        seen.add(tuple(call["status"] for call in calls))
        for call in calls:
            if call["status"] == "failed":
                assert call["error"]["message"] == INTERRUPTED
                assert json.loads(call["arguments"]) == {"zone": "UTC"}
    # The first runs while the second comes and goes; either may be the one that is cut.
    assert {(), ("incomplete",), ("failed",), ("failed", "incomplete"), ("failed", "failed"),
            ("failed", "completed"), ("completed", "completed")} <= seen  # fmt: skip


async def stuck(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    """Call a tool that does not come back."""
    yield [begin(), *owned(), RunStart(0, 0)]
    await asyncio.Event().wait()
    yield finish()


async def test_a_background_run_is_followed_and_cancelled_in_the_middle_of_a_call() -> None:
    world = history_world(stuck)
    responses = world.desks.responses
    async with running(world):
        made = await responses.register(
            ask_of(input="hi", background=True), context(), world.access
        )
        await until(lambda: "mcp_call" in made.made.body().decode())
        now: dict[str, Any] = json.loads(await responses.retrieve(world.access, made.id))
        assert [item["status"] for item in now["output"]] == ["in_progress"]
        await responses.cancel(world.access, made.id)
        await until(lambda: made.outcome == "cancelled")
        told: list[NumberedEvent] = []
        async for batch in await responses.follow(world.access, made.id, None):
            told += batch
        response = checked(told)
        assert (response.status, response.output[0].type) == ("cancelled", "mcp_call")
        shown = json.loads(await responses.retrieve(world.access, made.id))
        assert [item["status"] for item in shown["output"]] == ["incomplete"]
        assert json.loads(told[-1].data)["response"] == shown
