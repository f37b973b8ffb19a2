"""A node of several processes: what is lost when one of them dies, and that they behave as one."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from support.http.chat_client import (
    CHAT,
    JSON,
    Stream,
    becomes,
    begin,
    chat,
    content_of,
    port_of,
    say,
    text_of,
)
from support.http.raw_http import Response, ask, connect
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import SAYS, Simulated, running_simulated

pytestmark = pytest.mark.integration

WAIT_S = 30.0
SETTING = "/v1/cluster/settings/http.expose_routing_headers"
READ = re.compile(r"model sim: (\d+) token ids")
LINKED = re.compile(r"data process (\d+-(\d+)) is linked")
# Some seconds of streaming: long enough for a death in the middle, also when busy.
LONG = {**chat("sim"), "max_tokens": 150}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    flags = ("--script", "endless", "--itl-ms", "20", "--model", "sim")
    with running_simulated(tmp_path_factory.mktemp("engine"), *flags) as running:
        yield running


@pytest.fixture
def several(tmp_path: Path, engine: Simulated) -> Iterator[RunningNode]:
    flags = ("--processes", "2")
    with running_node(tmp_path, workers=[f"grpc://{engine.address}"], flags=flags) as node:
        yield node
        assert "Traceback" not in node.process.said()


@pytest.fixture
async def clients() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


def data_pids(node: RunningNode) -> list[int]:
    """Return the data processes that ever were, in the order of their coming."""
    return list(dict.fromkeys(int(found[2]) for found in LINKED.finditer(node.process.said())))


def control_pid(node: RunningNode, *others: int) -> int:
    """Return the child of the nursery that is none of the data processes."""
    children = Path(f"/proc/{node.process.pid}/task/{node.process.pid}/children").read_text()
    [control] = {int(pid) for pid in children.split()} - set(others)
    return control


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def serves_everywhere(node: RunningNode) -> None:
    """Wait until whichever process answers can answer."""
    ready = 0

    def both() -> bool:
        nonlocal ready
        ready = ready + 1 if node.status("/readiness") == 200 else 0
        return ready >= 12

    await becomes(both, WAIT_S, "ready in all processes")


async def streams(clients: AsyncExitStack, node: RunningNode, count: int) -> list[Stream]:
    begun = []
    for _ in range(count):
        client = await clients.enter_async_context(connect(port_of(node.url)))
        begun.append(await begin(client, LONG))
    for stream in begun:
        await stream.until_text()
    return begun


async def survivors(begun: list[Stream]) -> int:
    """Read all streams to their ends, and return how many had one."""

    async def whole(stream: Stream) -> bool:
        try:
            return SAYS.strip() in text_of(await stream.to_end())
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            return False

    return sum(await asyncio.gather(*(whole(stream) for stream in begun)))


async def test_processes_are_one_node(several: RunningNode) -> None:
    await serves_everywhere(several)
    port = port_of(several.url)
    await its_tokenizer_is_read_when_needed(several, port)
    for _ in range(8):
        assert SAYS[:4] in content_of(await say(port, {**chat("sim"), "max_tokens": 8}))
    await becomes(lambda: _served(several) == 8, WAIT_S, "counted in all processes")

    for route in ("/version", "/openapi.json", "/liveness", "/readiness", "/health"):
        assert (await ask(port, "GET", route)).status == 200, route
    told = await ask(port, "PUT", SETTING, {"value": False}, {"if-match": "*", **JSON})
    assert told.status == 200, told.body
    await everywhere(port, {}, lambda answer: "x-smg-node" not in answer.headers)
    made = await ask(port, "POST", "/v1/cluster/keys", {"name": "a", "role": "admin"}, JSON)
    assert made.status == 201, made.body
    key = {"authorization": f"Bearer {made.json()['key']}"}
    await everywhere(port, {}, lambda answer: answer.status == 401)
    await everywhere(port, key, lambda answer: answer.status == 200)


async def test_operators_see_what_all_processes_have_open(
    several: RunningNode, clients: AsyncExitStack
) -> None:
    await serves_everywhere(several)
    port = port_of(several.url)

    async def shown() -> tuple[int, int, int]:
        [worker] = (await ask(port, "GET", "/workers")).json()["workers"]
        [rank] = (await ask(port, "GET", "/get_loads")).json()["loads"]
        one = (await ask(port, "GET", f"/workers/{worker['id']}")).json()
        return worker["inflight"], one["inflight"], rank["inflight"]

    async def comes_to(count: int) -> None:
        async with asyncio.timeout(WAIT_S):
            while await shown() != (count, count, count):  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.05)

    assert await shown() == (0, 0, 0)
    # Without an end of their own, so that all are open when it is looked; each goes to either process.
    begun = []
    for _ in range(6):
        client = await clients.enter_async_context(connect(port_of(several.url)))
        begun.append(await begin(client, chat("sim")))
    for stream in begun:
        await stream.until_text()
    await comes_to(6)
    await clients.aclose()
    await comes_to(0)


async def its_tokenizer_is_read_when_needed(node: RunningNode, port: int) -> None:
    """What only the control process answers is what makes it read a tokenizer; it knows of it by then."""

    def reads() -> int:
        return len(READ.findall(node.process.said()))

    await becomes(lambda: reads() == 2, WAIT_S, "read by both data processes")
    [worker] = (await ask(port, "GET", "/workers")).json()["workers"]
    sizes = {int(size) for size in READ.findall(node.process.said())}
    assert sizes == {worker["details"]["vocabulary"]}
    body = {"model": "sim", "input": "hi", "max_output_tokens": 4}
    answers = [ask(port, "POST", "/v1/responses", body, JSON) for _ in range(3)]
    assert [answer.status for answer in await asyncio.gather(*answers)] == [200] * 3
    await becomes(lambda: reads() == 3, WAIT_S, "read by the control process too")


def _served(node: RunningNode) -> float:
    return node.metric("smg_node_http_requests_total", route="/v1/chat/completions")


async def everywhere(port: int, headers: Mapping[str, str], so: Callable[[Response], bool]) -> None:
    """Wait until a dozen chats in a row are answered so: then both processes do."""
    body = {**chat("sim"), "max_tokens": 1}
    in_a_row = 0
    for _ in range(300):
        answer = await ask(port, "POST", CHAT, body, {**JSON, **headers})
        in_a_row = in_a_row + 1 if so(answer) else 0
        if in_a_row == 12:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not in all processes")


async def test_a_data_process_that_dies_takes_its_own_streams_and_no_others(
    several: RunningNode, clients: AsyncExitStack, tmp_path: Path
) -> None:
    await serves_everywhere(several)
    begun = await streams(clients, several, 12)
    before = data_pids(several)
    os.kill(before[0], signal.SIGKILL)
    left = await survivors(begun)
    assert 0 < left < 12, "the kernel gives both some of a dozen connections"
    await becomes(lambda: len(data_pids(several)) == 3, WAIT_S, "another one in its place")
    await serves_everywhere(several)
    assert re.search(rf"data process \d-{before[0]} is gone", several.process.said())
    assert several.metric("smg_node_processes_lost_total") == 1
    assert several.metric("smg_node_processes_linked") == 2
    proofs = list((tmp_path / "data" / "proofs").iterdir())
    assert len(proofs) == 1, "what one of them found out about the tokenizer, for all that follow"


async def test_a_control_process_that_dies_takes_nothing_with_it(
    several: RunningNode, clients: AsyncExitStack
) -> None:
    await serves_everywhere(several)
    begun = await streams(clients, several, 8)
    port, data = port_of(several.url), data_pids(several)
    control = control_pid(several, *data)
    os.kill(control, signal.SIGKILL)
    for _ in range(4):
        answer = await say(port, {**chat("sim"), "max_tokens": 4})
        assert answer.status == 200, "new work goes on"
        assert (await ask(port, "GET", "/workers")).status in (200, 503)
    assert await survivors(begun) == 8
    found = "takes the place of one that ended: signal 9"
    await becomes(lambda: found in several.process.said(), WAIT_S, "another one in its place")
    await becomes(lambda: several.status("/workers") == 200, WAIT_S, "operators are answered again")
    assert data_pids(several) == data, "nobody else was replaced"
    assert control_pid(several, *data) != control


async def test_a_signal_ends_all_processes_after_their_last_answers(
    several: RunningNode, clients: AsyncExitStack
) -> None:
    await serves_everywhere(several)
    begun = await streams(clients, several, 6)
    pids = data_pids(several)
    several.process.signal(signal.SIGTERM)
    assert await survivors(begun) == 6
    assert several.process.wait(WAIT_S) == 0
    assert not [pid for pid in pids if lives(pid)]
