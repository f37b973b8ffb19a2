"""Half of many streams that share two engine connections vanish at random: nobody else notices, no slot stays taken."""

import asyncio
import random
from pathlib import Path

import pytest

from support.http.chat_client import becomes, begin, chat, port_of, text_of
from support.http.raw_http import connect
from support.processes.node import running_node
from support.processes.simulated_engines import SAYS, load_of, running_simulated

pytestmark = pytest.mark.integration

STREAMS = 400
VANISHING = 200
TOKENS = 60
FREE_S = 1.0
"""A slot is free within a second."""
WAIT_S = 60.0
"""For everything else; nothing here measures time by it."""


async def test_200_of_400_streams_of_two_connections_vanish_and_no_other_is_harmed(
    tmp_path: Path,
) -> None:
    rng = random.Random(20261122)
    vanishing = set(rng.sample(range(STREAMS), VANISHING))
    moments_s = [rng.uniform(0, 0.8) for _ in range(STREAMS)]
    flags = ("--script", "endless", "--itl-ms", "20", "--slots", "512")
    room = ("--context", "100000", "--blocks", "64000", "--no-cache")
    asked = {**chat("endless"), "max_tokens": TOKENS}

    async def one(port: int, number: int) -> str | None:
        async with connect(port) as client:
            stream = await begin(client, asked)
            assert stream.status == 200
            if number in vanishing:
                await stream.until_text()
                await asyncio.sleep(moments_s[number])
                client.vanish()
                return None
            streamed = await stream.to_end()
            assert streamed.done
            return text_of(streamed)

    (tmp_path / "engines").mkdir()
    (tmp_path / "node").mkdir()
    with (
        running_simulated(tmp_path / "engines", *flags, *room, workers=2) as engines,
        running_node(
            tmp_path / "node",
            workers=[f"grpc://{one}?model=endless" for one in engines.addresses],
        ) as node,
        load_of(engines.addresses[0]) as load_a,
        load_of(engines.addresses[1]) as load_b,
    ):
        port = port_of(node.url)
        async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
            clients = [group.create_task(one(port, number)) for number in range(STREAMS)]
        await becomes(lambda: load_a() + load_b() == 0, FREE_S, "both engines are idle")
        await becomes(
            lambda: node.metric("smg_node_worker_inflight") == 0, FREE_S, "every slot is free"
        )
        said = {task.result() for task in clients} - {None}
        assert len(said) == 1, "all who stayed were told the same"
        (text,) = said
        assert text is not None
        assert len(text) > len(SAYS)
        assert ((SAYS + " ") * TOKENS).startswith(text.rstrip("\ufffd"))
        assert "Traceback" not in node.process.said()
