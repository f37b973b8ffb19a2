"""What a response in the background holds while it is made, and what becomes of it when its node leaves: a real node."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import openai
import pytest
from openai import OpenAI
from openai.types.responses import Response

from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

WAIT_S = 30.0
STEP_S = 0.02
LIMIT = "/v1/cluster/limits/model=told"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    flags = ("--script", "endless", "--model", "told", "--itl-ms", "5", "--context", "100000")
    with running_simulated(
        tmp_path_factory.mktemp("engine"), *flags, "--blocks", "16000"
    ) as running:
        yield running


@contextmanager
def node_of(folder: Path, engine: Simulated, *flags: str) -> Iterator[RunningNode]:
    workers = [f"grpc://{address}" for address in engine.addresses]
    with running_node(folder, workers=workers, flags=("--name", "one", *flags)) as node:
        yield node
        assert "Traceback" not in node.process.said()


def client_of(node: RunningNode) -> OpenAI:
    return OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60)


def background(client: OpenAI, tokens: int) -> Response:
    return client.responses.create(
        model="told", input="Hi", background=True, max_output_tokens=tokens
    )


def until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline_s, "it never came to that"
        time.sleep(STEP_S)


def over(client: OpenAI, made: Response) -> Response:
    until(lambda: client.responses.retrieve(made.id).status not in ("queued", "in_progress"))
    return client.responses.retrieve(made.id)


def put_limit(node: RunningNode, **rule: Any) -> None:
    headers = {"If-Match": "*", "content-type": "application/json"}
    request = Request(f"{node.url}{LIMIT}", json.dumps(rule).encode(), headers, method="PUT")
    with urlopen(request, timeout=10) as answer:
        assert answer.status in (200, 201)


def is_let_in(client: OpenAI) -> bool:
    try:
        client.responses.create(model="told", input="Hi", store=False, max_output_tokens=1)
    except openai.RateLimitError:
        return False
    return True


def test_it_holds_its_place_until_it_is_over_and_not_until_it_was_answered(
    tmp_path: Path, engine: Simulated
) -> None:
    with node_of(tmp_path, engine) as node, client_of(node) as client:
        put_limit(node, concurrency=1)
        until(lambda: is_let_in(client))
        first = background(client, 100_000 - 1_000)
        assert not is_let_in(client)
        # Who is not let in is told so at once, and nothing of him is written down.
        with pytest.raises(openai.RateLimitError):
            background(client, 10)
        assert node.metric("smg_node_registered_runs") == 1
        client.responses.cancel(first.id)
        assert over(client, first).status == "cancelled"
        until(lambda: is_let_in(client))
        second = background(client, 10)
        shown = over(client, second)
        assert (shown.status, shown.usage is not None) == ("incomplete", True)
        until(lambda: is_let_in(client))
        assert node.metric("smg_node_registered_runs") == 0
        assert node.metric("smg_node_registered_runs_begun_total", kind="background") == 2
        for outcome in ("cancelled", "incomplete"):
            assert node.metric("smg_node_registered_runs_ended_total", outcome=outcome) == 1
        with pytest.raises(openai.NotFoundError):
            client.responses.create(model="nobody", input="Hi", background=True)


def test_a_node_that_leaves_waits_for_it(tmp_path: Path, engine: Simulated) -> None:
    with node_of(tmp_path, engine) as node, client_of(node) as client:
        made = background(client, 200)
        node.process.signal(signal.SIGTERM)
        assert node.process.wait(WAIT_S) == 0
    with node_of(tmp_path, engine) as node, client_of(node) as client:
        shown = client.responses.retrieve(made.id)
        assert shown.status == "incomplete"
        assert shown.incomplete_details is not None
        assert shown.incomplete_details.reason == "max_output_tokens"


def test_a_node_that_cannot_wait_any_longer_ends_it_and_says_why(
    tmp_path: Path, engine: Simulated
) -> None:
    with node_of(tmp_path, engine, "--drain.grace-s", "0.3") as node, client_of(node) as client:
        made = background(client, 90_000)
        until(lambda: bool(client.responses.retrieve(made.id).output))
        node.process.signal(signal.SIGTERM)
        assert node.process.wait(WAIT_S) == 0
    with node_of(tmp_path, engine) as node, client_of(node) as client:
        shown = client.responses.retrieve(made.id)
        assert shown.status == "failed"
        assert shown.error is not None
        assert shown.error.code == "server_error"
        assert "shut down" in shown.error.message
        assert shown.output_text
