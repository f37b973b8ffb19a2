"""A node of several processes has one limit, one page of metrics, one account of usage, and knows all its requests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.http.chat_client import JSON, becomes, chat, port_of, say
from support.http.raw_http import ask
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

AMOUNT = 40
ALLOWED = AMOUNT // 2
"""In the window in which it was defined: another node may have spent the rest before it heard of this one."""
WAIT_S = 30.0
ANY = {"if-match": "*", **JSON}
TOLD = "x-ratelimit-limit-requests"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    flags = ("--itl-ms", "0", "--model", "sim")
    with running_simulated(tmp_path_factory.mktemp("engine"), *flags) as running:
        yield running


@pytest.fixture
def several(tmp_path: Path, engine: Simulated) -> Iterator[RunningNode]:
    workers, flags = [f"grpc://{engine.address}"], ("--processes", "2")
    with running_node(tmp_path, workers=workers, flags=flags) as node:
        yield node
        assert "Traceback" not in node.process.said()


async def test_whichever_process_is_asked_the_limit_is_one(several: RunningNode) -> None:
    port = port_of(several.url)
    limit = {"amounts": [{"unit": "requests", "amount": AMOUNT, "window": "day"}]}
    path = "/v1/cluster/limits/model=sim"
    assert (await ask(port, "PUT", path, limit, headers=ANY)).status in (200, 201)

    short = {**chat("sim"), "max_tokens": 2}
    answers = [await say(port, short)]
    while answers[-1].status != 200 or TOLD not in answers[-1].headers:
        assert len(answers) < 1_000, "it never has an owner"
        answers.append(await say(port, short))
    answers += [await say(port, short) for _ in range(2 * ALLOWED)]
    limited = [one for one in answers if TOLD in one.headers]
    let_in = [one for one in limited if one.status == 200]
    refused = [one for one in limited if one.status == 429]
    assert len(let_in) == ALLOWED, [one.status for one in answers]
    assert len(let_in) + len(refused) == len(limited)
    assert answers[-1].json()["error"]["code"] == "insufficient_quota"
    remaining = [int(one.headers["x-ratelimit-remaining-requests"]) for one in limited]
    assert max(remaining) < AMOUNT
    assert remaining[-1] == 0

    served = sum(one.status == 200 for one in answers)
    await becomes(lambda: admitted(several) == ALLOWED, WAIT_S, "all that was let in is counted")
    assert several.metric("smg_node_limit_requests_total", outcome="refused") == len(refused)
    await becomes(
        lambda: several.metric("smg_node_usage_requests_total", model="sim") == served,
        WAIT_S,
        "what the processes told the control process of their use is counted",
    )
    told = several.metric("smg_node_generations_total", model="sim", outcome="ok")
    assert told == served

    for one in let_in[:6]:
        request_id = one.headers["x-request-id"]
        found = await ask(port, "GET", f"/v1/cluster/explain/{request_id}")
        assert found.status == 200, found.body
        assert found.json()["journeys"]


def admitted(node: RunningNode) -> float:
    return node.metric("smg_node_limit_requests_total", outcome="admitted")
