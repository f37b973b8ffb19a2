"""A real node whose PostgreSQL is killed: nothing that was acknowledged is lost, and what needs no history goes on."""

import json
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_simulated
from support.stores.postgres_server import Postgres, running_postgres

pytestmark = pytest.mark.integration

WAIT_S = 60.0


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    flags = ("--script", "echo", "--model", "parrot", "--itl-ms", "0.2", "--ttft-ms", "1")
    with running_simulated(tmp_path_factory.mktemp("engine"), *flags) as running:
        yield running


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with running_postgres(tmp_path_factory.mktemp("postgres"), own=True) as server:
        yield server


def flags_of(postgres: Postgres, *more: str) -> tuple[str, ...]:
    return ("--name", "n1", "--store", postgres.url, "--storage.auto-migrate", "on", *more)


def call(
    node: RunningNode, path: str, body: Mapping[str, Any] | None = None
) -> tuple[int, dict[str, Any], Mapping[str, str]]:
    """Return status, answer and headers, these as the node spells them."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(node.url + path, content, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read()), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read()), dict(error.headers)


def responses(node: RunningNode, **more: Any) -> tuple[int, dict[str, Any], Mapping[str, str]]:
    asked = {"model": "parrot", "input": "hello", "max_output_tokens": 5, **more}
    return call(node, "/v1/responses", asked)


def spooled(node: RunningNode) -> float:
    return node.metric("smg_node_store_spool_turns")


def test_a_store_that_dies_and_comes_back_has_every_turn(
    engine: Simulated, postgres: Postgres, tmp_path: Path
) -> None:
    workers = [f"grpc://{engine.address}"]
    with running_node(tmp_path, workers=workers, flags=flags_of(postgres)) as node:
        status, first, headers = responses(node)
        assert status == 200
        assert "x-smg-store" not in headers

        postgres.server.kill9()
        status, second, headers = responses(node, input="again")
        assert (status, headers["x-smg-store"]) == (200, "spooled")
        assert second["output"]
        # What needs history is refused, what needs none goes on, and nobody hears that there is nothing.
        status, refusal, _ = responses(node, previous_response_id=first["id"])
        assert (status, refusal["error"]["code"]) == (503, "store_unavailable")
        status, refusal, _ = call(node, f"/v1/responses/{second['id']}")
        assert (status, refusal["error"]["code"]) == (503, "store_unavailable")
        assert responses(node, store=False)[0] == 200
        status, ready, _ = call(node, "/readiness")
        assert status == 200
        assert any("spooled: 1 turns" in told for told in ready["degraded"])

        # The node dies too, and the store comes back after it.
        node.process.signal(signal.SIGKILL)
        node.process.wait(WAIT_S)
    with running_node(tmp_path, workers=workers, flags=flags_of(postgres)) as node:
        status, third, headers = responses(node, input="and again")
        assert (status, headers["x-smg-store"]) == (200, "spooled")
        assert spooled(node) == 2
        postgres.server.start()
        node.process.wait_until(lambda: spooled(node) == 0, "done with its spool", WAIT_S)
        for one in (first, second, third):
            status, found, _ = call(node, f"/v1/responses/{one['id']}")
            assert (status, found) == (200, one)
        status, fourth, headers = responses(node, previous_response_id=second["id"])
        assert status == 200
        assert "x-smg-store" not in headers
        assert fourth["previous_response_id"] == second["id"]
        assert call(node, "/readiness")[1].get("degraded") is None
    assert [one.name for one in (tmp_path / "data" / "spool" / "n1").iterdir()] == []


def interactions(node: RunningNode, **more: Any) -> tuple[int, dict[str, Any], Mapping[str, str]]:
    asked = {"model": "parrot", "input": "hello", "generation_config": {"max_output_tokens": 5}}
    return call(node, "/v1/interactions", {**asked, **more})


def streamed(node: RunningNode, **more: Any) -> list[dict[str, Any]]:
    """Return the events of a streamed interaction."""
    asked = {"model": "parrot", "input": "hello", "stream": True, **more}
    request = urllib.request.Request(
        f"{node.url}/v1/interactions",
        json.dumps(asked).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        lines = [line[6:] for line in answer.read().decode().splitlines() if line[:5] == "data:"]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def test_interactions_are_made_without_their_store_and_are_in_it_afterwards(
    engine: Simulated, postgres: Postgres, tmp_path: Path
) -> None:
    workers = [f"grpc://{engine.address}"]
    with running_node(tmp_path, workers=workers, flags=flags_of(postgres)) as node:
        status, first, headers = interactions(node)
        assert status == 200
        assert "x-smg-store" not in headers

        postgres.server.kill9()
        try:
            status, second, headers = interactions(node, input="again")
            assert (status, headers["x-smg-store"]) == (200, "spooled")
            assert second["steps"]
            events = streamed(node, input="and again")
            assert events[-1]["event_type"] == "interaction.completed"
            assert not any("continuation_token" in event for event in events)
            third = events[-1]["interaction"]
            # What needs history is refused, so that it is tried again, and what needs none goes on.
            path = f"/v1/interactions/{second['id']}"
            refusals = [
                interactions(node, previous_interaction_id=first["id"]),
                interactions(node, background=True),
                *(call(node, f"{path}{query}") for query in ("", "?stream=false", "?stream=true")),
                call(node, f"{path}/cancel", {}),
            ]
            for status, refusal, headers in refusals:
                assert (status, refusal["error"]["status"]) == (503, "UNAVAILABLE")
                assert int(headers["retry-after"]) > 0
            for store in (False, None):
                more = {"previous_interaction_id": None} if store is None else {"store": False}
                assert interactions(node, **more)[0] == 200
            assert streamed(node, store=False)[-1]["interaction"]["status"] != "failed"
            assert spooled(node) == 3
        finally:
            postgres.server.start()
        node.process.wait_until(lambda: spooled(node) == 0, "done with its spool", WAIT_S)
        for one in (first, second):
            status, found, _ = call(node, f"/v1/interactions/{one['id']}")
            assert (status, found) == (200, one)
        status, found, _ = call(node, f"/v1/interactions/{third['id']}")
        assert (status, {key: found[key] for key in third}) == (200, third)
        status, fourth, headers = interactions(node, previous_interaction_id=third["id"])
        assert status == 200
        assert fourth["previous_interaction_id"] == third["id"]


def test_strict_history_is_refused_before_anything_runs(
    engine: Simulated, postgres: Postgres, tmp_path: Path
) -> None:
    flags = flags_of(postgres, "--storage.durability", "strict")
    workers = [f"grpc://{engine.address}"]
    with running_node(tmp_path, workers=workers, flags=flags) as node:
        assert responses(node)[0] == 200
        postgres.server.kill9()
        try:
            statuses = [responses(node)[0] for _ in range(8)]
            assert 200 not in statuses
            assert statuses[-1] == 503
            assert responses(node, store=False)[0] == 200
            assert spooled(node) == 0
        finally:
            postgres.server.start()
        node.process.wait_until(lambda: responses(node)[0] == 200, "well again", WAIT_S)


def test_tables_that_are_not_there_keep_a_node_from_being_ready(
    engine: Simulated, postgres: Postgres, tmp_path: Path
) -> None:
    elsewhere = postgres.url_of("template1")
    flags = ("--name", "n1", "--store", elsewhere, "--storage.auto-migrate", "off")
    with running_node(tmp_path, flags=(*flags, "--worker", f"grpc://{engine.address}")) as node:
        node.process.wait_until(
            lambda: "smg-admin db migrate" in str(call(node, "/readiness")[1]), "in doubt", WAIT_S
        )
        assert call(node, "/readiness")[0] == 503
        node.process.wait_until(lambda: responses(node, store=False)[0] == 200, "serving", WAIT_S)
