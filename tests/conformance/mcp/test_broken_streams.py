"""Streams of a real server that break in the middle of a call: the rest is asked for, and nothing runs twice."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from smg_node.mcp.session.call_extras import CallExtras
from smg_node.mcp.tools.content import text_of
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.faulty_server import pooled, until
from support.mcp.real_servers import at, everything_server
from support.mcp.replicas import connection_switch

pytestmark = pytest.mark.conformance
LONG = "trigger-long-running-operation"
STEPS = 6


@pytest.mark.parametrize("cuts", [1, 3])
async def test_a_call_whose_connections_break_is_answered_with_all_of_its_progress(
    tmp_path: Path, cuts: int
) -> None:
    notes: list[float | None] = []
    extras = CallExtras(noted=lambda _message, done, _total: notes.append(done))
    with everything_server("streamableHttp", tmp_path) as url:
        port = urlsplit(url).port
        assert port is not None
        async with connection_switch(port) as switch, pooled() as pool:
            target = at(switch.url, "2025-11-25")
            arguments = f'{{"duration": {STEPS}, "steps": {STEPS}}}'
            async with asyncio.TaskGroup() as group:
                call = group.create_task(pool.call(target, LONG, arguments, extras=extras))
                for cut in range(cuts):
                    await until(lambda told=cut + 1: len(notes) >= told)  # type: ignore[misc]  # bound now
                    switch.cut()
            outcome = call.result()
    assert isinstance(outcome, CallResult), outcome
    assert "completed" in text_of(outcome, bytes_max=1000)
    assert notes == [float(step) for step in range(1, STEPS + 1)]
    assert switch.turn > cuts
