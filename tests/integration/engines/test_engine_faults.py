"""Whatever an engine does, its clients hear the truth, and the node goes on with the others."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from smg_grpc_proto import vllm_engine_pb2 as words

from support.engines.engine_proxy import Meddle, forwarding
from support.engines.engine_server import EngineServer
from support.http.chat_client import (
    JSON,
    becomes,
    begin,
    chat,
    content_of,
    error_of,
    finishes_of,
    port_of,
    say,
    text_of,
)
from support.http.raw_http import Response, ask, connect
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import SAYS, Simulated, load_of, running_simulated

pytestmark = pytest.mark.integration

WAIT_S = 30.0
"""For what takes half a second on an idle machine."""
# One fault a worker; each is a model of its own at the node.
FAULTS = {
    "stalls": "stall:after=5",
    "hangs": "hang",
    "unreachable": "refuse:status=UNAVAILABLE",
    "full": "refuse:status=RESOURCE_EXHAUSTED",
    "objects": "refuse:status=INVALID_ARGUMENT",
    "breaks": "error:after=5,status=INTERNAL",
    "forgets": "no-complete",
    "babbles": "bad-ids:after=5",
    "repeats": "double-complete",
    "miscounts": "wrong-counts:by=7",
    "healthy": "kv-late:seconds=1",
}
H2_FAULTS = {"resets": "reset:after=5", "hangs-up": "close:after=5", "slams": "close:after=0"}
QUICK = (
    *("--workers.probe-interval-s", "0.1", "--workers.retry-s", "0.1"),
    *("--workers.down-after", "2", "--workers.up-after", "1"),
    *("--engine.stall-s", "1", "--engine.first-event-s", "1", "--routing.wait-for-worker-s", "0.2"),
)


def named(engine: Simulated, models: dict[str, str]) -> list[str]:
    return [
        f"grpc://{address}?model={model}"
        for address, model in zip(engine.addresses, models, strict=True)
    ]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The URLs of engines that each do one thing wrong, to every request."""
    with ExitStack() as stack:
        urls = []
        for server, models in (("grpc", FAULTS), ("h2", H2_FAULTS)):
            faults = [
                f"{fault}{',' if ':' in fault else ':'}worker={number}"
                for number, fault in enumerate(models.values(), 1)
            ]
            scratch = tmp_path_factory.mktemp(server)
            engine = stack.enter_context(
                running_simulated(
                    *(scratch, "--server", server), workers=len(models), faults=faults
                )
            )
            urls += named(engine, models)
        yield urls


@pytest.fixture(scope="module")
def node(faulty: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running_node(tmp_path_factory.mktemp("node"), workers=faulty, flags=QUICK) as running:
        yield running


@pytest.fixture
def port(node: RunningNode) -> int:
    return port_of(node.url)


@pytest.fixture(autouse=True)
async def all_well(node: RunningNode) -> AsyncIterator[None]:
    """After any of it the others are served, no call is left open, and nothing surprised the node."""
    yield
    assert content_of(await say(port_of(node.url), chat("healthy"))) == SAYS
    await becomes(lambda: node.metric("smg_node_worker_inflight") == 0, WAIT_S, "all calls ended")
    assert "Traceback" not in node.process.said()


def refused(answer: Response, status: int, code: str) -> Any:
    """Return the error of an answer that is one; nothing of the engine's own words is in it."""
    assert answer.status == status, answer.body
    error = answer.error()
    assert error["code"] == code
    assert error["message"]
    assert "127.0.0.1" not in error["message"]
    assert answer.headers["x-smg-error-code"] == code
    assert answer.headers["content-type"].startswith("application/json")
    return error


# What goes wrong after five tokens: model, status and code. Its worker is alone, so an answer goes on there, twice
# at most: of twelve tokens nothing is missing, of forty there are too many to get.
IN_STREAM = [
    ("stalls", 504, "upstream_stalled"),
    ("breaks", 502, "upstream_error"),
    ("babbles", 502, "upstream_error"),
    ("resets", 502, "upstream_error"),
    ("hangs-up", 502, "upstream_unavailable"),
]


@pytest.mark.parametrize("model", [*(row[0] for row in IN_STREAM), "forgets"])
async def test_an_answer_that_breaks_is_gone_on_with_and_nobody_notices(
    port: int, model: str
) -> None:
    body = chat("healthy", max_tokens=12)
    right = (await say(port, body)).json()
    answer = (await say(port, {**body, "model": model})).json()
    assert answer["choices"] == right["choices"]
    assert answer["usage"] == right["usage"]
    async with connect(port) as client:
        streamed = await (await begin(client, {**body, "model": model, "stream": True})).to_end()
    assert text_of(streamed) == right["choices"][0]["message"]["content"]
    assert finishes_of(streamed) == ["length"]
    assert streamed.done


@pytest.mark.parametrize(("model", "status", "code"), IN_STREAM)
async def test_a_stream_that_breaks_for_good_says_so_and_never_pretends_to_be_whole(
    port: int, model: str, status: int, code: str
) -> None:
    async with connect(port) as client:
        stream = await begin(client, chat(model, max_tokens=40))
        assert stream.status == 200
        streamed = await stream.to_end()
    error = error_of(streamed)
    assert error["code"] == code
    assert error["type"] == "server_error"
    assert "gone on elsewhere 2 times" in error["message"]
    text = text_of(streamed)
    assert text
    assert SAYS.startswith(text)


@pytest.mark.parametrize(("model", "status", "code"), IN_STREAM)
async def test_an_answer_that_breaks_for_good_is_an_error_and_not_half_an_answer(
    port: int, model: str, status: int, code: str
) -> None:
    refused(await say(port, chat(model, max_tokens=40)), status, code)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "unstreamed"])
