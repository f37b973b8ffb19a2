"""Hundreds of clients at once in front of real servers that fail or are full: goodput, and what engines bear."""

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from support.http.chat_client import CHAT, JSON, becomes, chat, content_of, port_of
from support.http.raw_http import ask
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import SAYS, running_simulated

pytestmark = pytest.mark.integration

CLIENTS = 400
# Six workers serve one model, and every second of them fails each call; the others are alone with their model.
FAULTS = {
    1: "refuse:status=INTERNAL",
    3: "refuse:status=UNAVAILABLE",
    5: "refuse:status=INTERNAL",
    7: "refuse:status=INVALID_ARGUMENT",
    8: "refuse:status=RESOURCE_EXHAUSTED",
}
MODELS = ["half"] * 6 + ["objects", "full"]
CLOSED = 0


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    faults = [f"{fault},worker={number}" for number, fault in FAULTS.items()]
    scratch = tmp_path_factory.mktemp("engines")
    with running_simulated(scratch, workers=len(MODELS), faults=faults) as engine:
        yield [
            f"grpc://{address}?model={model}"
            for address, model in zip(engine.addresses, MODELS, strict=True)
        ]


@pytest.fixture(scope="module")
def node(urls: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    flags = ("--queue.default-places", str(CLIENTS), "--routing.wait-for-worker-s", "2")
    with running_node(tmp_path_factory.mktemp("node"), workers=urls, flags=flags) as running:
        yield running


async def storm(node: RunningNode, model: str, timeout_s: float = 60.0) -> Counter[str]:
    """Send all clients at once; return how they ended: "" for the whole text, else the code of the error."""
    headers = {**JSON, "x-smg-timeout-ms": str(int(timeout_s * 1000))}
    port = port_of(node.url)
    sent = [ask(port, "POST", CHAT, chat(model), headers) for _ in range(CLIENTS)]
    answers = await asyncio.gather(*sent)
    ends: Counter[str] = Counter()
    for answer in answers:
        if answer.status == 200:
            assert content_of(answer) == SAYS
            ends[""] += 1
        else:
            ends[answer.error()["code"]] += 1
    await becomes(lambda: node.metric("smg_node_worker_inflight") == 0, 30, "all calls ended")
    return ends


def breaker(node: RunningNode, url: str, name: str = "state") -> float:
    worker = url.partition("?")[0]
    return node.metric(f"smg_node_worker_breaker_{name}", worker=worker)


async def test_half_the_workers_fail_and_all_clients_are_answered(
    node: RunningNode, urls: list[str]
) -> None:
    ends = await storm(node, "half")
    # Whatever broke before a breaker could open is tried again, as far as the budget goes.
    assert ends[""] >= 0.9 * CLIENTS
    assert ends.keys() <= {"", "upstream_error", "upstream_unavailable"}
    retries = node.metric("smg_node_retries_total", model="half", outcome="made")
    assert 0 < retries <= 0.3 * CLIENTS
    opened = [breaker(node, url, "opened_total") for url in urls[:6]]
    assert [times > 0 for times in opened] == [True, False] * 3
    # While they are open nobody else meets them.
    assert await storm(node, "half") == {"": CLIENTS}
    again = node.metric("smg_node_retries_total", model="half", outcome="made") - retries
    assert again <= 0.05 * CLIENTS
    assert "Traceback" not in node.process.said()


async def test_what_clients_do_wrong_is_their_own_and_opens_nothing(
    node: RunningNode, urls: list[str]
) -> None:
    assert await storm(node, "objects") == {"invalid_value": CLIENTS}
    assert breaker(node, urls[6]) == CLOSED
    assert breaker(node, urls[6], "opened_total") == 0
    assert node.metric("smg_node_retries_total", model="objects") == 0


async def test_a_full_engine_is_left_alone_and_its_breaker_stays_closed(
    node: RunningNode, urls: list[str]
) -> None:
    assert await storm(node, "full", timeout_s=3.0) == {"overloaded": CLIENTS}
    assert breaker(node, urls[7]) == CLOSED
    assert breaker(node, urls[7], "opened_total") == 0
    calls = node.metric("smg_node_worker_pressure_total", worker=urls[7].partition("?")[0])
    # What it takes at once, and a few a second after that.
    assert 0 < calls <= 0.3 * CLIENTS
    waited = node.metric("smg_node_queue_requests_total", model="full")
    assert waited >= 0.7 * CLIENTS
    assert node.metric("smg_node_queue_waiting") == 0
