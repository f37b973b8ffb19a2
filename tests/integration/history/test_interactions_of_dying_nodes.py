"""Interactions whose node is killed or drains: three real nodes behind one address, and Google's own client before it."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from support.clients.genai_client import Hearing, client_of, heard
from support.processes.cutting_proxy import cutting_proxy
from support.processes.mesh_nodes import MeshNode
from support.processes.mesh_trio import Trio, running_trio
from support.processes.shared_store_nodes import STORES
from support.processes.simulated_engines import SAYS, running_simulated

pytestmark = pytest.mark.integration

GRACE_S = 2
SILENT_S = 5
ENGINES = {
    # It speaks for longer than a run goes on without its client.
    "steady": ("--itl-ms", "80", "--ttft-ms", "1"),
    "silent": ("--itl-ms", "1", "--ttft-ms", str(SILENT_S * 1_000)),
}
DEATH_S = 25.0
"""So long after its node was killed a stream may take to have an end."""
FAREWELL_S = 2.0
"""So long a node that stops listening may take to send its streams elsewhere, on a busy machine."""


@dataclass(frozen=True)
class Place:
    trio: Trio
    threads: ThreadPoolExecutor

    def ports(self, *names: str) -> list[int]:
        return [int(self.trio[name].node.url.rpartition(":")[2]) for name in names]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("place")
    with ExitStack() as stack:
        flags = ["--interactions.resume-grace-s", str(GRACE_S), "--interactions.checkpoint-ms", "0"]
        flags += ["--responses.resume-grace-s", str(GRACE_S)]
        for model, pace in ENGINES.items():
            (folder / model).mkdir()
            how = ("--script", "fixed", "--model", model, *pace)
            engine = stack.enter_context(running_simulated(folder / model, *how))
            flags += ["--worker", f"grpc://{engine.address}"]
        (folder / "store").mkdir()
        shared = stack.enter_context(STORES["redis"](folder / "store"))
        ready = ("--readiness.min-workers", str(len(ENGINES)))
        trio = stack.enter_context(running_trio(folder, *flags, *ready, *shared.flags))
        for node in trio.living:
            node.awaits_ready()
        yield Place(trio, stack.enter_context(ThreadPoolExecutor(16)))


def awaits(true: Callable[[], bool]) -> None:
    """Return when `true()` holds."""
    give_up_s = time.monotonic() + DEATH_S
    while not true():
        assert time.monotonic() < give_up_s
        time.sleep(0.02)


def listening(url: str, hearing: Hearing, model: str) -> None:
    with client_of(url) as client:
        heard(client, hearing, model=model, input="Hi")


@pytest.mark.timeout(120)
def test_a_stream_that_goes_on_at_another_node_is_not_cancelled_where_it_is_made(
    place: Place,
) -> None:
    before = resumed(place, "cut")
    with cutting_proxy(*place.ports("a", "b", "c")) as proxy, client_of(proxy.url) as client:
        proxy.ending = "between writes"
        proxy.cuts = [1_500]
        told = heard(client, model="steady", input="Hi")
        assert proxy.broken == 1
    assert (told.broke, told.text, told.status) == (None, SAYS, "completed")
    assert resumed(place, "cut") == before + 1


@pytest.mark.timeout(120)
def test_a_response_that_is_followed_at_another_node_is_not_cancelled_either(place: Place) -> None:
    made, other = (place.trio[name].node.url for name in ("a", "b"))
    body = {"model": "steady", "input": "Hi", "stream": True}
    with httpx2.Client(timeout=60) as wire:
        with wire.stream("POST", f"{made}/v1/responses", json=body) as answer:
            first = next(line for line in answer.iter_lines() if line.startswith("data: "))
            response_id = json.loads(first[6:])["response"]["id"]
        path = f"{other}/v1/responses/{response_id}"
        shown = wire.get(path, params={"stream": "true"}).text
        assert shown.endswith("data: [DONE]\n\n")
        kept = wire.get(path).json()
    assert (kept["status"], kept["output"][0]["content"][0]["text"]) == ("completed", SAYS)


@pytest.mark.timeout(120)
def test_a_run_whose_client_is_nowhere_is_cancelled(place: Place) -> None:
    url = place.trio["a"].node.url
    body = {"model": "steady", "input": "Hi", "stream": True}
    with httpx2.Client(timeout=60) as wire:
        with wire.stream("POST", f"{url}/v1/interactions", json=body) as answer:
            first = next(line for line in answer.iter_lines() if line.startswith("data: "))
            interaction_id = json.loads(first[6:])["interaction"]["id"]
        left_s = time.monotonic()
        path = f"{url}/v1/interactions/{interaction_id}"
        while wire.get(path).json()["status"] == "in_progress":
            assert time.monotonic() - left_s < GRACE_S + DEATH_S
            time.sleep(0.05)
        assert wire.get(path).json()["status"] == "cancelled"
    assert time.monotonic() - left_s >= GRACE_S


@pytest.mark.timeout(120)
def test_a_node_that_is_killed_leaves_no_user_with_a_part_for_the_whole(place: Place) -> None:
    ports = place.ports("b", "a", "c")
    proxies = ExitStack()
    with proxies:
        users = []
        for number in range(4):
            proxy = proxies.enter_context(cutting_proxy(*ports))
            hearing = Hearing()
            users.append((hearing, place.threads.submit(listening, proxy.url, hearing, "steady")))
            awaits(lambda hearing=hearing, number=number: len(hearing.text) > number)  # type: ignore[misc]  # bound now
        place.trio.kill("b", others_know=False)
        killed_s = time.monotonic()
        for hearing, listener in users:
            listener.result(timeout=DEATH_S + 30)
            assert_true_to(hearing)
        took_s = time.monotonic() - killed_s
    assert took_s < DEATH_S


def assert_true_to(hearing: Hearing) -> None:
    """Check that what its user heard of a stream whose node died is whole, or is no end that looks like one."""
    if hearing.broke is not None:
        return
    if hearing.status == "completed":
        assert (hearing.text, hearing.errors) == (SAYS, [])
        return
    assert hearing.status == "failed"
    assert len(hearing.errors) == 1
    assert SAYS.startswith(hearing.text)


@pytest.mark.timeout(120)
def test_a_node_that_drains_sends_its_streams_elsewhere_whole(place: Place) -> None:
    with ExitStack() as proxies:
        users = []
        for model in ("steady", "silent", "steady", "silent"):
            proxy = proxies.enter_context(cutting_proxy(*place.ports("c", "a")))
            hearing = Hearing()
            users.append((hearing, place.threads.submit(listening, proxy.url, hearing, model)))
        for hearing, _ in users[::2]:
            awaits(lambda hearing=hearing: bool(hearing.text))  # type: ignore[misc]  # bound now
        watched = place.threads.submit(left_by, place.trio["c"])
        awaits(lambda: runs_at(place.trio["c"]) == len(users) + 1)
        before = resumed(place, "drain")
        process = place.trio["c"].process
        process.signal(signal.SIGTERM)
        asked_s = time.monotonic()
        ended_s, events = watched.result(timeout=60)
        assert ended_s - asked_s < FAREWELL_S
        assert [event["event_type"] for event in events] == ["interaction.status_update"]
        assert "continuation_token" in events[0]
        for hearing, listener in users:
            listener.result(timeout=60)
            assert (hearing.broke, hearing.errors) == (None, [])
            assert (hearing.text, hearing.status) == (SAYS, "completed")
    assert place.trio.stop("c") == 0
    assert resumed(place, "drain") == before + len(users)


def runs_at(node: MeshNode) -> float:
    """Return how many answers a node makes that go on without their client."""
    return node.node.metric("smg_node_registered_runs")


def resumed(place: Place, cause: str) -> float:
    """Return how many streams of interactions living nodes have told the rest of, for this cause."""
    labels = {"api": "interactions", "cause": cause, "ending": "whole"}
    return sum(
        node.node.metric("smg_node_streams_resumed_total", **labels) for node in place.trio.living
    )


def left_by(node: MeshNode) -> tuple[float, list[dict[str, Any]]]:
    """Return when a stream of the silent engine ended, and its events."""
    body = {"model": "silent", "input": "Hi", "stream": True}
    with httpx2.Client(timeout=60) as wire:
        text = wire.post(f"{node.node.url}/v1/interactions", json=body).text
    ended_s = time.monotonic()
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    return ended_s, [json.loads(line) for line in lines]