@pytest.mark.parametrize(
    ("model", "status", "code"),
    [
        ("hangs", 504, "first_event_timeout"),
        ("unreachable", 502, "upstream_unavailable"),
        ("full", 503, "overloaded"),
        ("objects", 400, "invalid_value"),
        ("slams", 502, "upstream_unavailable"),
    ],
)
async def test_a_call_that_fails_at_once_has_its_own_status(
    port: int, model: str, status: int, code: str, streamed: bool
) -> None:
    answer = await say(port, chat(model, stream=streamed))
    refused(answer, status, code)
    if status == 503:
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.headers["x-should-retry"] == "true"


@pytest.mark.parametrize("model", ["repeats", "miscounts"])
async def test_an_engine_that_repeats_or_miscounts_itself_changes_nothing(
    port: int, model: str
) -> None:
    right = (await say(port, chat("healthy"))).json()
    answer = await say(port, chat(model))
    assert content_of(answer) == SAYS
    assert answer.json()["usage"] == right["usage"]
    async with connect(port) as client:
        streamed = await (await begin(client, chat(model))).to_end()
    assert text_of(streamed) == SAYS
    assert finishes_of(streamed) == ["stop"]
    assert streamed.done


async def test_many_faults_at_once_leave_the_healthy_streams_exact(port: int) -> None:
    async def healthy() -> str:
        async with connect(port) as client:
            streamed = await (await begin(client, chat("healthy"))).to_end()
        assert streamed.done
        return text_of(streamed)

    async with asyncio.TaskGroup() as group:
        for model in (*FAULTS, *H2_FAULTS) * 2:
            group.create_task(say(port, chat(model, stream=True)))
        good = [group.create_task(healthy()) for _ in range(8)]
    assert [task.result() for task in good] == [SAYS] * 8


# ── An engine that ends in a way nobody knows ────────────────────────────────


def unknown_finish(message: words.GenerateResponse) -> None:
    if message.HasField("chunk"):
        message.complete.finish_reason = "moonrise"


def too_many_answers(message: words.GenerateResponse) -> None:
    if message.HasField("chunk"):
        message.chunk.index = 7


def gives_up(message: words.GenerateResponse) -> None:
    if message.HasField("chunk"):
        message.complete.finish_reason = "abort"


def unknown_at_its_end(message: words.GenerateResponse) -> None:
    if message.HasField("complete"):
        message.complete.finish_reason = "moonrise"


@asynccontextmanager
async def meddled(port: int, faulty: list[str], meddle: Meddle) -> AsyncIterator[dict[str, Any]]:
    """Put something between the node and a healthy engine; yield what to ask it."""
    healthy = next(url for url in faulty if url.endswith("=healthy"))
    model = meddle.__name__
    async with EngineServer() as server:
        address = healthy.removeprefix("grpc://").partition("?")[0]
        async with await forwarding(server, address, meddle):
            worker = await added(port, f"grpc://{server.target}?model={model}")
            await worker_becomes(port, worker, status="ready")
            yield chat(model, max_tokens=12)
            await removed(port, worker)


@pytest.mark.parametrize("meddle", [unknown_finish, too_many_answers, gives_up])
async def test_an_answer_that_makes_no_sense_is_an_upstream_failure(
    port: int, faulty: list[str], meddle: Meddle
) -> None:
    async with meddled(port, faulty, meddle) as body:
        answer = await say(port, body)
        assert answer.status == 502, answer.body
        assert answer.error()["type"] == "server_error"
        streamed = await say(port, {**body, "stream": True})
        assert streamed.status == 502, streamed.body


async def test_an_answer_of_full_length_needs_no_word_from_its_engine(
    port: int, faulty: list[str]
) -> None:
    async with meddled(port, faulty, unknown_at_its_end) as body:
        right = (await say(port, {**body, "model": "healthy"})).json()
        answer = (await say(port, body)).json()
        assert answer["choices"] == right["choices"]
        assert answer["choices"][0]["finish_reason"] == "length"


