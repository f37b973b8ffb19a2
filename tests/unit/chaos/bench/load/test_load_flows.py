"""Flows against a small real server: the engine that speaks HTTP, and one that misbehaves."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from smg_chaos.bench.gateways.http_engine import Face, Said, Wheel, Words
from smg_chaos.bench.load.job import Flow, Job, Prompt, Tally
from smg_chaos.bench.load.load_flows import FlowRun, Samples
from smg_chaos.bench.load.requests import requests_of

PIECES = ("One", " two", " three", " four")
TEXT = "One two three"


def no_corpus() -> Any:
    raise AssertionError("short prompts need no documents")


@asynccontextmanager
async def server(step_s: float = 0.0) -> AsyncIterator[int]:
    loop = asyncio.get_running_loop()
    words, wheel = Words(Said(model="m", pieces=PIECES, step_s=step_s)), Wheel(loop, step_s)
    listener = await loop.create_server(lambda: Face(words, wheel), "127.0.0.1", 0)
    async with listener:
        yield listener.sockets[0].getsockname()[1]


FLOW = Flow(
    name="main",
    shape="closed",
    connections=4,
    tokens=3,
    stream=True,
    prompt=Prompt(kind="short"),
    text=TEXT,
)


async def driven(
    port: int, flow: Flow, enough: Callable[[Tally], bool], *, wait_s: float = 10.0
) -> Tally:
    """Run a flow, counting from the start, until it has brought enough."""
    job = Job(host="127.0.0.1", port=port, model="m", flows=(flow,))
    run = FlowRun(job, flow, requests_of(job, flow, no_corpus), seed=1)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for number in range(flow.connections):
            group.create_task(run.lane(number))
        if flow.shape == "open":
            group.create_task(run.arrivals())
        run.open()
        while not enough(run.tally()):  # noqa: ASYNC110  a flow tells nobody when it has enough
            await asyncio.sleep(0.01)
        run.close()
        await run.stop(wait_s)
    return run.tally()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_closed_loop_asks_again_and_again(*, stream: bool) -> None:
    flow = msgspec.structs.replace(FLOW, stream=stream)
    async with server() as port:
        tally = await driven(port, flow, lambda tally: tally.requests >= 50)
    assert (tally.errors, tally.problems) == (0, [])
    assert tally.tokens == 3 * tally.requests >= 150
    assert len(tally.latency) == tally.requests
    assert len(tally.ttft) == (tally.requests if stream else 0)
    assert all(0 < first <= 10 for first in tally.ttft)
    assert tally.prompt_tokens > tally.requests


async def test_a_closed_loop_may_have_an_end_and_counts_from_its_beginning() -> None:
    flow = msgspec.structs.replace(FLOW, most=30)
    job = Job(host="127.0.0.1", port=1, model="m", flows=(flow,))
    async with server() as port, asyncio.timeout(30), asyncio.TaskGroup() as group:
        job = msgspec.structs.replace(job, port=port)
        run = FlowRun(job, flow, requests_of(job, flow, no_corpus), seed=1)
        for number in range(flow.connections):
            group.create_task(run.lane(number))
        while run.tally().requests < 30:  # noqa: ASYNC110  a flow tells nobody when it has enough
            await asyncio.sleep(0.01)
        run.open()
        await asyncio.sleep(0.05)
        counted = run.close()
        assert (counted.requests, counted.tokens, counted.errors) == (30, 90, 0)
        await run.stop(10.0)
    assert run.tally().requests == 30


async def test_an_open_loop_comes_at_its_rate_and_waiting_counts() -> None:
    flow = msgspec.structs.replace(
        FLOW, shape="open", rate_per_s=400.0, connections=1, tokens=4, text="One two three four"
    )
    async with server(step_s=0.02) as port:
        tally = await driven(port, flow, lambda tally: tally.requests >= 6)
    assert tally.errors == 0
    # One connection answers in 60 ms; requests come every 2.5 ms and are timed from then on.
    assert tally.latency[-1] > 2 * tally.latency[0]


async def test_held_streams_are_asked_once_and_counted_while_they_last() -> None:
    flow = msgspec.structs.replace(FLOW, shape="held")
    async with server(step_s=0.05) as port:
        tally = await driven(port, flow, lambda tally: tally.requests == 4)
    assert (tally.requests, tally.errors, tally.tokens) == (4, 0, 12)
    assert len(tally.tpot) == 4
    assert 0.02 < tally.tpot[0] < 1


async def test_gaps_between_tokens_are_told_where_they_are_asked_for() -> None:
    asked = msgspec.structs.replace(FLOW, shape="held", gaps=True)
    async with server(step_s=0.05) as port:
        tally = await driven(port, asked, lambda tally: tally.requests == 4)
        silent = await driven(
            port, msgspec.structs.replace(asked, gaps=False), lambda tally: tally.requests == 4
        )
    assert 4 <= len(tally.gaps) <= 8, "three tokens a stream, and two may come at once"
    assert tally.gaps == sorted(tally.gaps)
    assert all(0 < gap <= tally.gap for gap in tally.gaps)
    assert silent.gaps == []


async def test_a_wrong_text_is_an_error_and_no_answer() -> None:
    flow = msgspec.structs.replace(FLOW, text="One two four")
    async with server() as port:
        tally = await driven(port, flow, lambda tally: tally.errors >= 5)
    assert tally.requests == 0
    assert len(tally.problems) == 3
    assert "One two three" in tally.problems[0]


async def test_a_status_is_an_error() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 503 Full\r\ncontent-length: 4\r\nconnection: close\r\n\r\nfull")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        tally = await driven(port, FLOW, lambda tally: tally.errors >= 9)
    assert tally.problems[0] == "status 503: b'full'"


async def test_connections_that_break_are_made_again() -> None:
    loop = asyncio.get_running_loop()
    words, wheel = Words(Said(model="m", pieces=PIECES)), Wheel(loop, 0.0)

    class Brittle(Face):
        """Closes behind its third answer."""

        answers = 0

        def write(self, content: bytes) -> None:
            super().write(content)
            self.answers += 1
            if self.answers == 3 and self._transport is not None:
                self._transport.close()

    async with await loop.create_server(lambda: Brittle(words, wheel), "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        tally = await driven(port, FLOW, lambda tally: tally.requests >= 40)
    assert tally.requests >= 40


async def test_a_flow_of_rare_requests_ends_as_fast_as_any_other() -> None:
    flow = msgspec.structs.replace(FLOW, shape="open", rate_per_s=0.001)
    async with server() as port, asyncio.timeout(5):
        tally = await driven(port, flow, lambda _: True)
    assert tally.errors == 0


async def test_nobody_there_is_an_error_and_the_flow_can_be_stopped() -> None:
    async with server() as port:
        pass
    tally = await driven(port, FLOW, lambda tally: tally.errors >= 4)
    assert "no connection" in tally.problems[0]


async def test_answers_that_never_end_are_an_error_when_the_time_is_over() -> None:
    ended = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await ended.wait()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        tally = await driven(port, FLOW, lambda _: True, wait_s=0.2)
        ended.set()
    assert tally.requests == 0


def test_of_too_many_samples_a_fair_choice_is_kept() -> None:
    import random

    samples = Samples(random.Random(1))
    for value in range(100_000):
        samples.add(float(value))
    assert len(samples.kept) == 20_000
    assert 45_000 < sum(samples.kept) / len(samples.kept) < 55_000
