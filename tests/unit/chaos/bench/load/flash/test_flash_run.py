"""Flash crowds against a small real server that notes when requests begin and answers end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from smg_chaos.bench.gateways.http_engine import Face, Said, Wheel, Words
from smg_chaos.bench.load.flash.flash_run import FlashRun
from smg_chaos.bench.load.job import Flow, Job, Prompt, Tally
from smg_chaos.bench.load.requests import Numbered, Requests, requests_of

PIECES = ("One", " two", " three", " four")
FLOW = Flow(
    name="crowd",
    shape="flash",
    connections=7,
    tokens=3,
    stream=True,
    prompt=Prompt(kind="short"),
    text="One two three",
)


class Noted:
    """Requests that note how many connections were open when each was made."""

    def __init__(self, requests: Requests, opened: list[int]) -> None:
        self._requests = requests
        self._opened = opened
        self.at: list[int] = []

    def next(self, lane: int) -> bytes:
        self.at.append(len(self._opened))
        return self._requests.next(lane)


def no_corpus() -> None:
    raise AssertionError("short prompts need no documents")


@asynccontextmanager
async def server(opened: list[int], step_s: float = 0.0) -> AsyncIterator[int]:
    loop = asyncio.get_running_loop()
    words, wheel = Words(Said(model="m", pieces=PIECES, step_s=step_s)), Wheel(loop, step_s)

    class Counted(Face):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            opened.append(1)
            super().connection_made(transport)

    listener = await loop.create_server(lambda: Counted(words, wheel), "127.0.0.1", 0)
    async with listener:
        yield listener.sockets[0].getsockname()[1]


async def driven(
    flow: Flow, opened: list[int], *, crowds: int, port: int = 0
) -> tuple[Tally, Noted]:
    """Run a flow, counting from the start, until so many crowds have begun."""
    async with server(opened) as listening:
        job = Job(host="127.0.0.1", port=port or listening, model="m", flows=(flow,))
        requests = Noted(requests_of(job, flow, no_corpus), opened)  # type: ignore[arg-type]  # never called
        run = FlashRun(job, flow, requests, seed=1)
        run.open()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for work in run.work():
                group.create_task(work)
            while run.tally().crowds < crowds and not run.tally().errors:  # noqa: ASYNC110  a flow tells nobody
                await asyncio.sleep(0.01)
            run.close()
            await run.stop(30.0)
    return run.tally(), requests


async def test_strangers_all_ask_before_any_is_served_and_a_crowd_follows_the_end_of_the_last() -> (
    None
):
    opened: list[int] = []
    tally, requests = await driven(FLOW, opened, crowds=3)
    assert (tally.errors, tally.problems) == (0, [])
    assert (tally.crowds, tally.requests) == (3, 21)
    assert len(opened) == 21, "every request has a connection of its own"
    # The server runs in the same loop: had the first been served before the last asked, it would have been seen.
    assert requests.at == [0] * 7 + [7] * 7 + [14] * 7
    assert len(tally.ttft) == len(tally.asking) == 21
    assert all(first > 0 for first in tally.ttft)
    assert max(tally.asking) <= max(tally.ttft), (
        "times begin with the instant, not with the request"
    )


async def test_a_kept_crowd_is_connected_before_its_first_instant_and_stays_so() -> None:
    opened: list[int] = []
    kept = msgspec.structs.replace(FLOW, kept=True)
    tally, requests = await driven(kept, opened, crowds=3)
    assert (tally.errors, tally.problems) == (0, [])
    assert (tally.crowds, tally.requests) == (3, 21)
    assert len(opened) == 7
    assert requests.at == [7] * 21


async def test_what_began_inside_the_borders_counts_whenever_it_ends() -> None:
    async with server([], step_s=0.05) as port:
        job = Job(host="127.0.0.1", port=port, model="m", flows=(FLOW,))
        run = FlashRun(job, FLOW, requests_of(job, FLOW, no_corpus), seed=1)  # type: ignore[arg-type]  # never called
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for work in run.work():
                group.create_task(work)
            run.open()
            while not run.tally().crowds:  # noqa: ASYNC110  a flow tells nobody
                await asyncio.sleep(0.001)
            counted = msgspec.structs.replace(run.close())
            await run.stop(30.0)
        whole = run.tally()
    assert counted.requests < 7
    assert (whole.requests, whole.crowds, whole.errors) == (7, 1, 0)
    assert len(whole.ttft) == 7


async def test_a_crowd_that_finds_nobody_says_so_and_ends() -> None:
    opened: list[int] = []
    tally, _ = await driven(FLOW, opened, crowds=1, port=1)
    assert tally.errors >= 7
    assert tally.problems[0]
    assert tally.requests == 0


def test_crowds_are_asked_for_by_requests_that_are_all_new() -> None:
    job = Job(host="h", port=1, model="m", flows=(FLOW,))
    requests = requests_of(job, FLOW, no_corpus)  # type: ignore[arg-type]  # never called
    assert isinstance(requests, Numbered)
    assert len({requests.next(0) for _ in range(20)}) == 20