# ── Engines that come and go ─────────────────────────────────────────────────


async def added(port: int, url: str) -> str:
    answer = await ask(port, "POST", "/workers", {"url": url}, JSON)
    assert answer.status == 202, answer.body
    worker = answer.json()["worker_id"]
    assert isinstance(worker, str)
    return worker


async def removed(port: int, worker: str) -> None:
    assert (await ask(port, "DELETE", f"/workers/{worker}?force=true")).status == 200


async def worker_becomes(port: int, worker: str, **wanted: str) -> None:
    """Wait until the node shows a worker with these values."""

    async def shown() -> bool:
        view = (await ask(port, "GET", f"/workers/{worker}")).json()
        return all(view[key] == value for key, value in wanted.items())

    async with asyncio.timeout(WAIT_S):
        while not await shown():  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.02)


async def test_an_engine_killed_in_the_middle_comes_back(port: int, tmp_path: Path) -> None:
    with running_simulated(tmp_path / "first", "--script", "endless") as engine:
        first_port = engine.port
        worker = await added(port, f"grpc://{engine.address}?model=mortal")
        await worker_becomes(port, worker, status="ready")
        async with connect(port) as client:
            stream = await begin(client, chat("mortal"))
            await stream.until_text()
            async with asyncio.TaskGroup() as group:
                waiting = group.create_task(say(port, chat("mortal")))
                with load_of(engine.address) as load:
                    await becomes(lambda: load() == 2, WAIT_S, "both calls are there")
                engine.process.signal(signal.SIGKILL)
                error = error_of(await stream.to_end())
            refused(waiting.result(), 502, "upstream_unavailable")
        assert error["code"] == "upstream_unavailable"
        # Until the probes have noticed it is our word that nobody can be reached, then there is none.
        late = await say(port, chat("mortal"))
        assert late.status in (502, 503), late.body
        await worker_becomes(port, worker, status="not_ready")
        later = await say(port, chat("mortal", stream=True))
        refused(later, 503, "no_worker_available")
        assert int(later.headers["retry-after"]) >= 1
        assert later.headers["x-should-retry"] == "true"
    with running_simulated(tmp_path / "second", port=first_port):
        await worker_becomes(port, worker, status="ready")
        assert content_of(await say(port, chat("mortal"))) == SAYS
    await removed(port, worker)


async def test_an_engine_that_starts_after_the_node_joins(port: int, tmp_path: Path) -> None:
    with running_simulated(tmp_path / "reserve") as engine:
        free_port = engine.port
    worker = await added(port, f"grpc://127.0.0.1:{free_port}?model=late")
    answer = await say(port, chat("late"))
    assert answer.status == 503
    assert answer.error()["code"] == "no_worker_available"
    slow_start = ["slow-start:seconds=0.5"]
    with running_simulated(tmp_path / "late", faults=slow_start, port=free_port):
        await worker_becomes(port, worker, status="ready")
        assert content_of(await say(port, chat("late"))) == SAYS
    await removed(port, worker)


@pytest.fixture(scope="module")
def trusting_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node that takes no notice of an engine that does not answer for a while."""
    flags = (*QUICK, "--workers.down-after", "1000")
    with running_node(tmp_path_factory.mktemp("trusting"), flags=flags) as running:
        yield running


async def comes_back_as_another(port: int, tmp_path: Path, *, contract: str) -> None:
    with running_simulated(tmp_path / "first", "--model", "old") as engine:
        own_port = engine.port
        worker = await added(port, f"grpc://{engine.address}")
        await worker_becomes(port, worker, status="ready", model="old")
        assert content_of(await say(port, chat("old"))) == SAYS
        engine.process.signal(signal.SIGKILL)
        engine.process.wait(10)
    another = ("--contract", contract, "--model", "new")
    with running_simulated(tmp_path / "second", *another, port=own_port) as engine:
        await worker_becomes(port, worker, status="ready", model="new")
        assert content_of(await say(port, chat("new"))) == SAYS
        old = await say(port, chat("old"))
        assert old.status == 404, old.body
        assert engine.tally()["requests"] == 1
    await removed(port, worker)


async def test_an_engine_that_comes_back_with_another_model_is_a_new_worker(
    trusting_node: RunningNode, tmp_path: Path
) -> None:
    """Also where the node hardly missed it: the old model's ids mean nothing to the new one."""
    await comes_back_as_another(port_of(trusting_node.url), tmp_path, contract="vllm")


async def test_another_kind_of_engine_may_come_back_at_the_same_address(
    port: int, tmp_path: Path
) -> None:
    await comes_back_as_another(port, tmp_path, contract="sglang")
