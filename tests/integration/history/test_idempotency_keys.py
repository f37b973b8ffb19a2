"""Two nodes with one store: a request under a key is made once, whichever node is asked; and quotas change while they run."""

import http.client
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_simulated
from support.stores.redis_server import running_redis

pytestmark = pytest.mark.integration

PATH = "/v1/responses"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def code(self) -> str:
        return str(self.json()["error"]["code"])

    def last(self) -> Any:
        """Return the object that a stream ended with."""
        *_, last, done, _ = self.body.decode().split("\n\n")
        assert done == "data: [DONE]"
        return json.loads(last.partition("data: ")[2])["response"]


def ask(
    node: RunningNode, method: str, path: str, body: Any, headers: Mapping[str, str] | None = None
) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(node.url).netloc, timeout=30)
    try:
        packed = json.dumps(body).encode()
        sent = {"content-type": "application/json", **(headers or {})}
        connection.request(method, path, packed, sent)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found, answer.read())
    finally:
        connection.close()


def post(node: RunningNode, key: str, tokens: int = 24, **more: Any) -> Answer:
    body = {"model": "parrot", "input": "say it", "max_output_tokens": tokens, "ignore_eos": True}
    return ask(node, "POST", PATH, {**body, **more}, {"Idempotency-Key": key})


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    flags = ("--script", "echo", "--model", "parrot", "--itl-ms", "5", "--ttft-ms", "1")
    with running_simulated(tmp_path_factory.mktemp("engine"), *flags) as running:
        yield running


@pytest.fixture(scope="module")
def nodes(
    engine: Simulated, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RunningNode, RunningNode]]:
    folder = tmp_path_factory.mktemp("nodes")
    workers = [f"grpc://{engine.address}"]
    with running_redis(folder) as server:
        flags = ("--store", server.url, "--storage.owner", server.new_prefix())
        places: list[Path] = [folder / "a", folder / "b"]
        for place in places:
            place.mkdir()
        with (
            running_node(places[0], workers=workers, flags=(*flags, "--name", "a")) as first,
            running_node(places[1], workers=workers, flags=(*flags, "--name", "b")) as second,
        ):
            yield first, second


def test_the_other_node_answers_with_what_was_made(
    nodes: tuple[RunningNode, RunningNode],
) -> None:
    here, there = nodes
    first = post(here, "plain")
    again = [post(node, "plain") for node in (there, here)]
    assert first.status == 200
    assert [one.body for one in again] == [first.body] * 2
    assert [one.headers["idempotent-replayed"] for one in again] == ["true"] * 2
    assert "idempotent-replayed" not in first.headers
    streamed = post(here, "streamed", stream=True)
    replayed = post(there, "streamed", stream=True)
    assert replayed.headers["idempotent-replayed"] == "true"
    assert replayed.last() == streamed.last()
    for node in nodes:
        refused = post(node, "plain", tokens=25)
        assert (refused.status, refused.code()) == (409, "idempotency_conflict")


def test_of_many_who_ask_both_nodes_at_once_one_is_made(
    nodes: tuple[RunningNode, RunningNode],
) -> None:
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(post, nodes[at % 2], "many", 100) for at in range(8)]
        answers = [one.result() for one in asked]
    made = [one for one in answers if one.status == 200]
    assert len({one.json()["id"] for one in made}) == 1
    waiting = [one for one in answers if one.status != 200]
    assert {(one.status, one.code()) for one in waiting} <= {(409, "idempotency_in_progress")}
    assert sum("idempotent-replayed" not in one.headers for one in made) == 1


def test_a_background_response_is_one_whoever_is_asked_and_whenever(
    nodes: tuple[RunningNode, RunningNode],
) -> None:
    here, there = nodes
    first = post(here, "behind", background=True)
    again = post(there, "behind", background=True)
    assert (first.status, again.status) == (200, 200)
    assert again.json()["id"] == first.json()["id"]
    whole = post(there, "behind-streamed", background=True, stream=True)
    followed = post(here, "behind-streamed", background=True, stream=True)
    assert followed.last() == whole.last()
    assert whole.last()["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_quota_that_is_set_while_nodes_run_counts_from_then_on(
    nodes: tuple[RunningNode, RunningNode],
) -> None:
    here = nodes[0]
    kept = post(here, "before")
    assert kept.status == 200
    path = "/v1/cluster/settings/storage.quota.responses_max"
    shown = ask(here, "PUT", path, {"value": 1}, {"If-Match": "0"})
    assert shown.status == 200, shown.body
    refused = post(here, "after")
    assert (refused.status, refused.code()) == (429, "storage_quota")
    assert refused.headers["x-should-retry"] == "false"
    # What is not kept needs no room, and what was made is shown again.
    assert post(here, "quiet", store=False).status == 200
    assert post(here, "before").body == kept.body
    version = json.loads(shown.body)["version"]
    assert ask(here, "DELETE", path, {}, {"If-Match": str(version)}).status == 200
    assert post(here, "after").status == 200
