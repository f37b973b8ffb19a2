import asyncio
import os
import signal
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.bench.children import BenchError
from smg_chaos.bench.gateways.http_engine import Face, Said, Wheel, Words
from smg_chaos.bench.load.job import Flow, Job, Prompt, Reply, Tally
from smg_chaos.bench.load.remote_client import Clients, merged, share_of

FLOW = Flow(
    name="main",
    shape="open",
    connections=10,
    tokens=2,
    stream=True,
    prompt=Prompt(kind="short", first=10_000_000),
    rate_per_s=90.0,
)


def job(port: int = 1, *flows: Flow) -> Job:
    return Job(host="127.0.0.1", port=port, model="m", flows=flows or (FLOW,))


@given(st.integers(1, 16), st.integers(1, 64))
def test_the_shares_of_a_job_are_the_whole_job(count: int, connections: int) -> None:
    flow = Flow(
        name="x",
        shape="open",
        connections=connections,
        tokens=1,
        stream=False,
        prompt=Prompt(kind="short"),
        rate_per_s=50.0,
        most=103,
    )
    parts = [one for n in range(count) for one in share_of(job(1, flow), n, count).flows]
    assert sum(part.connections for part in parts) == connections
    assert sum(part.rate_per_s for part in parts) == pytest.approx(50.0)
    assert sum(part.most for part in parts) == 103
    assert len({part.prompt.first for part in parts}) == len(parts)


@given(st.integers(1, 5))
def test_a_flow_of_one_process_goes_there_whole_and_nowhere_else(count: int) -> None:
    flows = tuple(msgspec.structs.replace(FLOW, name=str(n), process=n) for n in range(3))
    parts = [share_of(job(1, *flows), number, count).flows for number in range(count)]
    assert sorted(one.name for part in parts for one in part) == ["0", "1", "2"]
    for number, part in enumerate(parts):
        assert all(int(one.name) % count == number for one in part)
        assert all(one == flows[int(one.name)] for one in part)


def test_tallies_of_several_clients_are_added() -> None:
    replies = [
        Reply(did="close", tallies={"a": Tally(requests=2, tokens=5, ttft=[0.1], problems=["x"])}),
        Reply(
            did="close",
            tallies={"a": Tally(requests=3, errors=1, ttft=[0.2], gaps=[0.3]), "b": Tally()},
        ),
    ]
    sums = merged(replies)
    assert (sums["a"].requests, sums["a"].tokens, sums["a"].errors) == (5, 5, 1)
    assert sums["a"].ttft == [0.1, 0.2]
    assert sums["a"].gaps == [0.3]
    assert sums["b"] == Tally()


async def test_client_processes_load_a_server_and_count(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    words, wheel = Words(Said(model="m", pieces=("Hi", " you"))), Wheel(loop, 0.0)
    clients = Clients()
    flow = Flow(
        name="main",
        shape="closed",
        connections=3,
        tokens=2,
        stream=True,
        prompt=Prompt(kind="short"),
        text="Hi you",
    )
    async with await loop.create_server(lambda: Face(words, wheel), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        try:
            await clients.start(2, tmp_path)
            for _ in range(2):  # one job after the other, in the same processes
                await clients.begin(job(port, flow))
                await clients.open()
                await asyncio.sleep(0.3)
                counted = (await clients.close())["main"]
                whole = (await clients.stop())["main"]
                assert counted.requests > 0
                assert counted.tokens == 2 * counted.requests
                assert whole.errors == 0, whole.problems
        finally:
            await clients.end()
    assert all(child.died() for child in clients.children)


async def test_a_client_that_is_gone_is_told_with_its_last_words(tmp_path: Path) -> None:
    clients = Clients()
    try:
        await clients.start(1, tmp_path)
        os.kill(clients.children[0].pid, signal.SIGKILL)
        with pytest.raises(BenchError, match=r"client is gone|client-0\.log"):
            await clients.begin(job())
    finally:
        await clients.end()
